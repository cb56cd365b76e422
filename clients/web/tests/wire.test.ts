// Compares decoding of server messages and encoding of client messages with vectors written by the Rust library.

import assert from "node:assert/strict";
import { test } from "node:test";

import { clientMessage, connectRequest } from "../src/client_message.js";
import { Reader, WireError, Writer, isNewer, widen } from "../src/codec.js";
import { Mirror } from "../src/mirror.js";
import type { ServerMessage } from "../src/server_message.js";
import { bytesOf, hexOf, nameOf, stateOf, vectors } from "./vectors.js";

type Step = { packet: string; notices: string[]; state: Record<string, unknown> };
type Placed = { later: [number, number] };

const isNear = (a: number, b: number) => Math.abs(a - b) <= 1e-4 * Math.max(Math.abs(b), 1);

test("a mirror has the state of the library's mirror after each packet", () => {
  const mirror = new Mirror();
  for (const { packet, notices, state } of vectors<Step>("packets")) {
    const received: ServerMessage[] = [];
    mirror.receive(bytesOf(packet), (message) => received.push(message));
    const names = received.filter((message) => notices.some((notice) => notice.startsWith(message.kind)));
    assert.deepEqual(names.map((notice) => nameOf(notice as never)), notices);
    const found = stateOf(mirror);
    // Computed in 32 bits by the library and in 64 bits here.
    const [places, expected] = [found["objects"] as Placed[], state["objects"] as Placed[]];
    assert.equal(places.length, expected.length);
    places.forEach((place, nth) => {
      const at = expected[nth]!.later;
      assert(isNear(place.later[0], at[0]) && isNear(place.later[1], at[1]), `${place.later} is not ${at}`);
      place.later = at;
    });
    assert.deepEqual(found, state);
  }
});

test("a changed packet is accepted or refused like in the library", () => {
  const packets = vectors<Step>("packets").map(({ packet }) => bytesOf(packet));
  for (const { after, packet, state } of vectors<{ after: number; packet: string; state: unknown[] | null }>("changed")) {
    const mirror = new Mirror();
    packets.slice(0, after).forEach((before) => mirror.receive(before));
    let found: unknown[] | null = null;
    try {
      mirror.receive(bytesOf(packet));
      const ids = [...mirror.objects.keys()].sort((a, b) => a - b);
      found = [mirror.scene, mirror.tick, mirror.received, ids, mirror.ignored];
    } catch (fault) {
      assert.equal((fault as Error).name, "WireError", packet);
    }
    assert.deepEqual(found, state, packet);
  }
});

test("a fragment out of order is an error, except in a new epoch", () => {
  const packets = vectors<Step>("packets").map(({ packet }) => bytesOf(packet));
  const parts = packets.filter((packet) => packet[0] === 0 && packet[8] === 8);
  const [first, , third] = parts as [Uint8Array, Uint8Array, Uint8Array];
  const before = packets.slice(0, packets.indexOf(first) + 1);
  const afterFirstFragment = () => {
    const mirror = new Mirror();
    before.forEach((packet) => mirror.receive(packet));
    return mirror;
  };
  // The third fragment, with the sequence number of the second.
  const early = third.slice();
  early.set(parts[1]!.subarray(2, 4), 2);
  assert.throws(() => afterFirstFragment().receive(early), WireError);
  const header = new Writer().byte(0).byte(1).raw(early.subarray(2, 8)).finish();
  assert.throws(() => afterFirstFragment().receive(header), WireError);
  header[1] = 2;
  afterFirstFragment().receive(header);
});

/** Decodes the markers that vectors use for values that JSON cannot represent. */
function revived(given: unknown): unknown {
  if (given !== null && typeof given === "object") {
    if ("big" in given) {
      return BigInt(given.big as string);
    }
    if ("hex" in given) {
      return bytesOf(given.hex as string);
    }
  }
  return given;
}

test("each message has the same bytes as in the library", () => {
  const written = new Set<string>();
  for (const [name, given, bytes] of vectors<[keyof typeof clientMessage, unknown[], string]>("said")) {
    const write = clientMessage[name] as (...given: unknown[]) => Uint8Array;
    assert.equal(hexOf(write(...given.map(revived))), bytes, name);
    written.add(name);
  }
  assert.deepEqual([...written].sort(), Object.keys(clientMessage).sort());
});

test("the first frame is cut out of a token", () => {
  for (const { token, request } of vectors<{ token: string; request: string }>("token")) {
    assert.equal(hexOf(connectRequest(bytesOf(token))), request);
  }
  assert.throws(() => connectRequest(new Uint8Array(2047)), RangeError);
});

test("a varint longer than its type allows is refused", () => {
  const of = (bytes: number, last: number) => new Reader(Uint8Array.from([...Array<number>(bytes - 1).fill(0x80), last]));
  assert.deepEqual([of(5, 0).varint(), of(10, 1).varint64(), of(3, 1).varint(16)], [0, 1n << 63n, 1 << 14]);
  for (const read of [() => of(6, 0).varint(), () => of(5, 16).varint(), () => of(11, 0).varint64(), () => of(10, 2).varint64(), () => of(3, 4).varint(16)]) {
    assert.throws(read, WireError);
  }
});

test("16-bit numbers wrap around", () => {
  assert(isNewer(0, 65_535) && isNewer(32_767, 0) && !isNewer(32_768, 0) && !isNewer(5, 5));
  assert.deepEqual([widen(65_530, 2), widen(65_540, 65_535), widen(3, 65_535), widen(70_000, 4_464)], [65_538, 65_535, 65_535, 70_000]);
});
