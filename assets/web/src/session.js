import { clientMessage } from "./client_message.js";
import { WireError } from "./codec.js";
import { Mirror } from "./mirror.js";
import { Predictor } from "./predictor.js";
const JUMP_M = 3;
const CATCH_UP_TICKS_MAX = 4;
const CLIENT_MESSAGE_BYTES_MAX = 1_024;
const QUEUE_MAX = 64;
const CLOCK_SAMPLES = 16;
class Smoothing {
    smoothS;
    offsets = new Map();
    constructor(smoothS) {
        this.smoothS = smoothS;
    }
    offset(id, nowS) {
        const offset = this.offsets.get(id);
        if (offset === undefined) {
            return { x: 0, y: 0 };
        }
        const left = Math.exp(-Math.max(nowS - offset.sinceS, 0) / this.smoothS);
        return { x: offset.way.x * left, y: offset.way.y * left };
    }
    follow(id, shown, known, nowS) {
        const way = { x: shown.x - known.x, y: shown.y - known.y };
        if (this.smoothS > 0 && Math.hypot(way.x, way.y) < JUMP_M) {
            this.offsets.set(id, { way, sinceS: nowS });
        }
        else {
            this.offsets.delete(id);
        }
    }
    forget(id) {
        this.offsets.delete(id);
    }
    clear() {
        this.offsets.clear();
    }
}
class ServerClock {
    number = 0;
    requests = new Map();
    samples = [];
    request(nowS) {
        this.number = (this.number + 1) % 2 ** 32;
        this.requests.set(this.number, nowS);
        this.requests.delete(this.number - CLOCK_SAMPLES);
        return this.number;
    }
    restart() {
        this.requests.clear();
        this.samples.length = 0;
    }
    record(number, tick, tickS, nowS) {
        const sentS = this.requests.get(number);
        if (sentS === undefined || !(nowS >= sentS)) {
            return;
        }
        this.requests.delete(number);
        const roundTripS = nowS - sentS;
        this.samples.push({ roundTripS, tickAtZero: tick - (sentS + roundTripS / 2) / tickS });
        if (this.samples.length > CLOCK_SAMPLES) {
            this.samples.shift();
        }
    }
    get last() {
        return this.samples.at(-1) ?? null;
    }
    get best() {
        const shorter = (a, b) => a.roundTripS - b.roundTripS;
        return this.samples.toReversed().toSorted(shorter)[0] ?? null;
    }
}
export class Session {
    settings;
    events;
    mirror = new Mirror();
    predictor = new Predictor();
    closed = null;
    refusal = null;
    isWelcome = false;
    isFree;
    shown;
    clock = new ServerClock();
    motion = { kind: "stand" };
    heading = 0;
    buttons = 0;
    receivedS = 0;
    nextInputS = null;
    nextPingS = 0;
    ownBefore = null;
    resumable = null;
    isGreeted = false;
    awaitsWelcome = false;
    ready = null;
    queue = [];
    constructor(settings = {}, events = {}) {
        this.settings = settings;
        this.events = events;
        this.shown = new Smoothing(settings.smoothS ?? 0.1);
    }
    take(packet, nowS) {
        const { mirror } = this;
        const [tickBefore, takeoversBefore] = [mirror.tick, mirror.takeovers];
        const moved = new Map();
        const ownShown = this.ownPosition(nowS);
        try {
            mirror.receive(packet, (message) => {
                if (message.kind === "motion") {
                    const at = this.shownAt(message.id, nowS);
                    if (at !== null) {
                        moved.set(message.id, at);
                    }
                }
                this.handle(message, nowS);
            });
        }
        finally {
            if (mirror.tick > tickBefore || mirror.takeovers !== takeoversBefore) {
                this.receivedS = nowS;
            }
            for (const [id, was] of moved) {
                const known = mirror.positionAfter(id, this.sinceS(nowS));
                if (known !== null) {
                    this.shown.follow(id, was, known, nowS);
                }
            }
        }
        if (this.nextInputS === null && mirror.tickS > 0) {
            this.nextInputS = nowS;
        }
        else if (this.nextInputS !== null && mirror.takeovers !== takeoversBefore) {
            this.nextInputS = Math.min(this.nextInputS, nowS + this.realTickS);
        }
        this.followOwn(ownShown, nowS);
    }
    act(nowS, say) {
        const { mirror, settings } = this;
        if (!this.isGreeted) {
            this.isGreeted = true;
            const { resumable } = this;
            say(resumable === null
                ? clientMessage.login(settings.player ?? 0n, settings.credential)
                : clientMessage.resume(resumable.player, resumable.token, mirror.received));
        }
        if (this.awaitsWelcome) {
            return;
        }
        if (this.ready !== null) {
            say(clientMessage.ready(this.ready));
            this.ready = null;
        }
        this.queue.splice(0).forEach(say);
        if (this.nextInputS === null) {
            return;
        }
        if (nowS >= this.nextPingS) {
            this.nextPingS = nowS + (settings.pingEveryS ?? 1);
            say(clientMessage.ping(this.clock.request(nowS)));
        }
        if (nowS > this.nextInputS + CATCH_UP_TICKS_MAX * this.realTickS) {
            this.nextInputS = nowS;
        }
        const clientTick = Math.floor(this.serverTick(nowS) ?? mirror.tick) & 0xffff;
        while (nowS >= this.nextInputS) {
            this.nextInputS += this.realTickS;
            const before = this.predictor.position;
            const { motion, heading, buttons } = this;
            const input = this.predictor.act(this.ground(), { clientTick, heading, buttons, motion });
            this.ownBefore = before;
            if (input !== null) {
                say(clientMessage.input(input));
            }
        }
    }
    walk(motion, heading, buttons = 0) {
        [this.motion, this.heading, this.buttons] = [motion, heading, buttons];
    }
    say(message) {
        if (message.length > CLIENT_MESSAGE_BYTES_MAX) {
            throw new WireError(`a message of ${message.length} bytes, at most ${CLIENT_MESSAGE_BYTES_MAX} are allowed`);
        }
        this.queue.push(message);
        this.queue.splice(0, this.queue.length - QUEUE_MAX);
    }
    reconnect() {
        this.mirror.reconnect();
        this.isGreeted = this.isWelcome = false;
        this.awaitsWelcome = this.resumable !== null;
        this.closed = this.refusal = null;
    }
    position(id, nowS) {
        return this.mirror.own?.id === id ? this.ownPosition(nowS) : this.shownAt(id, nowS);
    }
    ownPosition(nowS) {
        const to = this.predictor.position;
        if (to === null || this.mirror.own === null) {
            return null;
        }
        const from = this.ownBefore ?? to;
        const left = Math.min(Math.max(((this.nextInputS ?? nowS) - nowS) / Math.max(this.realTickS, 1e-6), 0), 1);
        const offset = this.shown.offset(this.mirror.own.id, nowS);
        return { x: to.x + (from.x - to.x) * left + offset.x, y: to.y + (from.y - to.y) * left + offset.y };
    }
    serverTick(nowS) {
        const best = this.clock.best;
        return best === null ? null : best.tickAtZero + nowS / this.realTickS;
    }
    get roundTripS() {
        return this.clock.best?.roundTripS ?? null;
    }
    get lastRoundTripS() {
        return this.clock.last?.roundTripS ?? null;
    }
    get realTickS() {
        return (this.mirror.tickS * 100) / this.mirror.timePercent;
    }
    ground() {
        const { mirror } = this;
        return { size: mirror.size, stepM: mirror.ownStepM, isFree: this.isFree };
    }
    sinceS(nowS) {
        return Math.max(nowS - this.receivedS, 0);
    }
    shownAt(id, nowS) {
        const known = this.mirror.positionAfter(id, this.sinceS(nowS));
        const offset = this.shown.offset(id, nowS);
        return known === null ? null : { x: known.x + offset.x, y: known.y + offset.y };
    }
    handle(message, nowS) {
        this.events.message?.(message);
        switch (message.kind) {
            case "hello":
                this.clock.restart();
                this.nextPingS = Math.min(this.nextPingS, nowS);
                break;
            case "scene":
                this.shown.clear();
                break;
            case "despawn":
                this.shown.forget(message.id);
                break;
            case "pong":
                this.clock.record(message.number, message.tick, this.realTickS, nowS);
                break;
            default:
                this.handleNotice(message);
        }
    }
    handleNotice(message) {
        switch (message.kind) {
            case "welcome":
                this.isWelcome = true;
                this.resumable = { player: message.player, token: message.token };
                this.awaitsWelcome = false;
                break;
            case "loading":
                this.ready = message.scene;
                break;
            case "notResumed":
                this.resumable = null;
                this.isGreeted = false;
                break;
            case "continued":
                if (!message.keeps) {
                    this.shown.clear();
                }
                break;
            case "closed":
                this.closed = message.reason;
                this.refusal = message.refusal;
                break;
            case "timeRate":
                this.clock.restart();
                break;
            default:
        }
    }
    followOwn(shown, nowS) {
        const correction = this.predictor.follow(this.ground(), this.mirror);
        const isMoved = this.predictor.takeSpeedJump() !== null || correction !== null;
        const [own, place] = [this.mirror.own, this.predictor.position];
        if (own === null || place === null) {
            this.ownBefore = null;
        }
        else if (isMoved) {
            this.ownBefore = place;
            if (shown !== null) {
                this.shown.follow(own.id, shown, place, nowS);
            }
        }
        if (correction !== null) {
            this.events.corrected?.(correction);
        }
    }
}
