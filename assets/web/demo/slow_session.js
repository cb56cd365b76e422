import { Session } from "../src/index.js";
export const GOOD = { lagS: 0, jitterS: 0, lossShare: 0 };
export const IN_FLIGHT_MAX = 1024;
const LOSS_DETECTION_S = 0.15;
class Direction {
    inFlight = [];
    send(packet, nowS, { lagS, jitterS, lossShare }) {
        const isLost = Math.random() < lossShare;
        const tookS = lagS + jitterS * Math.random() + (isLost ? 2 * lagS + LOSS_DETECTION_S : 0);
        const atS = Math.max(nowS + tookS, this.inFlight.at(-1)?.atS ?? 0);
        this.inFlight.push({ packet: packet.slice(), atS });
    }
    arrive(nowS, take) {
        for (let first = this.inFlight[0]; first !== undefined && (first.atS <= nowS || this.inFlight.length > IN_FLIGHT_MAX); first = this.inFlight[0]) {
            this.inFlight.shift();
            take(first.packet);
        }
    }
    clear() {
        this.inFlight.length = 0;
    }
}
export class SlowSession extends Session {
    badness = GOOD;
    outgoing = new Direction();
    incoming = new Direction();
    fault = null;
    take(packet, nowS) {
        if (this.fault !== null) {
            throw this.fault;
        }
        this.incoming.send(packet, nowS, this.badness);
        this.arrive(nowS);
        if (this.fault !== null) {
            throw this.fault;
        }
    }
    act(nowS, say) {
        this.arrive(nowS);
        super.act(nowS, (message) => this.outgoing.send(message, nowS, this.badness));
        this.outgoing.arrive(nowS, say);
    }
    reconnect() {
        this.outgoing.clear();
        this.incoming.clear();
        this.fault = null;
        super.reconnect();
    }
    arrive(nowS) {
        this.incoming.arrive(nowS, (packet) => {
            try {
                super.take(packet, nowS);
            }
            catch (fault) {
                this.fault ??= fault;
            }
        });
    }
}
