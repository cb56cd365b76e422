// What the demo page shows: values of attributes, announcements, chat, and the latest round trip.

import assert from "node:assert/strict";
import { test } from "node:test";
import { valueText } from "../demo/names.js";
import { CHAT_BYTES_MAX, announcementText, chatText } from "../demo/words.js";
import { Writer } from "../src/codec.js";
import { Session } from "../src/session.js";

test("attribute values are shown by their encoding, others as bytes", () => {
  const bytes = (...all: number[]) => Uint8Array.from(all);
  for (const [value, encoding, expected] of [
    [bytes(200), "u8", "200"],
    [bytes(1, 2), "u16", "513"],
    [bytes(1, 0, 0, 128), "u32", "2147483649"],
    [new Writer().varint(300).finish(), "varint", "300"],
    [bytes(0), "zigzag", "0"],
    [bytes(1), "zigzag", "-1"],
    [bytes(4), "zigzag", "2"],
    [bytes(0, 0, 192, 63), "f32", "1.5"],
    [new TextEncoder().encode("Ada"), "bytes", "Ada"],
    [bytes(1, 2), "u8", "0x0102"],
    [bytes(), "u16", "0x"],
    [bytes(255), undefined, "0xff"],
    [bytes(0, 0, 192, 127), "f32", "0x0000c07f"],
  ] as [Uint8Array, string | undefined, string][]) {
    assert.equal(valueText(value, encoding), expected, `${value} as ${encoding}`);
  }
  assert.equal(valueText(new TextEncoder().encode("x".repeat(100)), "bytes").length, 41);
});

test("announcements are one line without control characters", () => {
  const text = (words: string) => announcementText(new TextEncoder().encode(words));
  assert.equal(text("The gate\nis \u0000 open\u001b[2J "), "The gate is   open [2J");
  assert.equal(text("x".repeat(1000)).length, 301);
  assert.equal(announcementText(Uint8Array.of(0xff)), "\ufffd");
});

test("chat text is cut between characters, to the length of a message", () => {
  assert.equal(chatText("  hello "), "hello");
  const cut = chatText("é".repeat(400));
  assert.equal(new TextEncoder().encode(cut).length, CHAT_BYTES_MAX);
  assert.equal(cut, "é".repeat(256));
  assert.equal(chatText("😀".repeat(200)), "😀".repeat(128));
});

test("the round trip shown is that of the last reply, not the shortest", () => {
  const session = new Session();
  assert.equal(session.lastRoundTripS, null);
  const clock = (session as unknown as { clock: { request(nowS: number): number; record(number: number, tick: number, tickS: number, nowS: number): void } }).clock;
  clock.record(clock.request(1), 10, 0.05, 1.02);
  clock.record(clock.request(2), 30, 0.05, 2.3);
  assert.equal(session.lastRoundTripS?.toFixed(3), "0.300");
  assert.equal(session.roundTripS?.toFixed(3), "0.020");
});
