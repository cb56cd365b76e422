// The chart of tick times, stacked by system set. It shows the last minute, or any part of the kept ticks.
// @ts-check
import { make, whole } from "./dom.js";

/** Colour numbers by set. Sets that take much time have colours that are distinguishable with any kind of colour vision. */
const COLOURS = { ingest: 4, think: 6, navigate: 1, move: 2, locate: 8, view: 0, heartbeat: 5, replicate: 3, send: 7 };
/** Number of ticks shown at first, and used for the 99th percentile: one minute at 20 Hz. */
export const SHOWN = 1200;
/** Maximum number of kept ticks. The page keeps more than the server. */
const KEPT = 12_000;
/** Minimum number of shown ticks. */
const SHOWN_MIN = 20;
/** The lower end of the logarithmic scale, in milliseconds. */
const LOG_FROM_MS = 0.1;

/** @typedef {[number, number[]]} Tick its number, and the time of each set in microseconds */

/** Time of a whole tick in milliseconds. @param {Tick} tick */
export function tickMs(tick) {
  return tick[1].reduce((a, b) => a + b, 0) / 1000;
}

/** @param {number} ms */
export const msText = (ms) => `${ms.toFixed(ms < 10 ? 2 : 1)} ms`;

export class TickChart {
  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} tip @param {HTMLElement} keys */
  constructor(canvas, tip, keys) {
    this.canvas = canvas;
    this.tip = tip;
    this.keys = keys;
    /** @type {Tick[]} */
    this.ticks = [];
    /** @type {string[]} */
    this.sets = [];
    this.limit = 50;
    this.isLog = false;
    /** The number of shown ticks. */
    this.shown = SHOWN;
    /** The newest shown tick; null follows the newest tick. @type {number | null} */
    this.end = null;
    /** The marked tick. @type {number | null} */
    this.marked = null;
    /** @type {number | null} */
    this.hover = null;
    /** The drawn columns: the tick of each, and their position in pixels. @type {{ticks: Tick[], left: number, width: number, columnWidth: number}} */
    this.drawn = { ticks: [], left: 0, width: 1, columnWidth: 1 };
    /** Called when another part is shown. */
    this.onview = () => {};
    /** Called when a tick is clicked. @type {(tick: Tick) => void} */
    this.onpick = () => {};
    this.listen();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("resize", () => this.draw());
  }

  listen() {
    const { canvas } = this;
    let from = 0;
    let dragged = 0;
    let isDown = false;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      [from, dragged, isDown] = [event.offsetX, 0, true];
    });
    canvas.addEventListener("pointermove", (event) => {
      this.hover = event.offsetX;
      if (isDown) {
        const ticks = Math.round((from - event.offsetX) / this.drawn.width * this.shown);
        dragged = Math.max(dragged, Math.abs(event.offsetX - from));
        if (ticks !== 0 && dragged > 4) {
          this.pan(ticks);
          from = event.offsetX;
        }
      }
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      isDown = false;
      const tick = this.tickAt(event.offsetX);
      if (dragged <= 4 && tick) this.onpick(tick);
    });
    canvas.addEventListener("pointercancel", () => { isDown = false; });
    canvas.addEventListener("pointerleave", () => {
      this.hover = null;
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(Math.round(event.deltaX / this.drawn.width * this.shown));
      else this.zoom(Math.exp(event.deltaY * 0.002), (event.offsetX - this.drawn.left) / this.drawn.width);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const actions = { ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), End: () => this.follow(), l: () => this.setLog(!this.isLog) };
      const action = actions[/** @type {keyof typeof actions} */ (event.key)];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      action();
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** @param {Tick[]} ticks */
  add(ticks) {
    this.ticks.push(...ticks);
    if (this.ticks.length > KEPT) this.ticks.splice(0, this.ticks.length - KEPT);
    this.draw();
  }

  /** Ticks per second, at least 1. */
  perSecond() {
    return Math.max(1, Math.round(1000 / this.limit));
  }

  /** The duration of a number of ticks as text, such as "60 s". @param {number} ticks */
  span(ticks) {
    const seconds = ticks * this.limit / 1000;
    return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  }

  /** The mean of the last second and the 99th percentile of the last `SHOWN` ticks, in milliseconds, and the duration of `SHOWN` ticks as text. */
  figures() {
    const all = this.ticks.slice(-SHOWN).map(tickMs);
    const last = all.slice(-this.perSecond());
    const sorted = [...all].sort((a, b) => a - b);
    const mean = last.reduce((a, b) => a + b, 0) / Math.max(1, last.length);
    return { mean, p99: sorted[Math.max(0, Math.ceil(sorted.length * 0.99) - 1)] || 0, span: this.span(SHOWN) };
  }

  /** The shown ticks. */
  part() {
    const end = this.end === null ? this.ticks.length : this.indexOf(this.end) + 1;
    return this.ticks.slice(Math.max(0, end - this.shown), end);
  }

  /** A description of the shown part. */
  describe() {
    const part = this.part().map(tickMs).sort((a, b) => a - b);
    if (!part.length) return "";
    const where = this.end === null ? `last ${this.span(this.shown)}` : `${this.span(this.shown)} until tick ${whole.format(this.end)}`;
    const p99 = part[Math.max(0, Math.ceil(part.length * 0.99) - 1)];
    return `${where}: median ${msText(part[Math.floor(part.length / 2)])}, p99 ${msText(p99)}, max ${msText(part[part.length - 1])}`;
  }

  /** The index of the last kept tick that is not newer than a tick; 0 if all are newer. @param {number} tick */
  indexOf(tick) {
    let [low, high] = [0, this.ticks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ticks[middle][0] <= tick) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** Multiplies the number of shown ticks. @param {number} by @param {number} [share] position that stays, from the left, 0 to 1 */
  zoom(by, share = 1) {
    const shown = Math.round(Math.min(KEPT, Math.max(SHOWN_MIN, this.shown * by)));
    const end = this.end ?? this.ticks.at(-1)?.[0] ?? 0;
    const moved = Math.round((this.shown - shown) * (1 - Math.min(1, Math.max(0, share))));
    this.shown = shown;
    this.showUntil(end - moved);
  }

  /** Moves the shown part to later ticks. @param {number} ticks */
  pan(ticks) {
    this.showUntil((this.end ?? this.ticks.at(-1)?.[0] ?? 0) + ticks);
  }

  /** Shows the part that ends with a tick. If it is the newest one, the chart follows new ticks. @param {number} end */
  showUntil(end) {
    const newest = this.ticks.at(-1)?.[0] ?? 0;
    const oldest = this.ticks[0]?.[0] ?? 0;
    this.end = end >= newest ? null : Math.max(end, Math.min(newest, oldest + SHOWN_MIN));
    this.draw();
    this.onview();
  }

  follow() {
    [this.end, this.shown] = [null, SHOWN];
    this.draw();
    this.onview();
  }

  /** @param {boolean} isLog */
  setLog(isLog) {
    this.isLog = isLog;
    this.draw();
    this.onview();
  }

  /** Marks a tick, and moves the shown part to it if the tick is kept. @param {number | null} tick */
  mark(tick) {
    this.marked = tick;
    const part = this.part();
    const isKept = tick !== null && this.ticks.length > 0 && tick >= this.ticks[0][0];
    if (isKept && (!part.length || tick < part[0][0] || tick > part[part.length - 1][0])) this.showUntil(tick + Math.round(this.shown / 2));
    else this.draw();
  }

  /** Selects the tick after the marked one, or the one before. @param {number} by */
  step(by) {
    const at = this.marked === null ? this.ticks.length - (by < 0 ? 0 : 1) : this.indexOf(this.marked);
    const tick = this.ticks[at + by];
    if (tick) this.onpick(tick);
  }

  /** Returns a tick if it is kept. @param {number} tick */
  find(tick) {
    const found = this.ticks[this.indexOf(tick)];
    return found?.[0] === tick ? found : undefined;
  }

  /** All kept ticks as CSV, in milliseconds. */
  csv() {
    const rows = this.ticks.map((tick) => [tick[0], tickMs(tick).toFixed(3), ...tick[1].map((us) => (us / 1000).toFixed(3))].join(","));
    return [["tick", "total_ms", ...this.sets.map((set) => `${set}_ms`)].join(","), ...rows].join("\n");
  }

  /** @param {string} set */
  colour(set) {
    const nth = COLOURS[/** @type {keyof typeof COLOURS} */ (set)];
    return getComputedStyle(document.documentElement).getPropertyValue(`--c${nth ?? 4}`).trim();
  }

  /** Columns of at least 2 pixels. A column shows the slowest of its ticks, so that each slow tick is visible. @param {number} width */
  columns(width) {
    const maximum = Math.max(1, Math.floor(width / 2));
    const per = Math.ceil(this.shown / maximum);
    const part = this.part();
    /** @type {Tick[]} */
    const shown = [];
    for (let end = part.length; end > 0; end -= per) {
      shown.unshift(part.slice(Math.max(0, end - per), end).reduce((a, b) => (tickMs(b) > tickMs(a) ? b : a)));
    }
    return { shown, columnWidth: width / Math.ceil(this.shown / per) };
  }

  draw() {
    const dpr = devicePixelRatio || 1;
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    Object.assign(this.canvas, { width: Math.round(box.width * dpr), height: Math.round(box.height * dpr) });
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    pen.scale(dpr, dpr);
    const style = getComputedStyle(document.documentElement);
    const [mute, line, ink] = ["--mute", "--line", "--ink"].map((name) => style.getPropertyValue(name).trim());
    const [left, bottom, top] = [46, 16, 6];
    const [width, height] = [box.width - left - 4, box.height - bottom - top];
    const { shown, columnWidth } = this.columns(width);
    this.drawn = { ticks: shown, left, width, columnWidth };
    const maximum = Math.max(1, ...shown.map(tickMs)) * 1.12;
    const low = Math.log10(LOG_FROM_MS);
    /** The height of a time as a share of the chart's height. @param {number} ms */
    const up = (ms) => (this.isLog ? Math.max(0, (Math.log10(Math.max(ms, LOG_FROM_MS)) - low) / (Math.log10(Math.max(maximum, 1)) - low)) : ms / maximum);
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const ms of this.marks(maximum)) {
      const y = top + height - up(ms) * height;
      pen.fillStyle = line;
      pen.fillRect(left, Math.round(y), width, 1);
      pen.fillStyle = mute;
      pen.fillText(`${ms} ms`, left - 6, y);
    }
    const colours = this.sets.map((set) => this.colour(set));
    shown.forEach((tick, nth) => {
      const x = left + width - (shown.length - nth) * columnWidth;
      let sum = 0;
      tick[1].forEach((us, set) => {
        const from = up(sum);
        sum += us / 1000;
        const to = up(sum);
        pen.fillStyle = colours[set];
        pen.fillRect(x, top + height - to * height, columnWidth > 4 ? columnWidth - 1 : columnWidth, (to - from) * height);
      });
      if (tick[0] === this.marked) {
        pen.strokeStyle = ink;
        pen.strokeRect(Math.round(x) - 1.5, top + height - up(sum) * height - 2.5, Math.max(2, Math.round(columnWidth)) + 2, up(sum) * height + 3);
      }
    });
    if (this.limit < maximum) {
      const y = Math.round(top + height - up(this.limit) * height);
      pen.strokeStyle = ink;
      pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(left, y + 0.5);
      pen.lineTo(left + width, y + 0.5);
      pen.stroke();
      pen.setLineDash([]);
    }
    pen.fillStyle = mute;
    pen.textBaseline = "alphabetic";
    const isLive = this.end === null;
    const [first, middle] = [1, 0.5].map((share) => `−${this.span(this.shown * share)}`);
    const last = isLive ? "now" : `tick ${whole.format(this.end ?? 0)}`;
    for (const [share, text, align] of /** @type {[number, string, CanvasTextAlign][]} */ ([[0, first, "left"], [0.5, middle, "center"], [1, last, "right"]])) {
      pen.textAlign = align;
      pen.fillText(text, left + width * share, box.height - 2);
    }
    this.drawTip(box);
    this.drawKeys();
  }

  /** The marks of the time axis. @param {number} maximum */
  marks(maximum) {
    if (this.isLog) return [0.1, 1, 10, 100, 1000, 10_000].filter((ms) => ms <= maximum);
    const step = [0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 5000].find((step) => maximum / step <= 4) || 10_000;
    return Array.from({ length: Math.floor(maximum / step) + 1 }, (_, nth) => nth * step);
  }

  /** The tick of the column at an x coordinate. @param {number} x */
  tickAt(x) {
    const { ticks, left, width, columnWidth } = this.drawn;
    return ticks[ticks.length - 1 - Math.floor((left + width - x) / columnWidth)];
  }

  /** @param {DOMRect} box */
  drawTip(box) {
    const tick = this.hover === null ? undefined : this.tickAt(this.hover);
    this.tip.hidden = !tick;
    if (!tick || this.hover === null) return;
    const sets = tick[1].map((us, set) => ({ us, name: this.sets[set] })).filter(({ us }) => us > 0);
    sets.sort((a, b) => b.us - a.us);
    const rows = sets.slice(0, 5).map(({ us, name }) => `${(us / 1000).toFixed(2).padStart(7)} ms  ${name}`);
    this.tip.textContent = `tick ${whole.format(tick[0])} · ${tickMs(tick).toFixed(1)} ms\n${rows.join("\n")}`;
    const isRight = this.hover > box.width / 2;
    this.tip.style.left = isRight ? "auto" : `${this.hover + 14}px`;
    this.tip.style.right = isRight ? `${box.width - this.hover + 14}px` : "auto";
  }

  /** Shows the colour of each set, with its mean over the last second. */
  drawKeys() {
    const last = this.ticks.slice(-this.perSecond());
    const rows = this.sets.flatMap((set, nth) => {
      const mean = last.reduce((total, [, sets]) => total + sets[nth], 0) / Math.max(1, last.length) / 1000;
      if (!(set in COLOURS)) return [];
      return [make("li", {}, this.box(set), set, make("b", {}, mean.toFixed(2)))];
    });
    this.keys.replaceChildren(...rows);
  }

  /** @param {string} set */
  box(set) {
    const box = make("span", { className: "box" });
    box.style.background = this.colour(set);
    return box;
  }

  /** The sets of a tick, the longest first, as rows with a bar in the set's colour. @param {Tick} tick @returns {Node[]} */
  steps(tick) {
    const total = Math.max(1, tick[1].reduce((a, b) => a + b, 0));
    const sets = tick[1].map((us, set) => ({ us, name: this.sets[set] })).filter(({ us, name }) => us > 0 || name in COLOURS);
    sets.sort((a, b) => b.us - a.us);
    return sets.map(({ us, name }) => {
      const bar = make("i");
      bar.style.width = `${us / total * 100}%`;
      bar.style.background = this.colour(name);
      return make("li", {}, make("span", {}, name), make("div", {}, bar), make("b", {}, msText(us / 1000)), make("small", {}, `${(us / total * 100).toFixed(0)} %`));
    });
  }
}
