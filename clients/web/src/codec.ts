// Encoding and decoding of numbers. Errors of the reader contain a byte offset.

/** Why bytes cannot be decoded. */
export class WireError extends Error {
  override name = "WireError";
}

/** Reads bytes from front to back, never beyond their end. */
export class Reader {
  at = 0;
  private readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isEmpty(): boolean {
    return this.at >= this.bytes.length;
  }

  /** Skips `count` bytes, and returns their offset. */
  private skip(count: number): number {
    const from = this.at;
    if (from + count > this.bytes.length) {
      throw new WireError(`byte ${this.bytes.length}: message truncated, ${from + count - this.bytes.length} more bytes expected`);
    }
    this.at = from + count;
    return from;
  }

  take(count: number): Uint8Array {
    const from = this.skip(count);
    return this.bytes.subarray(from, from + count);
  }

  rest(): Uint8Array {
    return this.take(this.bytes.length - this.at);
  }

  byte(): number {
    return this.view.getUint8(this.skip(1));
  }

  u16(): number {
    return this.view.getUint16(this.skip(2), true);
  }

  u32(): number {
    return this.view.getUint32(this.skip(4), true);
  }

  i16(): number {
    return this.view.getInt16(this.skip(2), true);
  }

  f32(): number {
    const at = this.at;
    const number = this.view.getFloat32(this.skip(4), true);
    if (!Number.isFinite(number)) {
      throw new WireError(`byte ${at}: a number that is not finite`);
    }
    return number;
  }

  /** A varint of 32 bits or fewer. */
  varint(bits = 32): number {
    const at = this.at;
    const value = this.varint64(32);
    if (value >= 1n << BigInt(bits)) {
      throw new WireError(`byte ${at}: a varint of more than ${bits} bits`);
    }
    return Number(value);
  }

  /** A varint of 64 bits. */
  varint64(bits = 64): bigint {
    const at = this.at;
    let value = 0n;
    for (let shift = 0; ; shift += 7) {
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

/** A growing byte buffer. */
export class Writer {
  private readonly bytes: number[] = [];

  byte(value: number): this {
    this.bytes.push(value & 0xff);
    return this;
  }

  u16(value: number): this {
    return this.byte(value).byte(value >> 8);
  }

  varint(value: number | bigint): this {
    let rest = BigInt(value);
    for (; rest >= 0x80n; rest >>= 7n) {
      this.byte(Number(rest & 0x7fn) | 0x80);
    }
    return this.byte(Number(rest));
  }

  raw(bytes: Uint8Array): this {
    for (const byte of bytes) {
      this.bytes.push(byte);
    }
    return this;
  }

  finish(): Uint8Array {
    return Uint8Array.from(this.bytes);
  }
}

/** Whether `a` is newer than `b`, both modulo 65,536. */
export function isNewer(a: number, b: number): boolean {
  const ahead = (a - b) & 0xffff;
  return ahead !== 0 && ahead < 0x8000;
}

/** The number nearest to `near` whose lowest 16 bits are `low`; never below 0. */
export function widen(near: number, low: number): number {
  const ahead = (low - (near % 0x10000) + 0x10000) % 0x10000;
  const behind = 0x10000 - ahead;
  return ahead < 0x8000 || near < behind ? near + ahead : near - behind;
}
