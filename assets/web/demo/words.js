const LINES_MAX = 60;
const LINE_CHARS_MAX = 300;
export const CHAT_BYTES_MAX = 512;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
export function announcementText(bytes) {
    const shown = decoder.decode(bytes).replaceAll(/\p{Cc}+/gu, " ").trim();
    return shown.length > LINE_CHARS_MAX ? `${shown.slice(0, LINE_CHARS_MAX)}…` : shown;
}
export function chatText(text) {
    let shown = text.trim();
    while (encoder.encode(shown).length > CHAT_BYTES_MAX) {
        shown = [...shown].slice(0, -1).join("");
    }
    return shown;
}
export class Words {
    log;
    field;
    scope;
    constructor(form, log, say) {
        this.log = log;
        this.field = form.querySelector("input");
        this.scope = form.querySelector("select");
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            const text = chatText(this.field.value);
            if (text !== "") {
                say(Number(this.scope.value), text);
            }
            this.field.value = "";
            this.field.blur();
        });
        this.field.addEventListener("keydown", (event) => {
            if (event.key === "Escape") {
                this.field.blur();
            }
        });
    }
    focus() {
        this.field.focus();
    }
    add(from, text) {
        const line = document.createElement("li");
        const name = document.createElement("b");
        name.textContent = from;
        line.append(name, ` ${text}`);
        this.log.append(line);
        while (this.log.childElementCount > LINES_MAX) {
            this.log.firstElementChild.remove();
        }
        this.log.scrollTop = this.log.scrollHeight;
    }
}
