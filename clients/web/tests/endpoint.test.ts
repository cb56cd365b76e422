// Packets are handled and acknowledged as in the library, and over a network with losses every message arrives once and in order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Endpoint } from "../src/endpoint.js";
import { bytesOf, hexOf, vectors } from "./vectors.js";

type Taken = { ms: number; packet: string; messages: string[]; fate: "taken" | "refused" | "broken" };
type Acknowledged = { ms: number; acknowledged: [number, number, number] };

/** Initial counters of the library's vectors. */
const START = { packet: 65_500, offset: 2 ** 24 - 500 };

/** Outcome of a packet. */
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

test("packets are handled and acknowledged as in the library", () => {
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
    const acknowledged = 0xffffffff >>> (32 - bits);
    assert.deepEqual([view.getUint16(6, true), (before & acknowledged) >>> 0], [newest, (expected & acknowledged) >>> 0], `at ${step.ms}`);
  }
});

test("changed packets have the same outcome as in the library", () => {
  for (const { ms, packet, ...expected } of vectors<Taken>("changed_datagrams")) {
    assert.deepEqual(take(new Endpoint(START), packet, ms), expected, packet);
  }
});

test("the first packet has the same bytes as in the library", () => {
  for (const { said, packet } of vectors<{ said: string[]; packet: string }>("first_datagram")) {
    const endpoint = new Endpoint(START);
    said.forEach((message) => endpoint.push(bytesOf(message)));
    assert.deepEqual(flush(endpoint, 1).map(hexOf), [packet]);
  }
});

test("messages arrive once and in order over a network that loses, duplicates and delays packets", () => {
  let state = 1;
  const below = (most: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % most;
  };
  for (let seed = 1; seed <= 30; seed += 1) {
    state = seed;
    const ends = [new Endpoint(START), new Endpoint(START)] as const;
    const said: string[][] = [[], []];
    const received: string[][] = [[], []];
    let late: [number, Uint8Array][] = [];
    for (let step = 0; step < 3_000 && (step < 400 || received.some((words, end) => words.length < said[1 - end]!.length)); step += 1) {
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
        ends[to as 0 | 1].receive(packet, nowS, (message) => received[to]!.push(hexOf(message)));
      }
    }
    assert(said[0]!.length > 90);
    assert.deepEqual(received, [said[1], said[0]], `seed ${seed}`);
  }
});

test("unacknowledged bytes, and the bytes sent at once, are bounded", () => {
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

/** A packet of a server that acknowledges nothing. */
function packetOf(number: number, flags = 0, rest: number[] = []): string {
  return hexOf(Uint8Array.from([flags, 0, number & 0xff, number >> 8, 0, 0, 0xff, 0xff, ...rest]));
}

test("each of the last 32 packets is accepted once, and acknowledged", () => {
  const endpoint = new Endpoint();
  const fates = (numbers: number[]) => numbers.map((number) => take(endpoint, packetOf(number), 0).fate);
  const acknowledged = () => {
    const view = new DataView(flush(endpoint, 10)[0]!.buffer);
    return [view.getUint16(6, true), view.getUint32(8, true)];
  };
  assert.deepEqual(fates([0, 32, 0, 1]), ["taken", "taken", "refused", "taken"]);
  assert.deepEqual(acknowledged(), [32, (2 ** 31 + 2 ** 30) >>> 0]);
  flush(endpoint, 10);
  assert.deepEqual(fates([34, 2, 2, 1]), ["taken", "taken", "refused", "refused"]);
  assert.deepEqual(fates([34 + 33, 34]), ["taken", "refused"]);
});

test("acknowledgements are sent on request, after eight packets, and once per second", () => {
  const endpoint = new Endpoint();
  const answers = (nowS: number) => flush(endpoint, nowS).length;
  assert.deepEqual([answers(0), answers(0.5), answers(1), answers(1.9)], [1, 0, 1, 0]);
  for (let number = 0; number < 8; number += 1) {
    assert.equal(answers(1.9), 0);
    take(endpoint, packetOf(number), 1_900);
  }
  assert.deepEqual([answers(1.9), answers(1.9)], [1, 0]);
  take(endpoint, packetOf(8, 1 << 4), 1_900);
  assert.deepEqual([answers(1.9), answers(1.9)], [1, 0]);
});

test("malformed packets are refused, and an invalid message length ends the connection", () => {
  const piece = (word: number, bytes: number[]) => packetOf(0, 1, [word & 0xff, word >> 8, 0, 0, 0, ...bytes]);
  for (const packet of ["", packetOf(0, 1 << 6), packetOf(0, 1 << 5, [0, 0, 0, 0]), piece(1 << 13, []), piece(2, [1])]) {
    assert.equal(take(new Endpoint(), packet, 0).fate, "refused", packet);
  }
  for (const length of [[0], [0x81, 0x80, 0xc0, 0], [0xff, 0xff, 0xff, 0xff], [0x80, 0]]) {
    assert.equal(take(new Endpoint(), piece(length.length, length), 0).fate, "broken", `${length}`);
  }
  assert.equal(take(new Endpoint(), piece(4, [0x80, 0x80, 0x40, 1]), 0).fate, "taken");
});

test("a stream continues beyond its window, and lost bytes are sent again", () => {
  const [server, client] = [new Endpoint(), new Endpoint()];
  let received = 0;
  for (let step = 0, said = 0; received < 150; step += 1) {
    assert(step < 2_000, `${received} of ${said}`);
    if (said < 150 && said - received < 5) {
      server.push(new Uint8Array(1_000).fill(said));
      said += 1;
    }
    flush(server, step / 20).forEach((packet, nth) => {
      if ((step + nth) % 3 > 0) {
        client.receive(packet, step / 20, (message) => {
          assert(message.length === 1_000 && message.every((byte) => byte === received % 256));
          received += 1;
        });
      }
    });
    flush(client, step / 20).forEach((packet) => server.receive(packet, step / 20, () => undefined));
  }
});
