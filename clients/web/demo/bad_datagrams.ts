// A simulated bad network for datagrams, inside the page: it loses and reorders them.

import type { DatagramLink } from "../src/index.js";
import { type Badness, GOOD, IN_FLIGHT_MAX } from "./slow_session.js";

type Take = (packet: Uint8Array) => void;

/** One direction of the network. Nothing is sent again: reliability is a task of the endpoints. */
class Direction {
  private readonly inFlight: { packet: Uint8Array; atS: number }[] = [];

  constructor(private readonly random: () => number) {}

  send(packet: Uint8Array, nowS: number, { lagS, jitterS, lossShare }: Badness): void {
    // A full queue drops new packets.
    if (this.random() >= lossShare && this.inFlight.length < IN_FLIGHT_MAX) {
      this.inFlight.push({ packet: packet.slice(), atS: nowS + lagS + jitterS * this.random() });
    }
  }

  arrive(nowS: number, take: Take): void {
    const due = this.inFlight.filter(({ atS }) => atS <= nowS).sort((a, b) => a.atS - b.atS);
    if (due.length > 0) {
      const later = this.inFlight.filter(({ atS }) => atS > nowS);
      this.inFlight.splice(0, this.inFlight.length, ...later);
      due.forEach(({ packet }) => take(packet));
    }
  }
}

/** A layer between an endpoint and the network. */
export class BadDatagrams implements DatagramLink {
  badness = GOOD;
  private readonly outgoing: Direction;
  private readonly incoming: Direction;

  constructor(random: () => number = Math.random) {
    [this.outgoing, this.incoming] = [new Direction(random), new Direction(random)];
  }

  send(packet: Uint8Array, nowS: number): void {
    this.outgoing.send(packet, nowS, this.badness);
  }

  receive(packet: Uint8Array, nowS: number): void {
    this.incoming.send(packet, nowS, this.badness);
  }

  update(nowS: number, send: Take, take: Take): void {
    this.incoming.arrive(nowS, take);
    this.outgoing.arrive(nowS, send);
  }
}
