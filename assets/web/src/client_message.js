import { Writer } from "./codec.js";
import { PROTOCOL_VERSION } from "./server_message.js";
function position(writer, at) {
    const units = (metres) => Math.min(Math.max(Math.floor(metres * 64 + 0.5) || 0, 0), 0xffffffff);
    return writer.varint(units(at.x)).varint(units(at.y));
}
const TIMEOUT_AT = 1085;
export function timeoutOf(token) {
    const timeoutS = new DataView(token.buffer, token.byteOffset).getInt32(TIMEOUT_AT, true);
    return timeoutS < 0 ? Infinity : timeoutS;
}
const of = (kind) => new Writer().byte(kind);
const text = new TextEncoder();
export const clientMessage = {
    login: (player, credential = new Uint8Array()) => of(1).varint(player).raw(credential).finish(),
    logout: () => of(2).finish(),
    move: (to, heading) => position(of(3), to).byte(heading).finish(),
    face: (heading) => of(4).byte(heading).finish(),
    resume(player, token, received) {
        const writer = of(5).varint(player).raw(token);
        return received === null ? writer.byte(0).finish() : writer.byte(1).varint(received).finish();
    },
    ready: (scene) => of(6).varint(scene).finish(),
    ping: (number) => of(7).varint(number).finish(),
    input(input) {
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
    moveTo: (to) => position(of(9), to).finish(),
    stop: () => of(10).finish(),
    viewCap: (players) => of(11).varint(players).finish(),
    interact: (id, generation, verb) => of(12).varint(id).varint(generation).varint(verb).finish(),
    queueFor: (mode) => of(13).varint(mode).finish(),
    cancelQueue: () => of(14).finish(),
    answerMatch: (accept) => of(15).byte(accept ? 1 : 0).finish(),
    say: (scope, words) => of(16).byte(scope).raw(text.encode(words)).finish(),
    user: (kind, bytes) => of(17).varint(kind).raw(bytes).finish(),
};
const TOKEN_BYTES = 2048;
export function connectRequest(token) {
    if (token.length !== TOKEN_BYTES) {
        throw new RangeError(`a token of ${token.length} bytes, expected ${TOKEN_BYTES}`);
    }
    const version = of(0).raw(text.encode("THRONG NET\0")).u16(PROTOCOL_VERSION);
    return version.raw(token.subarray(13, 21)).raw(token.subarray(29, 1085)).finish();
}
