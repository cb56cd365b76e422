// The minimap in a corner: the walls of the whole scene, the player, the objects in view, and the shown part.

import type { TileGround, Vec } from "../src/index.js";

/** Longer side in CSS pixels: on large screens, and on phones. */
const SIDE_PX = 150;
const SMALL_SIDE_PX = 104;
/** Pages up to this width use the size for phones, in CSS pixels. */
const PHONE_PX = 640;

/** An object on the minimap. */
export type MinimapDot = { at: Vec; color: string };

export class Minimap {
  private readonly context: CanvasRenderingContext2D;
  /** The walls as an image in the resolution of the minimap, and the inputs that it was drawn from. */
  private walls: { image: HTMLCanvasElement; of: TileGround; key: string } | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d")!;
  }

  /** Draws the scene. `half` is half of the shown part, in metres. */
  draw(size: Vec, ground: TileGround | null, dots: Iterable<MinimapDot>, own: Vec, half: Vec, colors: Record<string, string>): void {
    const scale = (innerWidth > PHONE_PX ? SIDE_PX : SMALL_SIDE_PX) / Math.max(size.x, size.y, 1);
    const [width, height] = [Math.max(1, Math.round(size.x * scale)), Math.max(1, Math.round(size.y * scale))];
    const { canvas, context } = this;
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors["ground"]!;
    context.fillRect(0, 0, width, height);
    if (ground !== null) {
      context.drawImage(this.wallImage(ground, colors["wall"]!, Math.round(width * ratio), Math.round(height * ratio)), 0, 0, width, height);
    }
    for (const { at, color } of dots) {
      context.fillStyle = color;
      context.fillRect(at.x * scale - 1, at.y * scale - 1, 2, 2);
    }
    context.strokeStyle = colors["own"]!;
    context.lineWidth = 1;
    context.strokeRect((own.x - half.x) * scale, (own.y - half.y) * scale, 2 * half.x * scale, 2 * half.y * scale);
    context.fillStyle = colors["own"]!;
    context.beginPath();
    context.arc(own.x * scale, own.y * scale, 3, 0, 2 * Math.PI);
    context.fill();
  }

  /** The walls as an image; drawn again when they or the size change. The opacity of a pixel is its share of walls. */
  private wallImage(ground: TileGround, color: string, width: number, height: number): HTMLCanvasElement {
    const key = `${width} ${height} ${color}`;
    if (this.walls !== null && this.walls.of === ground && this.walls.key === key) {
      return this.walls.image;
    }
    const image = document.createElement("canvas");
    [image.width, image.height] = [width, height];
    const pen = image.getContext("2d")!;
    pen.fillStyle = color;
    const step = Math.max(1, Math.floor(Math.max(ground.width / width, ground.height / height) / 2));
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const [left, top] = [Math.floor((x * ground.width) / width), Math.floor((y * ground.height) / height)];
        let blocked = 0;
        for (const [dx, dy] of [[0, 0], [step, 0], [0, step], [step, step]] as const) {
          blocked += ground.isBlocked(Math.min(left + dx, ground.width - 1), Math.min(top + dy, ground.height - 1)) ? 1 : 0;
        }
        if (blocked > 0) {
          pen.globalAlpha = blocked / 4;
          pen.fillRect(x, y, 1, 1);
        }
      }
    }
    this.walls = { image, of: ground, key };
    return image;
  }
}
