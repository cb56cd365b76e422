// Messages of a session, and the texts of refusals and failures.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { WireError, Writer } from "../src/codec.js";
import { refusalText } from "../src/server_message.js";
import { closeText } from "../src/connection.js";
import { Session } from "../src/session.js";

test("a message longer than the server accepts is refused", () => {
  const session = new Session();
  session.say(new Uint8Array(1_024));
  assert.throws(() => session.say(new Uint8Array(1_025)), WireError);
});

test("the login uses the player of the token, and a refusal names both players", () => {
  const sent: Uint8Array[] = [];
  new Session().act(1, (message) => sent.push(message));
  assert.deepEqual([...sent[0]!], [1, 0]);
  const session = new Session({ player: 7n });
  session.act(1, (message) => sent.push(message));
  assert.deepEqual([...sent[1]!], [1, 7]);
  session.take(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 16, 9, 2, 8, 7), 1);
  assert.equal(session.closed, 9);
  assert.equal(refusalText(session.refusal!), "this token is for player 8, the login names player 7");
});

test("a connection that was never open has the same text as in the library", () => {
  const client = readFileSync(new URL("../../../../crates/throng_net/src/handshake/client.rs", import.meta.url), "utf8");
  assert(client.includes(closeText(1006).replace("(1)", "({servers})")), closeText(1006));
});

test("a session continues with another server process", () => {
  const sent: Uint8Array[] = [];
  const session = new Session();
  const act = (nowS: number) => {
    sent.length = 0;
    session.act(nowS, (message) => sent.push(message));
    return sent.map((message) => message[0]);
  };
  // A packet with a Hello of this tick, and a scene in which the client controls object 7 at this place.
  const hello = (tick: number) => [7, 4, 1, 0xa0, 0x9c, 1, tick, 0xb0, 9];
  const scene = (tick: number, metres: number) => {
    const place = [(metres * 64) & 0x7f | 0x80, (metres * 64) >> 7];
    const motion = [tick, 0, ...place, ...place, 0];
    const exact = new Uint8Array(new Float32Array([metres, metres]).buffer);
    const speed = new Uint8Array(new Float32Array([2]).buffer);
    return [1, 1, 0x80, 0x19, 0x80, 0x19, 2, 7, 0, 4, 7, 0, 0, ...motion, 0, 21, ...exact, 22, ...speed];
  };
  const packet = (flags: number, epoch: number, sequence: number, tick: number, body: number[]) =>
    new Writer().byte(flags).byte(epoch).raw(Uint8Array.of(sequence, 0, tick, 0, 0, 0)).raw(Uint8Array.from(body)).finish();
  const welcome = (token: number) => [14, 5, ...new Array(16).fill(token)];
  assert.deepEqual(act(0), [1]);
  session.take(packet(0, 1, 0, 100, [...hello(100), ...welcome(1), ...scene(100, 10)]), 0);
  assert.deepEqual(act(0.01), [7, 8]);
  session.take(packet(0, 1, 1, 101, [17, 1, 100]), 0.02);
  assert(session.serverTick(0.1) !== null);
  session.walk({ kind: "towards", direction: 0 }, 0);
  act(0.06);
  // The tick of the other process is lower. Its object has the same scene, id and generation.
  const taken = [...hello(3), 19, 0, ...welcome(2), ...scene(3, 30)];
  session.take(packet(0, 3, 2, 3, taken), 0.1);
  assert.deepEqual([session.mirror.tick, session.mirror.takeovers], [3, 1]);
  assert.equal(session.serverTick(0.1), null);
  // Unhandled inputs apply to the new object.
  assert(Math.abs(session.predictor.position!.x - 30.1) < 0.01, `${session.predictor.position!.x}`);
  // The client sends no login, and a ping at once.
  assert.equal(act(0.11)[0], 7);
  // A late packet of the former process has no effect, and positions of the new one count.
  const exactly = (metres: number) => [21, ...new Uint8Array(new Float32Array([metres, metres]).buffer)];
  session.take(packet(1, 1, 9, 102, exactly(1)), 0.12);
  assert.deepEqual([session.mirror.tick, session.mirror.ignored], [3, 1]);
  const handled = packet(1, 3, 0, 4, exactly(31));
  handled[6] = 3;
  session.take(handled, 0.13);
  assert.equal(session.mirror.ownPosition?.position.x, 31);
  assert(Math.abs(session.predictor.position!.x - 31) < 0.21);
  // A lost connection is resumed with the new token.
  session.reconnect();
  sent.length = 0;
  session.act(1, (message) => sent.push(message));
  assert.deepEqual([...sent[0]!.subarray(0, 5)], [5, 5, 2, 2, 2]);
  // Until the reply it sends nothing more.
  session.act(2, (message) => sent.push(message));
  assert.equal(sent.length, 1);
  session.take(packet(0, 3, 0, 5, welcome(4)), 2);
  assert.deepEqual(act(2.1), [7, 8]);
});
