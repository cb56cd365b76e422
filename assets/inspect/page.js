// The page: what the server tells is shown, and what is looked at is asked for.
// @ts-check
import { CrowdMap } from "./map.js";
import { TickChart } from "./ticks.js";

/** @typedef {{id: number, name: string, size_m: [number, number], cell_m: number, tile_m: number | null, objects: number}} Scene */

/** @param {string} id @returns {any} */
const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const map = new CrowdMap($("crowd"), $("over"));
const ticks = new TickChart($("ticks"), $("tip"), $("sets"));
/** @type {Scene[]} */
let scenes = [];
/** @type {any} */
let last = null;
/** @type {any} what the cost is reckoned from */
let first = null;
/** @type {any} */
let info = null;
/** @type {any[]} */
let slow = [];
/** @type {WebSocket | null} */
let socket = null;
let pause = 500;
/** Frames of dots that came; with the count and the view on the page, what a test looks at. */
let frames = 0;
/** Where a browser walks in, the page that does, and until when it is told where everybody is. @type {{origin: string, page: Window | null, untilMs: number}} */
const walk = { origin: "", page: null, untilMs: 0 };
/** What the next drag or click on the map is for: "block", "free", "place", or to move and to pick. */
let tool = "";
let silence = 0;

/** @param {string} tag @param {Record<string, any>} [with_] @param {...(Node | string)} children */
function make(tag, with_ = {}, ...children) {
  const made = Object.assign(document.createElement(tag), with_);
  made.append(...children);
  return made;
}

/** @param {string} word @param {string} state */
function say(word, state) {
  $("line").textContent = word;
  $("line").className = state;
}

function connect() {
  const token = decodeURIComponent(location.hash.slice(1));
  const query = token ? `?token=${encodeURIComponent(token)}` : "";
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  let opened = false;
  socket = new WebSocket(`${scheme}://${location.host}/live${query}`);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    opened = true;
    pause = 500;
    say("live", "on");
    look();
  };
  socket.onmessage = ({ data }) => (typeof data === "string" ? hear(JSON.parse(data)) : see(new DataView(data)));
  socket.onclose = () => {
    socket = null;
    say(opened ? "connection lost" : "access denied: token missing or invalid, or too many pages open", "off");
    setTimeout(connect, pause);
    pause = Math.min(pause * 2, 8000);
  };
}

/** Says what is to be shown. */
function look() {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const scene = map.scene < 0 ? null : map.scene;
  const heat = ["links", "nodes"].includes(map.heat) ? map.heat : null;
  socket.send(JSON.stringify({ scene, selected: map.picked, other: map.other, wait_reasons: $("waits").open, heat }));
}

/** Asks for a cue. @param {string} text */
function ask(text) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ action: text }));
}

/** Asks for another pace. @param {string | {speed: number}} pace */
function wishPace(pace) {
  if (socket?.readyState === WebSocket.OPEN && !$("pace").hidden) socket.send(JSON.stringify({ pace }));
}

/** @param {{is_paused: boolean, speed_percent: number} | null} pace */
function showPace(pace) {
  $("pace").hidden = pace === null;
  if (!pace) return;
  $("go").textContent = pace.is_paused ? "Resume" : "Pause";
  $("go").dataset.wish = pace.is_paused ? "resume" : "pause";
  $("speed").value = String(pace.speed_percent);
}

/** The scene that is shown. */
function here() {
  return scenes.find(({ id }) => id === map.scene);
}

/** @param {string} chosen */
function aim(chosen) {
  tool = chosen === tool ? "" : chosen;
  map.box = null;
  press("block", tool === "block");
  press("free", tool === "free");
  $("over").classList.toggle("aims", tool !== "");
  if (tool === "place") tell("Click where.", false);
  else if (tool) tell("Drag a rectangle on the map. Esc lets go.", false);
  else $("said").hidden = true;
}

/** @param {string} words @param {boolean} bad */
function tell(words, bad) {
  $("said").textContent = words;
  $("said").className = bad ? "bad" : "";
  $("said").hidden = false;
  clearTimeout(silence);
  silence = setTimeout(() => { $("said").hidden = true; }, 9000);
}

/** Runs what is written, or waits for the click that says where. @param {[number, number] | null} at */
function runCue(at) {
  const text = $("cue-text").value.trim();
  if (text.includes("{at}") && !at) {
    tool = "";
    aim("place");
  } else if (text) {
    const where = at ? at.map((metres) => metres.toFixed(1)).join(", ") : "";
    ask(text.replaceAll("{at}", where).replaceAll("{scene}", JSON.stringify(here()?.name || "")));
    aim("");
  }
}

/** Edits the tiles of the rectangle that was drawn. */
function editTiles() {
  const scene = here();
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
  if (right > left && bottom > top) ask(`${verb}(scene: ${JSON.stringify(scene.name)}, rect_tiles: (${left}, ${top}, ${right - left}, ${bottom - top}))`);
}

/** @param {{name: string, text: string}[] | null} proposals */
function showCues(proposals) {
  $("cue").hidden = proposals === null;
  const first = make("option", { value: "" }, "Cues…");
  $("proposals").replaceChildren(first, ...(proposals || []).map(({ name, text }) => make("option", { value: text }, name)));
}

/** @param {DataView} bytes */
function see(bytes) {
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
}

/** @param {any} told */
function hear(told) {
  if (told.type === "hello") {
    ticks.sets = told.sets;
    ticks.limit = told.tick_ms;
    $("tick-span").textContent = ticks.span(1);
    ticks.ticks = [];
    ticks.add(told.ticks);
    map.kindNames = told.kinds;
    [last, first] = [null, null];
    slow = told.slow;
    showScenes(told.scenes);
    showSlow(slow.length);
    showCues(told.actions);
    showPace(told.pace);
    walk.origin = told.walk_port ? `${location.protocol}//${location.hostname}:${told.walk_port}` : "";
    $("walk").hidden = !walk.origin;
    $("cost").dataset.version = told.version;
  } else if (told.type === "state") {
    ticks.add(told.ticks);
    slow.push(...told.slow);
    slow.splice(0, slow.length - 40);
    showScenes(told.scenes);
    showState(told);
    if (told.slow.length || last === null) showSlow(told.slow_count);
    last = told;
    first ??= told;
    $("at-tick").textContent = `tick ${whole.format(told.tick)}`;
  } else if (told.type === "pace") {
    showPace(told.pace);
  } else if (told.type === "selected" && told.id === map.picked && told.scene === map.scene) {
    info = told;
    map.path = told.path || [];
    map.sees = (told.sees || []).map((/** @type {number[]} */ [id]) => id);
    showPicked();
  } else if (told.type === "wait_reasons") showWaits(told.parties);
  else if (told.type === "action") {
    const text = told.text.length > 90 ? `${told.text.slice(0, 90)}…` : told.text;
    tell(told.error === null ? `Tick ${whole.format(told.tick)}: ${text}` : `${text}: ${told.error}`, told.error !== null);
  }
}

/** @param {any[]} parties */
function showWaits(parties) {
  const rows = parties.map(({ party, mode, size, waited_s, why }) => make("li", {},
    make("span", { className: "ms" }, `${whole.format(waited_s)} s`),
    make("span", {}, `party ${party}, ${size === 1 ? "alone" : `${size} players`}, ${mode}`),
    make("span", { className: "no" }),
    make("span", { className: "did" }, why === null ? "…" : why)));
  $("waiting").replaceChildren(...(rows.length ? rows : [make("li", { className: "none" }, "Nobody waits.")]));
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
  const shown = here();
  if (shown) map.cell = shown.cell_m || 50;
  else if (map.scene >= 0 && scenes.length) {
    pick(null);
    enter(scenes[0].id);
    look();
  }
}

/** @param {HTMLElement} into @param {[string, number, string][]} rows name, size of the bar, what is written */
function bars(into, rows) {
  const most = Math.max(1e-9, ...rows.map(([, value]) => value));
  if (into.children.length !== rows.length * 3) {
    into.replaceChildren(...rows.flatMap(() => [make("span"), make("div", {}, make("i")), make("span", { className: "n" })]));
  }
  rows.forEach(([name, value, text], nth) => {
    const [label, bar, number] = [0, 1, 2].map((at) => /** @type {HTMLElement} */ (into.children[nth * 3 + at]));
    label.textContent = name;
    number.textContent = text;
    label.className = value ? "" : "zero";
    number.className = value ? "n" : "n zero";
    const filled = /** @type {HTMLElement} */ (bar.firstChild);
    filled.style.width = value ? `${Math.max(1, value / most * 100)}%` : "0";
  });
}

/** @param {any} told */
function showState(told) {
  const { mean, p99 } = ticks.figures();
  /** @type {[string, string, boolean][]} */
  const now = [
    ["tick", `${mean.toFixed(1)} ms`, mean > ticks.limit],
    ["p99", `${p99.toFixed(1)} ms`, p99 > ticks.limit],
    ["players", whole.format(told.objects.players), false],
    ["NPCs", whole.format(told.objects.npcs), false],
  ];
  if (told.overload?.level) now.push(["overload", told.overload.name.replaceAll("_", " "), true]);
  if (told.draining) now.push(["", "draining", true]);
  $("now").replaceChildren(...now.map(([name, value, bad]) => make("div", {}, make("dt", {}, name), make("dd", { className: bad ? "bad" : "" }, value))));
  bars($("sessions"), (told.sessions || []).map((/** @type {[string, number]} */ [name, count]) => [name.replaceAll("_", " "), count, whole.format(count)]));
  bars($("queues"), told.queues.map((/** @type {[string, number]} */ [name, count]) => [name, count, whole.format(count)]));
  $("modes-section").hidden = told.modes.length === 0;
  bars($("modes"), told.modes.map((/** @type {[string, number, number]} */ [name, waiting, made]) => [name, waiting, `${whole.format(waiting)} · ${whole.format(made)}`]));
  const memory = [...told.memory].sort((/** @type {any} */ a, /** @type {any} */ b) => b[1] - a[1]).filter(([, bytes]) => bytes > 50_000).slice(0, 10);
  bars($("memory"), memory.map(([name, bytes]) => [name, bytes, `${(bytes / 1e6).toFixed(1)} MB`]));
  $("rss").textContent = told.rss ? `${(told.rss / 1e6).toFixed(0)} MB in RAM` : "";
  if (last && told.bytes && last.bytes) {
    const seconds = Math.max(0.05, (told.tick - last.tick) * ticks.limit / 1000);
    bars($("bytes"), told.bytes.map((/** @type {[string, number]} */ [name, total], /** @type {number} */ nth) => {
      const rate = (total - last.bytes[nth][1]) / seconds / 1000;
      return [name, rate, rate >= 100 ? whole.format(Math.round(rate)) : rate.toFixed(1)];
    }));
    const spent = (told.spent_ns - first.spent_ns) / 1e6 / Math.max(1, told.tick - first.tick);
    const share = mean > 0 ? ` (${(spent / mean * 100).toFixed(1)} % of it)` : "";
    $("cost").textContent = `throng ${$("cost").dataset.version} · inspection costs ${spent.toFixed(3)} ms per tick${share}, ${told.pages} ${told.pages === 1 ? "page" : "pages"} open`;
  }
}

/** @param {number} count */
function showSlow(count) {
  $("slow-count").textContent = count ? `${whole.format(count)} over ${ticks.limit} ms` : "";
  if (!slow.length) {
    $("slow").replaceChildren(make("li", { className: "none" }, "None so far."));
    return;
  }
  const words = { messages: "messages", logins: "logins", paths: "paths", nodes: "nodes searched", links: "links changed", snapshots: "snapshots sent", bytes: "bytes" };
  const rows = [...slow].reverse().map(({ tick: [tick, sets], deeds }) => {
    const total = sets.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
    const longest = sets.map((/** @type {number} */ us, /** @type {number} */ nth) => ({ us, name: ticks.sets[nth] }));
    longest.sort((/** @type {any} */ a, /** @type {any} */ b) => b.us - a.us);
    const ran = longest.slice(0, 3).filter((/** @type {any} */ { us }) => us > total / 20).map((/** @type {any} */ { us, name }) => `${name} ${(us / 1000).toFixed(1)}`).join(", ");
    const did = Object.entries(words).filter(([key]) => deeds[key] > 0).map(([key, word]) => `${whole.format(deeds[key])} ${word}`).join(", ");
    return make("li", {}, make("span", { className: "ms" }, `${(total / 1000).toFixed(1)} ms`), make("span", {}, ran), make("span", { className: "no" }, `#${whole.format(tick)}`), make("span", { className: "did" }, did));
  });
  $("slow").replaceChildren(...rows);
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
    const text = map.cells.most ? `1 to ${whole.format(map.cells.most)} ${what} a cell` : `no ${what}`;
    rows.push(make("li", {}, make("span", { className: "ramp" }), text));
  }
  $("legend").replaceChildren(...rows);
  $("legend").hidden = rows.length === 0;
}

/** @param {number | null} id @param {number | null} [other] */
function pick(id, other = null) {
  if (id !== map.picked) {
    info = null;
    map.path = [];
    map.sees = [];
    map.follows = false;
  }
  map.picked = id;
  map.other = id === null ? null : other;
  $("picked").hidden = id === null;
  look();
  showPicked();
}

/** The name of an object, by its dot. @param {number} id */
function named(id) {
  const nth = map.places.get(id);
  return nth === undefined ? `#${id}` : `${map.kindNames[map.kinds[nth]]?.name || "object"} ${id}`;
}

function showPicked() {
  if (map.picked === null) return;
  $("picked-name").textContent = named(map.picked);
  $("follow").setAttribute("aria-pressed", String(map.follows));
  const body = $("picked-body");
  // A button that goes while it is held down is never clicked.
  if (body.matches(":active")) return;
  if (!info) return body.replaceChildren(make("p", { className: "none" }, "…"));
  if (info.gone) return body.replaceChildren(make("p", {}, "It is not in this scene any more."));
  const held = body.contains(document.activeElement) ? document.activeElement?.getAttribute("data-id") : null;
  /** @type {[string, string][]} */
  const facts = [["at", `${info.at[0].toFixed(1)}, ${info.at[1].toFixed(1)} m`], ["speed", `${info.speed.toFixed(1)} m/s`]];
  for (const name of ["team", "party", "guild", "player", "client"]) {
    if (info[name] !== null && info[name] !== undefined) facts.push([name, String(info[name])]);
  }
  facts.push(...info.attributes);
  const left = info.path.length ? Math.hypot(info.path[0][0] - info.at[0], info.path[0][1] - info.at[1]) + info.path.slice(1).reduce((/** @type {number} */ sum, /** @type {number[]} */ point, /** @type {number} */ nth) => sum + Math.hypot(point[0] - info.path[nth][0], point[1] - info.path[nth][1]), 0) : 0;
  facts.push(["path", info.path.length ? `${left.toFixed(0)} m over ${info.path.length} points` : "none"]);
  const parts = [make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))];
  if (info.why) {
    const { other, sees, seen, apart_m } = info.why;
    const apart = apart_m === null ? "" : ` ${apart_m.toFixed(0)} m apart.`;
    parts.push(make("div", { className: "why" },
      make("p", {}, make("b", {}, `${sees[0] ? "Sees" : "Does not see"} ${named(other)}`), `: ${sees[1]}.${apart}`),
      make("p", {}, make("b", {}, `${seen[0] ? "Is" : "Is not"} seen by it`), `: ${seen[1]}.`)));
  }
  if (info.wait_reason) {
    const { mode, waited_s, why } = info.wait_reason;
    parts.push(make("div", { className: "why" }, make("p", {}, make("b", {}, `Waits ${whole.format(waited_s)} s for ${mode}`), `: ${why === null ? "…" : why}.`)));
  }
  const classes = ["players", "NPCs", "things"];
  const lists = (info.lists || []).map((/** @type {number[]} */ [found, cap], /** @type {number} */ nth) => `${found} of ${cap} ${classes[nth]}`).join(", ");
  /** @param {string} title @param {string} note @param {number[]} ids */
  const chips = (title, note, ids) => {
    const buttons = ids.slice(0, 120).map((id) => {
      const chip = make("button", { title: "Why?", onclick: () => pick(map.picked, id) }, String(id));
      chip.dataset.id = `${title} ${id}`;
      return chip;
    });
    parts.push(make("h3", {}, `${title} ${whole.format(ids.length)} `, make("small", {}, note)), make("div", { className: "chips" }, ...buttons));
  };
  if (info.lists) chips("Sees", lists, map.sees);
  if (info.seen_by) chips("Seen by", "", info.seen_by);
  if (!info.why) parts.push(make("p", { className: "none" }, "Shift + click another, or choose a number: why it is seen, or not."));
  const scrolled = [...body.querySelectorAll(".chips")].map((list) => list.scrollTop);
  body.replaceChildren(...parts);
  body.querySelectorAll(".chips").forEach((/** @type {Element} */ list, /** @type {number} */ nth) => { list.scrollTop = scrolled[nth] || 0; });
  if (held) body.querySelector(`[data-id="${held}"]`)?.focus();
}

/** Looks at the next object, or the one before. @param {number} by */
function step(by) {
  if (!map.count) return;
  const ids = [...map.ids].sort((a, b) => a - b);
  const at = map.picked === null ? -1 : ids.indexOf(map.picked);
  const next = ids[(at + by + ids.length) % ids.length];
  pick(next);
  map.follows = true;
  if (map.zoom < 4) map.zoom = 4;
  map.isFitted = false;
  showPicked();
}

/** @param {string} id @param {boolean} on */
function press(id, on) {
  $(id).setAttribute("aria-pressed", String(on));
}

const deeds = {
  fit: () => { map.follows = false; map.fit(); },
  teams: () => { map.byTeam = !map.byTeam; press("teams", map.byTeam); map.recolour(); legend(); },
  heat: () => {
    const chosen = $("heat").value;
    $("heat").className = chosen ? "on" : "";
    map.setHeat(chosen);
    legend();
    look();
  },
  follow: () => { map.follows = !map.follows && map.picked !== null; if (map.follows) map.isFitted = false; showPicked(); },
  go: () => wishPace($("go").dataset.wish),
  tick: () => wishPace("step"),
  walk: () => { if (walk.origin) walk.page = open(`${walk.origin}/`, "throng-walk"); },
  drop: () => (tool ? aim("") : pick(null)),
  block: () => { if (!$("cue").hidden) aim("block"); },
  free: () => { if (!$("cue").hidden) aim("free"); },
  zoom: (/** @type {number} */ by) => { const box = $("over").getBoundingClientRect(); map.zoomBy(by, box.width / 2, box.height / 2); },
};

function listen() {
  const over = /** @type {HTMLCanvasElement} */ ($("over"));
  /** @type {Map<number, [number, number]>} */
  const fingers = new Map();
  let walked = 0;
  over.addEventListener("pointerdown", (event) => {
    over.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    walked = fingers.size > 1 ? 99 : 0;
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
    walked += Math.abs(to[0] - from[0]) + Math.abs(to[1] - from[1]);
    if (walked > 4) map.move(to[0] - from[0], to[1] - from[1]);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    fingers.delete(event.pointerId);
    over.classList.toggle("moving", fingers.size > 0);
    if (map.box) {
      if (event.type === "pointerup") editTiles();
      map.box = null;
      return;
    }
    if (event.type !== "pointerup" || walked > 4 || fingers.size) return;
    if (tool === "place") {
      runCue(map.toMetres(event.offsetX, event.offsetY));
      return;
    }
    const found = map.nearest(event.offsetX, event.offsetY);
    if (event.shiftKey && map.picked !== null) pick(map.picked, found === map.picked ? null : found);
    else pick(found);
  };
  over.addEventListener("pointerup", up);
  over.addEventListener("pointercancel", up);
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    map.zoomBy(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
  }, { passive: false });
  $("scene").onchange = () => { pick(null); enter(Number($("scene").value)); look(); };
  $("fit").onclick = deeds.fit;
  $("zoom-in").onclick = () => deeds.zoom(1.5);
  $("zoom-out").onclick = () => deeds.zoom(1 / 1.5);
  $("teams").onclick = deeds.teams;
  $("heat").onchange = deeds.heat;
  $("waits").ontoggle = look;
  $("block").onclick = deeds.block;
  $("free").onclick = deeds.free;
  $("proposals").onchange = () => {
    $("cue-text").value = $("proposals").value;
    if ($("proposals").value.includes("{at}")) runCue(null);
  };
  $("cue").onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    runCue(null);
  };
  $("go").onclick = deeds.go;
  $("tick").onclick = deeds.tick;
  $("speed").onchange = () => wishPace({ speed: Number($("speed").value) });
  $("follow").onclick = deeds.follow;
  $("drop").onclick = deeds.drop;
  $("walk").onclick = deeds.walk;
  // The page that walks asks as long as it shows what it is told.
  addEventListener("message", ({ source, origin, data }) => {
    if (source === walk.page && origin === walk.origin && data === "ghosts") walk.untilMs = performance.now() + 3000;
  });
  $("help-open").onclick = () => $("help").showModal();
  /** @type {Record<string, () => void>} */
  const keys = {
    "0": deeds.fit, f: deeds.follow, t: deeds.teams, h: () => { $("heat").selectedIndex = ($("heat").selectedIndex + 1) % $("heat").options.length; deeds.heat(); }, Escape: deeds.drop, "?": () => $("help").showModal(), b: deeds.block, n: deeds.free, j: deeds.walk, p: deeds.go, ".": deeds.tick,
    "+": () => deeds.zoom(1.5), "=": () => deeds.zoom(1.5), "-": () => deeds.zoom(1 / 1.5), "]": () => step(1), "[": () => step(-1),
  };
  const arrows = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const arrow = arrows[/** @type {keyof typeof arrows} */ (event.key)];
    if (arrow && document.activeElement === over) {
      map.move(arrow[0], arrow[1]);
      event.preventDefault();
    } else keys[event.key]?.();
  });
}

/** A length that reads well, and is about as wide as a thumb. */
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
requestAnimationFrame(frame);
