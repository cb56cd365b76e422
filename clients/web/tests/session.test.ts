// Messages of a session, and the texts of refusals and failures.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { WireError } from "../src/codec.js";
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
