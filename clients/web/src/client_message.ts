// Messages of the client.

import { Writer } from "./codec.js";
import { PROTOCOL_VERSION } from "./server_message.js";
import type { Vec } from "./server_message.js";

/** The motion of an input: none, to a position in metres, or one step in a direction, in 256ths of a turn. */
export type InputMotion = { kind: "stand" } | { kind: "to"; to: Vec } | { kind: "towards"; direction: number };

/** The input of a player in one tick of its client. */
export type ClientInput = { seq: number; clientTick: number; heading: number; buttons: number; motion: InputMotion };

/** Writes a position, rounded to the nearest 64th of a metre, halves up. */
function position(writer: Writer, at: Vec): Writer {
  const units = (metres: number) => Math.min(Math.max(Math.floor(metres * 64 + 0.5) || 0, 0), 0xffffffff);
  return writer.varint(units(at.x)).varint(units(at.y));
}

/** Offset of the connection timeout in a token, in seconds. */
const TIMEOUT_AT = 1085;

/** The number of seconds without a packet after which a connection with this token is lost; `Infinity` for no timeout. */
export function timeoutOf(token: Uint8Array): number {
  const timeoutS = new DataView(token.buffer, token.byteOffset).getInt32(TIMEOUT_AT, true);
  return timeoutS < 0 ? Infinity : timeoutS;
}

const of = (kind: number) => new Writer().byte(kind);
const text = new TextEncoder();

/** Encoded messages. */
export const clientMessage = {
  login: (player: bigint, credential: Uint8Array = new Uint8Array()) => of(1).varint(player).raw(credential).finish(),
  logout: () => of(2).finish(),
  move: (to: Vec, heading: number) => position(of(3), to).byte(heading).finish(),
  face: (heading: number) => of(4).byte(heading).finish(),
  /** `received` is the number of bytes of messages received on the reliable channel; null if the client has no state any more. */
  resume(player: bigint, token: Uint8Array, received: number | null): Uint8Array {
    const writer = of(5).varint(player).raw(token);
    return received === null ? writer.byte(0).finish() : writer.byte(1).varint(received).finish();
  },
  ready: (scene: number) => of(6).varint(scene).finish(),
  ping: (number: number) => of(7).varint(number).finish(),
  input(input: ClientInput): Uint8Array {
    const { seq, clientTick, heading, buttons, motion } = input;
    const writer = of(8).u16(seq).u16(clientTick).byte(heading).varint(buttons);
    switch (motion.kind) {
      case "stand":
        return writer.byte(0).finish();
      case "to":
        return position(writer.byte(1), motion.to).finish();
      case "towards":
        return writer.byte(2).byte(motion.direction).finish();
    }
  },
  moveTo: (to: Vec) => position(of(9), to).finish(),
  stop: () => of(10).finish(),
  viewCap: (players: number) => of(11).varint(players).finish(),
  interact: (id: number, generation: number, verb: number) => of(12).varint(id).varint(generation).varint(verb).finish(),
  queueFor: (mode: number) => of(13).varint(mode).finish(),
  cancelQueue: () => of(14).finish(),
  answerMatch: (accept: boolean) => of(15).byte(accept ? 1 : 0).finish(),
  /** Recipients: 0 players who see the speaker, 1 its scene, 2 its party, 3 its team. */
  say: (scope: 0 | 1 | 2 | 3, words: string) => of(16).byte(scope).raw(text.encode(words)).finish(),
  user: (kind: number, bytes: Uint8Array) => of(17).varint(kind).raw(bytes).finish(),
};

/** Length of a connect token, in bytes. */
const TOKEN_BYTES = 2048;

/** The first frame of a connection: the version, the sealed part of a connect token, and the data that is authenticated with it. */
export function connectRequest(token: Uint8Array): Uint8Array {
  if (token.length !== TOKEN_BYTES) {
    throw new RangeError(`a token of ${token.length} bytes, expected ${TOKEN_BYTES}`);
  }
  const version = of(0).raw(text.encode("THRONG NET\0")).u16(PROTOCOL_VERSION);
  return version.raw(token.subarray(13, 21)).raw(token.subarray(29, 1085)).finish();
}
