import { Reader, WireError } from "./codec.js";
export const PROTOCOL_VERSION = 4;
const UNITS_A_METRE = 64;
const VELOCITY_UNITS = 256;
const MESSAGE_BYTES_MAX = 1 << 20;
const ANNOUNCE_BYTES_MAX = MESSAGE_BYTES_MAX - 64;
const ATTRIBUTE_BYTES_MAX = 255;
const ATTRIBUTE_REMOVED = 256;
const PART = 8;
export function after(motion, seconds) {
    return {
        x: motion.x / UNITS_A_METRE + (motion.velocityX / VELOCITY_UNITS) * seconds,
        y: motion.y / UNITS_A_METRE + (motion.velocityY / VELOCITY_UNITS) * seconds,
    };
}
function readPosition(reader) {
    return { x: reader.varint() / UNITS_A_METRE, y: reader.varint() / UNITS_A_METRE };
}
function readMotion(reader) {
    const at = reader.byte();
    const flags = reader.byte();
    if (flags > 7) {
        throw new WireError(`byte ${reader.at - 1}: unknown flags ${flags} of a motion`);
    }
    const [x, y, heading] = [reader.varint(), reader.varint(), reader.byte()];
    const [velocityX, velocityY] = flags & 2 ? [reader.i16(), reader.i16()] : [0, 0];
    const floor = flags & 4 ? reader.byte() : 0;
    return { at, x, y, velocityX, velocityY, heading, floor, isJump: (flags & 1) !== 0 };
}
function readAttributes(reader, mayRemove) {
    const attributes = [];
    for (let count = reader.varint(16); count > 0; count -= 1) {
        const id = reader.varint(16);
        const length = reader.varint();
        if (length === ATTRIBUTE_REMOVED && mayRemove) {
            attributes.push({ id, value: null });
        }
        else if (length > ATTRIBUTE_BYTES_MAX) {
            throw new WireError(`an attribute of ${length} bytes, expected at most ${ATTRIBUTE_BYTES_MAX}`);
        }
        else {
            attributes.push({ id, value: reader.take(length).slice() });
        }
    }
    return attributes;
}
function readHello(reader) {
    const version = reader.varint();
    if (version !== PROTOCOL_VERSION) {
        throw new WireError(`version ${version}, expected ${PROTOCOL_VERSION}`);
    }
    return {
        kind: "hello",
        client: reader.varint(),
        tickMillihertz: reader.varint(),
        tick: Number(reader.varint64()),
        packetBytesMax: reader.varint(),
    };
}
function readAnnounce(reader) {
    const [id, generation, length] = [reader.varint(), reader.varint(), reader.varint()];
    if (length > ANNOUNCE_BYTES_MAX) {
        throw new WireError(`an announcement of ${length} bytes, expected at most ${ANNOUNCE_BYTES_MAX}`);
    }
    return { kind: "announce", from: id === 0 ? null : { id, generation }, bytes: reader.take(length).slice() };
}
function readContinued(reader) {
    const keeps = reader.byte();
    if (keeps > 1) {
        throw new WireError(`byte ${reader.at - 1}: ${keeps}, expected 0 or 1`);
    }
    return { kind: "continued", keeps: keeps === 1 };
}
export function readServerMessage(reader) {
    const named = () => ({ id: reader.varint(), generation: reader.varint() });
    const remote = () => ({ scene: reader.varint(), ...named() });
    const at = reader.at;
    const kind = reader.byte();
    switch (kind) {
        case 1:
            return { kind: "scene", scene: reader.varint(), size: readPosition(reader) };
        case 2:
            return { kind: "own", ...named() };
        case 3:
            return { kind: "despawn", ...named() };
        case 4:
            return { kind: "snapshot", ...named(), objectKind: reader.varint(16), motion: readMotion(reader), attributes: readAttributes(reader, false) };
        case 5:
            return { kind: "delta", ...named(), attributes: readAttributes(reader, true) };
        case 6:
            return { kind: "motion", ...named(), motion: readMotion(reader) };
        case 7:
            return readHello(reader);
        case 9:
            return readAnnounce(reader);
        case 10:
            return { kind: "remote", ...remote(), objectKind: reader.varint(16), attributes: readAttributes(reader, false) };
        case 11:
            return { kind: "remoteDelta", ...remote(), attributes: readAttributes(reader, true) };
        case 12:
            return { kind: "forget", ...remote() };
        case 13:
            return { kind: "queued", place: reader.varint() };
        case 14:
            return { kind: "welcome", player: reader.varint64(), token: reader.take(16).slice() };
        case 15:
            return { kind: "loading", scene: reader.varint(), size: readPosition(reader) };
        case 16:
            return { kind: "closed", reason: reader.byte() };
        case 17:
            return { kind: "pong", number: reader.varint(), tick: Number(reader.varint64()) };
        case 18:
            return { kind: "notResumed" };
        case 19:
            return readContinued(reader);
        case 20:
            return { kind: "timeRate", percent: reader.byte() };
        case 21:
            return { kind: "ownPosition", position: { x: reader.f32(), y: reader.f32() } };
        default:
            throw new WireError(`byte ${at}: unknown message kind ${kind}`);
    }
}
function readHeader(reader) {
    const flags = reader.byte();
    if (flags > 1) {
        throw new WireError(`byte 0: unknown flags ${flags}`);
    }
    return { isReliable: flags === 0, epoch: reader.byte(), sequence: reader.u16(), tick: reader.u16(), input: reader.u16() };
}
export class Reassembler {
    pending = null;
    accept(packet) {
        const reader = new Reader(packet);
        const header = readHeader(reader);
        const isPart = packet[reader.at] === PART;
        if (!header.isReliable) {
            if (isPart) {
                throw new WireError("a part of a message in an unreliable packet");
            }
            return { header, messages: reader.rest() };
        }
        const before = this.pending?.epoch === header.epoch ? this.pending : null;
        this.pending = null;
        if (isPart) {
            reader.byte();
            return { header, messages: this.takePart(reader, header.epoch, before) };
        }
        if (before !== null) {
            throw new WireError(`fragmented message ${before.number} incomplete: another message followed on its channel`);
        }
        return { header, messages: reader.rest() };
    }
    takePart(reader, epoch, before) {
        const number = reader.u16();
        const [length, offset] = [reader.varint(), reader.varint()];
        const bytes = reader.rest();
        if (length > MESSAGE_BYTES_MAX) {
            throw new WireError(`a message of ${length} bytes, expected at most ${MESSAGE_BYTES_MAX}`);
        }
        const pending = before ?? { epoch, number, bytes: new Uint8Array(length), held: 0 };
        if (pending.number !== number || pending.bytes.length !== length || pending.held !== offset) {
            throw new WireError(`fragment of message ${number} at offset ${offset}, expected offset ${pending.held} of message ${pending.number}`);
        }
        if (bytes.length === 0 || offset + bytes.length > length) {
            throw new WireError(`a part of ${bytes.length} bytes, where ${length - offset} are left`);
        }
        pending.bytes.set(bytes, offset);
        pending.held += bytes.length;
        if (pending.held === length) {
            return pending.bytes;
        }
        this.pending = pending;
        return new Uint8Array();
    }
}
