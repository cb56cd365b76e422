// Messages that a session refuses to send.

import assert from "node:assert/strict";
import { test } from "node:test";

import { WireError } from "../src/codec.js";
import { Session } from "../src/session.js";

test("a message longer than the server takes is refused", () => {
  const session = new Session({ player: 1n, speedMS: 3 });
  session.say(new Uint8Array(1_024));
  assert.throws(() => session.say(new Uint8Array(1_025)), WireError);
});
