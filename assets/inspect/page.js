// The page: shows the data of the server, and tells the server which data it needs.
// @ts-check
import { $, bars, make, setPressed, refillWithMore, whole } from "./dom.js";
import { CrowdMap } from "./map.js";
import { showMatches, showWaits } from "./matches.js";
import { Operator, pageToken } from "./operator.js";
import { PickedPanel } from "./picked.js";
import { SearchBox } from "./search.js";
import { SessionList } from "./sessions.js";
import { TickChart, msText, tickMs } from "./ticks.js";

/** @typedef {{id: number, name: string, size_m: [number, number], cell_m: number, tile_m: number | null, objects: number}} Scene */

const map = new CrowdMap($("crowd"), $("over"));
const ticks = new TickChart($("ticks"), $("tip"), $("sets"));
const panel = new PickedPanel(map, (id, other = null) => pick(id, other));
const search = new SearchBox((text) => send({ find: text }), (found) => jumpTo(found), (scene) => sceneName(scene));
const operator = new Operator();
const sessions = new SessionList(() => sendView(), (scene, object) => jump(scene, object), () => ticks.limit / 1000, operator, (text, isBad) => showNotice(text, isBad));
/** The number of slow ticks that the list shows at first. */
const SLOW_FEW = 4;
/** @type {Scene[]} */
let scenes = [];
/** The newest state. @type {any} */
let last = null;
/** The first state of the connection, from which the mean cost of inspection is computed. @type {any} */
let costStart = null;
/** @type {any[]} */
let slow = [];
/** The number of slow ticks so far. */
let slowCount = 0;
/** @type {WebSocket | null} */
let socket = null;
/** Delay before the next attempt to connect, in milliseconds. */
let reconnectMs = 500;
/** The number of received frames of dots. The body's data attributes have it for tests, with the number of dots and the view. */
let frames = 0;
/** The address of the page for playing, the page if it was opened, and until when it receives the frames of dots. @type {{origin: string, page: Window | null, untilMs: number}} */
const walk = { origin: "", page: null, untilMs: 0 };
/** The effect of the next drag or click on the map: "block", "free", "place" or "why". If empty, it moves the map or selects an object. */
let tool = "";
/** The timer that hides the notice. */
let noticeTimer = 0;

/** Shows the state of the connection. @param {string} text @param {string} state the CSS class: "on" or "off" */
function showConnection(text, state) {
  $("line").textContent = text;
  $("line").className = state;
}

function connect() {
  const token = pageToken();
  const query = token ? `?token=${encodeURIComponent(token)}` : "";
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  let opened = false;
  socket = new WebSocket(`${scheme}://${location.host}/live${query}`);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    opened = true;
    reconnectMs = 500;
    showConnection("live", "on");
    sendView();
  };
  socket.onmessage = ({ data }) => (typeof data === "string" ? receiveMessage(JSON.parse(data)) : receiveFrame(new DataView(data)));
  socket.onclose = () => {
    socket = null;
    showConnection(opened ? "connection lost" : "access denied: token missing or invalid, or too many pages open", "off");
    setTimeout(connect, reconnectMs);
    reconnectMs = Math.min(reconnectMs * 2, 8000);
  };
}

/** @param {object} message */
function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

/** Tells the server which data the page shows. */
function sendView() {
  const scene = map.scene < 0 ? null : map.scene;
  const heat = ["links", "nodes"].includes(map.heat) ? map.heat : null;
  send({ scene, selected: map.picked, other: map.other, wait_reasons: $("waits").open, matches: $("match-list").open, sessions: sessions.query, heat });
}

/** Requests a cue. With the operator's token, the server's audit log contains the operator's name. @param {string} text */
function requestCue(text) {
  send(operator.isAllowed ? { action: text, operator: operator.token } : { action: text });
}

/** Enables kicks and bans if the page was opened with a valid operator token. */
async function enableOperator() {
  if (!operator.token) return;
  const refusal = await operator.check();
  if (refusal) showNotice(`Operator token refused: ${refusal}`, true);
  else sessions.showOperator();
}

/** Requests another pace. @param {string | {speed: number}} pace */
function requestPace(pace) {
  if (!$("pace").hidden) send({ pace });
}

/** @param {{is_paused: boolean, speed_percent: number} | null} pace */
function showPace(pace) {
  $("pace").hidden = pace === null;
  if (!pace) return;
  $("go").textContent = pace.is_paused ? "Resume" : "Pause";
  $("go").dataset.pace = pace.is_paused ? "resume" : "pause";
  $("speed").value = String(pace.speed_percent);
}

/** The shown scene. */
function currentScene() {
  return scenes.find(({ id }) => id === map.scene);
}

/** @param {number} scene */
function sceneName(scene) {
  return scenes.find(({ id }) => id === scene)?.name || `scene ${scene}`;
}

/** Sets the title of the tab: the scene and the server. */
function showTitle() {
  const name = map.scene < 0 ? "" : `${sceneName(map.scene)} · `;
  document.title = `${name}${location.host} · throng`;
}

/** Selects an object of any scene. With the tool "why", requests the reason for this object instead, if it is in the shown scene.
 * @param {number} scene @param {number} object */
function jump(scene, object) {
  if (tool === "why" && scene === map.scene && map.picked !== null && map.picked !== object) {
    setTool("");
    return pick(map.picked, object);
  }
  if (scene !== map.scene) {
    pick(null);
    enter(scene);
  }
  pick(object);
  map.follows = true;
  if (map.zoom < 4) map.zoom = 4;
  map.isFitted = false;
  panel.show();
  $("picked").scrollIntoView({ block: "nearest" });
}

/** Selects the object of a search result; without an object, opens the list of sessions. @param {import("./search.js").Found} found */
function jumpTo(found) {
  if (found.scene !== undefined && found.object !== undefined) return jump(found.scene, found.object);
  const who = found.player ? `player ${found.player}, session ${found.client}` : `session ${found.client}`;
  showNotice(`${who}: it has no object. The list of sessions shows its state.`, false);
  sessions.details.open = true;
  sessions.details.scrollIntoView({ block: "nearest" });
}

/** Selects a tool for the map; the same tool twice, or an empty name, selects none. @param {string} chosen */
function setTool(chosen) {
  tool = chosen === tool ? "" : chosen;
  map.box = null;
  setPressed("block", tool === "block");
  setPressed("free", tool === "free");
  setPressed("ask-why", tool === "why");
  $("over").classList.toggle("aims", tool !== "");
  if (tool === "place") showNotice("Click a position on the map.", false);
  else if (tool === "why") showNotice(`Click an object, or find it, to ask why ${panel.named(map.picked ?? 0)} sees it or not. Esc cancels.`, false);
  else if (tool) showNotice("Drag a rectangle on the map. Esc cancels.", false);
  else $("said").hidden = true;
}

/** Shows a notice for 9 s. @param {string} text @param {boolean} bad */
function showNotice(text, bad) {
  $("said").textContent = text;
  $("said").className = bad ? "bad" : "";
  $("said").hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => { $("said").hidden = true; }, 9000);
}

/** Runs the entered cue. If it contains "{at}", waits for a click that selects the position. @param {[number, number] | null} at */
function runCue(at) {
  const text = $("cue-text").value.trim();
  if (text.includes("{at}") && !at) {
    tool = "";
    setTool("place");
  } else if (text) {
    const where = at ? at.map((metres) => metres.toFixed(1)).join(", ") : "";
    requestCue(text.replaceAll("{at}", where).replaceAll("{scene}", JSON.stringify(currentScene()?.name || "")));
    setTool("");
  }
}

/** Blocks or frees the tiles of the drawn rectangle. */
function editTiles() {
  const scene = currentScene();
  const box = map.box;
  const verb = tool === "block" ? "Block" : "Free";
  map.box = null;
  if (!scene?.tile_m || !box) return;
  const tile = scene.tile_m;
  const [left, top, right, bottom] = [0, 1, 2, 3].map((side) => {
    const axis = side % 2;
    const most = Math.round(scene.size_m[axis] / tile);
    const ends = [box[0][axis], box[1][axis]].map((metres) => Math.min(most, Math.max(0, metres / tile)));
    return side < 2 ? Math.floor(Math.min(...ends)) : Math.ceil(Math.max(...ends));
  });
  if (right > left && bottom > top) requestCue(`${verb}(scene: ${JSON.stringify(scene.name)}, rect_tiles: (${left}, ${top}, ${right - left}, ${bottom - top}))`);
}

/** @param {{name: string, text: string}[] | null} proposals */
function showCues(proposals) {
  $("cue").hidden = $("cues-open").hidden = proposals === null;
  const first = make("option", { value: "" }, "Cues…");
  $("proposals").replaceChildren(first, ...(proposals || []).map(({ name, text }) => make("option", { value: text }, name)));
}

/** Handles a binary frame: see `crates/throng_inspect/src/frames.rs`. @param {DataView} bytes */
function receiveFrame(bytes) {
  const [type, scene] = [bytes.getUint32(0, true), bytes.getUint32(4, true)];
  if (map.scene < 0) enter(scene);
  if (scene !== map.scene) return;
  if (type === 1) {
    map.setDots(bytes);
    if (walk.page && performance.now() < walk.untilMs) walk.page.postMessage(bytes.buffer, walk.origin);
    frames += 1;
    if (frames % 5 === 1) legend();
    document.body.dataset.dots = String(map.count);
    document.body.dataset.frames = String(frames);
  } else if (type === 2) map.setMap(bytes);
  else if (type === 3) {
    map.setCells(bytes);
    legend();
  }
}

/** @param {number} scene */
function enter(scene) {
  const found = scenes.find(({ id }) => id === scene);
  map.open(scene, found?.cell_m || 50);
  $("scene").value = String(scene);
  showTitle();
}

/** @param {any} message */
function receiveMessage(message) {
  if (message.type === "hello") {
    ticks.sets = message.sets;
    ticks.limit = message.tick_ms;
    ticks.ticks = [];
    closeTick();
    ticks.add(message.ticks);
    map.kindNames = message.kinds;
    [last, costStart] = [null, null];
    slow = message.slow;
    showScenes(message.scenes);
    slowCount = slow.length;
    showSlow();
    showCues(message.actions);
    showPace(message.pace);
    const client = message.browser_client;
    walk.origin = client ? (client.origin ?? `${client.tls ? "https:" : "http:"}//${location.hostname}:${client.port}`) : "";
    $("walk").hidden = !walk.origin;
    $("cost").dataset.version = message.version;
  } else if (message.type === "state") {
    ticks.add(message.ticks);
    slow.push(...message.slow);
    slow.splice(0, slow.length - 64);
    showScenes(message.scenes);
    showState(message);
    slowCount = message.slow_count;
    if (message.slow.length || last === null) showSlow();
    last = message;
    costStart ??= message;
    showChartView();
    $("at-tick").textContent = `tick ${whole.format(message.tick)}`;
  } else if (message.type === "pace") {
    showPace(message.pace);
  } else if (message.type === "selected" && message.id === map.picked && message.scene === map.scene) {
    panel.info = message;
    map.path = message.path || [];
    map.sees = (message.sees || []).map((/** @type {number[]} */ [id]) => id);
    panel.show();
  } else if (message.type === "wait_reasons") showWaits(message.parties);
  else if (message.type === "matches") showMatches(message, (scene) => { pick(null); enter(scene); sendView(); }, jump);
  else if (message.type === "sessions") sessions.show(message, last?.tick ?? 0);
  else if (message.type === "found") search.set(message.text, message.results);
  else if (message.type === "action") {
    const text = message.text.length > 90 ? `${message.text.slice(0, 90)}…` : message.text;
    showNotice(message.error === null ? `Tick ${whole.format(message.tick)}: ${text}` : `${text}: ${message.error}`, message.error !== null);
  }
}

/** @param {Scene[]} now */
function showScenes(now) {
  const key = (/** @type {Scene[]} */ list) => list.map(({ id, name }) => `${id} ${name}`).join("\n");
  if (key(now) !== key(scenes)) {
    const chosen = $("scene").value;
    $("scene").replaceChildren(...now.map(({ id, name }) => make("option", { value: String(id) }, name || `scene ${id}`)));
    if (now.some(({ id }) => String(id) === chosen)) $("scene").value = chosen;
  }
  scenes = now;
  showTitle();
  const shown = currentScene();
  if (shown) map.cell = shown.cell_m || 50;
  else if (map.scene >= 0 && scenes.length) {
    pick(null);
    enter(scenes[0].id);
    sendView();
  }
}

/** @param {any} message */
function showState(message) {
  const { mean, p99, span } = ticks.figures();
  /** Name, value, whether it is bad, and a longer explanation. @type {[string, string, boolean, string][]} */
  const now = [
    ["tick", `${mean.toFixed(1)} ms`, mean > ticks.limit, `mean of the last second; the limit is ${ticks.limit} ms`],
    [`p99 of ${span}`, `${p99.toFixed(1)} ms`, p99 > ticks.limit, `99 of 100 ticks of the last ${span} took no longer`],
    ["players", whole.format(message.objects.players), false, "objects of players, in all scenes"],
    ["NPCs", whole.format(message.objects.npcs), false, "in all scenes"],
  ];
  if (message.overload?.level) now.push(["overload", message.overload.name.replaceAll("_", " "), true, "how the server reduces its load"]);
  if (message.draining) now.push(["", "draining", true, "the server admits no new players"]);
  $("now").replaceChildren(...now.map(([name, value, bad, title]) => make("div", { title }, make("dt", {}, name), make("dd", { className: bad ? "bad" : "" }, value))));
  const states = (message.sessions || []).filter((/** @type {[string, number]} */ [, count]) => count > 0);
  const open = states.reduce((/** @type {number} */ sum, /** @type {[string, number]} */ [, count]) => sum + count, 0);
  $("session-count").textContent = message.sessions ? `${whole.format(open)} open` : "";
  bars($("sessions"), states.map((/** @type {[string, number]} */ [name, count]) => [name.replaceAll("_", " "), count, whole.format(count)]));
  const { resets = 0, versions_refused: versions = 0 } = message.net ?? {};
  $("net-refused").textContent = resets || versions ? `${whole.format(resets)} connection resets sent, ${whole.format(versions)} clients of other versions refused` : "";
  bars($("queues"), message.queues.map((/** @type {[string, number]} */ [name, count]) => [name, count, whole.format(count)]));
  $("modes-section").hidden = message.modes.length === 0 && !message.has_parties;
  bars($("modes"), message.modes.map((/** @type {[string, number, number]} */ [name, waiting, made]) => [name, waiting, `${whole.format(waiting)} waiting, ${whole.format(made)} ${made === 1 ? "match" : "matches"}`]));
  showMemory(message.memory, message.rss);
  if (last && message.bytes && last.bytes) {
    const seconds = Math.max(0.05, (message.tick - last.tick) * ticks.limit / 1000);
    bars($("bytes"), message.bytes.map((/** @type {[string, number]} */ [name, total], /** @type {number} */ nth) => {
      const rate = (total - last.bytes[nth][1]) / seconds / 1000;
      return [name, rate, `${rate >= 100 ? whole.format(Math.round(rate)) : rate.toFixed(1)} kB/s`];
    }));
    const spent = (message.spent_ns - costStart.spent_ns) / 1e6 / Math.max(1, message.tick - costStart.tick);
    const share = mean > 0 ? ` (${(spent / mean * 100).toFixed(1)} % of the tick)` : "";
    $("cost").textContent = `throng ${$("cost").dataset.version} · inspection costs ${spent.toFixed(3)} ms per tick${share}, ${message.pages} ${message.pages === 1 ? "page" : "pages"} open`;
  }
}

/** Shows the memory of modules, largest first, and of the rest of the process. The rows add up to the total. @param {[string, number][]} modules @param {number | null} total */
function showMemory(modules, total) {
  const sorted = [...modules].sort(([, a], [, b]) => b - a);
  const shown = sorted.filter(([, bytes]) => bytes > 50_000).slice(0, 9);
  const small = sorted.slice(shown.length);
  const sum = sorted.reduce((all, [, bytes]) => all + bytes, 0);
  /** @type {[string, number][]} */
  const rows = shown.map(([name, bytes]) => [name.replaceAll("_", " "), bytes]);
  if (small.length) rows.push([`${small.length} smaller modules`, small.reduce((all, [, bytes]) => all + bytes, 0)]);
  if (total && total > sum) rows.push(["other (program, threads)", total - sum]);
  bars($("memory"), rows.map(([name, bytes]) => [name, bytes, `${(bytes / 1e6).toFixed(1)} MB`]));
  $("rss").textContent = total ? `${(total / 1e6).toFixed(1)} MB of RAM in total` : "";
}

/** Names of the work in a tick, singular and plural. */
const WORK_NAMES = { messages: ["message", "messages"], logins: ["login", "logins"], paths: ["path", "paths"], nodes: ["node searched", "nodes searched"], links: ["view link changed", "view links changed"], snapshots: ["snapshot sent", "snapshots sent"], bytes: ["byte sent", "bytes sent"] };

/** Describes the work of a slow tick. @param {Record<string, number>} deeds */
function workText(deeds) {
  return Object.entries(WORK_NAMES).filter(([key]) => deeds[key] > 0).map(([key, [one, many]]) => `${whole.format(deeds[key])} ${deeds[key] === 1 ? one : many}`).join(", ");
}

function showSlow() {
  $("slow-count").textContent = slowCount ? `${whole.format(slowCount)} over ${ticks.limit} ms` : "";
  if (!slow.length) {
    $("slow").replaceChildren(make("li", { className: "none" }, "None so far."));
    return;
  }
  const rows = [...slow].reverse().map(({ tick, deeds }) => {
    const total = tickMs(tick);
    const longest = tick[1].map((/** @type {number} */ us, /** @type {number} */ nth) => ({ ms: us / 1000, name: ticks.sets[nth] }));
    longest.sort((/** @type {any} */ a, /** @type {any} */ b) => b.ms - a.ms);
    const ran = longest.slice(0, 3).filter((/** @type {any} */ { ms }) => ms > total / 20).map((/** @type {any} */ { ms, name }) => `${name} ${ms.toFixed(1)} ms`).join(", ");
    const button = make("button", { type: "button", className: "slow", title: "Show its steps", onclick: () => openTick(tick) },
      make("span", { className: "ms" }, `${total.toFixed(1)} ms`), make("span", {}, ran), make("span", { className: "no" }, `tick ${whole.format(tick[0])}`), make("span", { className: "did" }, workText(deeds)));
    button.dataset.key = `slow ${tick[0]}`;
    if (tick[0] === ticks.marked) button.setAttribute("aria-pressed", "true");
    return make("li", {}, button);
  });
  refillWithMore($("slow"), rows, SLOW_FEW, slowCount, showSlow);
}

/** Shows the steps of a tick, and marks it in the chart. @param {import("./ticks.js").Tick} tick */
function openTick(tick) {
  ticks.mark(tick[0]);
  const deeds = slow.find((one) => one.tick[0] === tick[0])?.deeds;
  $("tick-name").textContent = `Tick ${whole.format(tick[0])}: ${msText(tickMs(tick))}`;
  $("tick-did").textContent = deeds ? workText(deeds) : `within the limit of ${ticks.limit} ms`;
  $("tick-steps").replaceChildren(...ticks.steps(tick));
  $("tick-detail").hidden = false;
  // Scrolls to the chart above the details, because it shows the marked tick.
  const [part, end] = [$("tick-section").getBoundingClientRect(), $("tick-detail").getBoundingClientRect().bottom];
  if (part.top < 0 || end > innerHeight) $("tick-section").scrollIntoView({ block: "start" });
  showSlow();
}

function closeTick() {
  $("tick-detail").hidden = true;
  ticks.mark(null);
  showSlow();
}

/** Shows the description of the chart, and updates its buttons. */
function showChartView() {
  $("tick-span").textContent = ticks.describe();
  setPressed("log", ticks.isLog);
  $("ticks-now").hidden = ticks.end === null && ticks.shown === 1200;
}

function legend() {
  const counts = new Map();
  for (let nth = 0; nth < map.count; nth += 1) {
    const key = map.byTeam ? map.teams[nth] : map.kinds[nth];
    const found = counts.get(key);
    if (found) found.count += 1;
    else counts.set(key, { count: 1, colour: map.colourOf(nth) });
  }
  const rows = [...counts].sort(([a], [b]) => a - b).slice(0, 10).map(([key, { count, colour }]) => {
    const dot = make("span", { className: "dot" });
    dot.style.background = `var(--c${colour})`;
    const name = map.byTeam ? (key === 0 ? "no team" : `team ${key - 1}`) : map.kindNames[key]?.name || `kind ${key}`;
    return make("li", {}, dot, `${name} ${whole.format(count)}`);
  });
  if (map.cells) {
    const what = { crowd: "objects", links: "view links", nodes: "nodes searched in the last seconds" }[map.heat];
    const text = map.cells.maximum ? `1 to ${whole.format(map.cells.maximum)} ${what} a cell` : `no ${what}`;
    rows.push(make("li", {}, make("span", { className: "ramp" }), text));
  }
  $("legend").replaceChildren(...rows);
  $("legend").hidden = rows.length === 0;
}

/** Selects an object, or none. @param {number | null} id @param {number | null} [other] the object for which the reason is requested */
function pick(id, other = null) {
  if (id !== map.picked) {
    if (tool === "why") setTool("");
    panel.reset();
    map.path = [];
    map.sees = [];
    map.follows = false;
  }
  map.picked = id;
  map.other = id === null ? null : other;
  $("picked").hidden = id === null;
  sendView();
  panel.show();
}

/** Selects and follows the next object by id, or the one before. @param {number} by */
function step(by) {
  if (!map.count) return;
  const ids = [...map.ids].sort((a, b) => a - b);
  const at = map.picked === null ? -1 : ids.indexOf(map.picked);
  const next = ids[(at + by + ids.length) % ids.length];
  pick(next);
  map.follows = true;
  if (map.zoom < 4) map.zoom = 4;
  map.isFitted = false;
  panel.show();
}

const commands = {
  why: () => { if (map.picked !== null) setTool("why"); },
  search: () => search.focus(),
  cues: () => { const isOpen = $("cue").classList.toggle("open"); $("cues-open").setAttribute("aria-expanded", String(isOpen)); },
  fit: () => { map.follows = false; map.fit(); },
  teams: () => { map.byTeam = !map.byTeam; setPressed("teams", map.byTeam); map.recolour(); legend(); },
  heat: () => {
    const chosen = $("heat").value;
    $("heat").className = chosen ? "on" : "";
    map.setHeat(chosen);
    legend();
    sendView();
  },
  follow: () => { map.follows = !map.follows && map.picked !== null; if (map.follows) map.isFitted = false; panel.show(); },
  go: () => requestPace($("go").dataset.pace),
  tick: () => requestPace("step"),
  walk: () => { if (walk.origin) walk.page = open(`${walk.origin}/`, "throng-walk"); },
  drop: () => (tool ? setTool("") : pick(null)),
  block: () => { if (!$("cue").hidden) setTool("block"); },
  free: () => { if (!$("cue").hidden) setTool("free"); },
  zoom: (/** @type {number} */ by) => { const box = $("over").getBoundingClientRect(); map.zoomBy(by, box.width / 2, box.height / 2); },
};

function listen() {
  const over = /** @type {HTMLCanvasElement} */ ($("over"));
  /** @type {Map<number, [number, number]>} */
  const fingers = new Map();
  let dragged = 0;
  over.addEventListener("pointerdown", (event) => {
    over.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    dragged = fingers.size > 1 ? 99 : 0;
    if (tool === "block" || tool === "free") {
      const at = map.toMetres(event.offsetX, event.offsetY);
      map.box = fingers.size > 1 ? null : [at, at];
    }
    over.classList.add("moving");
  });
  over.addEventListener("pointermove", (event) => {
    const from = fingers.get(event.pointerId);
    if (!from) return;
    const to = /** @type {[number, number]} */ ([event.offsetX, event.offsetY]);
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, to);
    if (other) {
      const [was, is] = [from, to].map(([x, y]) => Math.hypot(x - other[0], y - other[1]));
      map.zoomBy(is / Math.max(1, was), (to[0] + other[0]) / 2, (to[1] + other[1]) / 2);
      return;
    }
    if (map.box) {
      map.box = [map.box[0], map.toMetres(...to)];
      return;
    }
    dragged += Math.abs(to[0] - from[0]) + Math.abs(to[1] - from[1]);
    if (dragged > 4) map.move(to[0] - from[0], to[1] - from[1]);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    fingers.delete(event.pointerId);
    over.classList.toggle("moving", fingers.size > 0);
    if (map.box) {
      if (event.type === "pointerup") editTiles();
      map.box = null;
      return;
    }
    if (event.type !== "pointerup" || dragged > 4 || fingers.size) return;
    if (tool === "place") {
      runCue(map.toMetres(event.offsetX, event.offsetY));
      return;
    }
    const found = map.nearest(event.offsetX, event.offsetY);
    if (tool === "why" && map.picked !== null) {
      if (found === null || found === map.picked) return;
      setTool("");
      pick(map.picked, found);
      return;
    }
    if (event.shiftKey && map.picked !== null) pick(map.picked, found === map.picked ? null : found);
    else pick(found);
  };
  over.addEventListener("pointerup", up);
  over.addEventListener("pointercancel", up);
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    map.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
  }, { passive: false });
  $("scene").onchange = () => { pick(null); enter(Number($("scene").value)); sendView(); };
  $("fit").onclick = commands.fit;
  $("zoom-in").onclick = () => commands.zoom(1.5);
  $("zoom-out").onclick = () => commands.zoom(1 / 1.5);
  $("teams").onclick = commands.teams;
  $("heat").onchange = commands.heat;
  $("waits").ontoggle = $("match-list").ontoggle = sendView;
  $("ask-why").onclick = commands.why;
  $("cues-open").onclick = commands.cues;
  listenToChart();
  $("block").onclick = commands.block;
  $("free").onclick = commands.free;
  $("proposals").onchange = () => {
    $("cue-text").value = $("proposals").value;
    if ($("proposals").value.includes("{at}")) runCue(null);
  };
  $("cue").onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    runCue(null);
  };
  $("go").onclick = commands.go;
  $("tick").onclick = commands.tick;
  $("speed").onchange = () => requestPace({ speed: Number($("speed").value) });
  $("follow").onclick = commands.follow;
  $("drop").onclick = commands.drop;
  $("walk").onclick = commands.walk;
  // The page for playing requests server positions every second while it shows them.
  addEventListener("message", ({ source, origin, data }) => {
    if (source === walk.page && origin === walk.origin && data === "ghosts") walk.untilMs = performance.now() + 3000;
  });
  $("help-open").onclick = () => $("help").showModal();
  /** @type {Record<string, () => void>} */
  const keys = {
    "0": commands.fit, "/": commands.search, w: commands.why, f: commands.follow, t: commands.teams, h: () => { $("heat").selectedIndex = ($("heat").selectedIndex + 1) % $("heat").options.length; commands.heat(); }, Escape: commands.drop, "?": () => $("help").showModal(), b: commands.block, n: commands.free, j: commands.walk, p: commands.go, ".": commands.tick,
    "+": () => commands.zoom(1.5), "=": () => commands.zoom(1.5), "-": () => commands.zoom(1 / 1.5), "]": () => step(1), "[": () => step(-1),
  };
  const arrows = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const arrow = arrows[/** @type {keyof typeof arrows} */ (event.key)];
    if (arrow && document.activeElement === over) {
      map.move(arrow[0], arrow[1]);
      event.preventDefault();
    } else if (keys[event.key]) {
      keys[event.key]();
      if (event.key === "/") event.preventDefault();
    }
  });
}

function listenToChart() {
  ticks.onview = showChartView;
  ticks.onpick = openTick;
  $("log").onclick = () => ticks.setLog(!ticks.isLog);
  $("ticks-in").onclick = () => ticks.zoom(0.5);
  $("ticks-out").onclick = () => ticks.zoom(2);
  $("ticks-earlier").onclick = () => ticks.pan(-Math.round(ticks.shown / 2));
  $("ticks-later").onclick = () => ticks.pan(Math.round(ticks.shown / 2));
  $("ticks-now").onclick = () => ticks.follow();
  $("tick-close").onclick = closeTick;
  $("csv").onclick = (/** @type {Event} */ event) => {
    const url = URL.createObjectURL(new Blob([ticks.csv()], { type: "text/csv" }));
    $("csv").href = url;
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    event.stopPropagation();
  };
}

/** Shows the scale: the shortest round length with at least 56 pixels. */
function showScale() {
  const metres = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000].find((length) => length * map.zoom >= 56) || 5000;
  const scale = $("scale");
  const text = `${metres} m`;
  if (scale.dataset.text !== text) {
    scale.dataset.text = text;
    scale.replaceChildren(make("span"), text);
  }
  scale.firstChild.style.width = `${metres * map.zoom}px`;
}

/** @param {number} time */
function frame(time) {
  map.draw(time);
  showScale();
  const view = `${map.centre[0].toFixed(3)} ${map.centre[1].toFixed(3)} ${map.zoom.toFixed(5)}`;
  if (document.body.dataset.view !== view) document.body.dataset.view = view;
  requestAnimationFrame(frame);
}

listen();
connect();
enableOperator();
requestAnimationFrame(frame);
