// The map with the objects on it. Marks and heat maps are drawn on a second canvas above it.
// @ts-check
import { Picture } from "./picture.js";

/** Limit of the measured interval between two frames of dots, in milliseconds; dots move from one frame to the next in this time. */
const INTERVAL_MS_MAX = 400;
/** An object that is farther than this from its last position, in metres, was teleported: it is drawn at its new position at once. */
const JUMP_M = 25;
const COLOURS = 8;

/** Sizes of dots relative to the usual size: of other objects, of players, of a boss. */
const SIZES = [1, 1.2, 2.2];

/** @param {string} text a colour of the style sheet @returns {[number, number, number]} */
function rgb(text) {
  const digits = text.trim().slice(1);
  const wide = digits.length === 3 ? [...digits].map((d) => d + d).join("") : digits;
  return /** @type {[number, number, number]} */ ([0, 2, 4].map((at) => parseInt(wide.slice(at, at + 2), 16)));
}

/** Draws a scene, and keeps the view, the selection and the heat map. */
export class CrowdMap {
  /** @param {HTMLCanvasElement} crowd @param {HTMLCanvasElement} over */
  constructor(crowd, over) {
    this.crowd = crowd;
    this.over = over;
    this.picture = new Picture(crowd);
    this.pen = /** @type {CanvasRenderingContext2D} */ (over.getContext("2d"));
    this.size = [1, 1];
    this.centre = [0.5, 0.5];
    /** CSS pixels per metre. */
    this.zoom = 1;
    /** Whether the view shows the whole scene, also after a resize. */
    this.isFitted = true;
    this.scene = -1;
    this.count = 0;
    this.ids = new Uint32Array(0);
    this.kinds = new Uint8Array(0);
    this.teams = new Uint8Array(0);
    this.before = new Float32Array(0);
    this.now = new Float32Array(0);
    /** The index of each object in the arrays, by its id. @type {Map<number, number>} */
    this.indexes = new Map();
    /** Time of the newest frame, in milliseconds. */
    this.receivedMs = 0;
    /** Mean interval between frames, in milliseconds. */
    this.intervalMs = 100;
    this.byTeam = false;
    /** What the heat map counts: "crowd" is counted by the page; "links" and "nodes" by the server. */
    this.heat = "";
    /** @type {{side: number, columns: number, rows: number, counts: Uint32Array, maximum: number} | null} */
    this.cells = null;
    this.cell = 50;
    /** @type {{name: string, class: number}[]} */
    this.kindNames = [];
    /** @type {number | null} */
    this.picked = null;
    /** @type {number | null} */
    this.other = null;
    this.follows = false;
    /** @type {[number, number][]} */
    this.path = [];
    /** @type {number[]} */
    this.sees = [];
    /** Two corners of the rectangle that the user is drawing, in metres. @type {[[number, number], [number, number]] | null} */
    this.box = null;
    this.isMotionReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    /** The colour of each dot (0 to 7). @type {Uint8Array} */
    this.tints = new Uint8Array(0);
    /** The index of the size of each dot in `SIZES`. @type {Uint8Array} */
    this.sizes = new Uint8Array(0);
    this.restyle();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
  }

  restyle() {
    const style = getComputedStyle(document.documentElement);
    /** @param {string} name */
    const of = (name) => style.getPropertyValue(name).trim();
    this.colours = Array.from({ length: COLOURS }, (_, nth) => of(`--c${nth}`));
    this.ink = of("--ink");
    this.mute = of("--mute");
    this.accent = of("--accent");
    this.panel = of("--panel");
    const ground = rgb(of("--ground"));
    this.picture.restyle({ ground, wall: rgb(of("--wall")), rim: ground, beyond: rgb(of("--bg")), dots: this.colours.map(rgb) });
  }

  /** Returns the colour of a dot: 0 to 7. @param {number} nth */
  colourOf(nth) {
    if (!this.byTeam) return this.kinds[nth] % COLOURS;
    return this.teams[nth] === 0 ? 4 : [0, 1, 2, 3, 5, 6, 7][(this.teams[nth] - 1) % 7];
  }

  /** Switches to another scene. @param {number} scene @param {number} cell */
  open(scene, cell) {
    this.scene = scene;
    this.cell = cell;
    this.indexes.clear();
    this.count = 0;
    this.picture.setMap(0, 0, 1, new Uint8Array(0));
    this.isFitted = true;
    this.cells = null;
  }

  /** @param {DataView} bytes a frame of the map */
  setMap(bytes) {
    const [columns, rows] = [bytes.getUint32(8, true), bytes.getUint32(12, true)];
    this.picture.setMap(columns, rows, bytes.getFloat32(16, true), new Uint8Array(bytes.buffer, 20));
  }

  /** @param {DataView} bytes a frame of dots */
  setDots(bytes) {
    const count = bytes.getUint32(24, true);
    const size = [bytes.getFloat32(16, true), bytes.getFloat32(20, true)];
    const ids = new Uint32Array(bytes.buffer, 32, count);
    const [xs, ys] = [0, 1].map((axis) => new Uint16Array(bytes.buffer, 32 + count * (4 + 2 * axis), count));
    const [before, now] = [new Float32Array(count * 2), new Float32Array(count * 2)];
    const indexes = new Map();
    const jump = JUMP_M / Math.max(size[0], size[1]);
    const t = this.progress(performance.now());
    for (let nth = 0; nth < count; nth += 1) {
      const [x, y] = [xs[nth] / 65535, ys[nth] / 65535];
      const last = this.indexes.get(ids[nth]);
      let [fromX, fromY] = [x, y];
      if (last !== undefined) {
        fromX = this.before[last * 2] + (this.now[last * 2] - this.before[last * 2]) * t;
        fromY = this.before[last * 2 + 1] + (this.now[last * 2 + 1] - this.before[last * 2 + 1]) * t;
        if (Math.abs(fromX - x) + Math.abs(fromY - y) > jump) [fromX, fromY] = [x, y];
      }
      before[nth * 2] = fromX;
      before[nth * 2 + 1] = fromY;
      now[nth * 2] = x;
      now[nth * 2 + 1] = y;
      indexes.set(ids[nth], nth);
    }
    this.kinds = new Uint8Array(bytes.buffer, 32 + count * 8, count);
    this.teams = new Uint8Array(bytes.buffer, 32 + count * 9, count);
    const time = performance.now();
    if (this.receivedMs) this.intervalMs += (Math.min(time - this.receivedMs, INTERVAL_MS_MAX) - this.intervalMs) * 0.2;
    Object.assign(this, { ids, before, now, indexes, count, receivedMs: time });
    if (size[0] !== this.size[0] || size[1] !== this.size[1]) this.size = size;
    if (this.isFitted) this.fit();
    this.recolour();
    if (this.heat === "crowd") this.countCells();
  }

  /** Shows another heat map; an empty string shows none. @param {string} heat */
  setHeat(heat) {
    this.heat = heat;
    this.cells = null;
    if (heat === "crowd") this.countCells();
  }

  /** @param {DataView} bytes a frame of heat */
  setCells(bytes) {
    if (this.heat !== ["", "links", "nodes"][bytes.getUint32(8, true)]) return;
    const [columns, rows] = [bytes.getUint32(12, true), bytes.getUint32(16, true)];
    const counts = new Uint32Array(bytes.buffer, 24, columns * rows);
    this.cells = { side: bytes.getFloat32(20, true), columns, rows, counts, maximum: counts.reduce((maximum, count) => Math.max(maximum, count), 0) };
  }

  recolour() {
    [this.tints, this.sizes] = [new Uint8Array(this.count), new Uint8Array(this.count)];
    for (let nth = 0; nth < this.count; nth += 1) {
      this.tints[nth] = this.colourOf(nth);
      const kind = this.kindNames[this.kinds[nth]];
      this.sizes[nth] = kind?.name === "boss" ? 2 : kind?.class === 0 ? 1 : 0;
    }
  }

  countCells() {
    const columns = Math.max(1, Math.ceil(this.size[0] / this.cell));
    const rows = Math.max(1, Math.ceil(this.size[1] / this.cell));
    const counts = new Uint32Array(columns * rows);
    for (let nth = 0; nth < this.count; nth += 1) {
      const column = Math.min(columns - 1, Math.floor(this.now[nth * 2] * this.size[0] / this.cell));
      const row = Math.min(rows - 1, Math.floor(this.now[nth * 2 + 1] * this.size[1] / this.cell));
      counts[row * columns + column] += 1;
    }
    this.cells = { side: this.cell, columns, rows, counts, maximum: counts.reduce((maximum, count) => Math.max(maximum, count), 0) };
  }

  /** The progress from the previous frame to the newest, 0 to 1. @param {number} time */
  progress(time) {
    return this.isMotionReduced ? 1 : Math.min(1, (time - this.receivedMs) / Math.max(this.intervalMs, 16));
  }

  /** The position at which an object is drawn now, in metres. @param {number | null} id @returns {[number, number] | null} */
  at(id) {
    const nth = id === null ? undefined : this.indexes.get(id);
    if (nth === undefined) return null;
    const t = this.progress(performance.now());
    /** @param {number} axis */
    const of = (axis) => {
      const [from, to] = [this.before[nth * 2 + axis], this.now[nth * 2 + axis]];
      return (from + (to - from) * t) * this.size[axis];
    };
    return [of(0), of(1)];
  }

  /** The object nearest to a point of the canvas: within 14 pixels, or within 0.4 m if that is more. @param {number} x @param {number} y */
  nearest(x, y) {
    const [mx, my] = this.toMetres(x, y);
    let [best, nearest] = [Math.max(14 / this.zoom, 0.4) ** 2, -1];
    for (let nth = 0; nth < this.count; nth += 1) {
      const far = (this.now[nth * 2] * this.size[0] - mx) ** 2 + (this.now[nth * 2 + 1] * this.size[1] - my) ** 2;
      if (far < best) [best, nearest] = [far, nth];
    }
    return nearest < 0 ? null : this.ids[nearest];
  }

  /** @param {number} x @param {number} y @returns {[number, number]} */
  toMetres(x, y) {
    const box = this.over.getBoundingClientRect();
    return [this.centre[0] + (x - box.width / 2) / this.zoom, this.centre[1] + (y - box.height / 2) / this.zoom];
  }

  fit() {
    const box = this.over.getBoundingClientRect();
    if (!box.width || !box.height) return;
    this.zoom = 0.94 * Math.min(box.width / this.size[0], box.height / this.size[1]);
    this.centre = [this.size[0] / 2, this.size[1] / 2];
    this.isFitted = true;
  }

  /** Zooms about a point of the page. @param {number} by @param {number} x @param {number} y */
  zoomBy(by, x, y) {
    const [mx, my] = this.toMetres(x, y);
    const zoom = Math.min(60, Math.max(0.02, this.zoom * by));
    const ratio = this.zoom / zoom;
    this.centre = [mx + (this.centre[0] - mx) * ratio, my + (this.centre[1] - my) * ratio];
    this.zoom = zoom;
    this.isFitted = false;
  }

  /** @param {number} dx @param {number} dy in pixels */
  move(dx, dy) {
    this.centre = [this.centre[0] - dx / this.zoom, this.centre[1] - dy / this.zoom];
    this.isFitted = false;
    this.follows = false;
  }

  /** @param {number} time */
  draw(time) {
    const dpr = devicePixelRatio || 1;
    const box = this.over.getBoundingClientRect();
    const [width, height] = [Math.round(box.width * dpr), Math.round(box.height * dpr)];
    for (const canvas of [this.crowd, this.over]) {
      if (canvas.width !== width || canvas.height !== height) {
        Object.assign(canvas, { width, height });
        if (this.isFitted) this.fit();
      }
    }
    const followed = this.follows ? this.at(this.picked) : null;
    if (followed) this.centre = followed;
    this.drawCrowd(time, dpr, box);
    this.drawOver(dpr, box);
  }

  /** @param {number} time @param {number} dpr @param {DOMRect} box */
  drawCrowd(time, dpr, box) {
    const { picture, before, now, tints, sizes } = this;
    const zoom = this.zoom * dpr;
    const [left, top] = [this.centre[0] - box.width / 2 / this.zoom, this.centre[1] - box.height / 2 / this.zoom];
    picture.begin(left, top, zoom);
    picture.setDots(dpr * Math.min(16, Math.max(3, 2.1 * Math.sqrt(this.zoom) + 2)), SIZES);
    const t = this.progress(time);
    const [width, height] = this.size;
    for (let nth = 0; nth < this.count; nth += 1) {
      const fromX = before[nth * 2];
      const fromY = before[nth * 2 + 1];
      const x = (fromX + (now[nth * 2] - fromX) * t) * width;
      const y = (fromY + (now[nth * 2 + 1] - fromY) * t) * height;
      picture.dot((x - left) * zoom, (y - top) * zoom, tints[nth], sizes[nth]);
    }
    picture.show();
  }

  /** @param {number} dpr @param {DOMRect} box */
  drawOver(dpr, box) {
    const pen = this.pen;
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    /** @param {[number, number]} at @returns {[number, number]} */
    const place = (at) => [(at[0] - this.centre[0]) * this.zoom + box.width / 2, (at[1] - this.centre[1]) * this.zoom + box.height / 2];
    if (this.cells) this.drawHeat(place);
    if (this.box) {
      const [[x0, y0], [x1, y1]] = [place(this.box[0]), place(this.box[1])];
      pen.strokeStyle = this.accent || "";
      pen.fillStyle = `${this.accent}33`;
      pen.lineWidth = 1.5;
      pen.fillRect(x0, y0, x1 - x0, y1 - y0);
      pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
    }
    const at = this.at(this.picked);
    if (!at) return;
    const [x, y] = place(at);
    pen.lineWidth = 1;
    pen.strokeStyle = `${this.accent}66`;
    pen.beginPath();
    for (const id of this.sees) {
      const to = this.at(id);
      if (to) {
        pen.moveTo(x, y);
        pen.lineTo(...place(to));
      }
    }
    pen.stroke();
    if (this.path.length) {
      pen.strokeStyle = this.ink || "";
      pen.lineWidth = 1.75;
      pen.setLineDash([6, 4]);
      pen.beginPath();
      pen.moveTo(x, y);
      this.path.forEach((point) => pen.lineTo(...place(point)));
      pen.stroke();
      pen.setLineDash([]);
      const [gx, gy] = place(this.path[this.path.length - 1]);
      pen.beginPath();
      pen.arc(gx, gy, 4, 0, 7);
      pen.stroke();
    }
    const other = this.at(this.other);
    if (other) this.ring(place(other), this.ink || "", [3, 3]);
    this.ring([x, y], this.accent || "", []);
  }

  /** @param {[number, number]} at @param {string} colour @param {number[]} dash */
  ring([x, y], colour, dash) {
    const pen = this.pen;
    for (const [style, width] of /** @type {[string, number][]} */ ([[this.panel || "", 5], [colour, 2.25]])) {
      pen.strokeStyle = style;
      pen.lineWidth = width;
      pen.setLineDash(width < 4 ? dash : []);
      pen.beginPath();
      pen.arc(x, y, 10, 0, 7);
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  /** @param {(at: [number, number]) => [number, number]} place */
  drawHeat(place) {
    if (!this.cells) return;
    const { columns, rows, counts, maximum } = this.cells;
    const pen = this.pen;
    const side = this.cells.side * this.zoom;
    pen.font = "600 11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const count = counts[row * columns + column];
        if (!count) continue;
        const [x, y] = place([column * this.cells.side, row * this.cells.side]);
        pen.globalAlpha = 0.08 + 0.6 * Math.sqrt(count / maximum);
        pen.fillStyle = this.colours?.[5] || "";
        pen.fillRect(x, y, side - 1, side - 1);
        if (side > 34) {
          pen.globalAlpha = 1;
          pen.lineWidth = 3;
          pen.strokeStyle = this.panel || "";
          const text = count < 10_000 ? String(count) : `${Math.round(count / 1000)}k`;
          pen.strokeText(text, x + side / 2, y + side / 2);
          pen.fillStyle = this.ink || "";
          pen.fillText(text, x + side / 2, y + side / 2);
        }
      }
    }
    pen.globalAlpha = 1;
  }
}
