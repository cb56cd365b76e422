// A simulated bad network for datagrams, inside the page: it loses and reorders them.

import type { DatagramLink } from "../src/index.js";
import { type Badness, GOOD, UNDER_WAY_MAX } from "./slow_session.js";

type Take = (packet: Uint8Array) => void;

/** One direction. Nothing is sent again: reliability is a task of the endpoints. */
class Way {
  private readonly underWay: { packet: Uint8Array; atS: number }[] = [];

  constructor(private readonly random: () => number) {}

  send(packet: Uint8Array, nowS: number, { lagS, jitterS, lossShare }: Badness): void {
    // A full queue drops new packets.
    if (this.random() >= lossShare && this.underWay.length < UNDER_WAY_MAX) {
      this.underWay.push({ packet: packet.slice(), atS: nowS + lagS + jitterS * this.random() });
    }
  }

  arrive(nowS: number, take: Take): void {
    const due = this.underWay.filter(({ atS }) => atS <= nowS).sort((a, b) => a.atS - b.atS);
    if (due.length > 0) {
      const later = this.underWay.filter(({ atS }) => atS > nowS);
      this.underWay.splice(0, this.underWay.length, ...later);
      due.forEach(({ packet }) => take(packet));
    }
  }
}

/** A layer between an endpoint and the network. */
export class BadDatagrams implements DatagramLink {
  badness = GOOD;
  private readonly there: Way;
  private readonly back: Way;

  constructor(random: () => number = Math.random) {
    [this.there, this.back] = [new Way(random), new Way(random)];
  }

  send(packet: Uint8Array, nowS: number): void {
    this.there.send(packet, nowS, this.badness);
  }

  receive(packet: Uint8Array, nowS: number): void {
    this.back.send(packet, nowS, this.badness);
  }

  update(nowS: number, send: Take, take: Take): void {
    this.back.arrive(nowS, take);
    this.there.arrive(nowS, send);
  }
}
