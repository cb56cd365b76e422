// Prediction of the controlled object: inputs are applied at once, and again from the position that the server sends. All sums are
// rounded to 32 bits after each step, as on the server, so both ends have the same numbers.

import { isNewer } from "./codec.js";
import type { ClientInput, InputMotion } from "./client_message.js";
import type { Mirror } from "./mirror.js";
import type { Vec } from "./server_message.js";

/** Maximum number of stored inputs that the server has not handled. */
export const UNHANDLED_MAX = 64;

/** Maximum difference, in metres, between an exact position and the same one in 64ths of a metre. */
const SAME_PLACE_M = 1 / 64;

const f32 = Math.fround;

/** The ground of the controlled object: its size, the length of a step, and whether a straight line is free; without `isFree`, each is. */
export type Ground = { size: Vec; stepM: number; isFree?: ((from: Vec, to: Vec) => boolean) | undefined };

/** The server's position differs from the predicted one: after which input, by how much, and the jump of the current position. */
export type Correction = { input: number; offM: number; jump: Vec };

/** The unit vector of a direction, in 256ths of a turn: the nearest 32-bit numbers. */
export function directionOf(direction: number): Vec {
  // An eighth of a turn is computed; the rest is mirrored, which is exact to the last bit.
  const inQuarter = direction % 64;
  const near = inQuarter <= 32 ? inQuarter : 64 - inQuarter;
  const angle = (near * Math.PI) / 128;
  const [cosine, sine] = [f32(Math.cos(angle)), f32(Math.sin(angle))];
  const [x, y] = inQuarter <= 32 ? [cosine, sine] : [sine, cosine];
  switch (Math.floor(direction / 64) % 4) {
    case 0:
      return { x, y };
    case 1:
      return { x: -y, y: x };
    case 2:
      return { x: -x, y: -y };
    default:
      return { x: y, y: -x };
  }
}

const clamp = (value: number, most: number) => Math.min(Math.max(value, 0), Math.max(most, 0));
const isSame = (a: Vec, b: Vec) => a.x === b.x && a.y === b.y;
const distance = (a: Vec, b: Vec) => Math.hypot(a.x - b.x, a.y - b.y);

/** The end of a step in a direction. A blocked step slides along x or y if that is free; otherwise the position stays. */
export function towards(on: Ground, from: Vec, direction: number): Vec {
  const unit = directionOf(direction);
  const way = { x: f32(unit.x * on.stepM), y: f32(unit.y * on.stepM) };
  const [alongX, alongY] = [{ x: way.x, y: 0 }, { x: 0, y: way.y }];
  const ways = Math.abs(way.x) >= Math.abs(way.y) ? [way, alongX, alongY] : [way, alongY, alongX];
  const ends = ways.map(({ x, y }) => ({ x: clamp(f32(from.x + x), on.size.x), y: clamp(f32(from.y + y), on.size.y) }));
  const { isFree } = on;
  return (isFree === undefined ? ends[0] : ends.find((end) => isFree(from, end))) ?? from;
}

function walk(on: Ground, from: Vec, motion: InputMotion): Vec {
  switch (motion.kind) {
    case "stand":
      return from;
    case "to":
      return on.isFree === undefined || on.isFree(from, motion.to) ? motion.to : from;
    case "towards":
      return towards(on, from, motion.direction);
  }
}

/** The predicted state of the controlled object. */
export class Predictor {
  private own: string | null = null;
  private confirmed: Vec = { x: 0, y: 0 };
  private confirmedTick: number | null = null;
  private unhandled: { input: ClientInput; to: Vec }[] = [];
  private seq = 0;
  private hasActed = false;
  /** The length of a step with which the positions of the stored inputs were computed. */
  private stepM = 0;
  private speedJump: Vec | null = null;

  /** Numbers an input and applies it at once. Returns the input to send; null without an object, or if too many are unacknowledged. */
  act(on: Ground, input: Omit<ClientInput, "seq">): ClientInput | null {
    if (this.own === null || this.unhandled.length >= UNHANDLED_MAX) {
      return null;
    }
    this.seq = (this.seq + 1) & 0xffff;
    const numbered = { ...input, seq: this.seq };
    this.unhandled.push({ input: numbered, to: walk(on, this.place(), input.motion) });
    this.hasActed = true;
    return numbered;
  }

  /** Follows the server's position in the mirror, and returns the correction, if any. Call it after each packet. */
  follow(on: Ground, mirror: Mirror): Correction | null {
    if (mirror.own === null || mirror.scene === null) {
      [this.own, this.confirmedTick, this.unhandled, this.hasActed] = [null, null, [], false];
      return null;
    }
    const { id, generation } = mirror.own;
    // Another server process may use the same numbers for another object, and counts its own ticks.
    const own = `${mirror.takeovers}/${mirror.scene}/${id}/${generation}`;
    if (own !== this.own) {
      this.own = own;
      this.hasActed = this.unhandled.length > 0;
      this.confirmedTick = null;
      this.begin(on, id, mirror);
      return null;
    }
    if (!this.hasActed) {
      this.begin(on, id, mirror);
      return null;
    }
    if (on.stepM !== this.stepM) {
      // The server applies the inputs that it has not handled at the new speed.
      const before = this.place();
      this.replayInputs(on);
      const [now, jump] = [this.place(), this.speedJump ?? { x: 0, y: 0 }];
      this.speedJump = { x: jump.x + now.x - before.x, y: jump.y + now.y - before.y };
    }
    const sent = mirror.ownPosition;
    if (sent === null || (this.confirmedTick !== null && sent.tick <= this.confirmedTick)) {
      return null;
    }
    return this.confirm(on, sent.tick, sent.input, sent.position);
  }

  /** By how much changes of speed have moved the current position since the last call; null if they have not. */
  takeSpeedJump(): Vec | null {
    const jump = this.speedJump;
    this.speedJump = null;
    return jump;
  }

  /** The predicted position with all inputs so far; null without an object. */
  get position(): Vec | null {
    return this.own === null ? null : this.place();
  }

  /** Number of inputs that the server has not acknowledged. */
  get unanswered(): number {
    return this.unhandled.length;
  }

  private begin(on: Ground, id: number, mirror: Mirror): void {
    const exact = mirror.ownPosition;
    const shown = mirror.positionAfter(id, 0);
    const isExact = exact !== null && (shown === null || distance(shown, exact.position) <= SAME_PLACE_M);
    const at = isExact ? exact.position : shown;
    if (at !== null) {
      this.confirmed = { x: f32(at.x), y: f32(at.y) };
    }
    this.confirmedTick = exact?.tick ?? null;
    this.replayInputs(on);
  }

  private confirm(on: Ground, tick: number, input: number, position: Vec): Correction | null {
    const before = this.place();
    for (let first = this.unhandled[0]; first !== undefined && !isNewer(first.input.seq, input); first = this.unhandled[0]) {
      this.confirmed = first.to;
      this.unhandled.shift();
    }
    const walked = this.confirmed;
    this.confirmed = position;
    this.confirmedTick = tick;
    if (isSame(walked, position)) {
      return null;
    }
    this.replayInputs(on);
    const place = this.place();
    return { input, offM: distance(walked, position), jump: { x: place.x - before.x, y: place.y - before.y } };
  }

  private replayInputs(on: Ground): void {
    this.stepM = on.stepM;
    let at = this.confirmed;
    for (const step of this.unhandled) {
      step.to = at = walk(on, at, step.input.motion);
    }
  }

  private place(): Vec {
    return this.unhandled.at(-1)?.to ?? this.confirmed;
  }
}
