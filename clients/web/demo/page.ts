// The demo page at `/`: connects, draws the objects in view, and walks.

import { Connection, DatagramConnection, ResumingConnection, TileGround, clientMessage, endText, refusalText } from "../src/index.js";
import type { Line, MirrorObject, Vec } from "../src/index.js";
import { BadDatagrams } from "./bad_datagrams.js";
import { Ghosts } from "./ghosts.js";
import { Minimap } from "./minimap.js";
import { Names } from "./names.js";
import { GOOD, SlowSession } from "./slow_session.js";
import { Words, announcementText } from "./words.js";

/** The connect token. For a guest, also the player number, with which the server issues further tokens for the same player. */
type Pass = { guest: bigint | null; token: Uint8Array };

/** Shown metres of the scene along the shorter side. */
const SHOWN_M = 64;
/** Distance up to which an object counts as below the mouse, in pixels. */
const POINTED_PX = 16;
/** Redraw interval of the minimap, in milliseconds: objects on it move by less than a pixel in this time. */
const MINIMAP_MS = 100;
/** Pause before another login, in milliseconds. */
const PAUSE_MS = 1000;
/** Interval of the checks for edited walls, in milliseconds. */
const WALLS_MS = 2000;
/** The kind of players in the built-in scenarios. */
const PLAYER_KIND = 0;
const KEYS: Record<string, Vec> = {
  ArrowLeft: { x: -1, y: 0 }, KeyA: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, KeyD: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 }, KeyW: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 }, KeyS: { x: 0, y: 1 },
};

const byId = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const canvas = byId<HTMLCanvasElement>("view");
const context = canvas.getContext("2d")!;
const nowS = () => performance.now() / 1000;

const bytesOf = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));

function say(text: string, state: "" | "on" | "off" = ""): void {
  const line = byId("line");
  if (line.textContent !== text) {
    line.textContent = text;
  }
  line.className = state;
}

/** The pass in the page's address, or a new one for a guest. */
async function requestPass(guest: bigint | null): Promise<Pass | string> {
  const given = new URLSearchParams(location.search);
  const token = given.get("token");
  if (token !== null && guest === null) {
    return { guest: null, token: bytesOf(token) };
  }
  const response = await fetch(guest === null ? "/token" : `/token?player=${guest}`, { method: "POST" });
  if (!response.ok) {
    return "a token is needed: open this page with ?token=…";
  }
  const issued = (await response.json()) as { player: string; token: string };
  return { guest: BigInt(issued.player), token: bytesOf(issued.token) };
}

/** The square metres of the scene in which an object was seen. */
class VisitedCells {
  private cells = new Uint8Array();
  width = 0;

  reset(size: Vec): void {
    this.width = Math.ceil(size.x) + 1;
    // The memory for a large scene is limited.
    this.cells = new Uint8Array(Math.min(this.width * (Math.ceil(size.y) + 1), 1 << 24));
  }

  mark({ x, y }: Vec): void {
    this.cells[Math.floor(y) * this.width + Math.floor(x)] = 1;
  }

  has(x: number, y: number): boolean {
    return x >= 0 && x < this.width && this.cells[y * this.width + x] === 1;
  }
}

const visited = new VisitedCells();
const names = new Names();
const minimap = new Minimap(byId("minimap"));
const words = new Words(byId<HTMLFormElement>("chat"), byId("words"), (scope, text) => session?.say(clientMessage.say(scope, text)));
/** The number of this player, after its login. */
let player: bigint | null = null;
/** The position of the mouse, if it is on the canvas. */
let mouse: Vec | null = null;
const held = new Set<string>();
let pointer: Vec | null = null;
let session: SlowSession | null = null;
const ghosts = new Ghosts(window.opener as Window | null);
let line: ResumingConnection | null = null;
/** The simulated network between a datagram connection and the real network. */
let link: BadDatagrams | null = null;
let walls: TileGround | null = null;
let corrections = 0;
let colors: Record<string, string> = {};

function readColors(): void {
  const style = getComputedStyle(document.documentElement);
  colors = Object.fromEntries(["ground", "trod", "wall", "edge", "own", "player", "other", "ghost", "bg"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
}

/** Loads the walls of the scene, if the server provides them, and then checks for edits at intervals. */
async function requestWalls(scene: number, round: number, known: string | null = null): Promise<void> {
  const headers: HeadersInit = known === null ? {} : { "If-None-Match": known };
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
/** Incremented with each scene. */
let wallsRound = 0;

/** Connects with a new token. */
async function join(guest: bigint | null): Promise<void> {
  const pass = await requestPass(guest).catch(() => "server unreachable");
  if (typeof pass === "string") {
    say(pass, "off");
    if (guest !== null) {
      setTimeout(() => void join(guest), PAUSE_MS);
    }
    return;
  }
  if (session === null) {
    session = new SlowSession(
      {},
      {
        message: (message) => {
          if (message.kind === "scene") {
            visited.reset(message.size);
            session!.isFree = undefined;
            walls = null;
            void requestWalls(message.scene, (wallsRound += 1));
          } else if (message.kind === "welcome") {
            player = message.player;
            say(`connected over ${link === null ? "a WebSocket" : "WebTransport"}`, "on");
            applyNetwork();
          } else if (message.kind === "announce") {
            words.add(speaker(message.from?.id ?? null), announcementText(message.bytes));
          } else if (message.kind === "queued") {
            say(`login queue: position ${message.place}`);
          }
        },
        corrected: () => (corrections += 1),
      },
    );
  } else {
    session.reconnect();
  }
  connect(pass, session, await requestCertificate().catch(() => null));
}

/** Connects over WebTransport, if the hash of its certificate is given, or over a WebSocket. A loss is resumed with the same token. */
function connect(pass: Pass, to: SlowSession, sha256: Uint8Array | null): void {
  let attempts = 0;
  let hasFailed = false;
  const open = (over: (code: number) => void): Line => {
    attempts += 1;
    if (sha256 === null || hasFailed) {
      [link, hasFailed] = [null, false];
      return new Connection(`${serverOrigin().replace("http", "ws")}/play`, pass.token, to, over);
    }
    const ended = (code: number) => {
      // Alternate between both transports: either datagrams are blocked, or the server is unreachable.
      hasFailed = !datagrams.wasOpen;
      over(code);
    };
    link = new BadDatagrams();
    const datagrams = new DatagramConnection(`https://${new URL(serverOrigin()).host}/play`, sha256, pass.token, to, ended, link);
    return datagrams;
  };
  const ended = (code: number, mayLogIn: boolean) => {
    if (attempts === 1 && hasFailed) {
      // Datagrams are blocked, and the token is unused.
      connect(pass, to, null);
    } else {
      over(code, mayLogIn, pass.guest);
    }
  };
  line = new ResumingConnection(to, open, ended, {
    lost: (code) => say(`${endText(code, null)}; reconnecting`, "off"),
  });
}

/** The origin to connect to: the server's public one, if it has one, or that of this page. */
function serverOrigin(): string {
  return document.querySelector<HTMLMetaElement>("meta[name=public-origin]")?.content ?? location.origin;
}

/** The SHA-256 of the server's WebTransport certificate; null if the server or the browser does not support WebTransport. */
async function requestCertificate(): Promise<Uint8Array | null> {
  if (!("WebTransport" in globalThis)) {
    return null;
  }
  const response = await fetch("/webtransport");
  // Without WebTransport the server has no content here.
  return response.status === 200 ? bytesOf(((await response.json()) as { sha256: string }).sha256) : null;
}

function over(code: number, mayLogIn: boolean, guest: bigint | null): void {
  const fault = line?.fault;
  line = null;
  const closed = session?.closed ?? null;
  if (fault != null && closed === null) {
    say(`protocol error: ${String(fault)}`, "off");
  } else if (!mayLogIn) {
    say(session?.refusal ? `login refused: ${refusalText(session.refusal)}` : endText(code, closed), "off");
  } else if (new URLSearchParams(location.search).has("token")) {
    say(`${endText(code, null)}; open the page with a new token`, "off");
  } else {
    say(`${endText(code, null)}; reconnecting`, "off");
    setTimeout(() => void join(guest), PAUSE_MS);
  }
}

/** Applies the requested network conditions and view limit. */
function applyNetwork(): void {
  if (session === null) {
    return;
  }
  const number = (id: string, most: number) => Math.min(Math.max(byId<HTMLInputElement>(id).valueAsNumber || 0, 0), most);
  const badness = { lagS: number("lag", 2000) / 1000, jitterS: number("jitter", 2000) / 1000, lossShare: number("loss", 90) / 100 };
  // Datagrams are lost below the endpoint, which sends their content again; on a stream, loss is a delay.
  session.badness = link === null ? badness : GOOD;
  if (link !== null) {
    link.badness = badness;
  }
  const cap = byId<HTMLInputElement>("cap").valueAsNumber;
  if (Number.isInteger(cap) && cap >= 0 && cap !== sentCap) {
    sentCap = cap;
    session.say(clientMessage.viewCap(Math.min(cap, 65535)));
  }
}
let sentCap: number | null = null;

/** Applies the controls: keys, or the pressed pointer as a target. */
function steer(): void {
  if (session === null) {
    return;
  }
  let way = { x: 0, y: 0 };
  for (const key of held) {
    way = { x: way.x + KEYS[key]!.x, y: way.y + KEYS[key]!.y };
  }
  if (pointer !== null) {
    way = { x: pointer.x - canvas.clientWidth / 2, y: pointer.y - canvas.clientHeight / 2 };
    way = Math.hypot(way.x, way.y) < 12 ? { x: 0, y: 0 } : way;
  }
  if (way.x === 0 && way.y === 0) {
    session.walk({ kind: "stand" }, heading);
  } else {
    heading = Math.round((Math.atan2(way.y, way.x) / (2 * Math.PI)) * 256) & 255;
    session.walk({ kind: "towards", direction: heading }, heading);
    byId("hint").hidden = true;
  }
}
let heading = 0;

/** The label of a speaker: an object, or the server. */
function speaker(id: number | null): string {
  return id === null ? "announcement:" : id === session?.mirror.own?.id ? "you:" : `${objectName(id)}:`;
}

/** The label of an object, as on the inspect page: its kind and its id. */
function objectName(id: number): string {
  const object = session?.mirror.objects.get(id);
  return `${object === undefined ? "" : `${names.kind(object.kind)}, `}object ${id}`;
}

/** Shows rows of names and values. */
function showRows(id: string, rows: [string, string][]): void {
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

/** Shows this player: its ids, its attributes, and those of the scene. */
function showOwn(): void {
  const own = session?.mirror.own ?? null;
  byId("you").hidden = own === null;
  if (session === null || own === null) {
    return;
  }
  byId("you-name").textContent = objectName(own.id);
  const rows: [string, string][] = player === null ? [] : [["player", `${player}`]];
  rows.push(...names.list(session.mirror.objects.get(own.id)?.attributes ?? new Map<number, Uint8Array>()));
  for (const remote of session.mirror.remotes.values()) {
    if (remote.id === 0 && remote.scene === session.mirror.scene) {
      rows.push(...names.list(remote.attributes).map(([name, value]): [string, string] => [`${name} (scene)`, value]));
    }
  }
  showRows("attributes", rows);
}

/** Shows the object below the mouse. */
function showPointed(): void {
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

/** The object nearest to a position on the canvas, if it is close enough. */
function pointed(place: Vec): { id: number; object: MirrorObject } | null {
  const own = session?.ownPosition(nowS()) ?? null;
  if (session === null || own === null) {
    return null;
  }
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const scale = Math.min(width, height) / SHOWN_M;
  let best: { id: number; object: MirrorObject } | null = null;
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

function dot(at: Vec, radius: number, direction: number, color: string): void {
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

/** Draws the server positions as rings. A ring is next to its dot if the connection is slow,
 * and has no dot if the player does not receive the object. */
function drawGhosts(scene: number | null, radius: number, on: (at: Vec) => Vec, width: number, height: number): void {
  context.strokeStyle = colors["ghost"]!;
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

/** Draws the ground around a position, from above: the border of the scene, and where objects were seen. */
function drawGround(size: Vec, center: Vec, scale: number, width: number, height: number): void {
  const [left, top] = [center.x - width / 2 / scale, center.y - height / 2 / scale];
  context.fillStyle = colors["ground"]!;
  context.fillRect(-left * scale, -top * scale, size.x * scale, size.y * scale);
  context.fillStyle = colors["trod"]!;
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
  context.strokeStyle = colors["edge"]!;
  context.lineWidth = 2;
  context.strokeRect(-left * scale, -top * scale, size.x * scale, size.y * scale);
}

function drawWalls(on: TileGround, left: number, top: number, scale: number, width: number, height: number): void {
  // Whole pixels, so that there are no gaps between rows.
  const acrossX = (x: number) => Math.round((x * on.tileM - left) * scale);
  const acrossY = (y: number) => Math.round((y * on.tileM - top) * scale);
  context.fillStyle = colors["wall"]!;
  for (let y = Math.max(Math.floor(top / on.tileM), 0); y < on.height && acrossY(y) < height; y += 1) {
    // Adjacent walls of a row are one rectangle.
    let from: number | null = null;
    const end = Math.min(on.width, Math.ceil((left + width / scale) / on.tileM));
    for (let x = Math.max(Math.floor(left / on.tileM), 0); x <= end; x += 1) {
      const isWall = x < end && on.isBlocked(x, y);
      if (isWall) {
        from ??= x;
      } else if (from !== null) {
        context.fillRect(acrossX(from), acrossY(y), acrossX(x) - acrossX(from), acrossY(y + 1) - acrossY(y));
        from = null;
      }
    }
  }
}

function draw(): void {
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
  const onPage = (at: Vec) => ({ x: width / 2 + (at.x - own.x) * scale, y: height / 2 + (at.y - own.y) * scale });
  for (const [id, object] of mirror.objects) {
    const at = session.position(id, time);
    if (at === null) {
      continue;
    }
    visited.mark(at);
    if (mirror.own?.id !== id) {
      dot(onPage(at), radius, object.motion.heading, colors[object.kind === PLAYER_KIND ? "player" : "other"]!);
    }
  }
  dot({ x: width / 2, y: height / 2 }, radius * 1.25, heading, colors["own"]!);
  drawGhosts(mirror.scene, radius, onPage, width, height);
}

/** Draws the scene in the corner. */
function drawMinimap(): void {
  const time = nowS();
  const own = session?.ownPosition(time) ?? null;
  byId("minimap").hidden = own === null;
  if (session === null || own === null) {
    return;
  }
  const { mirror } = session;
  const dots = [...mirror.objects].flatMap(([id, object]) => {
    const at = mirror.own?.id === id ? null : session!.position(id, time);
    return at === null ? [] : [{ at, color: colors[object.kind === PLAYER_KIND ? "player" : "other"]! }];
  });
  const scale = Math.min(canvas.clientWidth, canvas.clientHeight) / SHOWN_M;
  const half = { x: canvas.clientWidth / 2 / scale, y: canvas.clientHeight / 2 / scale };
  minimap.draw(mirror.size, walls, dots, own, half, colors);
}

function showFigures(): void {
  const trip = session?.lastRoundTripS ?? null;
  const own = session?.ownPosition(nowS()) ?? null;
  byId("sight").textContent = own === null ? "–" : `${session!.mirror.objects.size - 1}`;
  byId("trip").textContent = trip === null ? "–" : `${Math.round(trip * 1000)} ms`;
  byId("place").textContent = own === null ? "–" : `${own.x.toFixed(0)}, ${own.y.toFixed(0)} m`;
  byId("corrected").textContent = `${corrections}`;
  showOwn();
}

function frame(): void {
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
const point = (event: PointerEvent) => {
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
const showsGhosts = byId<HTMLInputElement>("ghosts");
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
// A hidden page draws nothing, but keeps its connection alive.
setInterval(() => document.hidden && line?.update(), 250);
// For the browser console, and for tests.
Object.defineProperty(globalThis, "throng", { get: () => ({ session, line, walls, ghosts, player }) });
void names.load();
void join(null);
frame();
