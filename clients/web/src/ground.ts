// The walls of a scene: which steps between two positions are free, with the same result as on the server.

import { Reader, WireError } from "./codec.js";
import type { Vec } from "./server_message.js";

const f32 = Math.fround;

/** Tiles of a scene, one bit each, 1 if the tile is blocked. */
export class TileGround {
  constructor(
    readonly width: number,
    readonly height: number,
    /** The side of a tile, in metres. */
    readonly tileM: number,
    private readonly bits: Uint8Array,
  ) {}

  /** Decodes the response of `GET /map`: width, height, side of a tile, then the rows; each starts at a new byte, lowest bit first. */
  static read(bytes: Uint8Array): TileGround {
    const reader = new Reader(bytes);
    const [width, height] = [reader.u32(), reader.u32()];
    const tileM = reader.f32();
    const bits = reader.rest();
    if (bits.length !== Math.ceil(width / 8) * height) {
      throw new WireError(`a map of ${bits.length} bytes, expected ${height} rows of ${Math.ceil(width / 8)}`);
    }
    return new TileGround(width, height, tileM, bits);
  }

  /** Whether a tile is blocked. Everything outside the map is. */
  isBlocked(x: number, y: number): boolean {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) {
      return true;
    }
    return ((this.bits[y * Math.ceil(this.width / 8) + (x >> 3)]! >> (x & 7)) & 1) !== 0;
  }

  /** The tile of a position. A position on the far border belongs to the last tile. */
  tileAt(at: Vec): Vec {
    const along = (metres: number, count: number) => (metres === f32(count * this.tileM) ? count - 1 : Math.floor(f32(metres / this.tileM)));
    return { x: along(at.x, this.width), y: along(at.y, this.height) };
  }

  private isFreeAt(at: Vec): boolean {
    const { x, y } = this.tileAt(at);
    return !this.isBlocked(x, y);
  }

  /** Whether a straight line between two positions is free. */
  isFree = (from: Vec, to: Vec): boolean => {
    if (!this.isFreeAt(to)) {
      return false;
    }
    const [first, last] = [this.tileAt(from), this.tileAt(to)];
    if (this.isFreeAt(from)) {
      const inTiles = ({ x, y }: Vec) => ({ x: x / this.tileM, y: y / this.tileM });
      if ((first.x === last.x && first.y === last.y) || this.isLineFree(inTiles(from), inTiles(to))) {
        return true;
      }
    }
    // A line along an edge touches the tiles next to it; then the line between the tiles' centres decides.
    const middle = ({ x, y }: Vec) => ({ x: x + 0.5, y: y + 0.5 });
    return this.isLineFree(middle(first), middle(last));
  };

  /** Whether a line, in tiles, touches no blocked tile. */
  private isLineFree(a: Vec, b: Vec): boolean {
    for (let y = Math.ceil(Math.min(a.y, b.y) - 1); y <= Math.floor(Math.max(a.y, b.y)); y += 1) {
      const [left, right] = clip(a, b, y);
      for (let x = Math.ceil(left - 1); x <= Math.floor(right); x += 1) {
        if (this.isBlocked(x, y)) {
          return false;
        }
      }
    }
    return true;
  }
}

/** The x range of the part of a line in a row of tiles. The line must intersect that row. */
function clip(a: Vec, b: Vec, row: number): [number, number] {
  const way = { x: b.x - a.x, y: b.y - a.y };
  if (way.y === 0) {
    return [Math.min(a.x, b.x), Math.max(a.x, b.x)];
  }
  const xAt = (y: number) => a.x + Math.min(Math.max((y - a.y) / way.y, 0), 1) * way.x;
  const [first, second] = [xAt(row), xAt(row + 1)];
  return [Math.min(first, second), Math.max(first, second)];
}
