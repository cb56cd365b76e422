// Chat and announcements: a log, and an input field.

/** Maximum number of lines in the log; the oldest are removed. */
const LINES_MAX = 60;
/** Longest shown line, in characters. */
const LINE_CHARS_MAX = 300;
/** The longest text of a chat message, in bytes. */
export const CHAT_BYTES_MAX = 512;

/** Who receives a chat message, by its number on the wire. */
export type ChatScope = 0 | 1 | 2 | 3;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The text of an announcement: its bytes as UTF-8, without control characters. */
export function announcementText(bytes: Uint8Array): string {
  const shown = decoder.decode(bytes).replaceAll(/\p{Cc}+/gu, " ").trim();
  return shown.length > LINE_CHARS_MAX ? `${shown.slice(0, LINE_CHARS_MAX)}…` : shown;
}

/** The longest beginning of a text that fits into a chat message. */
export function chatText(text: string): string {
  let shown = text.trim();
  while (encoder.encode(shown).length > CHAT_BYTES_MAX) {
    shown = [...shown].slice(0, -1).join("");
  }
  return shown;
}

/** The log of chat and announcements, and the form. */
export class Words {
  private readonly log: HTMLElement;
  private readonly field: HTMLInputElement;
  private readonly scope: HTMLSelectElement;

  constructor(form: HTMLFormElement, log: HTMLElement, say: (scope: ChatScope, text: string) => void) {
    this.log = log;
    this.field = form.querySelector("input")!;
    this.scope = form.querySelector("select")!;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = chatText(this.field.value);
      if (text !== "") {
        say(Number(this.scope.value) as ChatScope, text);
      }
      this.field.value = "";
      // So that keys control walking again.
      this.field.blur();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        this.field.blur();
      }
    });
  }

  /** Focuses the input field. */
  focus(): void {
    this.field.focus();
  }

  /** Adds a line. */
  add(from: string, text: string): void {
    const line = document.createElement("li");
    const name = document.createElement("b");
    name.textContent = from;
    line.append(name, ` ${text}`);
    this.log.append(line);
    while (this.log.childElementCount > LINES_MAX) {
      this.log.firstElementChild!.remove();
    }
    this.log.scrollTop = this.log.scrollHeight;
  }
}
