// Measures how often the live page draws a crowd: node dots.js [COUNT]. This is not a test, because the results depend on the
// machine.
// @ts-check
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { openBrowser, openPage } from "./browser.js";
import { ROOT, serve, until } from "./server.js";

const COUNT = Number(process.argv[2] ?? 50_000);
const SECONDS = 10;

/** @type {(() => Promise<unknown>)[]} */
const ends = [];
const whole = { after: (/** @type {() => Promise<unknown>} */ end) => void ends.push(end) };

/** CPU time in seconds by kind of process, from /proc. @returns {Map<string, number>} */
function processorSeconds() {
  const spent = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      const kind = command.includes("dots.ron") ? "server" : command.includes("throng-dots-run") ? command.match(/--type=([\w-]+)/)?.[1] ?? "browser" : "others";
      const [user, system] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ").slice(11, 13) ?? [];
      spent.set(kind, (spent.get(kind) ?? 0) + (Number(user) + Number(system)) / 100);
    } catch {
      // The process has just ended.
    }
  }
  return spent;
}

try {
  const folder = `${ROOT}/target/browser`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/dots.ron`, `Scenario(name: "dots", seed: 1, tick_hz: 20, duration_s: 60,
    scenes: [Scene(name: "plain", map: Generate(Town(width_tiles: 4000, height_tiles: 4000)), tile_m: 0.5, cell_m: 50, view_cap: 100, max_objects: ${COUNT + 100})],
    crowds: [Crowd(tag: "players", kind: "player", count: 10, behaviour: Idle), Crowd(tag: "crowd", kind: "npc", count: ${COUNT}, behaviour: Wander(radius_m: 30))])\n`);
  const at = await serve(whole, `${folder}/dots.ron`, "--listen", "127.0.0.1:0", "--inspect", "127.0.0.1:0");
  const browser = await openBrowser(whole, ["--user-agent=throng-dots-run"]);
  const { page } = await openPage(browser, at.page);
  await until("all objects are drawn", () => page.evaluate((count) => Number(document.body.dataset.dots) >= count, COUNT));
  const before = processorSeconds();
  const measured = await page.evaluate(async (seconds) => {
    const [began, first] = [performance.now(), Number(document.body.dataset.frames)];
    const at = [began];
    while (performance.now() < began + seconds * 1000) at.push(await new Promise(requestAnimationFrame));
    const intervals = at.slice(2).map((time, nth) => time - (at[nth + 1] ?? 0)).sort((a, b) => a - b);
    const took = (performance.now() - began) / 1000;
    return { drawn: (at.length - 1) / took, updates: (Number(document.body.dataset.frames) - first) / took, p50: intervals[Math.floor(intervals.length / 2)], p99: intervals[Math.floor(intervals.length * 0.99)], took };
  }, SECONDS);
  console.log(`${COUNT} dots: ${measured.drawn.toFixed(1)} pictures per second, interval p50 ${measured.p50?.toFixed(0)} ms, p99 ${measured.p99?.toFixed(0)} ms; ${measured.updates.toFixed(1)} updates per second`);
  const after = processorSeconds();
  const shares = [...after].map(([kind, seconds]) => /** @type {const} */ ([kind, ((seconds - (before.get(kind) ?? 0)) / measured.took) * 100])).filter(([, share]) => share > 1);
  console.log(`processors: ${shares.map(([kind, share]) => `${kind} ${share.toFixed(0)} %, ${((share * 10) / measured.drawn).toFixed(1)} ms per picture`).join("; ")}`);
} finally {
  for (const end of ends.reverse()) await end();
}
