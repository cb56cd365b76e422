// Server positions of all objects, for comparison with the shown positions. The inspect page sends them, if it has opened this
// page.

import { Reader } from "../src/codec.js";
import type { Vec } from "../src/index.js";

/** Lifetime of the positions without a new message, in milliseconds. */
const FRESH_MS = 1000;
/** Interval of the requests to the inspect page, in milliseconds. */
const REQUEST_INTERVAL_MS = 1000;

/** An object and its position on the server. */
export type Ghost = { id: number; at: Vec };

/** The newest frame of dots of the inspect page. `crates/throng_inspect/src/frames.rs` documents the bytes. */
export class Ghosts {
  isOn = false;
  /** The tick of these positions. */
  tick = 0;
  private frame: { scene: number; size: Vec; ids: Uint32Array; xs: Uint16Array; ys: Uint16Array } | null = null;
  private receivedMs = 0;

  constructor(private readonly live: Window | null) {
    addEventListener("message", ({ source, data }) => {
      if (source === live && data instanceof ArrayBuffer) {
        this.take(data);
      }
    });
    setInterval(() => this.request(), REQUEST_INTERVAL_MS);
  }

  /** Whether this page was opened from an inspect page. */
  get isAvailable(): boolean {
    return this.live !== null && !this.live.closed;
  }

  /** Requests positions for the next few seconds. */
  request(): void {
    if (this.isOn && this.isAvailable) {
      this.live!.postMessage("ghosts", "*");
    }
  }

  /** The objects of a scene. */
  *of(scene: number | null): Generator<Ghost> {
    const { frame } = this;
    if (!this.isOn || frame === null || frame.scene !== scene || performance.now() > this.receivedMs + FRESH_MS) {
      return;
    }
    for (const [nth, id] of frame.ids.entries()) {
      yield { id, at: { x: (frame.xs[nth]! / 65535) * frame.size.x, y: (frame.ys[nth]! / 65535) * frame.size.y } };
    }
  }

  private take(data: ArrayBuffer): void {
    const reader = new Reader(new Uint8Array(data, 0, Math.min(data.byteLength, 32)));
    const [type, scene] = [reader.u32(), reader.u32()];
    const tick = new DataView(reader.take(8).slice().buffer).getFloat64(0, true);
    const size = { x: reader.f32(), y: reader.f32() };
    const count = reader.u32();
    if (type !== 1 || data.byteLength < 32 + count * 8) {
      return;
    }
    this.frame = { scene, size, ids: new Uint32Array(data, 32, count), xs: new Uint16Array(data, 32 + count * 4, count), ys: new Uint16Array(data, 32 + count * 6, count) };
    this.tick = tick;
    this.receivedMs = performance.now();
  }
}
