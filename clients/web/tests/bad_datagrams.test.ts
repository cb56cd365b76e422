// The page's simulated network loses, delays and reorders as many datagrams as configured.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadDatagrams } from "../demo/bad_datagrams.js";
import { IN_FLIGHT_MAX } from "../demo/slow_session.js";

/** The same numbers in each run (Park and Miller). */
function seeded(seed: number): () => number {
  return () => (seed = (seed * 48_271) % 0x7fffffff) / 0x7fffffff;
}

test("datagrams are lost, delayed and reordered in both directions", () => {
  const link = new BadDatagrams(seeded(7));
  link.badness = { lagS: 0.05, jitterS: 0.02, lossShare: 0.1 };
  const count = 10_000;
  const arrived: { sent: number[]; taken: number[] } = { sent: [], taken: [] };
  const packet = new Uint8Array(4);
  const numbers = new DataView(packet.buffer);
  for (let ms = 0; ms < count + 100; ms += 1) {
    if (ms < count) {
      numbers.setUint32(0, ms);
      link.send(packet, ms / 1000);
      link.receive(packet, ms / 1000);
    }
    const on = (list: number[]) => (bytes: Uint8Array) => {
      const sentMs = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
      assert(ms - sentMs >= 50 && ms - sentMs <= 71, `${ms - sentMs} ms in flight`);
      list.push(sentMs);
    };
    link.update(ms / 1000, on(arrived.sent), on(arrived.taken));
  }
  for (const list of [arrived.sent, arrived.taken]) {
    assert(Math.abs(1 - list.length / count - 0.1) < 0.02, `${list.length} of ${count} arrived`);
    assert.equal(new Set(list).size, list.length);
    assert(list.some((sent, nth) => nth > 0 && sent < list[nth - 1]!), "some packets overtake others");
  }
});

test("the number of datagrams in flight is bounded", () => {
  const link = new BadDatagrams(seeded(8));
  link.badness = { lagS: 1, jitterS: 0, lossShare: 0 };
  for (let nth = 0; nth < 2 * IN_FLIGHT_MAX; nth += 1) {
    link.send(new Uint8Array(1), 0);
  }
  let arrived = 0;
  link.update(2, () => (arrived += 1), () => assert(false, "nothing arrives in this direction"));
  assert.equal(arrived, IN_FLIGHT_MAX);
});
