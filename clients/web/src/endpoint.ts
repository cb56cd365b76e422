// One end of a connection over datagrams that may be lost: stream messages arrive once and in order. No sockets, no clock.

import { Reader, WireError, Writer, isNewer } from "./codec.js";

/** Flags of a packet; the other bits are the number of its stream frames. */
const PIECES = 0b11;
const HAS_BITMAP = 1 << 2;
const HAS_INPUT = 1 << 3;
const WANTS_ACK = 1 << 4;
const LONG_BITMAP = 1 << 5;
const KNOWN = PIECES | HAS_BITMAP | HAS_INPUT | WANTS_ACK | LONG_BITMAP;

const STREAMS = 4;
/** How far the server, and this end, may send beyond the received bytes of a stream, in bytes. */
const IN_WINDOW_BYTES = 1 << 16;
const OUT_WINDOW_BYTES = 1 << 13;
const MESSAGE_BYTES_MAX = 1 << 20;
/** Maximum number of unacknowledged bytes; with more the connection has to be closed. */
const WAITING_BYTES_MAX = 1 << 16;
/** Maximum size of a sent packet, in bytes; every network path can carry it. */
const PACKET_BYTES_MAX = 1000;
const PIECES_MAX = 3;
const PIECE_HEAD_BYTES = 5;
const HEAD_BYTES_MAX = 14;
/** Maximum number of bytes of a stream that are sent and acknowledged together. */
const CHUNK_BYTES_MAX = 500;
/** Number of consecutive packets that carry the same bytes. Afterwards they are sent again after a timeout. */
const COPIES = 2;
/** The resend timeout before the first round trip is measured, and its minimum, in seconds. */
const RESEND_FIRST_S = 0.2;
const RESEND_LEAST_S = 0.06;
/** Time without a packet sent, and number of packets received, after which a packet is sent in any case. */
const KEEP_ALIVE_S = 1;
const UNANSWERED_MAX = 8;
/** Number of sent packets that can still be acknowledged. */
const REMEMBERED = 128;

/** Unacknowledged bytes of the sending stream. */
type Chunk = { start: number; bytes: Uint8Array; times: number; sentS: number; isThere: boolean };
type Sent = { number: number; atS: number; chunks: Chunk[] };
type Piece = { stream: number; offset: number; bytes: Uint8Array };
type Packet = { flags: number; number: number; newest: number; before: number; pieces: Piece[]; messages: Uint8Array[] };

/** Decodes a packet completely before any of it takes effect. */
function readPacket(packet: Uint8Array): Packet {
  const reader = new Reader(packet);
  const flags = reader.byte();
  reader.byte(); // The epoch. The 16 bits after the number are the tick. The messages inside have their own.
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
  const pieces: Piece[] = [];
  for (let left = flags & PIECES; left > 0; left -= 1) {
    const word = reader.u16();
    if (word >> 13 !== 0) {
      throw new WireError(`byte ${reader.at - 2}: a piece of no stream`);
    }
    const offset = reader.u16() | (reader.byte() << 16);
    pieces.push({ stream: word >> 11, offset, bytes: reader.take(word & 0x7ff) });
  }
  const messages: Uint8Array[] = [];
  while (!reader.isEmpty) {
    const length = reader.varint();
    if (length === 0) {
      break;
    }
    messages.push(reader.take(length));
  }
  return { flags, number, newest, before, pieces, messages };
}

/** The received packets: the newest number, and a bitmap of the 32 before it (bit 0: the one just before).
 * Packets before the first count as received. */
class Received {
  before = 0xffffffff;

  constructor(public newest: number) {}

  expects(number: number): boolean {
    const behind = (this.newest - number) & 0xffff;
    return isNewer(number, this.newest) || (behind >= 1 && behind <= 32 && ((this.before >>> (behind - 1)) & 1) === 0);
  }

  record(number: number): void {
    if (isNewer(number, this.newest)) {
      const ahead = (number - this.newest) & 0xffff;
      const shifted = ahead < 32 ? this.before << ahead : 0;
      this.before = (ahead <= 32 ? shifted | (1 << (ahead - 1)) : 0) >>> 0;
      this.newest = number;
    } else {
      this.before = (this.before | (1 << (((this.newest - number) & 0xffff) - 1))) >>> 0;
    }
  }
}

/** The receiving end of a stream: early bytes wait in a ring, an incomplete message in a buffer. */
class Incoming {
  private ring: Uint8Array | null = null;
  private isHere: Uint8Array | null = null;
  private partial = new Uint8Array(256);
  private length = 0;

  /** Offset of the first byte that has not arrived, modulo 2³². */
  constructor(private next: number) {}

  /** Handles a stream frame. Returns whether there was room for it. */
  take({ offset, bytes }: Piece, deliver: (message: Uint8Array) => void): boolean {
    // The nearest offset with these 24 low bits, in either direction.
    const ahead = ((offset - this.next) << 8) >> 8;
    if (ahead > 0 && bytes.length > 0 && ahead + bytes.length > IN_WINDOW_BYTES) {
      return false;
    }
    this.ring ??= new Uint8Array(IN_WINDOW_BYTES);
    this.isHere ??= new Uint8Array(IN_WINDOW_BYTES);
    for (let nth = Math.max(-ahead, 0); nth < bytes.length; nth += 1) {
      const at = (this.next + ahead + nth) & (IN_WINDOW_BYTES - 1);
      this.ring[at] = bytes[nth]!;
      this.isHere[at] = 1;
    }
    for (let at = this.next & (IN_WINDOW_BYTES - 1); this.isHere[at] === 1; at = this.next & (IN_WINDOW_BYTES - 1)) {
      this.isHere[at] = 0;
      this.next = (this.next + 1) >>> 0;
      this.append(this.ring[at]!, deliver);
    }
    return true;
  }

  private append(byte: number, deliver: (message: Uint8Array) => void): void {
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

  /** The length of the next message, and the number of bytes that encode it; null if they are incomplete. */
  private framed(): { head: number; length: number } | null {
    let length = 0;
    for (let nth = 0; nth < Math.min(this.length, 4); nth += 1) {
      length |= (this.partial[nth]! & 0x7f) << (7 * nth);
      if (length > MESSAGE_BYTES_MAX) {
        break;
      }
      if (this.partial[nth]! < 0x80) {
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
  /** Packets that were malformed, duplicates, or had no room. */
  refused = 0;
  /** Smoothed round trip time, in seconds; null before the first measurement. */
  roundTripS: number | null = null;
  private readonly received: Received;
  private readonly incoming: Incoming[];
  private chunks: Chunk[] = [];
  private waitingBytes = 0;
  private end: number;
  private sent: Sent[] = [];
  private next: number;
  private sentS = -Infinity;
  private owesAck = false;
  private unanswered = 0;

  /** Sets the numbers of the first packet and of the first byte of each stream. Values other than 0 are for tests of the wrap-around. */
  constructor(start = { packet: 0, offset: 0 }) {
    this.received = new Received((start.packet - 1) & 0xffff);
    this.incoming = Array.from({ length: STREAMS }, () => new Incoming(start.offset));
    [this.next, this.end] = [start.packet, start.offset];
  }

  /** Sends a message. Throws if the send queue is full because the server does not acknowledge. */
  push(message: Uint8Array): void {
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

  /** Handles a packet, and passes on the messages that it completes. Throws if a stream cannot be read further. */
  receive(bytes: Uint8Array, nowS: number, deliver: (message: Uint8Array) => void): void {
    let packet: Packet;
    try {
      packet = readPacket(bytes);
    } catch {
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
      isKept = this.incoming[piece.stream]!.take(piece, deliver) && isKept;
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

  /** Sends the pending packets. Call it once per frame. */
  flush(nowS: number, send: (packet: Uint8Array) => void): void {
    const due = this.due(nowS);
    let isDue = this.owesAck || nowS - this.sentS >= KEEP_ALIVE_S;
    while (due.length > 0 || isDue) {
      send(this.write(due, nowS));
      isDue = false;
    }
  }

  /** The chunks to send now, in order. */
  private due(nowS: number): Chunk[] {
    const resendS = this.roundTripS === null ? RESEND_FIRST_S : Math.max(1.5 * this.roundTripS, RESEND_LEAST_S);
    const until = (this.chunks[0]?.start ?? this.end) + OUT_WINDOW_BYTES;
    const isDue = ({ start, bytes, times, sentS, isThere }: Chunk) =>
      !isThere && start + bytes.length <= until && (times < COPIES || nowS - sentS >= resendS);
    return this.chunks.filter(isDue);
  }

  /** Writes a packet with as many pending chunks as fit, and removes them from the list. */
  private write(due: Chunk[], nowS: number): Uint8Array {
    const chunks: Chunk[] = [];
    const pieces: Chunk[][] = [];
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
        pieces.at(-1)!.push(chunk);
      } else {
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
      const start = piece[0]!.start;
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

  /** Handles an acknowledgement of the server. */
  private acknowledge(newest: number, before: number, nowS: number): void {
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
      this.waitingBytes -= this.chunks.shift()!.bytes.length;
    }
  }
}
