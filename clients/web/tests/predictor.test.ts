// The predicted object moves as in the library, to the last bit.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { InputMotion } from "../src/client_message.js";
import { Writer } from "../src/codec.js";
import { TileGround } from "../src/ground.js";
import { Mirror } from "../src/mirror.js";
import { Predictor, directionOf, towards } from "../src/predictor.js";
import type { Ground } from "../src/predictor.js";
import { Session } from "../src/session.js";
import { bytesOf, vectors } from "./vectors.js";

type Step = { packet?: string; act?: InputMotion; seq: number; at?: [number, number]; off?: number | null };

const groundOf = (mirror: Mirror): Ground => ({ size: mirror.size, stepM: mirror.ownStepM });

test("directions are those of the library", () => {
  vectors<[number, number]>("directions").forEach(([x, y], direction) => {
    const { x: foundX, y: foundY } = directionOf(direction);
    // Adding 0 turns −0 into 0.
    assert.deepEqual([foundX + 0, foundY + 0], [x + 0, y + 0], `${direction}`);
  });
});

test("inputs and corrections give the same positions as in the library", () => {
  const [mirror, predictor] = [new Mirror(), new Predictor()];
  let corrections = 0;
  for (const { packet, act, seq, at, off } of vectors<Step>("predicted")) {
    if (act !== undefined) {
      const input = predictor.act(groundOf(mirror), { clientTick: 0, heading: 0, buttons: 0, motion: act });
      assert.equal(input?.seq, seq);
    } else {
      mirror.receive(bytesOf(packet!));
      const correction = predictor.follow(groundOf(mirror), mirror);
      assert.equal(correction === null, off == null, packet);
      if (correction !== null) {
        corrections += 1;
        assert(Math.abs(correction.offM - off!) < 1e-5);
      }
    }
    if (at !== undefined) {
      assert.deepEqual([predictor.position?.x, predictor.position?.y], at);
    }
  }
  assert.equal(corrections, 1);
});

test("steps between walls end at the same positions as in the library", () => {
  const [head, ...steps] = vectors<unknown>("walked") as [{ map: string; stepM: number; size: [number, number] }, ...number[][]];
  const [x, y] = head.size;
  const { isFree } = TileGround.read(bytesOf(head.map));
  const ground: Ground = { size: { x, y }, stepM: Math.fround(head.stepM), isFree };
  let stopped = 0;
  for (const [fromX, fromY, direction, toX, toY] of steps) {
    const to = towards(ground, { x: fromX!, y: fromY! }, direction!);
    assert.deepEqual([to.x, to.y], [toX, toY], `from ${fromX}, ${fromY} to ${direction}`);
    stopped += to.x === fromX || to.y === fromY ? 1 : 0;
  }
  assert(stopped > 50 && stopped < 350, `${stopped} are stopped, or slide along`);
});

test("a blocked step slides along the wall, or does not move", () => {
  const [mirror, predictor] = [new Mirror(), new Predictor()];
  const arrival = vectors<Step>("predicted").findIndex(({ act }) => act !== undefined);
  for (const { packet } of vectors<Step>("predicted").slice(0, arrival)) {
    mirror.receive(bytesOf(packet!));
  }
  // A wall below blocks the way.
  const wall = { ...groundOf(mirror), isFree: (_: unknown, to: { y: number }) => to.y <= 30.25 };
  predictor.follow(wall, mirror);
  const before = predictor.position!;
  const act = (direction: number) => predictor.act(wall, { clientTick: 0, heading: 0, buttons: 0, motion: { kind: "towards", direction } });
  act(64);
  assert.deepEqual(predictor.position, before);
  act(40);
  assert(predictor.position!.x > before.x && predictor.position!.y === before.y);
});

test("a session logs in, reports that it is ready, sends inputs, and resumes", () => {
  const session = new Session();
  const said: Uint8Array[] = [];
  const act = (nowS: number) => {
    said.length = 0;
    session.act(nowS, (message) => said.push(message));
    return said.map(([kind]) => kind);
  };
  assert.deepEqual(act(0), [1]);
  const packets = vectors<Step>("predicted").filter(({ act }) => act === undefined);
  const arrival = vectors<Step>("predicted").findIndex(({ act }) => act !== undefined);
  packets.slice(0, arrival).forEach(({ packet }) => session.take(bytesOf(packet!), 1));
  session.walk({ kind: "towards", direction: 0 }, 0);
  assert.deepEqual(act(1), [6, 7, 8], "ready, a ping, an input");
  assert.deepEqual(act(1.01), []);
  assert.deepEqual(act(1.11), [8, 8]);
  const [at, walked] = [session.ownPosition(1.11)!, session.predictor.position!];
  assert(at.x <= walked.x && at.x > walked.x - 0.16, "between the last two inputs");
  // After a pause only some inputs are sent at once.
  assert(act(60).length < 8);
  session.reconnect();
  const [resume] = (act(60), said);
  assert.equal(resume?.[0], 5);
  assert.equal(session.mirror.received > 0, true);
});

test("a server that slows time down receives one input per tick", () => {
  const session = new Session();
  const arrival = vectors<Step>("predicted").findIndex(({ act }) => act !== undefined);
  vectors<Step>("predicted").slice(0, arrival).forEach(({ packet }) => session.take(bytesOf(packet!), 1));
  let nowS = 1;
  /** Number of inputs in two seconds. */
  const inputs = () => {
    let count = 0;
    const until = nowS + 2;
    for (; nowS < until; nowS += 0.01) {
      session.act(nowS, (message) => (count += message[0] === 8 ? 1 : 0));
    }
    return count;
  };
  session.walk({ kind: "towards", direction: 0 }, 0);
  const atFull = inputs();
  assert(Math.abs(atFull - 40) <= 1, `${atFull}`);
  const { mirror } = session;
  session.take(new Writer().byte(0).byte(1).u16(arrival).u16(mirror.tick).u16(atFull).byte(20).byte(25).finish(), nowS);
  assert.equal(mirror.timePercent, 25);
  assert.equal(session.serverTick(nowS), null);
  const atQuarter = inputs();
  assert(Math.abs(atQuarter - 10) <= 1, `${atQuarter}`);
  const to = session.predictor.position!.x;
  // Between two inputs the shown position is interpolated.
  const shown = [0, 0.05, 0.1, 0.15].map((later) => session.ownPosition(nowS + later)!.x);
  assert(shown.every((x, nth) => nth === 0 || x >= shown[nth - 1]!) && shown[0]! < to, `${shown}`);
  // The next connection sends the rate again, unless it is 100 %.
  session.reconnect();
  session.take(bytesOf(vectors<{ packet: string }>("predicted")[0]!.packet), nowS);
  assert.equal(mirror.timePercent, 100);
});

test("a corrected position is approached smoothly, and a distant one shown at once", () => {
  const session = new Session({ smoothS: 0.1 });
  for (const { packet } of vectors<{ packet: string }>("packets").slice(0, 5)) {
    session.take(bytesOf(packet), 1);
  }
  // Makes the object stand at this distance from its shown position.
  const stand = (aside: number, nowS: number) => {
    const { mirror } = session;
    const at = session.position(1, nowS)!;
    const tick = mirror.tick + 1;
    const packet = new Writer().byte(1).byte(1).u16(tick).u16(tick).u16(0).byte(6).varint(1).varint(0);
    packet.byte(tick).byte(0).varint(Math.round((at.x + aside) * 64)).varint(Math.round(at.y * 64)).byte(0);
    session.take(packet.finish(), nowS);
    return { shown: at, known: mirror.positionAfter(1, 0)! };
  };
  const near = stand(1, 1.05);
  const away = (nowS: number) => near.known.x - session.position(1, nowS)!.x;
  assert(Math.abs(session.position(1, 1.05)!.x - near.shown.x) < 1e-6, "it does not jump");
  assert(Math.abs(away(1.15) - 0.37 * away(1.05)) < 0.01 && Math.abs(away(3)) < 1e-6);
  const far = stand(10, 4);
  assert.deepEqual(session.position(1, 4), far.known);
});

test("a change of speed replays unhandled inputs, and is not a correction", () => {
  let corrections = 0;
  const session = new Session({}, { corrected: () => (corrections += 1) });
  const packets = vectors<Step>("predicted").filter(({ act }) => act === undefined).slice(0, 5);
  packets.forEach(({ packet }) => session.take(bytesOf(packet!), 1));
  const { mirror, predictor } = session;
  assert.equal(mirror.ownSpeed?.speedMS, 3);
  session.walk({ kind: "towards", direction: 0 }, 0);
  for (let nowS = 1; nowS < 1.5; nowS += 0.05) {
    session.act(nowS, () => {});
  }
  const start = predictor.position!.x - predictor.unanswered * mirror.ownStepM;
  const shown = session.ownPosition(1.5)!;
  const packet = new Writer().byte(0).byte(1).u16(packets.length).u16(mirror.tick).u16(0).byte(22).raw(new Uint8Array(new Float32Array([6]).buffer));
  session.take(packet.finish(), 1.5);
  const walked = predictor.position!.x - start;
  assert(Math.abs(walked - predictor.unanswered * Math.fround(6 * mirror.tickS)) < 1e-3, `${walked}`);
  const after = session.ownPosition(1.5)!;
  assert(Math.hypot(after.x - shown.x, after.y - shown.y) < 1e-3, "it does not jump");
  assert.equal(corrections, 0);
});
