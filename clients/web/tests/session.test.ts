// Messages that a session refuses to send.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { WireError } from "../src/codec.js";
import { refusalText } from "../src/server_message.js";
import { closeText } from "../src/connection.js";
import { Session } from "../src/session.js";

test("a message longer than the server takes is refused", () => {
  const session = new Session();
  session.say(new Uint8Array(1_024));
  assert.throws(() => session.say(new Uint8Array(1_025)), WireError);
});

test("the token says who the player is, and a refusal names both players", () => {
  const said: Uint8Array[] = [];
  new Session().act(1, (message) => said.push(message));
  assert.deepEqual([...said[0]!], [1, 0]);
  const session = new Session({ player: 7n });
  session.act(1, (message) => said.push(message));
  assert.deepEqual([...said[1]!], [1, 7]);
  session.take(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 16, 9, 2, 8, 7), 1);
  assert.equal(session.closed, 9);
  assert.equal(refusalText(session.refusal!), "this token is for player 8, the login names player 7");
});

test("a connection that was never made is explained as by the other libraries", () => {
  const client = readFileSync(new URL("../../../../crates/throng_net/src/handshake/client.rs", import.meta.url), "utf8");
  assert(client.includes(closeText(1006).replace("(1)", "({servers})")), closeText(1006));
});
