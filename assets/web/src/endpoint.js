import { Reader, WireError, Writer, isNewer } from "./codec.js";
const PIECES = 0b11;
const HAS_BITMAP = 1 << 2;
const HAS_INPUT = 1 << 3;
const WANTS_ACK = 1 << 4;
const LONG_BITMAP = 1 << 5;
const KNOWN = PIECES | HAS_BITMAP | HAS_INPUT | WANTS_ACK | LONG_BITMAP;
const STREAMS = 4;
const IN_WINDOW_BYTES = 1 << 16;
const OUT_WINDOW_BYTES = 1 << 13;
const MESSAGE_BYTES_MAX = 1 << 20;
const WAITING_BYTES_MAX = 1 << 16;
const PACKET_BYTES_MAX = 1000;
const PIECES_MAX = 3;
const PIECE_HEAD_BYTES = 5;
const HEAD_BYTES_MAX = 14;
const CHUNK_BYTES_MAX = 500;
const COPIES = 2;
const RESEND_FIRST_S = 0.2;
const RESEND_LEAST_S = 0.06;
const KEEP_ALIVE_S = 1;
const UNANSWERED_MAX = 8;
const REMEMBERED = 128;
function readPacket(packet) {
    const reader = new Reader(packet);
    const flags = reader.byte();
    reader.byte();
    const number = reader.u16();
    reader.u16();
    const newest = reader.u16();
    if ((flags & ~KNOWN) !== 0 || (flags & (HAS_BITMAP | LONG_BITMAP)) === LONG_BITMAP) {
        throw new WireError(`byte 0: flags ${flags} of no packet`);
    }
    let before = 0xffffffff;
    if ((flags & HAS_BITMAP) !== 0) {
        before = (flags & LONG_BITMAP) === 0 ? reader.u16() : reader.u32();
    }
    if ((flags & HAS_INPUT) !== 0) {
        reader.u16();
    }
    const pieces = [];
    for (let left = flags & PIECES; left > 0; left -= 1) {
        const word = reader.u16();
        if (word >> 13 !== 0) {
            throw new WireError(`byte ${reader.at - 2}: a piece of no stream`);
        }
        const offset = reader.u16() | (reader.byte() << 16);
        pieces.push({ stream: word >> 11, offset, bytes: reader.take(word & 0x7ff) });
    }
    const messages = [];
    while (!reader.isEmpty) {
        const length = reader.varint();
        if (length === 0) {
            break;
        }
        messages.push(reader.take(length));
    }
    return { flags, number, newest, before, pieces, messages };
}
class Received {
    newest;
    before = 0xffffffff;
    constructor(newest) {
        this.newest = newest;
    }
    expects(number) {
        const behind = (this.newest - number) & 0xffff;
        return isNewer(number, this.newest) || (behind >= 1 && behind <= 32 && ((this.before >>> (behind - 1)) & 1) === 0);
    }
    record(number) {
        if (isNewer(number, this.newest)) {
            const ahead = (number - this.newest) & 0xffff;
            const shifted = ahead < 32 ? this.before << ahead : 0;
            this.before = (ahead <= 32 ? shifted | (1 << (ahead - 1)) : 0) >>> 0;
            this.newest = number;
        }
        else {
            this.before = (this.before | (1 << (((this.newest - number) & 0xffff) - 1))) >>> 0;
        }
    }
}
class Incoming {
    next;
    ring = null;
    isHere = null;
    partial = new Uint8Array(256);
    length = 0;
    constructor(next) {
        this.next = next;
    }
    take({ offset, bytes }, deliver) {
        const ahead = ((offset - this.next) << 8) >> 8;
        if (ahead > 0 && bytes.length > 0 && ahead + bytes.length > IN_WINDOW_BYTES) {
            return false;
        }
        this.ring ??= new Uint8Array(IN_WINDOW_BYTES);
        this.isHere ??= new Uint8Array(IN_WINDOW_BYTES);
        for (let nth = Math.max(-ahead, 0); nth < bytes.length; nth += 1) {
            const at = (this.next + ahead + nth) & (IN_WINDOW_BYTES - 1);
            this.ring[at] = bytes[nth];
            this.isHere[at] = 1;
        }
        for (let at = this.next & (IN_WINDOW_BYTES - 1); this.isHere[at] === 1; at = this.next & (IN_WINDOW_BYTES - 1)) {
            this.isHere[at] = 0;
            this.next = (this.next + 1) >>> 0;
            this.append(this.ring[at], deliver);
        }
        return true;
    }
    append(byte, deliver) {
        if (this.length === this.partial.length) {
            const longer = new Uint8Array(2 * this.length);
            longer.set(this.partial);
            this.partial = longer;
        }
        this.partial[this.length] = byte;
        this.length += 1;
        const framed = this.framed();
        if (framed !== null && this.length === framed.head + framed.length) {
            deliver(this.partial.slice(framed.head, this.length));
            this.length = 0;
            if (this.partial.length > IN_WINDOW_BYTES) {
                this.partial = new Uint8Array(256);
            }
        }
    }
    framed() {
        let length = 0;
        for (let nth = 0; nth < Math.min(this.length, 4); nth += 1) {
            length |= (this.partial[nth] & 0x7f) << (7 * nth);
            if (length > MESSAGE_BYTES_MAX) {
                break;
            }
            if (this.partial[nth] < 0x80) {
                if (length === 0) {
                    break;
                }
                return { head: nth + 1, length };
            }
            if (nth < 3 && nth + 1 === this.length) {
                return null;
            }
        }
        throw new WireError(`a message of ${length} bytes in a stream, expected 1 to ${MESSAGE_BYTES_MAX}`);
    }
}
export class Endpoint {
    refused = 0;
    roundTripS = null;
    received;
    incoming;
    chunks = [];
    waitingBytes = 0;
    end;
    sent = [];
    next;
    sentS = -Infinity;
    owesAck = false;
    unanswered = 0;
    constructor(start = { packet: 0, offset: 0 }) {
        this.received = new Received((start.packet - 1) & 0xffff);
        this.incoming = Array.from({ length: STREAMS }, () => new Incoming(start.offset));
        [this.next, this.end] = [start.packet, start.offset];
    }
    push(message) {
        const framed = new Writer().varint(message.length).raw(message).finish();
        if (message.length === 0 || this.waitingBytes + framed.length > WAITING_BYTES_MAX) {
            throw new RangeError(`a message of ${message.length} bytes, while ${this.waitingBytes} wait`);
        }
        for (let from = 0; from < framed.length; from += CHUNK_BYTES_MAX) {
            const bytes = framed.subarray(from, from + CHUNK_BYTES_MAX);
            this.chunks.push({ start: this.end, bytes, times: 0, sentS: 0, isThere: false });
            this.end += bytes.length;
            this.waitingBytes += bytes.length;
        }
    }
    receive(bytes, nowS, deliver) {
        let packet;
        try {
            packet = readPacket(bytes);
        }
        catch {
            this.refused += 1;
            return;
        }
        if (!this.received.expects(packet.number) || isNewer(packet.newest, (this.next - 1) & 0xffff)) {
            this.refused += 1;
            return;
        }
        this.acknowledge(packet.newest, packet.before, nowS);
        let isKept = true;
        for (const piece of packet.pieces) {
            isKept = this.incoming[piece.stream].take(piece, deliver) && isKept;
        }
        if (!isKept) {
            this.refused += 1;
            return;
        }
        this.received.record(packet.number);
        this.unanswered += 1;
        this.owesAck ||= (packet.flags & WANTS_ACK) !== 0 || this.unanswered >= UNANSWERED_MAX;
        packet.messages.forEach(deliver);
    }
    flush(nowS, send) {
        const due = this.due(nowS);
        let isDue = this.owesAck || nowS - this.sentS >= KEEP_ALIVE_S;
        while (due.length > 0 || isDue) {
            send(this.write(due, nowS));
            isDue = false;
        }
    }
    due(nowS) {
        const resendS = this.roundTripS === null ? RESEND_FIRST_S : Math.max(1.5 * this.roundTripS, RESEND_LEAST_S);
        const until = (this.chunks[0]?.start ?? this.end) + OUT_WINDOW_BYTES;
        const isDue = ({ start, bytes, times, sentS, isThere }) => !isThere && start + bytes.length <= until && (times < COPIES || nowS - sentS >= resendS);
        return this.chunks.filter(isDue);
    }
    write(due, nowS) {
        const chunks = [];
        const pieces = [];
        let room = PACKET_BYTES_MAX - HEAD_BYTES_MAX;
        for (let chunk = due[0]; chunk !== undefined; chunk = due[0]) {
            const last = pieces.at(-1)?.at(-1);
            const isNext = last !== undefined && last.start + last.bytes.length === chunk.start;
            const bytes = chunk.bytes.length + (isNext ? 0 : PIECE_HEAD_BYTES);
            if (bytes > room || (!isNext && pieces.length === PIECES_MAX)) {
                break;
            }
            room -= bytes;
            if (isNext) {
                pieces.at(-1).push(chunk);
            }
            else {
                pieces.push([chunk]);
            }
            chunks.push(chunk);
            due.shift();
        }
        const { newest, before } = this.received;
        const hasBitmap = before !== 0xffffffff;
        const isKeepAlive = pieces.length === 0 && !this.owesAck;
        const wantsAck = pieces.length > 0 || isKeepAlive ? WANTS_ACK : 0;
        const writer = new Writer().byte(pieces.length | wantsAck | (hasBitmap ? HAS_BITMAP | LONG_BITMAP : 0));
        writer.byte(0).u16(this.next).u16(0).u16(newest);
        if (hasBitmap) {
            writer.u16(before & 0xffff).u16(before >>> 16);
        }
        for (const piece of pieces) {
            const start = piece[0].start;
            const length = piece.reduce((sum, { bytes }) => sum + bytes.length, 0);
            writer.u16(length).u16(start & 0xffff).byte((start >>> 16) & 0xff);
            piece.forEach(({ bytes }) => writer.raw(bytes));
        }
        for (const chunk of chunks) {
            chunk.times += 1;
            chunk.sentS = nowS;
        }
        this.sent.push({ number: this.next, atS: nowS, chunks });
        if (this.sent.length > REMEMBERED) {
            this.sent.shift();
        }
        this.next = (this.next + 1) & 0xffff;
        this.sentS = nowS;
        this.owesAck = false;
        this.unanswered = 0;
        return writer.finish();
    }
    acknowledge(newest, before, nowS) {
        this.sent = this.sent.filter(({ number, atS, chunks }) => {
            const behind = (newest - number) & 0xffff;
            if (!(behind === 0 || (behind <= 32 && ((before >>> (behind - 1)) & 1) === 1))) {
                return true;
            }
            if (behind === 0) {
                const tripS = Math.max(nowS - atS, 0);
                this.roundTripS = this.roundTripS === null ? tripS : this.roundTripS + (tripS - this.roundTripS) / 8;
            }
            chunks.forEach((chunk) => (chunk.isThere = true));
            return false;
        });
        while (this.chunks[0]?.isThere === true) {
            this.waitingBytes -= this.chunks.shift().bytes.length;
        }
    }
}
