const SIDE_PX = 150;
const SMALL_SIDE_PX = 104;
const PHONE_PX = 640;
export class Minimap {
    canvas;
    context;
    walls = null;
    constructor(canvas) {
        this.canvas = canvas;
        this.context = canvas.getContext("2d");
    }
    draw(size, ground, dots, own, half, colors) {
        const scale = (innerWidth > PHONE_PX ? SIDE_PX : SMALL_SIDE_PX) / Math.max(size.x, size.y, 1);
        const [width, height] = [Math.max(1, Math.round(size.x * scale)), Math.max(1, Math.round(size.y * scale))];
        const { canvas, context } = this;
        const ratio = devicePixelRatio;
        if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
            [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
            [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
        }
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.fillStyle = colors["ground"];
        context.fillRect(0, 0, width, height);
        if (ground !== null) {
            context.drawImage(this.wallImage(ground, colors["wall"], Math.round(width * ratio), Math.round(height * ratio)), 0, 0, width, height);
        }
        for (const { at, color } of dots) {
            context.fillStyle = color;
            context.fillRect(at.x * scale - 1, at.y * scale - 1, 2, 2);
        }
        context.strokeStyle = colors["own"];
        context.lineWidth = 1;
        context.strokeRect((own.x - half.x) * scale, (own.y - half.y) * scale, 2 * half.x * scale, 2 * half.y * scale);
        context.fillStyle = colors["own"];
        context.beginPath();
        context.arc(own.x * scale, own.y * scale, 3, 0, 2 * Math.PI);
        context.fill();
    }
    wallImage(ground, color, width, height) {
        const key = `${width} ${height} ${color}`;
        if (this.walls !== null && this.walls.of === ground && this.walls.key === key) {
            return this.walls.image;
        }
        const image = document.createElement("canvas");
        [image.width, image.height] = [width, height];
        const pen = image.getContext("2d");
        pen.fillStyle = color;
        const step = Math.max(1, Math.floor(Math.max(ground.width / width, ground.height / height) / 2));
        for (let y = 0; y < height; y += 1) {
            for (let x = 0; x < width; x += 1) {
                const [left, top] = [Math.floor((x * ground.width) / width), Math.floor((y * ground.height) / height)];
                let blocked = 0;
                for (const [dx, dy] of [[0, 0], [step, 0], [0, step], [step, step]]) {
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
