// Helper functions of all sections of the page.
// @ts-check

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

export const whole = new Intl.NumberFormat("en");

/** @param {string} tag @param {Record<string, any>} [with_] @param {...(Node | string)} children */
export function make(tag, with_ = {}, ...children) {
  const made = Object.assign(document.createElement(tag), with_);
  made.append(...children);
  return made;
}

/** Creates a dot in the colour of a kind, like on the map. @param {number | undefined} kind */
export function kindDot(kind) {
  const dot = make("span", { className: "dot" });
  dot.style.background = `var(--c${kind === undefined ? 4 : kind % 8})`;
  return dot;
}

/** @param {string} id @param {boolean} on */
export function setPressed(id, on) {
  $(id).setAttribute("aria-pressed", String(on));
}

/** Formats a number with a fixed number of decimals, and a missing value as a dash. @param {number | null | undefined} value @param {number} [digits] */
export function amount(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Shows rows with bars. @param {HTMLElement} into @param {[string, number, string][]} rows name, value, value as text with its unit */
export function bars(into, rows) {
  const maximum = Math.max(1e-9, ...rows.map(([, value]) => value));
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
    filled.style.width = value ? `${Math.max(1, value / maximum * 100)}%` : "0";
  });
}

/** Replaces the content of a list, except while the pointer is pressed on it: replacing a pressed button would lose the click.
 * The focus stays on the element with the same `data-key`. @param {HTMLElement} list @param {Node[]} rows */
export function refill(list, rows) {
  if (list.matches(":active")) return;
  const focused = list.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
  list.replaceChildren(...rows);
  if (focused) /** @type {HTMLElement | null} */ (list.querySelector(`[data-key="${CSS.escape(focused)}"]`))?.focus();
}

/** Shows the first rows of a list, and a button that shows more of them. `data-shown` of the list is the number of shown rows.
 * @param {HTMLElement} list @param {Node[]} rows @param {number} few number of rows at first @param {number} total greater than the number of rows if the server sent
 * only some of them @param {() => void} again renders the list again */
export function refillWithMore(list, rows, few, total, again) {
  const shown = Math.min(rows.length, Number(list.dataset.shown ?? few));
  const all = rows.slice(0, shown);
  const isOpen = shown > few;
  if (rows.length > shown || isOpen) {
    const text = rows.length > shown ? total - shown > 40 ? `Show 40 of ${whole.format(total - shown)} more` : `Show ${rows.length - shown} more` : "Show less";
    const button = make("button", { type: "button", className: "more" }, text);
    button.dataset.key = "more";
    button.onclick = () => {
      list.dataset.shown = String(rows.length > shown ? Math.min(rows.length, shown + 40) : few);
      // The list matches `:active` until this event has ended, and would not be replaced.
      setTimeout(again);
    };
    all.push(make("li", { className: "last" }, button));
  }
  if (rows.length <= shown && total > rows.length) all.push(make("li", { className: "none last" }, `and ${whole.format(total - rows.length)} more, which the server does not list`));
  refill(list, all);
}
