// The client side of a session: its inputs are packets and times, its outputs messages. No sockets, no clock.

import { clientMessage } from "./client_message.js";
import type { InputMotion } from "./client_message.js";
import { WireError } from "./codec.js";
import { Mirror } from "./mirror.js";
import { Predictor } from "./predictor.js";
import type { Correction, Ground } from "./predictor.js";
import type { Notice, Refusal, ServerMessage, Vec } from "./server_message.js";

/** Settings of a client. Times are in seconds. */
export type SessionSettings = {
  /** The player that the token must be for; any player by default. */
  player?: bigint;
  credential?: Uint8Array;
  /** Time in which the shown part of a position correction decreases to a third. */
  smoothS?: number;
  /** Time between two pings for the server's clock. */
  pingEveryS?: number;
};

/** Events for the game, in addition to messages. */
export type SessionEvents = {
  message?: (message: ServerMessage) => void;
  corrected?: (correction: Correction) => void;
};

/** A longer offset, in metres, is a teleport and is shown at once. */
const JUMP_M = 3;
/** Maximum number of inputs that are sent at once after a late frame. */
const CATCH_UP_TICKS_MAX = 4;
/** The longest message that the server accepts from a client, in bytes. */
const CLIENT_MESSAGE_BYTES_MAX = 1_024;
/** Maximum number of messages of the game that wait to be sent; above it the oldest are dropped. */
const QUEUE_MAX = 64;
/** Number of stored ping replies. */
const CLOCK_SAMPLES = 16;

/** Decaying offsets of shown positions from the known ones. */
class Smoothing {
  private readonly offsets = new Map<number, { way: Vec; sinceS: number }>();
  constructor(private readonly smoothS: number) {}

  offset(id: number, nowS: number): Vec {
    const offset = this.offsets.get(id);
    if (offset === undefined) {
      return { x: 0, y: 0 };
    }
    const left = Math.exp(-Math.max(nowS - offset.sinceS, 0) / this.smoothS);
    return { x: offset.way.x * left, y: offset.way.y * left };
  }

  /** Sets the offset after the known position has moved away from the shown one. */
  follow(id: number, shown: Vec, known: Vec, nowS: number): void {
    const way = { x: shown.x - known.x, y: shown.y - known.y };
    if (this.smoothS > 0 && Math.hypot(way.x, way.y) < JUMP_M) {
      this.offsets.set(id, { way, sinceS: nowS });
    } else {
      this.offsets.delete(id);
    }
  }

  forget(id: number): void {
    this.offsets.delete(id);
  }

  clear(): void {
    this.offsets.clear();
  }
}

/** Estimate of the server's tick. It assumes that the reply with the shortest round trip left the server in the middle of it. */
class ServerClock {
  private number = 0;
  private readonly requests = new Map<number, number>();
  private readonly samples: { roundTripS: number; tickAtZero: number }[] = [];

  request(nowS: number): number {
    this.number = (this.number + 1) % 2 ** 32;
    this.requests.set(this.number, nowS);
    this.requests.delete(this.number - CLOCK_SAMPLES);
    return this.number;
  }

  /** Drops all earlier requests and replies; necessary when the length of a tick changes. */
  restart(): void {
    this.requests.clear();
    this.samples.length = 0;
  }

  record(number: number, tick: number, tickS: number, nowS: number): void {
    const sentS = this.requests.get(number);
    if (sentS === undefined || !(nowS >= sentS)) {
      return;
    }
    this.requests.delete(number);
    const roundTripS = nowS - sentS;
    this.samples.push({ roundTripS, tickAtZero: tick - (sentS + roundTripS / 2) / tickS });
    if (this.samples.length > CLOCK_SAMPLES) {
      this.samples.shift();
    }
  }

  get last(): { roundTripS: number } | null {
    return this.samples.at(-1) ?? null;
  }

  get best(): { roundTripS: number; tickAtZero: number } | null {
    const shorter = (a: { roundTripS: number }, b: { roundTripS: number }) => a.roundTripS - b.roundTripS;
    // Of several with the same round trip, the newest.
    return this.samples.toReversed().toSorted(shorter)[0] ?? null;
  }
}

export class Session {
  readonly mirror = new Mirror();
  readonly predictor = new Predictor();
  /** Why the server has ended the session, if it did. */
  closed: number | null = null;
  /** Why the server has refused the login, if it did; `refusalText` returns its text. */
  refusal: Refusal | null = null;
  /** Whether the server has begun or resumed the session over the current connection. */
  isWelcome = false;
  /** Returns whether a straight line is free on the map of the scene; undefined if no map is loaded.
   * With a map, the object stops at walls like on the server. */
  isFree: Ground["isFree"];
  private readonly shown: Smoothing;
  private readonly clock = new ServerClock();
  private motion: InputMotion = { kind: "stand" };
  private heading = 0;
  private buttons = 0;
  private receivedS = 0;
  private nextInputS: number | null = null;
  private nextPingS = 0;
  private ownBefore: Vec | null = null;
  private resumable: { player: bigint; token: Uint8Array } | null = null;
  private isGreeted = false;
  /** Whether its connection was replaced, and the session does not continue over the new one yet. */
  private awaitsWelcome = false;
  private ready: number | null = null;
  private queue: Uint8Array[] = [];

  constructor(
    readonly settings: SessionSettings = {},
    private readonly events: SessionEvents = {},
  ) {
    this.shown = new Smoothing(settings.smoothS ?? 0.1);
  }

  /** Handles a packet that arrives now, by a monotonic clock. Throws if it is invalid: then the connection cannot be used any more. */
  take(packet: Uint8Array, nowS: number): void {
    const { mirror } = this;
    const [tickBefore, takeoversBefore] = [mirror.tick, mirror.takeovers];
    const moved = new Map<number, Vec>();
    const ownShown = this.ownPosition(nowS);
    try {
      mirror.receive(packet, (message) => {
        if (message.kind === "motion") {
          const at = this.shownAt(message.id, nowS);
          if (at !== null) {
            moved.set(message.id, at);
          }
        }
        this.handle(message, nowS);
      });
    } finally {
      if (mirror.tick > tickBefore || mirror.takeovers !== takeoversBefore) {
        this.receivedS = nowS;
      }
      for (const [id, was] of moved) {
        const known = mirror.positionAfter(id, this.sinceS(nowS));
        if (known !== null) {
          this.shown.follow(id, was, known, nowS);
        }
      }
    }
    if (this.nextInputS === null && mirror.tickS > 0) {
      this.nextInputS = nowS;
    } else if (this.nextInputS !== null && mirror.takeovers !== takeoversBefore) {
      this.nextInputS = Math.min(this.nextInputS, nowS + this.realTickS);
    }
    this.followOwn(ownShown, nowS);
  }

  /** Sends pending messages: login, ready, one input per tick, pings. Call it once per frame. Over a new connection it sends
   * nothing more before *Welcome*. */
  act(nowS: number, say: (message: Uint8Array) => void): void {
    const { mirror, settings } = this;
    if (!this.isGreeted) {
      this.isGreeted = true;
      const { resumable } = this;
      say(
        resumable === null
          ? clientMessage.login(settings.player ?? 0n, settings.credential)
          : clientMessage.resume(resumable.player, resumable.token, mirror.received),
      );
    }
    // A further message would say that the new token has arrived. If that is lost, the server must still accept the former one.
    if (this.awaitsWelcome) {
      return;
    }
    if (this.ready !== null) {
      say(clientMessage.ready(this.ready));
      this.ready = null;
    }
    this.queue.splice(0).forEach(say);
    if (this.nextInputS === null) {
      return;
    }
    if (nowS >= this.nextPingS) {
      this.nextPingS = nowS + (settings.pingEveryS ?? 1);
      say(clientMessage.ping(this.clock.request(nowS)));
    }
    if (nowS > this.nextInputS + CATCH_UP_TICKS_MAX * this.realTickS) {
      this.nextInputS = nowS;
    }
    const clientTick = Math.floor(this.serverTick(nowS) ?? mirror.tick) & 0xffff;
    while (nowS >= this.nextInputS) {
      this.nextInputS += this.realTickS;
      const before = this.predictor.position;
      const { motion, heading, buttons } = this;
      const input = this.predictor.act(this.ground(), { clientTick, heading, buttons, motion });
      // With too many unacknowledged inputs there is no new one, and the object stands still.
      this.ownBefore = before;
      if (input !== null) {
        say(clientMessage.input(input));
      }
    }
  }

  /** Sets the player's controls from now on. */
  walk(motion: InputMotion, heading: number, buttons = 0): void {
    [this.motion, this.heading, this.buttons] = [motion, heading, buttons];
  }

  /** Sends a message of the game, a `clientMessage`, with the next `act`. Throws a `WireError` if it is too long. */
  say(message: Uint8Array): void {
    if (message.length > CLIENT_MESSAGE_BYTES_MAX) {
      throw new WireError(`a message of ${message.length} bytes, at most ${CLIENT_MESSAGE_BYTES_MAX} are allowed`);
    }
    this.queue.push(message);
    this.queue.splice(0, this.queue.length - QUEUE_MAX);
  }

  /** Prepares for another connection, over which the session is resumed. */
  reconnect(): void {
    this.mirror.reconnect();
    this.isGreeted = this.isWelcome = false;
    this.awaitsWelcome = this.resumable !== null;
    this.closed = this.refusal = null;
  }

  /** Shown position of an object, in metres; of the controlled one, as predicted. */
  position(id: number, nowS: number): Vec | null {
    return this.mirror.own?.id === id ? this.ownPosition(nowS) : this.shownAt(id, nowS);
  }

  /** Shown position of the controlled object: interpolated between its last two inputs by the elapsed part of the tick. */
  ownPosition(nowS: number): Vec | null {
    const to = this.predictor.position;
    if (to === null || this.mirror.own === null) {
      return null;
    }
    const from = this.ownBefore ?? to;
    const left = Math.min(Math.max(((this.nextInputS ?? nowS) - nowS) / Math.max(this.realTickS, 1e-6), 0), 1);
    const offset = this.shown.offset(this.mirror.own.id, nowS);
    return { x: to.x + (from.x - to.x) * left + offset.x, y: to.y + (from.y - to.y) * left + offset.y };
  }

  /** The server's current tick, with its fraction; null before the first reply. */
  serverTick(nowS: number): number | null {
    const best = this.clock.best;
    return best === null ? null : best.tickAtZero + nowS / this.realTickS;
  }

  /** The shortest round trip of the last replies; null before the first. */
  get roundTripS(): number | null {
    return this.clock.best?.roundTripS ?? null;
  }

  /** The round trip of the last reply; null before the first. */
  get lastRoundTripS(): number | null {
    return this.clock.last?.roundTripS ?? null;
  }

  /** Length of a tick in real time, in seconds: longer if the server slows time down. */
  private get realTickS(): number {
    return (this.mirror.tickS * 100) / this.mirror.timePercent;
  }

  private ground(): Ground {
    const { mirror } = this;
    return { size: mirror.size, stepM: mirror.ownStepM, isFree: this.isFree };
  }

  private sinceS(nowS: number): number {
    return Math.max(nowS - this.receivedS, 0);
  }

  private shownAt(id: number, nowS: number): Vec | null {
    const known = this.mirror.positionAfter(id, this.sinceS(nowS));
    const offset = this.shown.offset(id, nowS);
    return known === null ? null : { x: known.x + offset.x, y: known.y + offset.y };
  }

  private handle(message: ServerMessage, nowS: number): void {
    this.events.message?.(message);
    switch (message.kind) {
      case "hello":
        // Ticks are those of the process that sent it.
        this.clock.restart();
        this.nextPingS = Math.min(this.nextPingS, nowS);
        break;
      case "scene":
        this.shown.clear();
        break;
      case "despawn":
        this.shown.forget(message.id);
        break;
      case "pong":
        this.clock.record(message.number, message.tick, this.realTickS, nowS);
        break;
      default:
        this.handleNotice(message);
    }
  }

  private handleNotice(message: ServerMessage | Notice): void {
    switch (message.kind) {
      case "welcome":
        this.isWelcome = true;
        this.resumable = { player: message.player, token: message.token };
        this.awaitsWelcome = false;
        break;
      case "loading":
        this.ready = message.scene;
        break;
      case "notResumed":
        this.resumable = null;
        this.isGreeted = false;
        break;
      case "continued":
        if (!message.keeps) {
          this.shown.clear();
        }
        break;
      case "closed":
        this.closed = message.reason;
        this.refusal = message.refusal;
        break;
      case "timeRate":
        this.clock.restart();
        break;
      default:
    }
  }

  /** Updates the prediction of the controlled object. */
  private followOwn(shown: Vec | null, nowS: number): void {
    const correction = this.predictor.follow(this.ground(), this.mirror);
    const isMoved = this.predictor.takeSpeedJump() !== null || correction !== null;
    const [own, place] = [this.mirror.own, this.predictor.position];
    if (own === null || place === null) {
      this.ownBefore = null;
    } else if (isMoved) {
      this.ownBefore = place;
      if (shown !== null) {
        this.shown.follow(own.id, shown, place, nowS);
      }
    }
    if (correction !== null) {
      this.events.corrected?.(correction);
    }
  }
}
