// The list of sessions: sorted by the server, which sends the first ones only.
// @ts-check
import { $, amount, make, refill, whole } from "./dom.js";

/** Columns: the key for the server, the head, and whether the largest are wanted first. @type {[string, string, boolean, string][]} */
const COLUMNS = [
  ["client", "session", false, "Sort by number of the session"],
  ["player", "player", false, "Sort by number of the player"],
  ["state", "state", false, "Sort by state"],
  ["ping", "ping", true, "Sort by round trip time"],
  ["bytes", "kB/s", true, "Sort by bytes per second to the client"],
  ["error", "error", true, "Sort by time of the last error"],
];

/** Sessions that are shown at first. */
const FEW = 12;

export class SessionList {
  /** @param {() => void} look what tells the server what is shown @param {(scene: number, object: number) => void} jump @param {() => number} tickS
   * @param {import("./operator.js").Operator} operator @param {(words: string, isBad: boolean) => void} tell */
  constructor(look, jump, tickS, operator, tell) {
    this.look = look;
    this.jump = jump;
    this.tickS = tickS;
    this.operator = operator;
    this.tell = tell;
    this.by = "client";
    this.isDescending = false;
    /** Whether all that the server sends are shown. */
    this.isLong = false;
    this.details = /** @type {HTMLDetailsElement} */ ($("session-list"));
    this.details.ontoggle = look;
    const heads = COLUMNS.map(([key, head, isDescending, title]) => {
      const button = make("button", { type: "button", title, onclick: () => this.sort(key, isDescending) }, head);
      return make("th", { scope: "col", id: `sort-${key}` }, button);
    });
    $("session-heads").replaceChildren(...heads);
    this.markOrder();
    $("operator").onsubmit = (/** @type {Event} */ event) => event.preventDefault();
    $("operator-reason").oninput = () => this.enableButtons();
  }

  /** Shows the buttons of an operator from now on. */
  showOperator() {
    $("operator").hidden = false;
    $("session-heads").append(make("th", { scope: "col" }, make("span", { className: "sr" }, "Kick and ban")));
  }

  /** The number of columns, with that of the buttons. */
  get columns() {
    return COLUMNS.length + (this.operator.isAllowed ? 1 : 0);
  }

  /** The reason that is written. */
  get reason() {
    return $("operator-reason").value.trim();
  }

  /** Without a reason nobody is kicked. */
  enableButtons() {
    for (const button of $("session-rows").querySelectorAll("button.act")) {
      button.disabled = !this.reason;
      button.title = this.reason ? "" : "Write a reason first";
    }
  }

  /** @param {"kick" | "ban"} verb @param {string} player */
  async act(verb, player) {
    const { reason, operator } = this;
    if (!reason) return;
    const { isDone, told } = verb === "kick" ? await operator.kick(player, reason) : await operator.ban(player, reason, $("ban-time").value);
    const deed = verb === "kick" ? "kicked" : "banned";
    this.tell(isDone ? `Player ${player} ${deed}: ${reason}` : `Player ${player} not ${deed}: ${told}`, !isDone);
    if (isDone) $("operator-reason").value = "";
    this.enableButtons();
  }

  /** @param {"kick" | "ban"} verb @param {string} name @param {string} player */
  button(verb, name, player) {
    const button = make("button", { type: "button", className: "act", onclick: () => this.act(verb, player) }, name);
    button.dataset.key = `${verb} ${player}`;
    return button;
  }

  /** What is asked of the server: null if the list is closed. */
  get query() {
    return this.details.open ? { by: this.by, is_descending: this.isDescending } : null;
  }

  /** @param {string} by @param {boolean} isDescending */
  sort(by, isDescending) {
    this.isDescending = by === this.by ? !this.isDescending : isDescending;
    this.by = by;
    this.markOrder();
    this.look();
  }

  markOrder() {
    for (const [key] of COLUMNS) $(`sort-${key}`).setAttribute("aria-sort", key !== this.by ? "none" : this.isDescending ? "descending" : "ascending");
  }

  /** @param {any} told @param {number} tick */
  show(told, tick) {
    // A list in the former order, which was on its way.
    if (told.by !== this.by || told.is_descending !== this.isDescending) return;
    const ago = (/** @type {number} */ at) => `${whole.format(Math.max(0, Math.round((tick - at) * this.tickS())))} s ago`;
    const rows = told.rows.map((/** @type {any} */ row) => this.row(row, ago));
    refill($("session-rows"), rows.length ? rows.slice(0, this.isLong ? undefined : FEW).flat() : [make("tr", {}, make("td", { colSpan: this.columns, className: "none" }, "No session is open."))]);
    this.enableButtons();
    const listed = this.isLong ? rows.length : Math.min(FEW, rows.length);
    const note = told.total > listed ? `and ${whole.format(told.total - listed)} more${this.isLong ? ": sort by another column, or search" : ""}` : "";
    const button = make("button", { type: "button", className: "more", onclick: () => { this.isLong = !this.isLong; setTimeout(() => this.show(told, tick)); } }, this.isLong ? "Show fewer" : `Show ${rows.length - FEW} more`);
    button.dataset.key = "more";
    refill($("session-more"), [...(rows.length > FEW ? [button] : []), document.createTextNode(` ${note}`)]);
    const ended = told.ended.map((/** @type {any} */ { client, player, tick: at, reason }) =>
      make("li", {}, make("span", { className: "ms" }, ago(at)), make("span", {}, `session ${client}${player === null ? ", not logged in" : `, player ${player}`}: `, make("b", {}, reason))));
    refill($("session-ended"), ended.length ? ended : [make("li", { className: "none" }, "No session has ended yet.")]);
  }

  /** A session, and its last error below. @param {any} row @param {(tick: number) => string} ago */
  row(row, ago) {
    const cells = [
      this.link(row),
      row.player ?? "–",
      row.state.replaceAll("_", " "),
      row.ping_ms === null ? "–" : `${amount(row.ping_ms)} ms`,
      row.bytes_per_s === null ? "–" : amount(row.bytes_per_s / 1000, 1),
      row.error ? ago(row.error[0]) : "–",
    ];
    if (this.operator.isAllowed) cells.push(row.player === null ? "" : make("span", { className: "acts" }, this.button("kick", "Kick", row.player), this.button("ban", "Ban", row.player)));
    const line = make("tr", { title: row.address ? `${row.address}, ${amount((row.loss ?? 0) * 100, 1)} % lost` : "inside the server's process" }, ...cells.map((cell) => make("td", {}, cell)));
    line.dataset.client = String(row.client);
    if (!row.error) return [line];
    return [line, make("tr", { className: "error" }, make("td", { colSpan: this.columns }, `last error: ${row.error[1]}`))];
  }

  /** @param {any} row */
  link(row) {
    if (row.object === null) return String(row.client);
    const button = make("button", { type: "button", title: `Select object ${row.object}`, onclick: () => this.jump(row.scene, row.object) }, String(row.client));
    button.dataset.key = `session ${row.client}`;
    return button;
  }
}
