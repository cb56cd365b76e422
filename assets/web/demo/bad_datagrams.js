import { GOOD, IN_FLIGHT_MAX } from "./slow_session.js";
class Direction {
    random;
    inFlight = [];
    constructor(random) {
        this.random = random;
    }
    send(packet, nowS, { lagS, jitterS, lossShare }) {
        if (this.random() >= lossShare && this.inFlight.length < IN_FLIGHT_MAX) {
            this.inFlight.push({ packet: packet.slice(), atS: nowS + lagS + jitterS * this.random() });
        }
    }
    arrive(nowS, take) {
        const due = this.inFlight.filter(({ atS }) => atS <= nowS).sort((a, b) => a.atS - b.atS);
        if (due.length > 0) {
            const later = this.inFlight.filter(({ atS }) => atS > nowS);
            this.inFlight.splice(0, this.inFlight.length, ...later);
            due.forEach(({ packet }) => take(packet));
        }
    }
}
export class BadDatagrams {
    badness = GOOD;
    outgoing;
    incoming;
    constructor(random = Math.random) {
        [this.outgoing, this.incoming] = [new Direction(random), new Direction(random)];
    }
    send(packet, nowS) {
        this.outgoing.send(packet, nowS, this.badness);
    }
    receive(packet, nowS) {
        this.incoming.send(packet, nowS, this.badness);
    }
    update(nowS, send, take) {
        this.incoming.arrive(nowS, take);
        this.outgoing.arrive(nowS, send);
    }
}
