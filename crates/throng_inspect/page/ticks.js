// The last ticks, stacked by set.
// @ts-check

/** Colours by set: those that take time stand apart for any kind of colour vision. */
const COLOURS = { ingest: 4, think: 6, navigate: 1, move: 2, locate: 8, view: 0, heartbeat: 5, replicate: 3, send: 7 };
/** Ticks shown, at most. */
const SHOWN = 1200;

/** @typedef {[number, number[]]} Tick its number, and what each set took, in microseconds */

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
    /** @type {number | null} */
    this.hover = null;
    canvas.addEventListener("pointermove", (event) => {
      this.hover = event.offsetX;
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => {
      this.hover = null;
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("resize", () => this.draw());
  }

  /** @param {Tick[]} ticks */
  add(ticks) {
    this.ticks.push(...ticks);
    if (this.ticks.length > SHOWN) this.ticks.splice(0, this.ticks.length - SHOWN);
    this.draw();
  }

  /** Ticks of a second, at least one. */
  perSecond() {
    return Math.max(1, Math.round(1000 / this.limit));
  }

  /** Time that all ticks shown stand for, or a share of them: "60 s". @param {number} share */
  span(share) {
    const seconds = SHOWN * share * this.limit / 1000;
    return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  }

  /** Mean over the last second and 99th percentile over all, in milliseconds. */
  figures() {
    const whole = this.ticks.map(([, sets]) => sets.reduce((a, b) => a + b, 0) / 1000);
    const last = whole.slice(-this.perSecond());
    const sorted = [...whole].sort((a, b) => a - b);
    const mean = last.reduce((a, b) => a + b, 0) / Math.max(1, last.length);
    return { mean, p99: sorted[Math.max(0, Math.ceil(sorted.length * 0.99) - 1)] || 0 };
  }

  /** @param {string} set */
  colour(set) {
    const nth = COLOURS[/** @type {keyof typeof COLOURS} */ (set)];
    return getComputedStyle(document.documentElement).getPropertyValue(`--c${nth ?? 4}`).trim();
  }

  draw() {
    const dpr = devicePixelRatio || 1;
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    Object.assign(this.canvas, { width: Math.round(box.width * dpr), height: Math.round(box.height * dpr) });
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    pen.scale(dpr, dpr);
    const style = getComputedStyle(document.documentElement);
    const [mute, line] = ["--mute", "--line"].map((name) => style.getPropertyValue(name).trim());
    const [left, bottom] = [30, 16];
    const [width, height] = [box.width - left - 4, box.height - bottom - 6];
    // Columns of whole pixels, each the slowest of its ticks, so that no slow one is lost.
    const columns = Math.max(1, Math.floor(width / 2));
    const per = Math.ceil(SHOWN / columns);
    /** @type {Tick[]} */
    const shown = [];
    const sum = (/** @type {Tick} */ tick) => tick[1].reduce((a, b) => a + b, 0);
    for (let end = this.ticks.length; end > 0; end -= per) {
      const group = this.ticks.slice(Math.max(0, end - per), end);
      shown.unshift(group.reduce((a, b) => (sum(b) > sum(a) ? b : a)));
    }
    const most = Math.max(1, ...shown.map((tick) => sum(tick) / 1000)) * 1.12;
    const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 5000].find((step) => most / step <= 4) || 10000;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (let ms = 0; ms <= most; ms += step) {
      const y = 6 + height - ms / most * height;
      pen.fillStyle = line;
      pen.fillRect(left, Math.round(y), width, 1);
      pen.fillStyle = mute;
      pen.fillText(String(ms), left - 6, y);
    }
    const colours = this.sets.map((set) => this.colour(set));
    const wide = width / columns;
    shown.forEach((tick, nth) => {
      let y = 6 + height;
      const x = left + width - (shown.length - nth) * wide;
      tick[1].forEach((us, set) => {
        const high = us / 1000 / most * height;
        pen.fillStyle = colours[set];
        pen.fillRect(x, y - high, wide, high);
        y -= high;
      });
    });
    if (this.limit < most) {
      const y = Math.round(6 + height - this.limit / most * height);
      pen.strokeStyle = style.getPropertyValue("--ink").trim();
      pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(left, y + 0.5);
      pen.lineTo(left + width, y + 0.5);
      pen.stroke();
      pen.setLineDash([]);
    }
    pen.fillStyle = mute;
    pen.textBaseline = "alphabetic";
    for (const [share, text, align] of /** @type {[number, string, CanvasTextAlign][]} */ ([[0, `−${this.span(1)}`, "left"], [0.5, `−${this.span(0.5)}`, "center"], [1, "now", "right"]])) {
      pen.textAlign = align;
      pen.fillText(text, left + width * share, box.height - 2);
    }
    this.drawTip(shown, left, width, wide, box);
    this.drawKeys();
  }

  /** @param {Tick[]} shown @param {number} left @param {number} width @param {number} wide @param {DOMRect} box */
  drawTip(shown, left, width, wide, box) {
    const nth = this.hover === null ? -1 : shown.length - 1 - Math.floor((left + width - this.hover) / wide);
    const tick = shown[nth];
    this.tip.hidden = !tick;
    if (!tick || this.hover === null) return;
    const sets = tick[1].map((us, set) => ({ us, name: this.sets[set] })).filter(({ us }) => us > 0);
    sets.sort((a, b) => b.us - a.us);
    const whole = sets.reduce((total, { us }) => total + us, 0);
    const rows = sets.slice(0, 5).map(({ us, name }) => `${(us / 1000).toFixed(2).padStart(7)}  ${name}`);
    this.tip.textContent = `tick ${tick[0].toLocaleString()} · ${(whole / 1000).toFixed(1)} ms\n${rows.join("\n")}`;
    const isRight = this.hover > box.width / 2;
    this.tip.style.left = isRight ? "auto" : `${this.hover + 14}px`;
    this.tip.style.right = isRight ? `${box.width - this.hover + 14}px` : "auto";
  }

  /** The colours, with each set's mean over the last second. */
  drawKeys() {
    const last = this.ticks.slice(-this.perSecond());
    const rows = this.sets.flatMap((set, nth) => {
      const mean = last.reduce((total, [, sets]) => total + sets[nth], 0) / Math.max(1, last.length) / 1000;
      if (!(set in COLOURS)) return [];
      const row = document.createElement("li");
      const box = document.createElement("span");
      box.className = "box";
      box.style.background = this.colour(set);
      const value = document.createElement("b");
      value.textContent = mean.toFixed(2);
      row.append(box, set, value);
      return [row];
    });
    this.keys.replaceChildren(...rows);
  }
}
