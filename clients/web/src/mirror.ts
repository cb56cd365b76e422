// The state of a client, from the server's messages.

import { Reader, WireError, widen } from "./codec.js";
import { Reassembler, after, readServerMessage } from "./server_message.js";
import type { Attribute, Motion, Notice, PacketHeader, ServerMessage, Vec } from "./server_message.js";

/** An object in view. */
export type MirrorObject = {
  generation: number;
  kind: number;
  motion: Motion;
  /** Tick of the motion. */
  motionTick: number;
  attributes: Map<number, Uint8Array>;
};

/** An object that need not be in view; id 0 is the scene itself. */
export type MirrorRemote = { scene: number; id: number; generation: number; kind: number; attributes: Map<number, Uint8Array> };

/** Position of the controlled object at the end of a tick, with this input handled, in metres. */
export type OwnPosition = { tick: number; input: number; position: Vec };

const isNotice = (message: ServerMessage): message is Notice =>
  ["queued", "welcome", "loading", "closed", "pong", "notResumed", "continued", "timeRate"].includes(message.kind);

const remoteKey = (scene: number, id: number, generation: number) => `${scene}/${id}/${generation}`;

function set(values: Map<number, Uint8Array>, attributes: Attribute[]): void {
  for (const { id, value } of attributes) {
    if (value === null) {
      values.delete(id);
    } else {
      values.set(id, value);
    }
  }
}

/** The mirror. An invalid packet throws, and the connection cannot be used any more. */
export class Mirror {
  readonly objects = new Map<number, MirrorObject>();
  readonly remotes = new Map<string, MirrorRemote>();
  scene: number | null = null;
  size: Vec = { x: 0, y: 0 };
  own: { id: number; generation: number } | null = null;
  ownPosition: OwnPosition | null = null;
  /** Speed of the controlled object, in metres per second, from a tick on; null until the server sends it. */
  ownSpeed: { tick: number; speedMS: number } | null = null;
  /** The latest server tick of a packet. */
  tick = 0;
  /** Length of a tick in seconds, the nearest f32; 0 before Hello. */
  tickS = 0;
  /** Rate of simulated time, in percent of real time. */
  timePercent = 100;
  /** The last input that the server has handled, from the newest reliable packet. */
  input = 0;
  /** Number of received bytes for Resume. */
  received = 0;
  packets = 0;
  /** Unreliable packets and motions without effect. */
  ignored = 0;
  announces = 0;
  /** Number of times another server process has taken the client over on the same connection. Ticks and ids are then those of the new process. */
  takeovers = 0;
  private isGreeted = false;
  private epoch = 0;
  private sequence: number | null = null;
  private reassembler = new Reassembler();

  /** Handles a packet; `show` receives each message before it takes effect. */
  receive(packet: Uint8Array, show: (message: ServerMessage) => void = () => {}): void {
    const { header, messages } = this.reassembler.accept(packet);
    if (header.isReliable) {
      const expected = this.sequence === null ? 0 : (this.sequence + 1) % 0x10000;
      if (header.sequence !== expected) {
        throw new WireError(`packet ${header.sequence}, expected ${expected}`);
      }
      this.sequence = header.sequence;
      this.input = header.input;
    }
    this.packets += 1;
    if (!header.isReliable && header.epoch !== this.epoch) {
      this.ignored += 1;
      return;
    }
    let isWelcomed = false;
    const reader = new Reader(messages);
    while (!reader.isEmpty) {
      const message = readServerMessage(reader);
      show(message);
      isWelcomed ||= message.kind === "welcome";
      this.take(message, header);
    }
    if (header.isReliable) {
      this.received = ((isWelcomed ? 0 : this.received) + messages.length) % 2 ** 32;
    }
    this.tick = Math.max(this.tick, widen(this.tick, header.tick));
  }

  /** Continues over another connection. The client keeps its state until the server discards it. */
  reconnect(): void {
    this.sequence = null;
    this.reassembler = new Reassembler();
    this.isGreeted = false;
  }

  /** Extrapolated position of an object `realS` real seconds after the latest tick, in metres. */
  positionAfter(id: number, realS: number): Vec | null {
    const object = this.objects.get(id);
    if (object === undefined) {
      return null;
    }
    const ticks = Math.max(this.tick - object.motionTick, 0);
    return after(object.motion, ticks * this.tickS + (realS * this.timePercent) / 100);
  }

  /** Length of a step of the controlled object in a direction, in metres; 0 until the server has sent its speed. */
  get ownStepM(): number {
    return Math.fround((this.ownSpeed?.speedMS ?? 0) * this.tickS);
  }

  private take(message: ServerMessage, header: PacketHeader): void {
    if (message.kind === "hello") {
      this.takeovers += this.isGreeted ? 1 : 0;
      this.isGreeted = true;
      this.tick = message.tick;
      this.tickS = Math.fround(1000 / Math.max(message.tickMillihertz, 1));
      // A server at full speed sends no TimeRate.
      this.timePercent = 100;
    } else if (isNotice(message)) {
      this.handleNotice(message, header);
    } else {
      if (message.kind === "scene") {
        this.epoch = header.epoch;
      } else if (header.epoch !== this.epoch) {
        throw new WireError(`epoch ${header.epoch} without a Scene message, expected epoch ${this.epoch}`);
      }
      this.apply(message, widen(this.tick, header.tick), header);
    }
  }

  private handleNotice(notice: Notice, header: PacketHeader): void {
    if (notice.kind === "timeRate") {
      this.timePercent = Math.min(Math.max(notice.percent, 1), 100);
    } else if (notice.kind === "continued") {
      this.epoch = header.epoch;
      if (!notice.keeps) {
        this.forget();
      }
    }
  }

  private apply(message: Exclude<ServerMessage, Notice>, tick: number, header: PacketHeader): void {
    switch (message.kind) {
      case "scene":
        this.forget();
        this.scene = message.scene;
        this.size = message.size;
        break;
      case "own":
        this.own = { id: message.id, generation: message.generation };
        break;
      case "despawn":
        this.known(message);
        this.objects.delete(message.id);
        if (this.own?.id === message.id && this.own.generation === message.generation) {
          this.forget();
        }
        break;
      case "snapshot":
        this.addObject(message, tick);
        break;
      case "delta":
        set(this.known(message).attributes, message.attributes);
        break;
      case "motion":
        this.move(message, tick, header.isReliable);
        break;
      case "announce":
        this.announces += 1;
        break;
      case "ownPosition":
        if (this.ownPosition !== null && this.ownPosition.tick >= tick) {
          this.ignored += 1;
        } else {
          this.ownPosition = { tick, input: header.input, position: message.position };
        }
        break;
      case "ownSpeed":
        this.ownSpeed = { tick, speedMS: message.speedMS };
        break;
      case "remote":
      case "remoteDelta":
      case "forget":
        this.handleRemote(message);
        break;
      case "hello":
        break;
    }
  }

  /** Adds an object that enters the view. */
  private addObject(message: Extract<ServerMessage, { kind: "snapshot" }>, tick: number): void {
    const { id, generation, objectKind: kind, motion } = message;
    if (this.objects.has(id) || this.remotes.has(remoteKey(this.scene ?? 0, id, generation))) {
      throw new WireError(`object ${id} (generation ${generation}) is known already`);
    }
    const attributes = new Map<number, Uint8Array>();
    set(attributes, message.attributes);
    this.objects.set(id, { generation, kind, motion, motionTick: heldAt(motion, tick), attributes });
  }

  private move(message: Extract<ServerMessage, { kind: "motion" }>, tick: number, isReliable: boolean): void {
    const object = this.objects.get(message.id);
    const isKnown = object?.generation === message.generation;
    if (!isKnown && isReliable) {
      throw new WireError(`message about object ${message.id} (generation ${message.generation}), which has no snapshot`);
    }
    const motionTick = heldAt(message.motion, tick);
    if (object !== undefined && isKnown && motionTick > object.motionTick) {
      object.motion = message.motion;
      object.motionTick = motionTick;
    } else {
      this.ignored += 1;
    }
  }

  /** Handles a message about an object that need not be in view. */
  private handleRemote(message: Extract<ServerMessage, { kind: "remote" | "remoteDelta" | "forget" }>): void {
    const { scene, id, generation } = message;
    const key = remoteKey(scene, id, generation);
    if (message.kind === "remote") {
      if (this.scene === scene && this.objects.get(id)?.generation === generation) {
        throw new WireError(`object ${id} (generation ${generation}) is known already`);
      }
      const attributes = new Map<number, Uint8Array>();
      set(attributes, message.attributes);
      this.remotes.set(key, { scene, id, generation, kind: message.objectKind, attributes });
      return;
    }
    const remote = this.remotes.get(key);
    if (remote === undefined) {
      throw new WireError(`message about unseen object ${id} of scene ${scene} (generation ${generation}), which was never sent`);
    }
    if (message.kind === "remoteDelta") {
      set(remote.attributes, message.attributes);
    } else {
      this.remotes.delete(key);
    }
  }

  private known({ id, generation }: { id: number; generation: number }): MirrorObject {
    const object = this.objects.get(id);
    if (object?.generation !== generation) {
      throw new WireError(`message about object ${id} (generation ${generation}), which has no snapshot`);
    }
    return object;
  }

  /** Removes everything that belongs to a scene. */
  private forget(): void {
    this.objects.clear();
    this.remotes.clear();
    this.scene = this.own = this.ownPosition = this.ownSpeed = null;
    this.size = { x: 0, y: 0 };
  }
}

/** The full tick of a motion in a packet of this tick. */
function heldAt(motion: Motion, tick: number): number {
  return Math.max(tick - (((tick % 256) - motion.at + 256) % 256), 0);
}
