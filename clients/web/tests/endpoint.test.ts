// Packets are taken and acknowledged as the library does it, and over a link that loses them everything arrives once and in order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Endpoint } from "../src/endpoint.js";
import { bytesOf, hexOf, vectors } from "./vectors.js";

type Taken = { ms: number; packet: string; messages: string[]; fate: "taken" | "refused" | "broken" };
type Acknowledged = { ms: number; acknowledged: [number, number, number] };

/** Where the library's vectors begin to count. */
const START = { packet: 65_500, offset: 2 ** 24 - 500 };

/** What becomes of a packet. */
function take(endpoint: Endpoint, packet: string, ms: number): Omit<Taken, "ms" | "packet"> {
  const messages: string[] = [];
  const before = endpoint.refused;
  try {
    endpoint.receive(bytesOf(packet), ms / 1000, (message) => messages.push(hexOf(message)));
  } catch (fault) {
    assert.equal((fault as Error).name, "WireError");
    return { messages, fate: "broken" };
  }
  return { messages, fate: endpoint.refused === before ? "taken" : "refused" };
}

function flush(endpoint: Endpoint, nowS: number): Uint8Array[] {
  const packets: Uint8Array[] = [];
  endpoint.flush(nowS, (packet) => packets.push(packet));
  return packets;
}

test("packets are taken and acknowledged as the library does it", () => {
  const endpoint = new Endpoint(START);
  for (const step of vectors<Taken | Acknowledged>("datagrams")) {
    if ("packet" in step) {
      const { ms, packet, ...expected } = step;
      assert.deepEqual(take(endpoint, packet, ms), expected, packet);
      continue;
    }
    const [answer, ...more] = flush(endpoint, step.ms / 1000);
    assert(answer !== undefined && more.length === 0);
    const view = new DataView(answer.buffer);
    const before = (answer[0]! & 4) === 0 ? 0xffffffff : view.getUint32(8, true);
    const [newest, bits, expected] = step.acknowledged;
    const told = 0xffffffff >>> (32 - bits);
    assert.deepEqual([view.getUint16(6, true), (before & told) >>> 0], [newest, (expected & told) >>> 0], `at ${step.ms}`);
  }
});

test("a packet with other bytes is refused where it makes no sense, and means the same where it does", () => {
  for (const { ms, packet, ...expected } of vectors<Taken>("changed_datagrams")) {
    assert.deepEqual(take(new Endpoint(START), packet, ms), expected, packet);
  }
});

test("what is said first has the library's bytes", () => {
  for (const { said, packet } of vectors<{ said: string[]; packet: string }>("first_datagram")) {
    const endpoint = new Endpoint(START);
    said.forEach((message) => endpoint.push(bytesOf(message)));
    assert.deepEqual(flush(endpoint, 1).map(hexOf), [packet]);
  }
});

test("over a link that loses, doubles and delays packets everything arrives once and in order", () => {
  let state = 1;
  const below = (most: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % most;
  };
  for (let seed = 1; seed <= 30; seed += 1) {
    state = seed;
    const ends = [new Endpoint(START), new Endpoint(START)] as const;
    const said: string[][] = [[], []];
    const heard: string[][] = [[], []];
    let late: [number, Uint8Array][] = [];
    for (let step = 0; step < 3_000 && (step < 400 || heard.some((words, end) => words.length < said[1 - end]!.length)); step += 1) {
      const nowS = step / 60;
      const coming = late;
      late = [];
      ends.forEach((end, from) => {
        if (step < 400 && below(3) === 0) {
          const word = Uint8Array.from({ length: 1 + below(below(20) === 0 ? 1_078 : 30) }, () => below(256));
          said[from]!.push(hexOf(word));
          end.push(word);
        }
        for (const packet of flush(end, nowS)) {
          const fate = below(10);
          if (fate > 2 + (seed % 3)) {
            coming.push([1 - from, packet]);
          } else if (fate < 2) {
            late.push([1 - from, packet]);
          }
          if (fate === 9) {
            coming.unshift([1 - from, packet]);
          }
        }
      });
      for (const [to, packet] of coming) {
        ends[to as 0 | 1].receive(packet, nowS, (message) => heard[to]!.push(hexOf(message)));
      }
    }
    assert(said[0]!.length > 90);
    assert.deepEqual(heard, [said[1], said[0]], `seed ${seed}`);
  }
});

test("what is never acknowledged is bounded, in bytes and in what is sent at once", () => {
  const endpoint = new Endpoint();
  const word = new Uint8Array(100);
  let said = 0;
  assert.throws(() => {
    for (;; said += 1) {
      endpoint.push(word);
    }
  }, RangeError);
  assert(said > 500 && said < 700);
  for (let step = 0; step < 100; step += 1) {
    const bytes = flush(endpoint, step / 20).reduce((sum, packet) => sum + packet.length, 0);
    assert(bytes < 10_000, `${bytes} at ${step}`);
  }
});
