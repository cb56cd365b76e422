// Renders the ground and the dots pixel by pixel: without a graphics card, this is much faster than drawing them with canvas
// operations.
// @ts-check

/** Number of positions of a dot within a pixel, along each axis. */
const PLACES = 4;
/** Maximum number of map samples for a pixel, along each axis. */
const SAMPLES_MAX = 2;

/** @typedef {[number, number, number]} Rgb red, green, blue, each 0 to 255 */
/** @typedef {{ground: Rgb, wall: Rgb, beyond: Rgb, rim: Rgb, dots: Rgb[]}} Looks */
/** The pixels of a dot. `added` is added to a pixel, of whose previous colour `rest` / 256 remains. @typedef {{side: number, columns: Uint8Array, rows: Uint8Array, added: Uint32Array, rest: Uint16Array}} Stamp */

/** A pixel of an `ImageData`, as a 32-bit integer. @param {Rgb} rgb @param {number} [alpha] */
function pack([red, green, blue], alpha = 255) {
  return ((alpha << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red)) >>> 0;
}

/** @param {Rgb} from @param {Rgb} to @param {number} share @returns {Rgb} */
function mix(from, to, share) {
  return /** @type {Rgb} */ (from.map((part, nth) => part + (to[nth] - part) * share));
}

/** @param {number} low @param {number} high @param {number} at */
function smoothstep(low, high, at) {
  const share = Math.min(1, Math.max(0, (at - low) / (high - low)));
  return share * share * (3 - 2 * share);
}

/** A canvas that is painted pixel by pixel. */
export class Picture {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    const pen = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (!pen) throw new Error("this browser does not support canvas drawing");
    this.pen = pen;
    this.image = new ImageData(1, 1);
    this.pixels = new Uint32Array(this.image.data.buffer);
    /** The pixels of the ground, without dots. */
    this.ground = new Uint32Array(1);
    /** The size, view and map version for which the ground was painted. */
    this.painted = "";
    /** @type {{columns: number, rows: number, tile: number, blocked: Uint8Array, version: number}} */
    this.map = { columns: 0, rows: 0, tile: 1, blocked: new Uint8Array(0), version: 0 };
    /** @type {Looks} */
    this.looks = { ground: [0, 0, 0], wall: [0, 0, 0], beyond: [0, 0, 0], rim: [0, 0, 0], dots: [] };
    /** The pixels of dots, by colour, size, and position within a pixel. @type {Stamp[]} */
    this.stamps = [];
    /** The sizes for which the stamps were made. */
    this.stamped = "";
    /** Diameters of dots, in pixels. @type {number[]} */
    this.diameters = [];
  }

  /** @param {Looks} looks */
  restyle(looks) {
    this.looks = looks;
    this.painted = this.stamped = "";
  }

  /** @param {number} columns @param {number} rows @param {number} tile metres @param {Uint8Array} blocked blocked share of each tile; 255 means all of it */
  setMap(columns, rows, tile, blocked) {
    this.map = { columns, rows, tile, blocked, version: this.map.version + 1 };
  }

  /** Starts a picture in the size of the canvas with the ground only. @param {number} left @param {number} top in metres @param {number} zoom pixels per metre */
  begin(left, top, zoom) {
    const { width, height } = this.canvas;
    if (this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(Math.max(1, width), Math.max(1, height));
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.ground = new Uint32Array(this.pixels.length);
    }
    const wanted = [width, height, left, top, zoom, this.map.version].join();
    if (wanted !== this.painted) this.paintGround(left, top, zoom);
    this.painted = wanted;
    this.pixels.set(this.ground);
  }

  /** @param {number} left @param {number} top @param {number} zoom */
  paintGround(left, top, zoom) {
    const { columns, rows, tile, blocked } = this.map;
    const { width, height } = this.image;
    this.ground.fill(pack(this.looks.beyond));
    const samples = Math.min(SAMPLES_MAX, Math.max(1, Math.ceil(1 / (tile * zoom))));
    const shades = Uint32Array.from({ length: 256 }, (_, share) => pack(mix(this.looks.ground, this.looks.wall, share / 255)));
    /** The range of pixels that have ground along an axis, and the tile under each sample of these pixels. @param {number} from @param {number} pixels @param {number} tiles */
    const under = (from, pixels, tiles) => {
      const tileOf = (/** @type {number} */ at) => Math.floor((from + at / zoom) / tile);
      const first = Math.max(0, Math.ceil(-from * zoom - 0.5));
      const end = Math.min(pixels, Math.ceil((tiles * tile - from) * zoom - 0.5));
      const tileOfSample = Int32Array.from({ length: Math.max(0, end - first) * samples }, (_, nth) =>
        Math.min(tiles - 1, Math.max(0, tileOf(first + (nth + 0.5) / samples))));
      return { first, end, tileOfSample };
    };
    const [across, down] = [under(left, width, columns), under(top, height, rows)];
    for (let y = down.first; y < down.end; y += 1) {
      let at = y * width + across.first;
      for (let x = 0; x < across.tileOfSample.length; x += samples) {
        let sum = 0;
        for (let row = 0; row < samples; row += 1) {
          const begin = down.tileOfSample[(y - down.first) * samples + row] * columns;
          for (let column = 0; column < samples; column += 1) sum += blocked[begin + across.tileOfSample[x + column]];
        }
        this.ground[at] = shades[Math.floor(sum / (samples * samples))];
        at += 1;
      }
    }
  }

  /** Sets the sizes of dots. @param {number} points the usual diameter, in pixels @param {number[]} sizes factors of the usual diameter */
  setDots(points, sizes) {
    const wanted = [points, ...sizes].join();
    if (wanted === this.stamped) return;
    this.stamped = wanted;
    this.diameters = sizes.map((size) => points * size);
    this.stamps = this.looks.dots.flatMap((colour) => this.diameters.flatMap((diameter) =>
      Array.from({ length: PLACES * PLACES }, (_, place) => this.stamp(colour, diameter, points, place))));
  }

  /** Makes a dot with a soft edge and, above 8 pixels, a rim. @param {Rgb} colour @param {number} diameter @param {number} points @param {number} place @returns {Stamp} */
  stamp(colour, diameter, points, place) {
    const side = Math.ceil(diameter) + 1;
    const middle = [place % PLACES, Math.floor(place / PLACES)].map((part) => diameter / 2 + part / PLACES);
    const soft = 2 / Math.max(points, 2);
    /** @type {number[][]} */
    const changed = [];
    for (let row = 0; row < side; row += 1) {
      for (let column = 0; column < side; column += 1) {
        const far = (Math.hypot(column + 0.5 - middle[0], row + 0.5 - middle[1]) * 2) / diameter;
        const inside = 1 - smoothstep(1 - soft, 1, far);
        const rim = points > 8 ? 0.85 * smoothstep(1 - 2.4 * soft, 1 - 1.4 * soft, far) : 0;
        const rest = Math.round((1 - inside) * 256);
        if (rest === 256) continue;
        const tint = /** @type {Rgb} */ (mix(colour, this.looks.rim, rim).map((part) => Math.floor((part * (256 - rest)) / 256)));
        changed.push([column, row, pack(tint), rest]);
      }
    }
    const part = (/** @type {number} */ nth) => changed.map((pixel) => pixel[nth]);
    return { side, columns: Uint8Array.from(part(0)), rows: Uint8Array.from(part(1)), added: Uint32Array.from(part(2)), rest: Uint16Array.from(part(3)) };
  }

  /** Draws a dot centred on a point of the picture. @param {number} x @param {number} y @param {number} colour @param {number} size index of the size */
  dot(x, y, colour, size) {
    const { width, height } = this.image;
    const half = this.diameters[size] / 2;
    const left = Math.floor((x - half) * PLACES);
    const top = Math.floor((y - half) * PLACES);
    const place = (top & (PLACES - 1)) * PLACES + (left & (PLACES - 1));
    const stamp = this.stamps[(colour * this.diameters.length + size) * PLACES * PLACES + place];
    const x0 = Math.floor(left / PLACES);
    const y0 = Math.floor(top / PLACES);
    if (x0 + stamp.side < 0 || y0 + stamp.side < 0 || x0 >= width || y0 >= height) return;
    const isWhole = x0 >= 0 && y0 >= 0 && x0 + stamp.side <= width && y0 + stamp.side <= height;
    const { columns, rows, added, rest } = stamp;
    const pixels = this.pixels;
    for (let nth = 0; nth < added.length; nth += 1) {
      const column = x0 + columns[nth];
      const row = y0 + rows[nth];
      if (!isWhole && (column < 0 || row < 0 || column >= width || row >= height)) continue;
      const at = row * width + column;
      const was = pixels[at];
      const stays = rest[nth];
      const redBlue = (Math.imul(was & 0xff00ff, stays) >>> 8) & 0xff00ff;
      const green = (Math.imul(was & 0xff00, stays) >>> 8) & 0xff00;
      pixels[at] = added[nth] + redBlue + green;
    }
  }

  show() {
    this.pen.putImageData(this.image, 0, 0);
  }
}
