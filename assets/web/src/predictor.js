import { isNewer } from "./codec.js";
export const UNHANDLED_MAX = 64;
const SAME_PLACE_M = 1 / 64;
const f32 = Math.fround;
export function directionOf(direction) {
    const inQuarter = direction % 64;
    const near = inQuarter <= 32 ? inQuarter : 64 - inQuarter;
    const angle = (near * Math.PI) / 128;
    const [cosine, sine] = [f32(Math.cos(angle)), f32(Math.sin(angle))];
    const [x, y] = inQuarter <= 32 ? [cosine, sine] : [sine, cosine];
    switch (Math.floor(direction / 64) % 4) {
        case 0:
            return { x, y };
        case 1:
            return { x: -y, y: x };
        case 2:
            return { x: -x, y: -y };
        default:
            return { x: y, y: -x };
    }
}
const clamp = (value, most) => Math.min(Math.max(value, 0), Math.max(most, 0));
const isSame = (a, b) => a.x === b.x && a.y === b.y;
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
export function towards(on, from, direction) {
    const unit = directionOf(direction);
    const way = { x: f32(unit.x * on.stepM), y: f32(unit.y * on.stepM) };
    const [alongX, alongY] = [{ x: way.x, y: 0 }, { x: 0, y: way.y }];
    const ways = Math.abs(way.x) >= Math.abs(way.y) ? [way, alongX, alongY] : [way, alongY, alongX];
    const ends = ways.map(({ x, y }) => ({ x: clamp(f32(from.x + x), on.size.x), y: clamp(f32(from.y + y), on.size.y) }));
    const { isFree } = on;
    return (isFree === undefined ? ends[0] : ends.find((end) => isFree(from, end))) ?? from;
}
function walk(on, from, motion) {
    switch (motion.kind) {
        case "stand":
            return from;
        case "to":
            return on.isFree === undefined || on.isFree(from, motion.to) ? motion.to : from;
        case "towards":
            return towards(on, from, motion.direction);
    }
}
export class Predictor {
    own = null;
    confirmed = { x: 0, y: 0 };
    confirmedTick = null;
    unhandled = [];
    seq = 0;
    hasActed = false;
    stepM = 0;
    speedJump = null;
    act(on, input) {
        if (this.own === null || this.unhandled.length >= UNHANDLED_MAX) {
            return null;
        }
        this.seq = (this.seq + 1) & 0xffff;
        const numbered = { ...input, seq: this.seq };
        this.unhandled.push({ input: numbered, to: walk(on, this.place(), input.motion) });
        this.hasActed = true;
        return numbered;
    }
    follow(on, mirror) {
        if (mirror.own === null || mirror.scene === null) {
            [this.own, this.confirmedTick, this.unhandled, this.hasActed] = [null, null, [], false];
            return null;
        }
        const { id, generation } = mirror.own;
        const own = `${mirror.takeovers}/${mirror.scene}/${id}/${generation}`;
        if (own !== this.own) {
            this.own = own;
            this.hasActed = this.unhandled.length > 0;
            this.confirmedTick = null;
            this.begin(on, id, mirror);
            return null;
        }
        if (!this.hasActed) {
            this.begin(on, id, mirror);
            return null;
        }
        if (on.stepM !== this.stepM) {
            const before = this.place();
            this.replayInputs(on);
            const [now, jump] = [this.place(), this.speedJump ?? { x: 0, y: 0 }];
            this.speedJump = { x: jump.x + now.x - before.x, y: jump.y + now.y - before.y };
        }
        const sent = mirror.ownPosition;
        if (sent === null || (this.confirmedTick !== null && sent.tick <= this.confirmedTick)) {
            return null;
        }
        return this.confirm(on, sent.tick, sent.input, sent.position);
    }
    takeSpeedJump() {
        const jump = this.speedJump;
        this.speedJump = null;
        return jump;
    }
    get position() {
        return this.own === null ? null : this.place();
    }
    get unanswered() {
        return this.unhandled.length;
    }
    begin(on, id, mirror) {
        const exact = mirror.ownPosition;
        const shown = mirror.positionAfter(id, 0);
        const isExact = exact !== null && (shown === null || distance(shown, exact.position) <= SAME_PLACE_M);
        const at = isExact ? exact.position : shown;
        if (at !== null) {
            this.confirmed = { x: f32(at.x), y: f32(at.y) };
        }
        this.confirmedTick = exact?.tick ?? null;
        this.replayInputs(on);
    }
    confirm(on, tick, input, position) {
        const before = this.place();
        for (let first = this.unhandled[0]; first !== undefined && !isNewer(first.input.seq, input); first = this.unhandled[0]) {
            this.confirmed = first.to;
            this.unhandled.shift();
        }
        const walked = this.confirmed;
        this.confirmed = position;
        this.confirmedTick = tick;
        if (isSame(walked, position)) {
            return null;
        }
        this.replayInputs(on);
        const place = this.place();
        return { input, offM: distance(walked, position), jump: { x: place.x - before.x, y: place.y - before.y } };
    }
    replayInputs(on) {
        this.stepM = on.stepM;
        let at = this.confirmed;
        for (const step of this.unhandled) {
            step.to = at = walk(on, at, step.input.motion);
        }
    }
    place() {
        return this.unhandled.at(-1)?.to ?? this.confirmed;
    }
}
