// A lost connection is opened again with the same token, tested with a fake socket and clock.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Writer } from "../src/codec.js";
import { Connection } from "../src/connection.js";
import type { Line } from "../src/connection.js";
import { ResumingConnection } from "../src/resuming.js";
import { PROTOCOL_VERSION } from "../src/server_message.js";
import { Session } from "../src/session.js";

const [LOST, INVALID, FULL, BEHIND, GIVEN_UP] = [1006, 1008, 1013, 4003, 4014];
const LOGIN = 1;
const RESUME = 5;
const RESUME_TOKEN = Uint8Array.from({ length: 16 }, (_, at) => at);

let clockMs = 0;
performance.now = () => clockMs;
// Pauses are not shortened.
Math.random = () => 0;

/** A WebSocket whose server is the test. */
class FakeSocket {
  static all: FakeSocket[] = [];
  binaryType = "";
  onopen = () => {};
  onmessage = (_: { data: ArrayBuffer }) => {};
  onclose = (_: { code: number }) => {};
  sent: Uint8Array[] = [];
  closedWith: number | null = null;
  private sequence = 0;

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  send(bytes: Uint8Array | ArrayBuffer): void {
    this.sent.push(new Uint8Array(bytes));
  }

  close(code = 1005): void {
    this.closedWith ??= code;
  }

  /** A packet of the server with one message. */
  packet(write: (writer: Writer) => Writer): void {
    const head = new Writer().byte(0).byte(0).u16(this.sequence).u16(0).u16(0);
    this.sequence += 1;
    this.onmessage({ data: write(head).finish().slice().buffer as ArrayBuffer });
  }

  welcome(): void {
    this.packet((writer) => writer.byte(7).varint(PROTOCOL_VERSION).varint(1).varint(20_000).varint(1).varint(1200));
    this.packet((writer) => writer.byte(14).varint(7).raw(RESUME_TOKEN));
  }

  /** The first byte of the messages after the request. */
  get kinds(): number[] {
    return this.sent.slice(1).map((message) => message[0]!);
  }
}
(globalThis as { WebSocket: unknown }).WebSocket = FakeSocket;

/** A player over fake sockets. */
class Player {
  readonly session = new Session();
  readonly ends: [number, boolean][] = [];
  readonly losses: number[] = [];
  readonly line: ResumingConnection;

  constructor(keepS = 30) {
    FakeSocket.all = [];
    const token = new Uint8Array(2048);
    new DataView(token.buffer).setInt32(1085, 10, true);
    const open = (over: (code: number) => void) => new Connection("ws://x/play", token, this.session, over);
    const over = (code: number, mayLogIn: boolean) => void this.ends.push([code, mayLogIn]);
    this.line = new ResumingConnection(this.session, open, over, { keepS, lost: (code) => this.losses.push(code) });
  }

  get sockets(): FakeSocket[] {
    return FakeSocket.all;
  }

  get socket(): FakeSocket {
    return FakeSocket.all.at(-1)!;
  }

  /** Lets time pass in frames of 50 ms. */
  run(seconds: number, each: () => void = () => {}): void {
    for (let frame = 0; frame < Math.round(seconds * 20); frame += 1) {
      clockMs += 50;
      each();
      this.line.update();
    }
  }

  /** Opens the current socket, and has the server begin or continue the session. */
  enter(): void {
    this.socket.onopen();
    this.line.update();
    this.socket.welcome();
    this.line.update();
  }
}

test("a lost connection is opened again with the same token, and the session is resumed", () => {
  const player = new Player();
  player.enter();
  assert.equal(player.socket.kinds[0], LOGIN);
  for (const code of [LOST, BEHIND]) {
    const request = player.socket.sent[0]!;
    const before = player.sockets.length;
    player.run(11, () => player.socket.packet((writer) => writer));
    player.socket.onclose({ code });
    assert(player.line.isReturning && !player.line.isOpen);
    player.run(0.5);
    assert.equal(player.sockets.length, before + 1);
    player.enter();
    assert.deepEqual(player.socket.sent[0], request);
    // Not a login: the player, the token, and that the client still has its state.
    assert.deepEqual([...player.socket.sent[1]!.subarray(0, 19)], [RESUME, 7, ...RESUME_TOKEN, 1]);
    assert(player.line.isOpen && !player.line.isReturning);
  }
  assert.deepEqual(player.losses, [LOST, BEHIND]);
  assert.deepEqual(player.ends, []);
});

test("attempts have pauses, and end when the server does not keep the session any longer", () => {
  const player = new Player(20);
  player.enter();
  player.socket.onclose({ code: LOST });
  const lostS = clockMs / 1000;
  const atS: number[] = [];
  let count = player.sockets.length;
  player.run(30, () => {
    if (player.sockets.length > count) {
      count = player.sockets.length;
      atS.push(Math.round(clockMs / 50) / 20 - lostS);
      player.socket.onclose({ code: LOST });
    }
  });
  const gaps = atS.map((at, nth) => at - (atS[nth - 1] ?? 0));
  assert(gaps.every((gap, nth) => nth === 0 || gap >= Math.min(0.25 * 2 ** nth, 3)), `${gaps}`);
  assert(gaps.every((gap) => gap < 3.2), `${gaps}`);
  assert(atS.at(-1)! <= 20 && atS.length > 6, `${atS}`);
  assert.deepEqual(player.ends, [[LOST, true]]);
  assert.deepEqual(player.losses, [LOST]);
});

test("a silent connection is given up, without waiting for its close", () => {
  const player = new Player();
  player.enter();
  player.run(9, () => player.socket.packet((writer) => writer));
  // Nothing arrives, but the socket stays open.
  const [silent] = player.sockets;
  player.run(9.9);
  assert.equal(silent!.closedWith, null);
  player.run(0.5);
  assert.equal(silent!.closedWith, GIVEN_UP);
  // New attempts hang, too, until they are given up.
  player.run(10);
  assert(player.sockets.length >= 3 && player.sockets.slice(0, -1).every(({ closedWith }) => closedWith === GIVEN_UP));
  assert.equal(player.line.isReturning, true);
  // Events of a connection that was given up have no effect.
  silent!.onclose({ code: LOST });
  silent!.packet((writer) => writer.byte(16).byte(5));
  player.enter();
  assert.equal(player.line.isReturning, false);
  assert.equal(player.session.closed, null);
  assert.deepEqual([player.losses, player.ends], [[LOST], []]);
});

test("a suspended page handles the messages that arrived before it gives up", () => {
  const player = new Player();
  player.enter();
  clockMs += 60_000;
  player.line.update();
  assert.equal(player.socket.closedWith, null);
  player.run(10.2);
  assert.equal(player.socket.closedWith, GIVEN_UP);
});

test("a refused token is retried only while the server may regard the connection as open", () => {
  for (const [untilS, isBack] of [[12, true], [30, false]] as const) {
    const player = new Player();
    player.enter();
    player.socket.onclose({ code: LOST });
    let socket = player.socket;
    player.run(untilS, () => {
      if (player.socket !== socket) {
        socket = player.socket;
        socket.onopen();
        socket.onclose({ code: INVALID });
      }
    });
    if (isBack) {
      for (let frame = 0; frame < 100 && player.socket === socket; frame += 1) {
        player.run(0.05);
      }
      player.enter();
      assert.equal(player.line.isReturning, false);
      assert.deepEqual(player.ends, []);
    } else {
      // A login with another token may help.
      assert.deepEqual(player.ends, [[LOST, true]]);
    }
  }
});

test("a full server is retried while it keeps the session", () => {
  const player = new Player();
  player.enter();
  player.socket.onclose({ code: LOST });
  player.run(0.5);
  player.socket.onopen();
  player.socket.onclose({ code: FULL });
  player.run(2);
  player.enter();
  assert.deepEqual([player.line.isReturning, player.ends.length], [false, 0]);
});

test("a connection that the server has ended is not opened again", () => {
  const kicked = (player: Player) => player.socket.packet((writer) => writer.byte(16).byte(5));
  for (const [before, code, expected] of [
    [kicked, 1000, [1000, false]],
    [kicked, LOST, [LOST, false]],
    [() => {}, 1000, [1000, false]],
    [() => {}, INVALID, [INVALID, false]],
    [() => {}, 4105, [4105, false]],
  ] as [(player: Player) => void, number, [number, boolean]][]) {
    const player = new Player();
    player.enter();
    before(player);
    player.socket.onclose({ code });
    player.run(10);
    assert.deepEqual([player.sockets.length, player.ends], [1, [expected]]);
  }
});

test("a failed first connection is reported and not retried", () => {
  for (const [code, mayLogIn] of [[LOST, true], [FULL, true], [INVALID, false]] as const) {
    const player = new Player();
    player.socket.onclose({ code });
    player.run(10);
    assert.deepEqual([player.sockets.length, player.ends], [1, [[code, mayLogIn]]]);
  }
});

test("a session that the server no longer has needs another login", () => {
  const player = new Player();
  player.enter();
  player.socket.onclose({ code: LOST });
  player.run(0.5);
  player.socket.onopen();
  player.line.update();
  // Not resumed: it tries to log in, which this token does not allow.
  player.socket.packet((writer) => writer.byte(18));
  player.line.update();
  assert(player.socket.kinds.includes(LOGIN));
  player.socket.packet((writer) => writer.byte(16).byte(9).byte(0));
  player.socket.onclose({ code: 1000 });
  assert.deepEqual(player.ends, [[LOST, true]]);
  // The next login starts without these results.
  player.session.reconnect();
  assert.deepEqual([player.session.closed, player.session.refusal], [null, null]);
});

test("an invalid packet ends the connection for good", () => {
  const player = new Player();
  player.enter();
  player.socket.packet((writer) => writer.byte(99));
  player.socket.onclose({ code: 1005 });
  player.run(10);
  assert.deepEqual([player.sockets.length, player.ends], [1, [[1005, false]]]);
  assert(player.line.fault !== null);
});

test("closing ends the connection, also during a reconnect", () => {
  const player = new Player();
  player.enter();
  player.line.close();
  assert.equal(player.socket.closedWith, 1000);
  const other = new Player();
  other.enter();
  other.socket.onclose({ code: LOST });
  other.line.close();
  other.run(10);
  assert.equal(other.sockets.length, 1);
  assert.deepEqual([player.ends, other.ends], [[[1000, false]], [[1000, false]]]);
});

test("a retry ends the pause", () => {
  const player = new Player();
  player.enter();
  player.socket.onclose({ code: LOST });
  const count = player.sockets.length;
  player.line.retry();
  player.run(0.05);
  assert.equal(player.sockets.length, count + 1);
});

test("the late end of an attempt that was given up has no effect", () => {
  const overs: ((code: number) => void)[] = [];
  const open = (over: (code: number) => void): Line => {
    overs.push(over);
    return { isOpen: false, fault: null, update() {}, close() {}, abandon() {} };
  };
  const session = new Session();
  const ends: number[] = [];
  const line = new ResumingConnection(session, open, (code) => void ends.push(code));
  session.isWelcome = true;
  line.update();
  overs[0]!(LOST);
  for (let frame = 0; frame < 60 && overs.length < 3; frame += 1) {
    clockMs += 200;
    line.update();
  }
  overs[1]!(1000);
  assert.deepEqual([overs.length, line.isReturning, ends], [3, true, []]);
});
