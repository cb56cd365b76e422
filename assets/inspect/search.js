// The search box: finds a player, an object or a session by number, and objects by the name of their kind.
// @ts-check
import { $, kindDot, make } from "./dom.js";

/** Delay between the last key press and the search request, in milliseconds. */
const TYPING_MS = 120;
/** Maximum length of a search text on the server. */
const CHARS_MAX = 64;

/** @typedef {{of: string, scene?: number, object?: number, kind?: number, kind_name?: string, player?: string | null, client?: number | null}} Found */

/** @param {Found} found @param {(scene: number) => string} sceneName */
function describe(found, sceneName) {
  const parts = found.of === "player" ? [`player ${found.player}`] : found.of === "session" ? [`session ${found.client}`] : [`${found.kind_name ?? "object"}, object ${found.object}`];
  if (found.of === "session" && found.player) parts.push(`player ${found.player}`);
  if (found.of === "player" && found.client !== null && found.client !== undefined) parts.push(`session ${found.client}`);
  if (found.of !== "object") parts.push(found.object === undefined ? "no object" : `object ${found.object}`);
  if (found.scene !== undefined) parts.push(sceneName(found.scene));
  return parts.join(" · ");
}

export class SearchBox {
  /** @param {(text: string) => void} search @param {(found: Found) => void} select @param {(scene: number) => string} sceneName */
  constructor(search, select, sceneName) {
    this.search = search;
    this.select = select;
    this.sceneName = sceneName;
    this.input = /** @type {HTMLInputElement} */ ($("search-text"));
    this.list = /** @type {HTMLElement} */ ($("search-results"));
    /** @type {Found[]} */
    this.results = [];
    /** The text of the search that found `results`. */
    this.answered = "";
    this.chosen = 0;
    /** Whether Enter was pressed before the results arrived: the first result is selected then. */
    this.isWaiting = false;
    let timer = 0;
    this.input.maxLength = CHARS_MAX;
    this.input.addEventListener("input", () => {
      clearTimeout(timer);
      this.isWaiting = false;
      timer = setTimeout(() => this.send(), TYPING_MS);
    });
    this.input.addEventListener("focus", () => this.show());
    this.input.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
    this.input.addEventListener("keydown", (event) => this.press(event));
    $("search").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  }

  get text() {
    return this.input.value.trim();
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  send() {
    if (this.text) this.search(this.text);
    else this.set("", []);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const count = Math.max(1, this.results.length);
      this.chosen = (this.chosen + (event.key === "ArrowDown" ? 1 : -1) + count) % count;
      this.show();
      event.preventDefault();
    } else if (event.key === "Enter") {
      if (this.text && this.answered === this.text) this.go(this.results[this.chosen]);
      else {
        this.isWaiting = true;
        this.send();
      }
      event.preventDefault();
    } else if (event.key === "Escape") {
      this.hide();
      this.input.value = "";
      this.set("", []);
      this.input.blur();
    }
    event.stopPropagation();
  }

  /** Shows the results of a search, except of an outdated one. @param {string} text @param {Found[]} results */
  set(text, results) {
    if (text !== this.text) return;
    [this.results, this.answered, this.chosen] = [results, text, 0];
    if (this.isWaiting) {
      this.isWaiting = false;
      if (results.length) return this.go(results[0]);
    }
    this.show();
  }

  /** @param {Found | undefined} found */
  go(found) {
    if (!found) return this.show();
    this.hide();
    this.input.blur();
    this.select(found);
  }

  show() {
    const isOpen = document.activeElement === this.input && this.answered !== "" && this.answered === this.text;
    this.list.hidden = !isOpen;
    this.input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) return;
    const rows = this.results.map((found, nth) => {
      const row = make("li", { role: "option", id: `found-${nth}`, onpointerdown: (/** @type {Event} */ event) => { event.preventDefault(); this.go(found); } });
      row.setAttribute("aria-selected", String(nth === this.chosen));
      row.append(kindDot(found.kind), describe(found, this.sceneName));
      return row;
    });
    this.list.replaceChildren(...(rows.length ? rows : [make("li", { className: "none" }, `Nothing has the number or kind “${this.answered}”.`)]));
    this.input.setAttribute("aria-activedescendant", rows.length ? `found-${this.chosen}` : "");
  }

  hide() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}
