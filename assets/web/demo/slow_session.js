import { Session } from "../src/index.js";
export const GOOD = { lagS: 0, jitterS: 0, lossShare: 0 };
export const UNDER_WAY_MAX = 1024;
const NOTICED_AFTER_S = 0.15;
class Way {
    underWay = [];
    send(packet, nowS, { lagS, jitterS, lossShare }) {
        const isLost = Math.random() < lossShare;
        const tookS = lagS + jitterS * Math.random() + (isLost ? 2 * lagS + NOTICED_AFTER_S : 0);
        const atS = Math.max(nowS + tookS, this.underWay.at(-1)?.atS ?? 0);
        this.underWay.push({ packet: packet.slice(), atS });
    }
    arrive(nowS, take) {
        for (let first = this.underWay[0]; first !== undefined && (first.atS <= nowS || this.underWay.length > UNDER_WAY_MAX); first = this.underWay[0]) {
            this.underWay.shift();
            take(first.packet);
        }
    }
    clear() {
        this.underWay.length = 0;
    }
}
export class SlowSession extends Session {
    badness = GOOD;
    there = new Way();
    back = new Way();
    fault = null;
    take(packet, nowS) {
        if (this.fault !== null) {
            throw this.fault;
        }
        this.back.send(packet, nowS, this.badness);
        this.arrive(nowS);
        if (this.fault !== null) {
            throw this.fault;
        }
    }
    act(nowS, say) {
        this.arrive(nowS);
        super.act(nowS, (message) => this.there.send(message, nowS, this.badness));
        this.there.arrive(nowS, say);
    }
    reconnect() {
        this.there.clear();
        this.back.clear();
        this.fault = null;
        super.reconnect();
    }
    arrive(nowS) {
        this.back.arrive(nowS, (packet) => {
            try {
                super.take(packet, nowS);
            }
            catch (fault) {
                this.fault ??= fault;
            }
        });
    }
}
