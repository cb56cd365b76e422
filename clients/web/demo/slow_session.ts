// A session over a simulated bad stream, inside the page: shows what distant players see.

import { Session } from "../src/index.js";

/** Network conditions. Times are in seconds, one way. */
export type Badness = { lagS: number; jitterS: number; lossShare: number };

export const GOOD: Badness = { lagS: 0, jitterS: 0, lossShare: 0 };

/** Maximum number of packets in flight in one direction; above it the oldest arrives at once. */
export const UNDER_WAY_MAX = 1024;
/** A stream detects a loss by later packets, and sends lost bytes again: one more round trip. */
const NOTICED_AFTER_S = 0.15;

/** One direction. It keeps the order, like the stream that it simulates. */
class Way {
  private readonly underWay: { packet: Uint8Array; atS: number }[] = [];

  send(packet: Uint8Array, nowS: number, { lagS, jitterS, lossShare }: Badness): void {
    const isLost = Math.random() < lossShare;
    const tookS = lagS + jitterS * Math.random() + (isLost ? 2 * lagS + NOTICED_AFTER_S : 0);
    // Packets keep their order: those after a delayed one are delayed, too.
    const atS = Math.max(nowS + tookS, this.underWay.at(-1)?.atS ?? 0);
    this.underWay.push({ packet: packet.slice(), atS });
  }

  arrive(nowS: number, take: (packet: Uint8Array) => void): void {
    for (let first = this.underWay[0]; first !== undefined && (first.atS <= nowS || this.underWay.length > UNDER_WAY_MAX); first = this.underWay[0]) {
      this.underWay.shift();
      take(first.packet);
    }
  }

  clear(): void {
    this.underWay.length = 0;
  }
}

/** A session with delayed packets in both directions. Packets arrive when [`act`](Session.act) is called. */
export class SlowSession extends Session {
  badness = GOOD;
  private readonly there = new Way();
  private readonly back = new Way();
  private fault: unknown = null;

  override take(packet: Uint8Array, nowS: number): void {
    if (this.fault !== null) {
      throw this.fault;
    }
    this.back.send(packet, nowS, this.badness);
    this.arrive(nowS);
    if (this.fault !== null) {
      throw this.fault;
    }
  }

  override act(nowS: number, say: (message: Uint8Array) => void): void {
    this.arrive(nowS);
    super.act(nowS, (message) => this.there.send(message, nowS, this.badness));
    this.there.arrive(nowS, say);
  }

  override reconnect(): void {
    this.there.clear();
    this.back.clear();
    this.fault = null;
    super.reconnect();
  }

  private arrive(nowS: number): void {
    this.back.arrive(nowS, (packet) => {
      try {
        super.take(packet, nowS);
      } catch (fault) {
        // Reported to the connection with the next packet, which makes it close.
        this.fault ??= fault;
      }
    });
  }
}
