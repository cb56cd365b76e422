// Messages of the server: packets, fragments of long messages, and messages.

import { Reader, WireError } from "./codec.js";

/** The protocol version of this client. */
export const PROTOCOL_VERSION = 4;

/** A point or a vector, in metres. */
export type Vec = { x: number; y: number };

const UNITS_A_METRE = 64;
const VELOCITY_UNITS = 256;
const MESSAGE_BYTES_MAX = 1 << 20;
const ANNOUNCE_BYTES_MAX = MESSAGE_BYTES_MAX - 64;
const ATTRIBUTE_BYTES_MAX = 255;
const ATTRIBUTE_REMOVED = 256;
const PART = 8;

/** The header of a packet. */
export type PacketHeader = { isReliable: boolean; epoch: number; sequence: number; tick: number; input: number };

/** Position and velocity of an object at a tick; `at` is the low eight bits of the tick. */
export type Motion = {
  at: number;
  /** In 64ths of a metre. */
  x: number;
  y: number;
  /** In 256ths of a metre per second. */
  velocityX: number;
  velocityY: number;
  /** In 256ths of a turn: 0 is +x, 64 is +y. */
  heading: number;
  floor: number;
  /** The object did not walk here: do not interpolate. */
  isJump: boolean;
};

/** An attribute and its encoded value; null if it is removed. */
export type Attribute = { id: number; value: Uint8Array | null };

export type ServerMessage =
  | { kind: "hello"; client: number; tickMillihertz: number; tick: number; packetBytesMax: number }
  | { kind: "scene"; scene: number; size: Vec }
  | { kind: "own"; id: number; generation: number }
  | { kind: "despawn"; id: number; generation: number }
  | { kind: "snapshot"; id: number; generation: number; objectKind: number; motion: Motion; attributes: Attribute[] }
  | { kind: "delta"; id: number; generation: number; attributes: Attribute[] }
  | { kind: "motion"; id: number; generation: number; motion: Motion }
  | { kind: "announce"; from: { id: number; generation: number } | null; bytes: Uint8Array }
  | { kind: "remote"; scene: number; id: number; generation: number; objectKind: number; attributes: Attribute[] }
  | { kind: "remoteDelta"; scene: number; id: number; generation: number; attributes: Attribute[] }
  | { kind: "forget"; scene: number; id: number; generation: number }
  | { kind: "ownPosition"; position: Vec }
  | { kind: "ownSpeed"; speedMS: number }
  | Notice;

/** Why the server refused a login. */
export type Refusal = { cause: "byGame" } | { cause: "unverified" } | { cause: "wrongPlayer"; token: bigint; login: bigint };

/** The text of a refusal, as on the server. */
export function refusalText(refusal: Refusal): string {
  switch (refusal.cause) {
    case "byGame":
      return "the server's login rule does not accept this player";
    case "unverified":
      return "this connection proves no identity: connect with a token";
    case "wrongPlayer":
      return `this token is for player ${refusal.token}, the login names player ${refusal.login}`;
  }
}

/** A message about the session. */
export type Notice =
  | { kind: "queued"; place: number }
  | { kind: "welcome"; player: bigint; token: Uint8Array }
  | { kind: "loading"; scene: number; size: Vec }
  | { kind: "closed"; reason: number; refusal: Refusal | null }
  | { kind: "pong"; number: number; tick: number }
  | { kind: "notResumed" }
  | { kind: "continued"; keeps: boolean }
  | { kind: "timeRate"; percent: number };

/** Extrapolated position of an object with this motion after a number of seconds. */
export function after(motion: Motion, seconds: number): Vec {
  return {
    x: motion.x / UNITS_A_METRE + (motion.velocityX / VELOCITY_UNITS) * seconds,
    y: motion.y / UNITS_A_METRE + (motion.velocityY / VELOCITY_UNITS) * seconds,
  };
}

function readPosition(reader: Reader): Vec {
  return { x: reader.varint() / UNITS_A_METRE, y: reader.varint() / UNITS_A_METRE };
}

function readMotion(reader: Reader): Motion {
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

function readAttributes(reader: Reader, mayRemove: boolean): Attribute[] {
  const attributes: Attribute[] = [];
  for (let count = reader.varint(16); count > 0; count -= 1) {
    const id = reader.varint(16);
    const length = reader.varint();
    if (length === ATTRIBUTE_REMOVED && mayRemove) {
      attributes.push({ id, value: null });
    } else if (length > ATTRIBUTE_BYTES_MAX) {
      throw new WireError(`an attribute of ${length} bytes, expected at most ${ATTRIBUTE_BYTES_MAX}`);
    } else {
      attributes.push({ id, value: reader.take(length).slice() });
    }
  }
  return attributes;
}

function readHello(reader: Reader): ServerMessage {
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

function readAnnounce(reader: Reader): ServerMessage {
  const [id, generation, length] = [reader.varint(), reader.varint(), reader.varint()];
  if (length > ANNOUNCE_BYTES_MAX) {
    throw new WireError(`an announcement of ${length} bytes, expected at most ${ANNOUNCE_BYTES_MAX}`);
  }
  return { kind: "announce", from: id === 0 ? null : { id, generation }, bytes: reader.take(length).slice() };
}

function readContinued(reader: Reader): ServerMessage {
  const keeps = reader.byte();
  if (keeps > 1) {
    throw new WireError(`byte ${reader.at - 1}: ${keeps}, expected 0 or 1`);
  }
  return { kind: "continued", keeps: keeps === 1 };
}

/** The reason of a refused login. */
const REFUSED = 9;

function readClosed(reader: Reader): ServerMessage {
  const reason = reader.byte();
  if (reason !== REFUSED) {
    return { kind: "closed", reason, refusal: null };
  }
  const cause = reader.byte();
  switch (cause) {
    case 0:
      return { kind: "closed", reason, refusal: { cause: "byGame" } };
    case 1:
      return { kind: "closed", reason, refusal: { cause: "unverified" } };
    case 2:
      return { kind: "closed", reason, refusal: { cause: "wrongPlayer", token: reader.varint64(), login: reader.varint64() } };
    default:
      throw new WireError(`byte ${reader.at - 1}: unknown cause ${cause} of a refusal`);
  }
}

/** Decodes the next message of a packet. */
export function readServerMessage(reader: Reader): ServerMessage {
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
      return readClosed(reader);
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
    case 22:
      return { kind: "ownSpeed", speedMS: Math.max(reader.f32(), 0) };
    default:
      throw new WireError(`byte ${at}: unknown message kind ${kind}`);
  }
}

function readHeader(reader: Reader): PacketHeader {
  const flags = reader.byte();
  if (flags > 1) {
    throw new WireError(`byte 0: unknown flags ${flags}`);
  }
  return { isReliable: flags === 0, epoch: reader.byte(), sequence: reader.u16(), tick: reader.u16(), input: reader.u16() };
}

type Pending = { epoch: number; number: number; bytes: Uint8Array; held: number };

/** Reassembles long messages. */
export class Reassembler {
  private pending: Pending | null = null;

  /** Handles a packet, and returns its messages, or the long message that it completes. */
  accept(packet: Uint8Array): { header: PacketHeader; messages: Uint8Array } {
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

  private takePart(reader: Reader, epoch: number, before: Pending | null): Uint8Array {
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
