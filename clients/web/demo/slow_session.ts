// A session over a simulated bad stream, inside the page, to show what distant players see.

import { Session } from "../src/index.js";

/** Network conditions. Times are in seconds, one way. */
export type Badness = { lagS: number; jitterS: number; lossShare: number };

export const GOOD: Badness = { lagS: 0, jitterS: 0, lossShare: 0 };

/** Maximum number of packets in flight in one direction; above it the oldest arrives at once. */
export const IN_FLIGHT_MAX = 1024;
/** Time in which a stream detects a loss by later packets, in seconds. Sending the lost bytes again takes another round trip. */
const LOSS_DETECTION_S = 0.15;

/** One direction. It keeps the order, like the stream that it simulates. */
class Direction {
  private readonly inFlight: { packet: Uint8Array; atS: number }[] = [];

  send(packet: Uint8Array, nowS: number, { lagS, jitterS, lossShare }: Badness): void {
    const isLost = Math.random() < lossShare;
    const tookS = lagS + jitterS * Math.random() + (isLost ? 2 * lagS + LOSS_DETECTION_S : 0);
    // Packets keep their order: those after a delayed one are delayed, too.
    const atS = Math.max(nowS + tookS, this.inFlight.at(-1)?.atS ?? 0);
    this.inFlight.push({ packet: packet.slice(), atS });
  }

  arrive(nowS: number, take: (packet: Uint8Array) => void): void {
    for (let first = this.inFlight[0]; first !== undefined && (first.atS <= nowS || this.inFlight.length > IN_FLIGHT_MAX); first = this.inFlight[0]) {
      this.inFlight.shift();
      take(first.packet);
    }
  }

  clear(): void {
    this.inFlight.length = 0;
  }
}

/** A session with delayed packets in both directions. Packets arrive when [`act`](Session.act) is called. */
export class SlowSession extends Session {
  badness = GOOD;
  private readonly outgoing = new Direction();
  private readonly incoming = new Direction();
  private fault: unknown = null;

  override take(packet: Uint8Array, nowS: number): void {
    if (this.fault !== null) {
      throw this.fault;
    }
    this.incoming.send(packet, nowS, this.badness);
    this.arrive(nowS);
    if (this.fault !== null) {
      throw this.fault;
    }
  }

  override act(nowS: number, say: (message: Uint8Array) => void): void {
    this.arrive(nowS);
    super.act(nowS, (message) => this.outgoing.send(message, nowS, this.badness));
    this.outgoing.arrive(nowS, say);
  }

  override reconnect(): void {
    this.outgoing.clear();
    this.incoming.clear();
    this.fault = null;
    super.reconnect();
  }

  private arrive(nowS: number): void {
    this.incoming.arrive(nowS, (packet) => {
      try {
        super.take(packet, nowS);
      } catch (fault) {
        // Thrown at the next packet, so that the connection closes.
        this.fault ??= fault;
      }
    });
  }
}
