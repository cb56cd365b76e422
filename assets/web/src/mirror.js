import { Reader, WireError, widen } from "./codec.js";
import { Reassembler, after, readServerMessage } from "./server_message.js";
const isNotice = (message) => ["queued", "welcome", "loading", "closed", "pong", "notResumed", "continued", "timeRate"].includes(message.kind);
const remoteKey = (scene, id, generation) => `${scene}/${id}/${generation}`;
function set(values, attributes) {
    for (const { id, value } of attributes) {
        if (value === null) {
            values.delete(id);
        }
        else {
            values.set(id, value);
        }
    }
}
export class Mirror {
    objects = new Map();
    remotes = new Map();
    scene = null;
    size = { x: 0, y: 0 };
    own = null;
    ownPosition = null;
    ownSpeed = null;
    tick = 0;
    tickS = 0;
    timePercent = 100;
    input = 0;
    received = 0;
    packets = 0;
    ignored = 0;
    announces = 0;
    takeovers = 0;
    isGreeted = false;
    epoch = 0;
    sequence = null;
    reassembler = new Reassembler();
    receive(packet, show = () => { }) {
        const { header, messages } = this.reassembler.accept(packet);
        if (header.isReliable) {
            const expected = this.sequence === null ? 0 : (this.sequence + 1) % 0x10000;
            if (header.sequence !== expected) {
                throw new WireError(`packet ${header.sequence}, expected ${expected}`);
            }
            this.sequence = header.sequence;
            this.input = header.input;
        }
        this.packets += 1;
        if (!header.isReliable && header.epoch !== this.epoch) {
            this.ignored += 1;
            return;
        }
        let isWelcomed = false;
        const reader = new Reader(messages);
        while (!reader.isEmpty) {
            const message = readServerMessage(reader);
            show(message);
            isWelcomed ||= message.kind === "welcome";
            this.take(message, header);
        }
        if (header.isReliable) {
            this.received = ((isWelcomed ? 0 : this.received) + messages.length) % 2 ** 32;
        }
        this.tick = Math.max(this.tick, widen(this.tick, header.tick));
    }
    reconnect() {
        this.sequence = null;
        this.reassembler = new Reassembler();
        this.isGreeted = false;
    }
    positionAfter(id, realS) {
        const object = this.objects.get(id);
        if (object === undefined) {
            return null;
        }
        const ticks = Math.max(this.tick - object.motionTick, 0);
        return after(object.motion, ticks * this.tickS + (realS * this.timePercent) / 100);
    }
    get ownStepM() {
        return Math.fround((this.ownSpeed?.speedMS ?? 0) * this.tickS);
    }
    take(message, header) {
        if (message.kind === "hello") {
            this.takeovers += this.isGreeted ? 1 : 0;
            this.isGreeted = true;
            this.tick = message.tick;
            this.tickS = Math.fround(1000 / Math.max(message.tickMillihertz, 1));
            this.timePercent = 100;
        }
        else if (isNotice(message)) {
            this.handleNotice(message, header);
        }
        else {
            if (message.kind === "scene") {
                this.epoch = header.epoch;
            }
            else if (header.epoch !== this.epoch) {
                throw new WireError(`epoch ${header.epoch} without a Scene message, expected epoch ${this.epoch}`);
            }
            this.apply(message, widen(this.tick, header.tick), header);
        }
    }
    handleNotice(notice, header) {
        if (notice.kind === "timeRate") {
            this.timePercent = Math.min(Math.max(notice.percent, 1), 100);
        }
        else if (notice.kind === "continued") {
            this.epoch = header.epoch;
            if (!notice.keeps) {
                this.forget();
            }
        }
    }
    apply(message, tick, header) {
        switch (message.kind) {
            case "scene":
                this.forget();
                this.scene = message.scene;
                this.size = message.size;
                break;
            case "own":
                this.own = { id: message.id, generation: message.generation };
                break;
            case "despawn":
                this.known(message);
                this.objects.delete(message.id);
                if (this.own?.id === message.id && this.own.generation === message.generation) {
                    this.forget();
                }
                break;
            case "snapshot":
                this.addObject(message, tick);
                break;
            case "delta":
                set(this.known(message).attributes, message.attributes);
                break;
            case "motion":
                this.move(message, tick, header.isReliable);
                break;
            case "announce":
                this.announces += 1;
                break;
            case "ownPosition":
                if (this.ownPosition !== null && this.ownPosition.tick >= tick) {
                    this.ignored += 1;
                }
                else {
                    this.ownPosition = { tick, input: header.input, position: message.position };
                }
                break;
            case "ownSpeed":
                this.ownSpeed = { tick, speedMS: message.speedMS };
                break;
            case "remote":
            case "remoteDelta":
            case "forget":
                this.handleRemote(message);
                break;
            case "hello":
                break;
        }
    }
    addObject(message, tick) {
        const { id, generation, objectKind: kind, motion } = message;
        if (this.objects.has(id) || this.remotes.has(remoteKey(this.scene ?? 0, id, generation))) {
            throw new WireError(`object ${id} (generation ${generation}) is known already`);
        }
        const attributes = new Map();
        set(attributes, message.attributes);
        this.objects.set(id, { generation, kind, motion, motionTick: heldAt(motion, tick), attributes });
    }
    move(message, tick, isReliable) {
        const object = this.objects.get(message.id);
        const isKnown = object?.generation === message.generation;
        if (!isKnown && isReliable) {
            throw new WireError(`message about object ${message.id} (generation ${message.generation}), which has no snapshot`);
        }
        const motionTick = heldAt(message.motion, tick);
        if (object !== undefined && isKnown && motionTick > object.motionTick) {
            object.motion = message.motion;
            object.motionTick = motionTick;
        }
        else {
            this.ignored += 1;
        }
    }
    handleRemote(message) {
        const { scene, id, generation } = message;
        const key = remoteKey(scene, id, generation);
        if (message.kind === "remote") {
            if (this.scene === scene && this.objects.get(id)?.generation === generation) {
                throw new WireError(`object ${id} (generation ${generation}) is known already`);
            }
            const attributes = new Map();
            set(attributes, message.attributes);
            this.remotes.set(key, { scene, id, generation, kind: message.objectKind, attributes });
            return;
        }
        const remote = this.remotes.get(key);
        if (remote === undefined) {
            throw new WireError(`message about unseen object ${id} of scene ${scene} (generation ${generation}), which was never sent`);
        }
        if (message.kind === "remoteDelta") {
            set(remote.attributes, message.attributes);
        }
        else {
            this.remotes.delete(key);
        }
    }
    known({ id, generation }) {
        const object = this.objects.get(id);
        if (object?.generation !== generation) {
            throw new WireError(`message about object ${id} (generation ${generation}), which has no snapshot`);
        }
        return object;
    }
    forget() {
        this.objects.clear();
        this.remotes.clear();
        this.scene = this.own = this.ownPosition = this.ownSpeed = null;
        this.size = { x: 0, y: 0 };
    }
}
function heldAt(motion, tick) {
    return Math.max(tick - (((tick % 256) - motion.at + 256) % 256), 0);
}
