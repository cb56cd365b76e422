import { GOOD, UNDER_WAY_MAX } from "./slow_session.js";
class Way {
    random;
    underWay = [];
    constructor(random) {
        this.random = random;
    }
    send(packet, nowS, { lagS, jitterS, lossShare }) {
        if (this.random() >= lossShare && this.underWay.length < UNDER_WAY_MAX) {
            this.underWay.push({ packet: packet.slice(), atS: nowS + lagS + jitterS * this.random() });
        }
    }
    arrive(nowS, take) {
        const due = this.underWay.filter(({ atS }) => atS <= nowS).sort((a, b) => a.atS - b.atS);
        if (due.length > 0) {
            const later = this.underWay.filter(({ atS }) => atS > nowS);
            this.underWay.splice(0, this.underWay.length, ...later);
            due.forEach(({ packet }) => take(packet));
        }
    }
}
export class BadDatagrams {
    badness = GOOD;
    there;
    back;
    constructor(random = Math.random) {
        [this.there, this.back] = [new Way(random), new Way(random)];
    }
    send(packet, nowS) {
        this.there.send(packet, nowS, this.badness);
    }
    receive(packet, nowS) {
        this.back.send(packet, nowS, this.badness);
    }
    update(nowS, send, take) {
        this.back.arrive(nowS, take);
        this.there.arrive(nowS, send);
    }
}
