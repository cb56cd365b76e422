// The list of sessions. The server sorts it, and sends only the first sessions.
// @ts-check
import { $, amount, make, refill, whole } from "./dom.js";

/** Columns: key of the server's query, heading, whether the first sort is descending, tooltip. @type {[string, string, boolean, string][]} */
const COLUMNS = [
  ["client", "session", false, "Sort by session number"],
  ["player", "player", false, "Sort by player number"],
  ["state", "state", false, "Sort by state"],
  ["ping", "ping", true, "Sort by round trip time"],
  ["bytes", "kB/s", true, "Sort by bytes per second to the client"],
  ["error", "error", true, "Sort by time of the last error"],
];

/** The number of sessions that are shown at first. */
const FEW = 12;

export class SessionList {
  /** @param {() => void} sendView sends the shown parts of the page to the server @param {(scene: number, object: number) => void} jump @param {() => number} tickS seconds per tick
   * @param {import("./operator.js").Operator} operator @param {(words: string, isBad: boolean) => void} showNotice */
  constructor(sendView, jump, tickS, operator, showNotice) {
    this.sendView = sendView;
    this.jump = jump;
    this.tickS = tickS;
    this.operator = operator;
    this.showNotice = showNotice;
    this.by = "client";
    this.isDescending = false;
    /** Whether all sessions that the server sends are shown. */
    this.isLong = false;
    this.details = /** @type {HTMLDetailsElement} */ ($("session-list"));
    this.details.ontoggle = sendView;
    const heads = COLUMNS.map(([key, head, isDescending, title]) => {
      const button = make("button", { type: "button", title, onclick: () => this.sort(key, isDescending) }, head);
      return make("th", { scope: "col", id: `sort-${key}` }, button);
    });
    $("session-heads").replaceChildren(...heads);
    this.markOrder();
    $("operator").onsubmit = (/** @type {Event} */ event) => event.preventDefault();
    $("operator-reason").oninput = () => this.enableButtons();
  }

  /** Shows the kick and ban buttons from now on. */
  showOperator() {
    $("operator").hidden = false;
    $("session-heads").append(make("th", { scope: "col" }, make("span", { className: "sr" }, "Kick and ban")));
  }

  /** The number of columns, including that of the kick and ban buttons. */
  get columns() {
    return COLUMNS.length + (this.operator.isAllowed ? 1 : 0);
  }

  /** The entered reason for a kick or a ban. */
  get reason() {
    return $("operator-reason").value.trim();
  }

  /** Enables the kick and ban buttons if a reason is entered. */
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
    const { isDone, message } = verb === "kick" ? await operator.kick(player, reason) : await operator.ban(player, reason, $("ban-time").value);
    const done = verb === "kick" ? "kicked" : "banned";
    this.showNotice(isDone ? `Player ${player} ${done}: ${reason}` : `Player ${player} not ${done}: ${message}`, !isDone);
    if (isDone) $("operator-reason").value = "";
    this.enableButtons();
  }

  /** @param {"kick" | "ban"} verb @param {string} name @param {string} player */
  button(verb, name, player) {
    const button = make("button", { type: "button", className: "act", onclick: () => this.act(verb, player) }, name);
    button.dataset.key = `${verb} ${player}`;
    return button;
  }

  /** The query for the server; null if the list is closed. */
  get query() {
    return this.details.open ? { by: this.by, is_descending: this.isDescending } : null;
  }

  /** @param {string} by @param {boolean} isDescending */
  sort(by, isDescending) {
    this.isDescending = by === this.by ? !this.isDescending : isDescending;
    this.by = by;
    this.markOrder();
    this.sendView();
  }

  markOrder() {
    for (const [key] of COLUMNS) $(`sort-${key}`).setAttribute("aria-sort", key !== this.by ? "none" : this.isDescending ? "descending" : "ascending");
  }

  /** @param {any} message @param {number} tick */
  show(message, tick) {
    // This list was sent before the order changed.
    if (message.by !== this.by || message.is_descending !== this.isDescending) return;
    const ago = (/** @type {number} */ at) => `${whole.format(Math.max(0, Math.round((tick - at) * this.tickS())))} s ago`;
    const rows = message.rows.map((/** @type {any} */ row) => this.row(row, ago));
    refill($("session-rows"), rows.length ? rows.slice(0, this.isLong ? undefined : FEW).flat() : [make("tr", {}, make("td", { colSpan: this.columns, className: "none" }, "No session is open."))]);
    this.enableButtons();
    const listed = this.isLong ? rows.length : Math.min(FEW, rows.length);
    const note = message.total > listed ? `and ${whole.format(message.total - listed)} more${this.isLong ? ": sort by another column, or search" : ""}` : "";
    const button = make("button", { type: "button", className: "more", onclick: () => { this.isLong = !this.isLong; setTimeout(() => this.show(message, tick)); } }, this.isLong ? "Show fewer" : `Show ${rows.length - FEW} more`);
    button.dataset.key = "more";
    refill($("session-more"), [...(rows.length > FEW ? [button] : []), document.createTextNode(` ${note}`)]);
    const ended = message.ended.map((/** @type {any} */ { client, player, tick: at, reason }) =>
      make("li", {}, make("span", { className: "ms" }, ago(at)), make("span", {}, `session ${client}${player === null ? ", not logged in" : `, player ${player}`}: `, make("b", {}, reason))));
    refill($("session-ended"), ended.length ? ended : [make("li", { className: "none" }, "No session has ended yet.")]);
  }

  /** The table row of a session, and a row for its last error if there is one. @param {any} row @param {(tick: number) => string} ago */
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

  /** The number of a session, which selects its object when clicked. @param {any} row */
  link(row) {
    if (row.object === null) return String(row.client);
    const button = make("button", { type: "button", title: `Select object ${row.object}`, onclick: () => this.jump(row.scene, row.object) }, String(row.client));
    button.dataset.key = `session ${row.client}`;
    return button;
  }
}
