import { Reader } from "../src/codec.js";
const FRESH_MS = 1000;
const REQUEST_INTERVAL_MS = 1000;
export class Ghosts {
    live;
    isOn = false;
    tick = 0;
    frame = null;
    receivedMs = 0;
    constructor(live) {
        this.live = live;
        addEventListener("message", ({ source, data }) => {
            if (source === live && data instanceof ArrayBuffer) {
                this.take(data);
            }
        });
        setInterval(() => this.request(), REQUEST_INTERVAL_MS);
    }
    get isAvailable() {
        return this.live !== null && !this.live.closed;
    }
    request() {
        if (this.isOn && this.isAvailable) {
            this.live.postMessage("ghosts", "*");
        }
    }
    *of(scene) {
        const { frame } = this;
        if (!this.isOn || frame === null || frame.scene !== scene || performance.now() > this.receivedMs + FRESH_MS) {
            return;
        }
        for (const [nth, id] of frame.ids.entries()) {
            yield { id, at: { x: (frame.xs[nth] / 65535) * frame.size.x, y: (frame.ys[nth] / 65535) * frame.size.y } };
        }
    }
    take(data) {
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
