import { Connection, DatagramConnection, ResumingConnection, TileGround, clientMessage, endText, refusalText } from "../src/index.js";
import { BadDatagrams } from "./bad_datagrams.js";
import { Ghosts } from "./ghosts.js";
import { Minimap } from "./minimap.js";
import { Names } from "./names.js";
import { GOOD, SlowSession } from "./slow_session.js";
import { Words, announcementText } from "./words.js";
const SHOWN_M = 64;
const POINTED_PX = 16;
const MINIMAP_MS = 100;
const PAUSE_MS = 1000;
const WALLS_MS = 2000;
const PLAYER_KIND = 0;
const KEYS = {
    ArrowLeft: { x: -1, y: 0 }, KeyA: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, KeyD: { x: 1, y: 0 },
    ArrowUp: { x: 0, y: -1 }, KeyW: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 }, KeyS: { x: 0, y: 1 },
};
const byId = (id) => document.getElementById(id);
const canvas = byId("view");
const context = canvas.getContext("2d");
const nowS = () => performance.now() / 1000;
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
function say(text, state = "") {
    const line = byId("line");
    if (line.textContent !== text) {
        line.textContent = text;
    }
    line.className = state;
}
async function requestPass(guest) {
    const given = new URLSearchParams(location.search);
    const token = given.get("token");
    if (token !== null && guest === null) {
        return { guest: null, token: bytesOf(token) };
    }
    const response = await fetch(guest === null ? "/token" : `/token?player=${guest}`, { method: "POST" });
    if (!response.ok) {
        return "a token is needed: open this page with ?token=…";
    }
    const issued = (await response.json());
    return { guest: BigInt(issued.player), token: bytesOf(issued.token) };
}
class VisitedCells {
    cells = new Uint8Array();
    width = 0;
    reset(size) {
        this.width = Math.ceil(size.x) + 1;
        this.cells = new Uint8Array(Math.min(this.width * (Math.ceil(size.y) + 1), 1 << 24));
    }
    mark({ x, y }) {
        this.cells[Math.floor(y) * this.width + Math.floor(x)] = 1;
    }
    has(x, y) {
        return x >= 0 && x < this.width && this.cells[y * this.width + x] === 1;
    }
}
const visited = new VisitedCells();
const names = new Names();
const minimap = new Minimap(byId("minimap"));
const words = new Words(byId("chat"), byId("words"), (scope, text) => session?.say(clientMessage.say(scope, text)));
let player = null;
let mouse = null;
const held = new Set();
let pointer = null;
let session = null;
const ghosts = new Ghosts(window.opener);
let line = null;
let link = null;
let walls = null;
let corrections = 0;
let colors = {};
function readColors() {
    const style = getComputedStyle(document.documentElement);
    colors = Object.fromEntries(["ground", "trod", "wall", "edge", "own", "player", "other", "ghost", "bg"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
}
async function requestWalls(scene, round, known = null) {
    const headers = known === null ? {} : { "If-None-Match": known };
    const response = await fetch(`/map?scene=${scene}`, { headers }).catch(() => null);
    const body = await response?.arrayBuffer().catch(() => null);
    const bytes = response?.ok && body ? new Uint8Array(body) : null;
    if (session === null || round !== wallsRound) {
        return;
    }
    if (bytes !== null) {
        walls = TileGround.read(bytes);
        session.isFree = walls.isFree;
    }
    if (walls !== null) {
        setTimeout(() => void requestWalls(scene, round, response?.headers.get("ETag") ?? known), WALLS_MS);
    }
}
let wallsRound = 0;
async function join(guest) {
    const pass = await requestPass(guest).catch(() => "server unreachable");
    if (typeof pass === "string") {
        say(pass, "off");
        if (guest !== null) {
            setTimeout(() => void join(guest), PAUSE_MS);
        }
        return;
    }
    if (session === null) {
        session = new SlowSession({}, {
            message: (message) => {
                if (message.kind === "scene") {
                    visited.reset(message.size);
                    session.isFree = undefined;
                    walls = null;
                    void requestWalls(message.scene, (wallsRound += 1));
                }
                else if (message.kind === "welcome") {
                    player = message.player;
                    say(`connected over ${link === null ? "a WebSocket" : "WebTransport"}`, "on");
                    applyNetwork();
                }
                else if (message.kind === "announce") {
                    words.add(speaker(message.from?.id ?? null), announcementText(message.bytes));
                }
                else if (message.kind === "queued") {
                    say(`login queue: position ${message.place}`);
                }
            },
            corrected: () => (corrections += 1),
        });
    }
    else {
        session.reconnect();
    }
    connect(pass, session, await requestCertificate().catch(() => null));
}
function connect(pass, to, sha256) {
    let attempts = 0;
    let hasFailed = false;
    const open = (over) => {
        attempts += 1;
        if (sha256 === null || hasFailed) {
            [link, hasFailed] = [null, false];
            return new Connection(`${serverOrigin().replace("http", "ws")}/play`, pass.token, to, over);
        }
        const ended = (code) => {
            hasFailed = !datagrams.wasOpen;
            over(code);
        };
        link = new BadDatagrams();
        const datagrams = new DatagramConnection(`https://${new URL(serverOrigin()).host}/play`, sha256, pass.token, to, ended, link);
        return datagrams;
    };
    const ended = (code, mayLogIn) => {
        if (attempts === 1 && hasFailed) {
            connect(pass, to, null);
        }
        else {
            over(code, mayLogIn, pass.guest);
        }
    };
    line = new ResumingConnection(to, open, ended, {
        lost: (code) => say(`${endText(code, null)}; reconnecting`, "off"),
    });
}
function serverOrigin() {
    return document.querySelector("meta[name=public-origin]")?.content ?? location.origin;
}
async function requestCertificate() {
    if (!("WebTransport" in globalThis)) {
        return null;
    }
    const response = await fetch("/webtransport");
    return response.status === 200 ? bytesOf((await response.json()).sha256) : null;
}
function over(code, mayLogIn, guest) {
    const fault = line?.fault;
    line = null;
    const closed = session?.closed ?? null;
    if (fault != null && closed === null) {
        say(`protocol error: ${String(fault)}`, "off");
    }
    else if (!mayLogIn) {
        say(session?.refusal ? `login refused: ${refusalText(session.refusal)}` : endText(code, closed), "off");
    }
    else if (new URLSearchParams(location.search).has("token")) {
        say(`${endText(code, null)}; open the page with a new token`, "off");
    }
    else {
        say(`${endText(code, null)}; reconnecting`, "off");
        setTimeout(() => void join(guest), PAUSE_MS);
    }
}
function applyNetwork() {
    if (session === null) {
        return;
    }
    const number = (id, most) => Math.min(Math.max(byId(id).valueAsNumber || 0, 0), most);
    const badness = { lagS: number("lag", 2000) / 1000, jitterS: number("jitter", 2000) / 1000, lossShare: number("loss", 90) / 100 };
    session.badness = link === null ? badness : GOOD;
    if (link !== null) {
        link.badness = badness;
    }
    const cap = byId("cap").valueAsNumber;
    if (Number.isInteger(cap) && cap >= 0 && cap !== sentCap) {
        sentCap = cap;
        session.say(clientMessage.viewCap(Math.min(cap, 65535)));
    }
}
let sentCap = null;
function steer() {
    if (session === null) {
        return;
    }
    let way = { x: 0, y: 0 };
    for (const key of held) {
        way = { x: way.x + KEYS[key].x, y: way.y + KEYS[key].y };
    }
    if (pointer !== null) {
        way = { x: pointer.x - canvas.clientWidth / 2, y: pointer.y - canvas.clientHeight / 2 };
        way = Math.hypot(way.x, way.y) < 12 ? { x: 0, y: 0 } : way;
    }
    if (way.x === 0 && way.y === 0) {
        session.walk({ kind: "stand" }, heading);
    }
    else {
        heading = Math.round((Math.atan2(way.y, way.x) / (2 * Math.PI)) * 256) & 255;
        session.walk({ kind: "towards", direction: heading }, heading);
        byId("hint").hidden = true;
    }
}
let heading = 0;
function speaker(id) {
    return id === null ? "announcement:" : id === session?.mirror.own?.id ? "you:" : `${objectName(id)}:`;
}
function objectName(id) {
    const object = session?.mirror.objects.get(id);
    return `${object === undefined ? "" : `${names.kind(object.kind)}, `}object ${id}`;
}
function showRows(id, rows) {
    const list = byId(id);
    const text = JSON.stringify(rows);
    if (list.dataset["rows"] === text) {
        return;
    }
    list.dataset["rows"] = text;
    list.replaceChildren(...rows.flatMap(([name, value]) => {
        const [term, data] = [document.createElement("dt"), document.createElement("dd")];
        [term.textContent, data.textContent] = [name, value];
        return [term, data];
    }));
}
function showOwn() {
    const own = session?.mirror.own ?? null;
    byId("you").hidden = own === null;
    if (session === null || own === null) {
        return;
    }
    byId("you-name").textContent = objectName(own.id);
    const rows = player === null ? [] : [["player", `${player}`]];
    rows.push(...names.list(session.mirror.objects.get(own.id)?.attributes ?? new Map()));
    for (const remote of session.mirror.remotes.values()) {
        if (remote.id === 0 && remote.scene === session.mirror.scene) {
            rows.push(...names.list(remote.attributes).map(([name, value]) => [`${name} (scene)`, value]));
        }
    }
    showRows("attributes", rows);
}
function showPointed() {
    const tip = byId("tip");
    const found = mouse === null ? null : pointed(mouse);
    tip.hidden = found === null;
    if (found === null || mouse === null) {
        return;
    }
    byId("tip-name").textContent = objectName(found.id);
    showRows("tip-rows", names.list(found.object.attributes));
    tip.style.left = `${Math.min(mouse.x + 14, canvas.clientWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(mouse.y + 14, canvas.clientHeight - tip.offsetHeight - 8)}px`;
}
function pointed(place) {
    const own = session?.ownPosition(nowS()) ?? null;
    if (session === null || own === null) {
        return null;
    }
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const scale = Math.min(width, height) / SHOWN_M;
    let best = null;
    let least = POINTED_PX;
    for (const [id, object] of session.mirror.objects) {
        const at = session.position(id, nowS());
        const far = at === null ? Infinity : Math.hypot(width / 2 + (at.x - own.x) * scale - place.x, height / 2 + (at.y - own.y) * scale - place.y);
        if (far < least) {
            [best, least] = [{ id, object }, far];
        }
    }
    return best;
}
function dot(at, radius, direction, color) {
    const angle = (direction / 256) * 2 * Math.PI;
    context.fillStyle = context.strokeStyle = color;
    context.beginPath();
    context.arc(at.x, at.y, radius, 0, 2 * Math.PI);
    context.fill();
    context.lineWidth = radius / 2;
    context.beginPath();
    context.moveTo(at.x, at.y);
    context.lineTo(at.x + Math.cos(angle) * radius * 1.9, at.y + Math.sin(angle) * radius * 1.9);
    context.stroke();
}
function drawGhosts(scene, radius, on, width, height) {
    context.strokeStyle = colors["ghost"];
    context.lineWidth = Math.max(radius / 4, 1.5);
    for (const { at } of ghosts.of(scene)) {
        const { x, y } = on(at);
        if (x > -radius && y > -radius && x < width + radius && y < height + radius) {
            context.beginPath();
            context.arc(x, y, radius * 1.5, 0, 2 * Math.PI);
            context.stroke();
        }
    }
}
function drawGround(size, center, scale, width, height) {
    const [left, top] = [center.x - width / 2 / scale, center.y - height / 2 / scale];
    context.fillStyle = colors["ground"];
    context.fillRect(-left * scale, -top * scale, size.x * scale, size.y * scale);
    context.fillStyle = colors["trod"];
    for (let y = Math.floor(top); y <= top + height / scale; y += 1) {
        for (let x = Math.floor(left); x <= left + width / scale; x += 1) {
            if (visited.has(x, y)) {
                context.fillRect((x - left) * scale, (y - top) * scale, scale + 0.5, scale + 0.5);
            }
        }
    }
    if (walls !== null) {
        drawWalls(walls, left, top, scale, width, height);
    }
    context.strokeStyle = colors["edge"];
    context.lineWidth = 2;
    context.strokeRect(-left * scale, -top * scale, size.x * scale, size.y * scale);
}
function drawWalls(on, left, top, scale, width, height) {
    const acrossX = (x) => Math.round((x * on.tileM - left) * scale);
    const acrossY = (y) => Math.round((y * on.tileM - top) * scale);
    context.fillStyle = colors["wall"];
    for (let y = Math.max(Math.floor(top / on.tileM), 0); y < on.height && acrossY(y) < height; y += 1) {
        let from = null;
        const end = Math.min(on.width, Math.ceil((left + width / scale) / on.tileM));
        for (let x = Math.max(Math.floor(left / on.tileM), 0); x <= end; x += 1) {
            const isWall = x < end && on.isBlocked(x, y);
            if (isWall) {
                from ??= x;
            }
            else if (from !== null) {
                context.fillRect(acrossX(from), acrossY(y), acrossX(x) - acrossX(from), acrossY(y + 1) - acrossY(y));
                from = null;
            }
        }
    }
}
function draw() {
    const ratio = devicePixelRatio;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const time = nowS();
    const own = session?.ownPosition(time) ?? null;
    if (session === null || own === null) {
        return;
    }
    const { mirror } = session;
    const scale = Math.min(width, height) / SHOWN_M;
    drawGround(mirror.size, own, scale, width, height);
    const radius = Math.max(scale * 0.45, 3);
    const onPage = (at) => ({ x: width / 2 + (at.x - own.x) * scale, y: height / 2 + (at.y - own.y) * scale });
    for (const [id, object] of mirror.objects) {
        const at = session.position(id, time);
        if (at === null) {
            continue;
        }
        visited.mark(at);
        if (mirror.own?.id !== id) {
            dot(onPage(at), radius, object.motion.heading, colors[object.kind === PLAYER_KIND ? "player" : "other"]);
        }
    }
    dot({ x: width / 2, y: height / 2 }, radius * 1.25, heading, colors["own"]);
    drawGhosts(mirror.scene, radius, onPage, width, height);
}
function drawMinimap() {
    const time = nowS();
    const own = session?.ownPosition(time) ?? null;
    byId("minimap").hidden = own === null;
    if (session === null || own === null) {
        return;
    }
    const { mirror } = session;
    const dots = [...mirror.objects].flatMap(([id, object]) => {
        const at = mirror.own?.id === id ? null : session.position(id, time);
        return at === null ? [] : [{ at, color: colors[object.kind === PLAYER_KIND ? "player" : "other"] }];
    });
    const scale = Math.min(canvas.clientWidth, canvas.clientHeight) / SHOWN_M;
    const half = { x: canvas.clientWidth / 2 / scale, y: canvas.clientHeight / 2 / scale };
    minimap.draw(mirror.size, walls, dots, own, half, colors);
}
function showFigures() {
    const trip = session?.lastRoundTripS ?? null;
    const own = session?.ownPosition(nowS()) ?? null;
    byId("sight").textContent = own === null ? "–" : `${session.mirror.objects.size - 1}`;
    byId("trip").textContent = trip === null ? "–" : `${Math.round(trip * 1000)} ms`;
    byId("place").textContent = own === null ? "–" : `${own.x.toFixed(0)}, ${own.y.toFixed(0)} m`;
    byId("corrected").textContent = `${corrections}`;
    showOwn();
}
function frame() {
    steer();
    line?.update();
    draw();
    showPointed();
    requestAnimationFrame(frame);
}
addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) {
        return;
    }
    if (event.key === "Enter" && !(event.target instanceof HTMLButtonElement)) {
        words.focus();
        event.preventDefault();
    }
    if (event.code in KEYS && !event.ctrlKey && !event.metaKey && !event.altKey) {
        held.add(event.code);
        event.preventDefault();
    }
});
addEventListener("keyup", ({ code }) => held.delete(code));
addEventListener("blur", () => held.clear());
const point = (event) => {
    const frame = canvas.getBoundingClientRect();
    pointer = { x: event.clientX - frame.left, y: event.clientY - frame.top };
};
canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    point(event);
});
canvas.addEventListener("pointermove", (event) => {
    mouse = event.pointerType === "mouse" ? { x: event.offsetX, y: event.offsetY } : null;
    if (pointer !== null) {
        point(event);
    }
});
canvas.addEventListener("pointerleave", () => (mouse = null));
for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, () => (pointer = null));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColors();
    drawMinimap();
});
readColors();
const showsGhosts = byId("ghosts");
byId("line-form").addEventListener("input", () => {
    ghosts.isOn = showsGhosts.checked;
    ghosts.request();
    applyNetwork();
});
byId("line-form").addEventListener("submit", (event) => event.preventDefault());
showsGhosts.disabled = !ghosts.isAvailable;
showsGhosts.checked = ghosts.isOn = ghosts.isAvailable;
byId("of-ghosts").hidden = !ghosts.isAvailable;
ghosts.request();
setInterval(showFigures, 250);
setInterval(drawMinimap, MINIMAP_MS);
addEventListener("online", () => line?.retry());
setInterval(() => document.hidden && line?.update(), 250);
Object.defineProperty(globalThis, "throng", { get: () => ({ session, line, walls, ghosts, player }) });
void names.load();
void join(null);
frame();
