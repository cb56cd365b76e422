// The selected object: its state, the objects that it sees, its viewers, and the reasons.
// @ts-check
import { $, kindDot, make, refillWithMore, whole } from "./dom.js";

/** The number of objects that a list shows at first. */
const FEW = 6;

/** The length of a path in metres. @param {number[]} from @param {number[][]} points */
function pathLengthM(from, points) {
  let [sum, at] = [0, from];
  for (const point of points) {
    sum += Math.hypot(point[0] - at[0], point[1] - at[1]);
    at = point;
  }
  return sum;
}

export class PickedPanel {
  /** @param {import("./map.js").CrowdMap} map @param {(id: number | null, other?: number | null) => void} pick */
  constructor(map, pick) {
    this.map = map;
    this.pick = pick;
    /** The last update of the selected object from the server. @type {any} */
    this.info = null;
    /** The other object of the visibility answer that is shown. @type {number | null} */
    this.answered = null;
    this.body = /** @type {HTMLElement} */ ($("picked-body"));
  }

  /** The kind of an object, if it is on the map. @param {number} id */
  kindOf(id) {
    const nth = this.map.indexes.get(id);
    return nth === undefined ? undefined : this.map.kinds[nth];
  }

  /** The name of an object in all texts: its kind and its number. @param {number} id */
  named(id) {
    const kind = this.kindOf(id);
    const name = kind === undefined ? "" : this.map.kindNames[kind]?.name || "";
    return `${name ? `${name}, ` : ""}object ${id}`;
  }

  /** Prepares the panel for another object. */
  reset() {
    this.info = null;
    for (const id of ["sees", "seen-by"]) delete $(id).dataset.shown;
  }

  show() {
    const { map, info, body } = this;
    if (map.picked === null) return;
    const title = $("picked-name");
    const name = this.named(map.picked);
    if (title.dataset.name !== name) {
      title.dataset.name = name;
      title.replaceChildren(kindDot(this.kindOf(map.picked)), name);
    }
    $("follow").setAttribute("aria-pressed", String(map.follows));
    // Replacing a pressed button would lose the click.
    if (body.matches(":active")) return;
    const exists = info && !info.gone;
    for (const id of ["sees-part", "seen-by-part"]) $(id).hidden = !exists || !info[id === "sees-part" ? "sees" : "seen_by"];
    $("why").hidden = $("waits-for").hidden = true;
    if (!exists) {
      $("facts").replaceChildren();
      $("picked-note").textContent = info ? "It is not in this scene any more." : "…";
      return;
    }
    $("picked-note").textContent = "";
    this.showFacts();
    this.showReasons();
    if (info.sees) {
      const classes = ["players", "NPCs", "things"];
      const lists = (info.lists || []).map((/** @type {number[]} */ [found, cap], /** @type {number} */ nth) => `${whole.format(found)} of at most ${whole.format(cap)} ${classes[nth]}`).join(", ");
      this.showList("sees", map.sees, info.sees_count ?? map.sees.length, lists);
    }
    if (info.seen_by) this.showList("seen-by", info.seen_by, info.seen_by_count ?? info.seen_by.length, "");
  }

  showFacts() {
    const { info } = this;
    /** @type {[string, string][]} */
    const facts = [["at", `${info.at[0].toFixed(1)}, ${info.at[1].toFixed(1)} m`], ["speed", `${info.speed.toFixed(1)} m/s`]];
    for (const [key, name] of [["player", "player"], ["client", "session"], ["team", "team"], ["party", "party"], ["guild", "guild"]]) {
      if (info[key] !== null && info[key] !== undefined) facts.push([name, String(info[key])]);
    }
    facts.push(...info.attributes);
    facts.push(["path", info.path.length ? `${pathLengthM(info.at, info.path).toFixed(0)} m over ${info.path.length} ${info.path.length === 1 ? "point" : "points"}` : "none"]);
    $("facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  }

  showReasons() {
    const { info, map } = this;
    if (info.why) {
      const { other, sees, seen, apart_m } = info.why;
      const apart = apart_m === null ? "" : ` ${apart_m.toFixed(0)} m apart.`;
      const go = make("button", { type: "button", title: "Select it", onclick: () => this.pick(other) }, "Select");
      const swap = make("button", { type: "button", title: "Close this answer", onclick: () => this.pick(map.picked) }, "Close");
      $("why").replaceChildren(
        make("p", {}, make("b", {}, `${sees[0] ? "Sees" : "Does not see"} ${this.named(other)}`), `: ${sees[1]}.${apart}`),
        make("p", {}, make("b", {}, `${seen[0] ? "Is" : "Is not"} seen by it`), `: ${seen[1]}.`),
        make("p", { className: "do" }, go, swap));
      $("why").hidden = false;
      if (this.answered !== other) $("why").scrollIntoView({ block: "nearest" });
    }
    this.answered = info.why?.other ?? null;
    if (info.wait_reason) {
      const { mode, waited_s, why } = info.wait_reason;
      $("waits-for").replaceChildren(make("p", {}, make("b", {}, `Waits ${whole.format(waited_s)} s for ${mode}`), `: ${why === null ? "…" : why}.`));
      $("waits-for").hidden = false;
    }
  }

  /** Shows a list of objects, nearest first. @param {string} id of the list element @param {number[]} ids @param {number} total @param {string} note */
  showList(id, ids, total, note) {
    const { map, info } = this;
    $(`${id}-count`).textContent = whole.format(total);
    $(`${id}-note`).textContent = note;
    const byDistance = ids.map((of) => {
      const at = map.at(of);
      return { of, metres: at ? Math.hypot(at[0] - info.at[0], at[1] - info.at[1]) : Infinity };
    });
    byDistance.sort((a, b) => a.metres - b.metres || a.of - b.of);
    const rows = byDistance.map(({ of, metres }) => {
      const button = make("button", { type: "button", title: "Why?", onclick: () => this.pick(map.picked, of) },
        kindDot(this.kindOf(of)), make("span", {}, this.named(of)), make("span", { className: "n" }, metres === Infinity ? "" : `${metres.toFixed(0)} m`));
      button.setAttribute("aria-label", `${this.named(of)}${metres === Infinity ? "" : `, ${metres.toFixed(0)} m away`}: why?`);
      button.dataset.key = `${id} ${of}`;
      button.dataset.id = String(of);
      if (of === map.other) button.setAttribute("aria-pressed", "true");
      return make("li", {}, button);
    });
    refillWithMore($(id), rows, FEW, total, () => this.show());
  }
}
