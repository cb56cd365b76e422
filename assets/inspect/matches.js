// Matches, queues and parties.
// @ts-check
import { $, amount, make, refill, whole } from "./dom.js";

/** @param {number} count @param {string} one */
const counted = (count, one) => `${whole.format(count)} ${count === 1 ? one : one === "party" ? "parties" : one === "match" ? "matches" : `${one}s`}`;

/** @param {number} total @param {any[]} listed @param {string} one */
function more(total, listed, one) {
  return total > listed.length ? [make("li", { className: "none" }, `and ${counted(total - listed.length, one)} more`)] : [];
}

/** @param {any} status @param {(scene: number) => void} enter @param {(scene: number, object: number) => void} jump */
export function showMatches(status, enter, jump) {
  const modes = status.modes.map((/** @type {any} */ mode) => make("li", {},
    make("span", { className: "ms" }, mode.name),
    make("span", {}, mode.parties === 0 ? "nobody waits" : `${counted(mode.parties, "party")}${mode.players === null ? "" : ` with ${counted(mode.players, "player")}`} ${mode.parties === 1 ? "waits" : "wait"}, the longest ${amount(mode.longest_wait_s)} s`),
    make("span", { className: "no" }),
    make("span", { className: "did" }, `${counted(mode.matches, "match")} formed${mode.matches ? `, after ${amount(mode.mean_wait_s, 1)} s on average` : ""}`)));
  refill($("mode-list"), [...modes, ...more(status.mode_count, modes, "mode")]);
  const running = status.running.map((/** @type {any} */ match) => {
    const name = match.scene_id === null ? match.scene ?? "" : make("button", { type: "button", title: "Show this scene", onclick: () => enter(match.scene_id) }, match.scene || `scene ${match.scene_id}`);
    if (name instanceof HTMLElement) name.dataset.key = `match ${match.match}`;
    return make("li", {},
      make("span", { className: "ms" }, `match ${match.match}`),
      make("span", {}, `${match.mode ?? "no mode"}, ${match.sides.join(" against ")}, ${counted(match.inside, "player")} inside`),
      make("span", { className: "no" }, `${amount(match.left_s)} s left`),
      make("span", { className: "did" }, name));
  });
  refill($("running"), running.length ? [...running, ...more(status.running_count, running, "match")] : [make("li", { className: "none" }, "No match runs in a scene of its own.")]);
  $("running-count").textContent = whole.format(status.running_count);
  const parties = status.parties.map((/** @type {any} */ { party, members, waits_for }) => {
    const names = members.flatMap((/** @type {any} */ { player, scene, object }, /** @type {number} */ nth) => {
      const text = `player ${player}`;
      const name = object === null ? text : make("button", { type: "button", title: `Select object ${object}`, onclick: () => jump(scene, object) }, text);
      if (name instanceof HTMLElement) name.dataset.key = `member ${player}`;
      return nth ? [" ", name] : [name];
    });
    return make("li", {}, make("span", { className: "ms" }, `party ${party}`), make("span", {}, ...names, waits_for === null ? "" : ` waits for ${waits_for}`));
  });
  refill($("parties"), parties.length ? [...parties, ...more(status.party_count, parties, "party")] : [make("li", { className: "none" }, "There are no parties.")]);
  $("party-count").textContent = whole.format(status.party_count);
}

/** @param {any[]} parties */
export function showWaits(parties) {
  const rows = parties.map(({ party, mode, size, waited_s, why }) => make("li", {},
    make("span", { className: "ms" }, `${whole.format(waited_s)} s`),
    make("span", {}, `party ${party}, ${size === 1 ? "alone" : `${size} players`}, ${mode}`),
    make("span", { className: "no" }),
    make("span", { className: "did" }, why === null ? "…" : why)));
  $("waiting").replaceChildren(...(rows.length ? rows : [make("li", { className: "none" }, "Nobody waits.")]));
}
