// Lets an operator kick and ban players with requests to the server's administration API.
// @ts-check

/** Key of the token in the session storage, which is deleted when the tab is closed. */
const KEPT = "throng-operator";

/** The tokens in the page's address: `#PAGE_TOKEN/OPERATOR_TOKEN`; each may be empty. @returns {[string, string]} */
function tokens() {
  const [page = "", operator = ""] = decodeURIComponent(location.hash.slice(1)).split("/");
  return [page, operator];
}

/** The token for the live data of this page. */
export const pageToken = () => tokens()[0];

export class Operator {
  constructor() {
    const [page, operator] = tokens();
    this.token = operator || sessionStorage.getItem(KEPT) || "";
    /** Whether the server has accepted the token. */
    this.isAllowed = false;
    if (operator) {
      sessionStorage.setItem(KEPT, operator);
      // The token must not stay in the browser's history or be visible on a shared screen.
      history.replaceState(null, "", `${location.pathname}${page ? `#${encodeURIComponent(page)}` : ""}`);
    }
  }

  /** Checks the token. @returns {Promise<string>} the reason if it is refused, otherwise an empty string */
  async check() {
    const { isDone, message } = await this.request("GET", "players?limit=1");
    this.isAllowed = isDone;
    if (!isDone) sessionStorage.removeItem(KEPT);
    return isDone ? "" : message;
  }

  /** @param {string} player @param {string} reason */
  kick(player, reason) {
    return this.request("POST", `players/${player}/kick`, JSON.stringify({ reason }));
  }

  /** Bans a player for a time, or permanently if `seconds` is empty. @param {string} player @param {string} reason @param {string} seconds */
  ban(player, reason, seconds) {
    // The JSON is written by hand because player numbers have 64 bits, more than a JavaScript number represents exactly.
    const time = seconds ? `, "for_s": ${seconds}` : "";
    return this.request("POST", "bans", `{"player": ${player}, "reason": ${JSON.stringify(reason)}${time}}`);
  }

  /** Sends a request. The API accepts the token only in this header, which a page of another site cannot set.
   * @param {string} method @param {string} path @param {string} [body] @returns {Promise<{isDone: boolean, message: string}>} */
  async request(method, path, body) {
    try {
      const reply = await fetch(`admin/${path}`, { method, body, headers: { Authorization: `Bearer ${this.token}` } });
      const text = await reply.text();
      const message = reply.headers.get("content-type") === "application/json" ? JSON.parse(text).error : text.trim();
      return { isDone: reply.ok, message: message ?? "" };
    } catch (error) {
      return { isDone: false, message: `no reply: ${error}` };
    }
  }
}
