// Kicks and bans of an operator, by requests to the administration API of the server.
// @ts-check

/** Where the token is kept until the tab is closed. */
const KEPT = "throng-operator";

/** The tokens in the address of the page: `#PAGE_TOKEN/OPERATOR_TOKEN`, either of them may be empty. @returns {[string, string]} */
function tokens() {
  const [page = "", operator = ""] = decodeURIComponent(location.hash.slice(1)).split("/");
  return [page, operator];
}

/** The token of the page, for live data. */
export const pageToken = () => tokens()[0];

export class Operator {
  constructor() {
    const [page, operator] = tokens();
    this.token = operator || sessionStorage.getItem(KEPT) || "";
    /** Whether the server has accepted the token. */
    this.isAllowed = false;
    if (operator) {
      sessionStorage.setItem(KEPT, operator);
      // Neither in the history nor on a shared screen.
      history.replaceState(null, "", `${location.pathname}${page ? `#${encodeURIComponent(page)}` : ""}`);
    }
  }

  /** Checks the token. @returns {Promise<string>} why it is refused; empty if it is not */
  async check() {
    const { isDone, told } = await this.request("GET", "players?limit=1");
    this.isAllowed = isDone;
    if (!isDone) sessionStorage.removeItem(KEPT);
    return isDone ? "" : told;
  }

  /** @param {string} player @param {string} reason */
  kick(player, reason) {
    return this.request("POST", `players/${player}/kick`, JSON.stringify({ reason }));
  }

  /** Bans for some seconds, or for ever. @param {string} player @param {string} reason @param {string} seconds */
  ban(player, reason, seconds) {
    // Numbers of players can be larger than those of JavaScript are exact.
    const time = seconds ? `, "for_s": ${seconds}` : "";
    return this.request("POST", "bans", `{"player": ${player}, "reason": ${JSON.stringify(reason)}${time}}`);
  }

  /** The API takes the token from this header only, which no page of another site can set.
   * @param {string} method @param {string} path @param {string} [body] @returns {Promise<{isDone: boolean, told: string}>} */
  async request(method, path, body) {
    try {
      const reply = await fetch(`admin/${path}`, { method, body, headers: { Authorization: `Bearer ${this.token}` } });
      const text = await reply.text();
      const told = reply.headers.get("content-type") === "application/json" ? JSON.parse(text).error : text.trim();
      return { isDone: reply.ok, told: told ?? "" };
    } catch (error) {
      return { isDone: false, told: `no reply: ${error}` };
    }
  }
}
