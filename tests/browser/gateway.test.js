// The page of a player at a gateway of a cluster, with nodes, NATS and Postgres.
// @ts-check
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openBrowser, openPage, takePictures } from "./browser.js";
import { PATIENCE_MS, PROGRAM, start, until } from "./server.js";

const { THRONG_NATS_SERVER, THRONG_POSTGRES } = process.env;

/** A port that is free now. @returns {Promise<number>} */
function freePort() {
  const server = createServer();
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => {
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    server.close(() => resolve(port));
  }));
}

const skip = !THRONG_NATS_SERVER || !THRONG_POSTGRES ? "needs .ci/with_nats and .ci/with_postgres" : false;

describe("the page of a player at a gateway", { timeout: 5 * PATIENCE_MS, skip }, () => {
  for (const without of [[], ["WebTransport"]]) test(`stays connected while its node is drained and killed, over ${without.length ? "a WebSocket" : "WebTransport"}`, async (test) => {
    const folder = mkdtempSync(join(tmpdir(), "throng-gateway-"));
    test.after(() => rmSync(folder, { recursive: true }));
    const key = join(folder, "cluster.key");
    writeFileSync(key, randomBytes(32).toString("hex"), { mode: 0o600 });
    const natsPort = await freePort();
    await start(test, String(THRONG_NATS_SERVER), ["-a", "127.0.0.1", "-p", String(natsPort)], { ready: /(Server is ready)/ }, "SIGKILL");
    // Each test has a schema of its own.
    const store = `${THRONG_POSTGRES}?options=-c%20search_path%3Dgateway${without.length}`;
    const shared = ["--bus", `nats://127.0.0.1:${natsPort}`, "--cluster-key", key];
    const node = (/** @type {string} */ name) => start(test, PROGRAM, ["node", "three_towns", "--name", name, "--store", store, ...shared], { name: /^node (\S+) runs/ }, "SIGKILL");
    const nodes = new Map([["n1", await node("n1")]]);
    const gateway = await start(test, PROGRAM, ["gateway", "--name", "g1", "--web", "127.0.0.1:0", ...shared], { address: /^browsers: http:\/\/(\S+)\// }, "SIGKILL");
    const { address } = gateway.found;
    const token = execFileSync(PROGRAM, ["token", "--player", "7", "--server", address], { encoding: "utf8" }).trim().split(/\s+/).at(-1);
    const { page, faults } = await openPage(await openBrowser(test), `http://${address}/?token=${token}`, {}, without);
    const inWorld = () => page.waitForFunction(() => /** @type {any} */ (globalThis).throng.session?.mirror.own);
    await inWorld();
    const line = `connected over ${without.length ? "a WebSocket" : "WebTransport"}`;
    await until("the transport is shown", async () => (await page.locator("#line").innerText()) === line);
    const takeovers = () => page.evaluate(() => /** @type {any} */ (globalThis).throng.session.mirror.takeovers);
    const own = () => page.evaluate(() => {
      const { session } = /** @type {any} */ (globalThis).throng;
      return session.mirror.own && session.mirror.objects.size > 1 ? session.predictor.position : null;
    });
    await until("NPCs are in view", own);
    // Its scene moves to another node, with the player.
    nodes.set("n2", await node("n2"));
    execFileSync(PROGRAM, ["cluster", "drain", "n1", "--store", store]);
    await until("the hand-off", async () => (await takeovers()) > 0 && (await own()));
    const handOffs = await takeovers();
    // It walks there.
    await page.locator("#view").focus();
    const before = await own();
    await page.keyboard.down("ArrowRight");
    await until("the player walks", async () => Math.abs(((await own()) ?? before).x - before.x) > 1);
    await page.keyboard.up("ArrowRight");
    // That node dies, and a third one claims the player.
    nodes.set("n3", await node("n3"));
    nodes.get("n2")?.process.kill("SIGKILL");
    await until("the other node has the player", async () => (await takeovers()) > handOffs && (await own()));
    assert.equal(await page.locator("#line").innerText(), line, "the page did not lose its connection");
    await takePictures(page, `gateway-${without.length}`);
    // A gateway has no maps: the page asks for them, and shows no walls.
    assert.deepEqual(faults.filter((fault) => !fault.includes("404")), []);
  });
});
