import assert from "node:assert/strict";
import { test } from "node:test";

import { closeReasonText, endText, mayRetry } from "../src/close_reason.js";
import { vectors } from "./vectors.js";

test("each reason has its own sentence, the same as in the library", () => {
  const reasons = vectors<{ number: number; text: string }>("reasons");
  const texts = new Set<string>();
  for (const { number, text } of reasons) {
    assert.equal(closeReasonText(number), text);
    texts.add(text);
  }
  assert.equal(texts.size, reasons.length);
  assert(closeReasonText(200).endsWith("does not know the reason 200"));
});

test("each end has its own sentence", () => {
  const ends: [number, number | null][] = [[1000, 4], [1006, null], [1000, 5], [4003, null], [4105, null], [1013, null], [1000, 13], [1008, null]];
  const texts = ends.map(([code, closed]) => endText(code, closed));
  assert.equal(new Set(texts).size, ends.length);
  assert.deepEqual(texts.slice(0, 7), [
    "the server is shutting down",
    "the connection is lost: nothing arrived from the server for too long, or the network broke",
    "the player was kicked",
    "the client is behind: it does not read fast enough",
    "the server speaks protocol 5, this client 4: update the client",
    "the server is full",
    "the stored player is unavailable: the store does not answer, or another server has the player",
  ]);
  assert.equal(endText(4103, null), "the server speaks protocol 3, this client 4: update the server");
  // The reason of the session takes precedence over that of the connection.
  assert.equal(endText(1006, 5), "the player was kicked");
});

test("a lost connection may be opened again, a refused one not", () => {
  const retried: [number, number | null][] = [[1006, null], [1013, null], [4003, null]];
  assert(retried.every(([code, closed]) => mayRetry(code, closed)));
  const refused: [number, number | null][] = [[1008, null], [4105, null], [1000, 5], [1006, 4]];
  assert(refused.every(([code, closed]) => !mayRetry(code, closed)));
});
