// The page of a cluster: requests the state every second, and shows it as tables.
// @ts-check
import { $, amount, bars, make, refill, whole } from "./dom.js";
import { pageToken } from "./operator.js";

/** Time between a reply and the next request, in milliseconds. */
const INTERVAL_MS = 1000;

/** Maximum time of a request, in milliseconds. */
const TIMEOUT_MS = 12_000;

/** A hand-off that takes longer is marked, in milliseconds. A node is late after the same time. */
const SLOW_MS = 1500;

/** The number of nodes with a bar. */
const BARS_MAX = 12;

/** @typedef {{name: string, state: string, heartbeat_age_ms: number, load: number, players: number, scenes: number}} Node_ */
/** @typedef {{name: string, node: string | null, is_running: boolean, pinned_to: string | null, epoch: number, players: number | null}} Scene */
/** @typedef {{name: string, clients: number, routes: {node: string, clients: number}[], routes_total: number}} Gateway */
/** @typedef {{player: string, from: string, to: string, is_target_alive: boolean, age_ms: number}} HandOff */
/** @typedef {{nodes: Node_[], nodes_total: number, scenes: Scene[], scenes_total: number, gateways: Gateway[], gateways_total: number, hand_offs: HandOff[], hand_offs_total: number, logins: number,
 *   matches: {waiting_tickets: number, matched_tickets: number, formed_matches: number, ready_matches: number, travelling_players: number}}} Cluster */

/** When the last state was read, by this browser's clock; null if there is none. @type {number | null} */
let readAtMs = null;

/** @param {number} ms */
function age(ms) {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 600_000) return `${whole.format(Math.floor(ms / 1000))} s`;
  if (ms < 7_200_000) return `${whole.format(Math.floor(ms / 60_000))} min`;
  if (ms < 172_800_000) return `${whole.format(Math.floor(ms / 3_600_000))} h`;
  return `${whole.format(Math.floor(ms / 86_400_000))} d`;
}

/** A cell. Its text is never HTML: names are chosen by users. @param {string | Node} content @param {string} [className] */
const cell = (content, className = "") => make("td", { className }, content);

/** @param {string} text @param {string} state */
const mark = (text, state) => make("span", { className: `state ${state}` }, text);

/** @param {string} id @param {Node[]} rows @param {number} columns @param {string} none the text without any row */
function fill(id, rows, columns, none) {
  refill($(id), rows.length ? rows : [make("tr", {}, make("td", { colSpan: columns, className: "none" }, none))]);
}

/** The note below a list that is not complete. @param {string} id @param {number} shown @param {number} total */
function showRest(id, shown, total) {
  $(id).textContent = total > shown ? `and ${whole.format(total - shown)} more` : "";
}

/** @param {[string, string, boolean][]} figures name, value, whether it is bad */
function showNow(figures) {
  $("now").replaceChildren(...figures.map(([name, value, isBad]) => make("div", {}, make("dt", {}, name), make("dd", { className: isBad ? "bad" : "" }, value))));
}

/** @param {Cluster} cluster */
function show(cluster) {
  const { nodes, scenes, gateways, hand_offs: handOffs, matches } = cluster;
  const isAlive = (/** @type {Node_} */ { state }) => state === "up" || state === "draining";
  const alive = nodes.filter(isAlive);
  const players = alive.reduce((sum, node) => sum + node.players, 0);
  const waiting = scenes.filter((scene) => !scene.is_running).length;
  const isSlow = handOffs.some((handOff) => handOff.age_ms > SLOW_MS);
  showNow([
    ["nodes alive", whole.format(alive.length), alive.length === 0],
    ["players", whole.format(players), false],
    [waiting ? "scenes run" : "scenes", waiting ? `${whole.format(cluster.scenes_total - waiting)} of ${whole.format(cluster.scenes_total)}` : whole.format(cluster.scenes_total), waiting > 0],
    ["hand-offs", whole.format(cluster.hand_offs_total), isSlow],
  ]);
  $("node-count").textContent = `${whole.format(alive.length)} alive of ${whole.format(cluster.nodes_total)}`;
  fill("nodes", nodes.map((node) => make("tr", { className: isAlive(node) ? "" : "none" },
    cell(node.name, "name"),
    cell(mark(node.state, node.state), "text"),
    cell(age(node.heartbeat_age_ms)),
    cell(whole.format(node.load)),
    cell(whole.format(node.scenes)),
    cell(whole.format(node.players)),
  )), 6, "No node has started yet.");
  showRest("node-more", nodes.length, cluster.nodes_total);

  $("scene-count").textContent = waiting ? `${whole.format(waiting)} without a node` : whole.format(cluster.scenes_total);
  fill("scenes", scenes.map((scene) => make("tr", {},
    cell(scene.name, "name"),
    cell(scene.is_running ? scene.node ?? "" : mark(scene.node === null ? "none" : `${scene.node}, gone`, "waits"), "text wraps"),
    cell(scene.pinned_to ?? "–", "text wraps"),
    cell(amount(scene.players)),
    cell(whole.format(scene.epoch)),
  )), 5, "No node has declared scenes yet.");
  showRest("scene-more", scenes.length, cluster.scenes_total);

  const { hand_offs_total: flying, logins } = cluster;
  $("hand-off-count").textContent = `${whole.format(flying)}${logins ? `; ${whole.format(logins)} log in` : ""}`;
  fill("hand-offs", handOffs.map((handOff) => make("tr", {},
    cell(handOff.player),
    cell(`${handOff.from} → ${handOff.to}${handOff.is_target_alive ? "" : " (gone)"}`, "text wraps"),
    cell(age(handOff.age_ms), handOff.age_ms > SLOW_MS ? "bad" : ""),
  )), 3, "No player is on the way to another node.");
  showRest("hand-off-more", handOffs.length, flying);

  const { gateways_total: gatewaysTotal } = cluster;
  $("gateway-count").textContent = whole.format(gatewaysTotal);
  fill("gateways", gateways.map((gateway) => make("tr", {},
    cell(gateway.name, "name"),
    cell(routes(gateway), "text wraps"),
    cell(whole.format(gateway.clients)),
  )), 3, "No living node reports a gateway.");
  showRest("gateway-more", gateways.length, gatewaysTotal);

  const most = [...alive].sort((one, other) => other.players - one.players).slice(0, BARS_MAX);
  $("players-section").hidden = most.length === 0;
  bars($("players"), most.map(({ name, players: count }) => [name, count, whole.format(count)]));
  bars($("matches"), [
    ["tickets that wait", matches.waiting_tickets],
    ["tickets in a match", matches.matched_tickets],
    ["matches to open", matches.formed_matches],
    ["open matches", matches.ready_matches],
    ["players on the way", matches.travelling_players],
  ].map(([name, count]) => /** @type {[string, number, string]} */ ([name, count, whole.format(Number(count))])));
}

/** The nodes of a gateway, with the clients that are routed to them. @param {Gateway} gateway */
function routes({ routes, routes_total: total }) {
  const shown = routes.map(({ node, clients }) => `${node} ${whole.format(clients)}`);
  if (total > routes.length) shown.push(`${whole.format(total - routes.length)} more`);
  return shown.join(", ") || "–";
}

/** Shows an error, or hides the last one. @param {string} name @param {string} cause @param {string} help */
function showFault(name, cause = "", help = "") {
  $("fault").hidden = !name;
  $("fault-age").textContent = readAtMs === null ? "" : `The tables are ${age(performance.now() - readAtMs)} old.`;
  for (const [id, text] of /** @type {[string, string][]} */ ([["fault-name", name], ["fault-cause", cause], ["fault-help", help]])) {
    // Unchanged text is not announced again by screen readers.
    if ($(id).textContent !== text) $(id).textContent = text;
  }
  for (const column of document.querySelectorAll(".column")) column.classList.toggle("old", Boolean(name));
}

/** @param {string} text @param {string} state the CSS class: "on" or "off" */
function showConnection(text, state) {
  $("line").textContent = text;
  $("line").className = state;
}

/** Requests the state once. */
async function update() {
  const token = pageToken();
  const headers = /** @type {Record<string, string>} */ (token ? { authorization: `Bearer ${token}` } : {});
  /** @type {Response} */
  let reply;
  try {
    reply = await fetch("cluster.json", { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    showConnection("connection lost", "off");
    return showFault("This page has lost its server.", "", "Is `throng cluster status --serve` running? The page tries again every second.");
  }
  if (!reply.ok) {
    showConnection("access denied", "off");
    return showFault("The server refuses this page.", (await reply.text()).trim(), "Open the link that the server has printed: it contains the token after the mark #.");
  }
  const { age_ms: ageMs, error, cluster } = await reply.json();
  if (ageMs !== null) readAtMs = performance.now() - ageMs;
  if (cluster) show(cluster);
  showConnection(error ? "store not readable" : "live", error ? "off" : "on");
  if (error) showFault("The rows of the cluster cannot be read.", error, "Check that Postgres runs, and that this machine can reach it. Without it nodes pause: players stand still and stay connected. The page tries again every second.");
  else showFault("");
}

async function run() {
  for (;;) {
    try {
      await update();
    } catch (error) {
      showConnection("unexpected reply", "off");
      showFault("The server sent a reply that this page cannot show.", String(error), "Are page and server of the same version? Reload the page.");
    }
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
  }
}

document.title = `cluster ${location.host} · throng`;
run();
