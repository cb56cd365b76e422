// Tests of the page of a cluster, with states that a store of this test returns.
// @ts-check
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { openBrowser, openPage, takePictures } from "./browser.js";
import { PATIENCE_MS, ROOT, until } from "./server.js";

const HOSTILE = "<b>n2</b><img src=x onerror=document.title='run'>";
const LONG = "europe-west3-game-node-7f9c6d5b8-x2x9k.production.example.internal";

const STATE = {
  nodes: [
    { name: "n1", state: "up", heartbeat_age_ms: 120, load: 812, players: 812, scenes: 4 },
    { name: HOSTILE, state: "draining", heartbeat_age_ms: 240, load: 1730, players: 1730, scenes: 2 },
    { name: LONG, state: "late", heartbeat_age_ms: 1840, load: 400, players: 401, scenes: 2 },
    { name: "n4", state: "gone", heartbeat_age_ms: 259_200_000, load: 0, players: 0, scenes: 0 },
  ],
  nodes_total: 204,
  scenes: [
    { name: "cave", node: null, is_running: false, pinned_to: null, epoch: 0, players: null },
    { name: "<i>town</i>", node: HOSTILE, is_running: true, pinned_to: LONG, epoch: 12_345, players: 1_730 },
  ],
  scenes_total: 2,
  gateways: [
    { name: "g1", clients: 2_041, routes: [{ node: HOSTILE, clients: 1_730 }, { node: LONG, clients: 311 }], routes_total: 12 },
    { name: "<u>g2</u>", clients: 0, routes: [], routes_total: 0 },
    { name: LONG, clients: 7, routes: [{ node: "n1", clients: 7 }], routes_total: 1 },
  ],
  gateways_total: 5,
  hand_offs: [
    { player: "18446744073709551615", from: "n1", to: LONG, is_target_alive: false, age_ms: 7031 },
    { player: "7", from: "n1", to: HOSTILE, is_target_alive: true, age_ms: 40 },
  ],
  hand_offs_total: 2,
  logins: 3,
  matches: { waiting_tickets: 17, matched_tickets: 8, formed_matches: 1, ready_matches: 3, travelling_players: 2 },
};

const TYPES = /** @type {Record<string, string>} */ ({ html: "text/html", css: "text/css", js: "text/javascript" });

/** Serves the page's files with the headers of the program, and a state. @param {{after: (end: () => void) => void}} test @param {{body: object | null}} reply @returns {Promise<string>} */
function servePage(test, reply) {
  const server = createServer(async (request, response) => {
    const headers = { "content-security-policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'", connection: "close" };
    if (request.url === "/cluster.json") {
      const isAllowed = request.headers.authorization === "Bearer open1sesame" && reply.body;
      response.writeHead(isAllowed ? 200 : 401, { ...headers, "content-type": "application/json" });
      return response.end(isAllowed ? JSON.stringify(reply.body) : "expected the token that the server printed\n");
    }
    const name = request.url === "/" ? "cluster.html" : String(request.url).slice(1);
    const text = await readFile(`${ROOT}/assets/inspect/${name}`);
    response.writeHead(200, { ...headers, "content-type": TYPES[name.split(".").at(-1) ?? ""] ?? "" });
    response.end(text);
  });
  test.after(() => void server.close());
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}/#open1sesame`)));
}

describe("the page of a cluster", { timeout: 5 * PATIENCE_MS }, () => {
  test("shows names as text, and fits the screens of desktops and phones", async (test) => {
    const url = await servePage(test, { body: { age_ms: 100, error: null, cluster: STATE } });
    const { page, faults } = await openPage(await openBrowser(test), url);
    await page.locator("#line.on").waitFor();
    assert.deepEqual(await page.locator("#nodes td:first-child").allInnerTexts(), ["n1", HOSTILE, LONG, "n4"]);
    assert.deepEqual(await page.locator("#scenes td:first-child").allInnerTexts(), ["cave", "<i>town</i>"]);
    assert.deepEqual(await page.locator("#scenes td:nth-child(4)").allInnerTexts(), ["–", "1,730"]);
    assert.deepEqual(await page.locator("#gateways td:first-child").allInnerTexts(), ["g1", "<u>g2</u>", LONG]);
    assert.deepEqual(await page.locator("#gateways td:nth-child(2)").allInnerTexts(), [`${HOSTILE} 1,730, ${LONG} 311, 10 more`, "–", "n1 7"]);
    assert.equal(await page.locator("#gateway-count").innerText(), "5");
    assert.equal(await page.locator("#gateway-more").innerText(), "and 2 more");
    assert.equal(await page.locator("main b, main img, main u, main i:not(.bars i)").count(), 0);
    assert.match(await page.title(), /^cluster 127/);
    assert.equal(await page.locator("#hand-offs tr:first-child td:first-child").innerText(), "18446744073709551615");
    assert.equal(await page.locator("#node-more").innerText(), "and 200 more");
    await takePictures(page, "cluster", true);
    assert.deepEqual(faults, []);
  });

  test("shows an error of the store with the age of the last state, until the store is back", async (test) => {
    const reply = { body: { age_ms: 64_000, error: "--store: connection refused", cluster: STATE } };
    const url = await servePage(test, /** @type {any} */ (reply));
    const { page, faults } = await openPage(await openBrowser(test), url);
    await page.locator("#line.off").waitFor();
    const fault = await page.locator("#fault").innerText();
    for (const text of ["--store: connection refused", "Check that Postgres runs"]) assert(fault.includes(text), fault);
    // It may have become older since then.
    assert.match(fault, /The tables are \d{2,} s old/);
    assert.equal(await page.locator("#nodes tr").count(), 4);
    await takePictures(page, "cluster-error", true);
    Object.assign(reply, { body: { age_ms: 5, error: null, cluster: { ...STATE, nodes: [], nodes_total: 0, gateways: [], gateways_total: 0 } } });
    await page.locator("#line.on").waitFor();
    assert(await page.locator("#fault").isHidden());
    assert.match(await page.locator("#nodes").innerText(), /No node has started yet/);
    assert.match(await page.locator("#gateways").innerText(), /No living node reports a gateway/);
    assert.deepEqual(faults, []);
  });

  test("shows what to do without a valid token", async (test) => {
    const url = await servePage(test, { body: null });
    const { page } = await openPage(await openBrowser(test), url);
    await until("the refusal", async () => (await page.locator("#fault").innerText()).match(/expected the token/));
    assert.equal(await page.locator("#line").innerText(), "access denied");
  });
});
