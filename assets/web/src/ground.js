import { Reader, WireError } from "./codec.js";
const f32 = Math.fround;
export class TileGround {
    width;
    height;
    tileM;
    bits;
    constructor(width, height, tileM, bits) {
        this.width = width;
        this.height = height;
        this.tileM = tileM;
        this.bits = bits;
    }
    static read(bytes) {
        const reader = new Reader(bytes);
        const [width, height] = [reader.u32(), reader.u32()];
        const tileM = reader.f32();
        const bits = reader.rest();
        if (bits.length !== Math.ceil(width / 8) * height) {
            throw new WireError(`a map of ${bits.length} bytes, expected ${height} rows of ${Math.ceil(width / 8)}`);
        }
        return new TileGround(width, height, tileM, bits);
    }
    isBlocked(x, y) {
        if (x < 0 || y < 0 || x >= this.width || y >= this.height) {
            return true;
        }
        return ((this.bits[y * Math.ceil(this.width / 8) + (x >> 3)] >> (x & 7)) & 1) !== 0;
    }
    tileAt(at) {
        const along = (metres, count) => (metres === f32(count * this.tileM) ? count - 1 : Math.floor(f32(metres / this.tileM)));
        return { x: along(at.x, this.width), y: along(at.y, this.height) };
    }
    isFreeAt(at) {
        const { x, y } = this.tileAt(at);
        return !this.isBlocked(x, y);
    }
    isFree = (from, to) => {
        if (!this.isFreeAt(to)) {
            return false;
        }
        const [first, last] = [this.tileAt(from), this.tileAt(to)];
        if (this.isFreeAt(from)) {
            const inTiles = ({ x, y }) => ({ x: x / this.tileM, y: y / this.tileM });
            if ((first.x === last.x && first.y === last.y) || this.isLineFree(inTiles(from), inTiles(to))) {
                return true;
            }
        }
        const middle = ({ x, y }) => ({ x: x + 0.5, y: y + 0.5 });
        return this.isLineFree(middle(first), middle(last));
    };
    isLineFree(a, b) {
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
function clip(a, b, row) {
    const way = { x: b.x - a.x, y: b.y - a.y };
    if (way.y === 0) {
        return [Math.min(a.x, b.x), Math.max(a.x, b.x)];
    }
    const xAt = (y) => a.x + Math.min(Math.max((y - a.y) / way.y, 0), 1) * way.x;
    const [first, second] = [xAt(row), xAt(row + 1)];
    return [Math.min(first, second), Math.max(first, second)];
}
