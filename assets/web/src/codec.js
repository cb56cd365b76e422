export class WireError extends Error {
    name = "WireError";
}
export class Reader {
    bytes;
    at = 0;
    view;
    constructor(bytes) {
        this.bytes = bytes;
        this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    get isEmpty() {
        return this.at >= this.bytes.length;
    }
    skip(count) {
        const from = this.at;
        if (from + count > this.bytes.length) {
            throw new WireError(`byte ${this.bytes.length}: message truncated, ${from + count - this.bytes.length} more bytes expected`);
        }
        this.at = from + count;
        return from;
    }
    take(count) {
        const from = this.skip(count);
        return this.bytes.subarray(from, from + count);
    }
    rest() {
        return this.take(this.bytes.length - this.at);
    }
    byte() {
        return this.view.getUint8(this.skip(1));
    }
    u16() {
        return this.view.getUint16(this.skip(2), true);
    }
    u32() {
        return this.view.getUint32(this.skip(4), true);
    }
    i16() {
        return this.view.getInt16(this.skip(2), true);
    }
    f32() {
        const at = this.at;
        const number = this.view.getFloat32(this.skip(4), true);
        if (!Number.isFinite(number)) {
            throw new WireError(`byte ${at}: a number that is not finite`);
        }
        return number;
    }
    varint(bits = 32) {
        const at = this.at;
        const value = this.varint64(32);
        if (value >= 1n << BigInt(bits)) {
            throw new WireError(`byte ${at}: a varint of more than ${bits} bits`);
        }
        return Number(value);
    }
    varint64(bits = 64) {
        const at = this.at;
        let value = 0n;
        for (let shift = 0;; shift += 7) {
            const byte = this.byte();
            value |= BigInt(byte & 0x7f) << BigInt(shift);
            if (shift >= bits || value >= 1n << 64n) {
                throw new WireError(`byte ${at}: a varint of more than ${bits} bits`);
            }
            if (byte < 0x80) {
                return value;
            }
        }
    }
}
export class Writer {
    bytes = [];
    byte(value) {
        this.bytes.push(value & 0xff);
        return this;
    }
    u16(value) {
        return this.byte(value).byte(value >> 8);
    }
    varint(value) {
        let rest = BigInt(value);
        for (; rest >= 0x80n; rest >>= 7n) {
            this.byte(Number(rest & 0x7fn) | 0x80);
        }
        return this.byte(Number(rest));
    }
    raw(bytes) {
        for (const byte of bytes) {
            this.bytes.push(byte);
        }
        return this;
    }
    finish() {
        return Uint8Array.from(this.bytes);
    }
}
export function isNewer(a, b) {
    const ahead = (a - b) & 0xffff;
    return ahead !== 0 && ahead < 0x8000;
}
export function widen(near, low) {
    const ahead = (low - (near % 0x10000) + 0x10000) % 0x10000;
    const behind = 0x10000 - ahead;
    return ahead < 0x8000 || near < behind ? near + ahead : near - behind;
}
