// Tests of the live page of a server.
// @ts-check
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, describe, test } from "node:test";
import { colours, openBrowser, openPage, takePictures } from "./browser.js";
import { PATIENCE_MS, metrics, pacedRun, serve, until } from "./server.js";

/** @typedef {{scene: number, tick: number, count: number, size: [number, number], ids: Uint32Array, kinds: Uint8Array, places: [number, number][]}} Dots */

/** Decodes a frame of dots: see `crates/throng_inspect/src/frames.rs`. @param {string | Buffer} frame @returns {Dots | null} */
function dotsOf(frame) {
  if (typeof frame === "string" || frame.readUInt32LE(0) !== 1) return null;
  const count = frame.readUInt32LE(24);
  const size = /** @type {[number, number]} */ ([frame.readFloatLE(16), frame.readFloatLE(20)]);
  const ids = Uint32Array.from({ length: count }, (_, nth) => frame.readUInt32LE(32 + nth * 4));
  const along = (/** @type {number} */ axis, /** @type {number} */ nth) => (frame.readUInt16LE(32 + count * (4 + 2 * axis) + nth * 2) / 65_535) * (size[axis] ?? 0);
  const places = Array.from(ids, (_, nth) => /** @type {[number, number]} */ ([along(0, nth), along(1, nth)]));
  const kinds = frame.subarray(32 + count * 8, 32 + count * 9);
  return { scene: frame.readUInt32LE(4), tick: frame.readDoubleLE(8), count, size, ids, kinds, places };
}

/** The blocked share of the map pixel at a position in metres, 0 to 255, from the newest map frame. @param {(string | Buffer)[]} received @param {[number, number]} at */
function blockedAt(received, [x, y]) {
  const map = /** @type {Buffer} */ (received.findLast((frame) => typeof frame !== "string" && frame.readUInt32LE(0) === 2));
  const pixel = map.readFloatLE(16);
  return map[20 + Math.floor(y / pixel) * map.readUInt32LE(8) + Math.floor(x / pixel)];
}

describe("the live page", { timeout: 5 * PATIENCE_MS }, () => {
  /** @type {Awaited<ReturnType<typeof openPage>>} */
  let opened;
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let at;
  /** @type {(() => Promise<unknown>)[]} */
  const ends = [];
  const whole = { after: (/** @type {() => Promise<unknown>} */ end) => void ends.push(end) };

  before(async () => {
    const any = "127.0.0.1:0";
    at = await serve(whole, "town", "--listen", any, "--inspect", any, "--metrics", any, "--inspect-actions");
    opened = await openPage(await openBrowser(whole), at.page);
    await opened.page.waitForFunction(() => Number(document.body.dataset.frames) >= 3 && document.body.dataset.view);
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  const text = (/** @type {string} */ of) => opened.page.locator(of).innerText();
  const waitForText = (/** @type {string} */ of, /** @type {RegExp} */ what) => until(`${of} says ${what}`, async () => (await text(of)).match(what));
  const newest = () => /** @type {Dots} */ (dotsOf(/** @type {Buffer} */ (opened.received.findLast((frame) => dotsOf(frame)))));
  /** The pixel of the page at a position of the scene. @param {[number, number]} place @returns {Promise<[number, number]>} */
  async function pixelOf([x, y]) {
    const box = /** @type {{x: number, y: number, width: number, height: number}} */ (await opened.page.locator("#over").boundingBox());
    const [cx = 0, cy = 0, zoom = 0] = String(await opened.page.evaluate(() => document.body.dataset.view)).split(" ").map(Number);
    return [box.x + box.width / 2 + (x - cx) * zoom, box.y + box.height / 2 + (y - cy) * zoom];
  }
  /** Drags a rectangle between two positions of the scene. @param {[number, number]} from @param {[number, number]} to */
  async function drag(from, to) {
    await opened.page.mouse.move(...(await pixelOf(from)));
    await opened.page.mouse.down();
    await opened.page.mouse.move(...(await pixelOf(to)), { steps: 4 });
    await opened.page.mouse.up();
  }

  test("has one dot for each object that the server counts in the same tick", async () => {
    const { received, page } = opened;
    const counted = await until("metrics and dots of the same tick", async () => {
      const values = await metrics(at.metrics);
      const ofTick = () => received.map(dotsOf).find((dots) => dots?.tick === values.get("throng_ticks_total"));
      const dots = await new Promise((resolve) => setTimeout(() => resolve(ofTick()), 300));
      return dots && [dots.count, values.get("throng_objects")];
    });
    assert.equal(counted[0], counted[1]);
    assert(counted[0] > 2_400, `${counted[0]} objects of a town`);
    const shown = await page.evaluate(() => [Number(document.body.dataset.frames), Number(document.body.dataset.dots)]);
    assert.equal(received.map(dotsOf).filter(Boolean)[(shown[0] ?? 0) - 1]?.count, shown[1]);
    await waitForText("#now", /players\s+(1,9\d\d|2,000)\s/);
    await waitForText("#legend", /player [12],\d{3}\s*npc \d{3}/);
  });

  test("draws the ground, walls, and dots in the colour of each kind", async () => {
    const { page } = opened;
    const box = /** @type {{x: number, y: number, width: number, height: number}} */ (await page.locator("#over").boundingBox());
    const seen = await colours(page, { x: box.x + box.width / 2 - 250, y: box.y + box.height / 2 - 250, width: 500, height: 500 });
    const names = ["--ground", "--wall", "--c0", "--c1"];
    const expected = await page.evaluate((names) => names.map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()), names);
    const pixels = expected.map((colour) => seen.get(colour.length === 4 ? colour.replace(/\w/g, "$&$&") : colour) ?? 0);
    assert(pixels.every((count) => count > 100), `${names}: ${pixels} pixels`);
  });

  test("shows the details of a clicked object", async () => {
    const { page } = opened;
    const updates = () => opened.received.filter((frame) => typeof frame === "string" && frame.includes('"selected"')).map((frame) => JSON.parse(String(frame)));
    const picked = await until("the clicked object is selected", async () => {
      const { ids, kinds, places } = newest();
      // Selects a player with no object close to it, so that the click is unambiguous, but with some within 40 m, so that it sees
      // them.
      const scores = places.map(([x, y], nth) => {
        const apart = places.map(([ox, oy], other) => (other === nth ? Infinity : Math.hypot(x - ox, y - oy)));
        return kinds[nth] === 0 ? Math.min(12, ...apart) + apart.filter((metres) => metres < 40).length / 100 : 0;
      });
      const nth = scores.indexOf(Math.max(...scores));
      await page.mouse.click(...(await pixelOf(/** @type {[number, number]} */ (places[nth]))));
      // If the object has moved or is under a button, the next attempt clicks another one.
      await new Promise((resolve) => setTimeout(resolve, 300));
      const name = (await page.locator("#picked").isVisible()) ? await text("#picked-name") : "";
      return name.endsWith(`object ${ids[nth]}`) && { id: ids[nth], place: places[nth] };
    });
    const facts = await waitForText("#picked-body", /at\s+([\d.]+), ([\d.]+) m/);
    assert.equal(updates().at(-1).id, picked.id);
    const apart = Math.hypot(Number(facts[1]) - (picked.place?.[0] ?? 0), Number(facts[2]) - (picked.place?.[1] ?? 0));
    assert(apart < 60, `${apart} m from where it was clicked`);
    await waitForText("#picked-body", /Sees \d+ .*\n/);
    // Requests the reason why the object sees another one. If the list moves before the click or the other object leaves the view,
    // it tries again.
    const { sees, why } = await until("the reason why it sees another object", async () => {
      const buttons = page.locator("#sees li > button:not(.more)");
      const box = (await buttons.count()) && (await buttons.first().boundingBox());
      if (!box) return null;
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.mouse.down();
      // A slow click: the page receives updates of the object between press and release.
      const before = updates().length;
      await until("another update", () => updates().length > before + 2);
      await page.mouse.up();
      await until("one more update", () => updates().length > before + 5);
      return updates().findLast(({ why }) => why);
    });
    assert.equal(why.sees[0], sees.some((/** @type {number[]} */ [id]) => id === why.other), `sees ${sees} and ${why.sees}`);
    await waitForText("#picked-body", new RegExp(`(Sees|Does not see) .*object ${why.other}: .+\\.`));
    await page.locator("#drop").click();
    await page.locator("#picked").waitFor({ state: "hidden" });
  });

  test("can be used with the keyboard alone", async () => {
    const { page } = opened;
    const view = async () => String(await page.evaluate(() => document.body.dataset.view)).split(" ").map(Number);
    const pressed = (/** @type {string} */ of) => page.locator(of).getAttribute("aria-pressed");
    await page.locator("#over").focus();
    const fitted = await view();
    await page.keyboard.press("+");
    await until("the map is zoomed in", async () => ((await view())[2] ?? 0) > 1.4 * (fitted[2] ?? 0));
    const near = await view();
    await page.keyboard.press("ArrowRight");
    await until("the map has moved", async () => ((await view())[0] ?? 0) > (near[0] ?? 0) + 10);
    await page.keyboard.press("0");
    await until("the whole scene is shown", async () => String(await view()) === String(fitted));
    await page.keyboard.press("]");
    const [, first] = await waitForText("#picked-name", /(\d+)$/);
    await page.keyboard.press("]");
    await until("another object is selected", async () => Number((await text("#picked-name")).match(/\d+$/)?.[0]) > Number(first));
    assert.equal(await pressed("#follow"), "true");
    await page.keyboard.press("f");
    assert.equal(await pressed("#follow"), "false");
    await page.keyboard.press("Escape");
    await page.locator("#picked").waitFor({ state: "hidden" });
    await page.keyboard.press("t");
    assert.equal(await pressed("#teams"), "true");
    await waitForText("#legend", /no team|team \d/);
    await page.keyboard.press("t");
    for (const what of [/to [\d,]+ objects a cell/, /to [\d,]+ view links a cell/, /nodes searched in the last seconds/]) {
      await page.keyboard.press("h");
      await waitForText("#legend", what);
    }
    await page.keyboard.press("h");
    await page.keyboard.press("?");
    await page.locator("#help").waitFor({ state: "visible" });
    await page.keyboard.press("Escape");
    await page.locator("#help").waitFor({ state: "hidden" });
    await page.keyboard.press("0");
  });

  test("shows ticks by set, bytes, sessions and memory", async () => {
    const { page } = opened;
    await until("a name for each set", async () => (await page.locator("#sets li").count()) >= 4);
    for (const bars of ["#bytes", "#sessions", "#memory"]) {
      await until(`bars of ${bars}`, () => page.locator(bars).evaluate((of) => [...of.querySelectorAll("i")].some(({ style }) => parseFloat(style.width) > 0)));
    }
    await waitForText("#bytes", /motion\s+[\d.,]+ kB\/s/i);
    await waitForText("#cost", /inspection costs [\d.]+ ms per tick .*1 page open/);
    const box = /** @type {{x: number, y: number, width: number, height: number}} */ (await page.locator("#ticks").boundingBox());
    await page.mouse.move(box.x + box.width - 12, box.y + box.height / 2);
    await waitForText("#tip", /tick [\d,]+ · [\d.]+ ms\n\s+[\d.]+ ms {2}\w+/);
    assert((await colours(page, box)).size > 6, "the chart is drawn");
  });

  test("shows the time span of each figure, and the scene and the server in the title", async () => {
    await waitForText("#now", /p99 of 60 s\s+[\d.]+ ms/);
    await waitForText("#tick-span", /^last 60 s: median [\d.]+ ms, p99 [\d.]+ ms, max [\d.]+ ms$/);
    assert.equal(await opened.page.title(), `town · ${new URL(at.page).host} · throng`);
  });

  test("shows memory in rows that add up to the total", async () => {
    const [, total = ""] = await waitForText("#rss", /^([\d.]+) MB of RAM in total$/);
    const rows = await until("rows with the rest", async () => {
      const rows = (await text("#memory")).match(/[\d.]+ MB/g) ?? [];
      return (await text("#memory")).match(/other \(program, threads\)/) && rows;
    });
    const sum = rows.reduce((all, row) => all + parseFloat(row), 0);
    // The two figures may be measured up to half a second apart.
    assert(Math.abs(sum - Number(total)) < 0.02 * Number(total) + 1, `${rows}: ${sum} of ${total} MB`);
  });

  test("zooms the chart, shows it on a logarithmic scale, and goes back", async () => {
    const { page } = opened;
    const span = async () => Number((await text("#tick-span")).match(/(?:last )?([\d.]+) s/)?.[1]);
    await page.locator("#ticks-in").click();
    await until("half of the time span is shown", async () => (await span()) === 30);
    await page.locator("#log").click();
    assert.equal(await page.locator("#log").getAttribute("aria-pressed"), "true");
    await page.locator("#ticks-earlier").click();
    await waitForText("#tick-span", /^30 s until tick [\d,]+: median/);
    await page.locator("#ticks").focus();
    await page.keyboard.press("l");
    assert.equal(await page.locator("#log").getAttribute("aria-pressed"), "false");
    // The left arrow key selects the previous tick.
    await page.keyboard.press("ArrowLeft");
    const [, one = ""] = await waitForText("#tick-name", /^Tick ([\d,]+): /);
    await page.keyboard.press("ArrowLeft");
    const number = (/** @type {string} */ tick) => Number(tick.replaceAll(",", ""));
    await until("the previous tick is selected", async () => number((await text("#tick-name")).match(/^Tick ([\d,]+)/)?.[1] ?? "") === number(one) - 1);
    await page.locator("#tick-close").click();
    await page.locator("#ticks-now").click();
    await until("the whole time span is shown", async () => (await span()) === 60);
    await page.locator("#ticks-now").waitFor({ state: "hidden" });
  });

  test("finds an object, a player and a session with the keyboard, and selects them", async () => {
    const { page } = opened;
    const { ids, kinds } = newest();
    const player = ids[kinds.indexOf(0)];
    await page.locator("#over").focus();
    await page.keyboard.press("/");
    await page.keyboard.type(`object ${player}`);
    await page.keyboard.press("Enter");
    await waitForText("#picked-name", new RegExp(`^player, object ${player}$`));
    const [, number = ""] = await waitForText("#picked-body", /player\s+(\d+)/);
    const [, session = ""] = await waitForText("#picked-body", /session\s+(\d+)/);
    await page.keyboard.press("Escape");
    await page.locator("#picked").waitFor({ state: "hidden" });
    for (const words of [`player ${number}`, `session ${session}`]) {
      await page.keyboard.press("/");
      await page.keyboard.type(words);
      await waitForText("#search-results", new RegExp(`^${words} · `));
      await page.keyboard.press("Enter");
      await waitForText("#picked-name", new RegExp(`object ${player}$`));
      assert.equal(await page.locator("#search-results").isHidden(), true);
      await page.keyboard.press("Escape");
    }
    // A kind has several objects; the arrow keys choose a result.
    await page.keyboard.press("/");
    await page.keyboard.type("npc");
    await until("several results are listed", async () => (await page.locator("#search-results li[role=option]").count()) > 3);
    await page.keyboard.press("ArrowDown");
    const [, second = ""] = (await page.locator('#search-results li[aria-selected="true"]').innerText()).match(/object (\d+)/) ?? [];
    await page.keyboard.press("Enter");
    await waitForText("#picked-name", new RegExp(`^npc, object ${second}$`));
    await page.keyboard.press("/");
    await page.keyboard.type("player 1");
    await waitForText("#search-results", /^Nothing has the number/);
    await page.keyboard.press("Escape");
    await page.locator("#drop").click();
    await page.keyboard.press("0");
  });

  test("lists the viewers of an object by kind, number and distance, and more on request", async () => {
    const { page } = opened;
    const { ids, kinds } = newest();
    await page.keyboard.press("/");
    await page.keyboard.type(`object ${ids[kinds.indexOf(0)]}`);
    await page.keyboard.press("Enter");
    const rows = page.locator("#seen-by li > button:not(.more)");
    await until("6 of many objects are listed", async () => (await rows.count()) === 6 && Number((await text("#seen-by-count")).replaceAll(",", "")) > 6);
    const texts = await rows.evaluateAll((all) => all.map((row) => [...row.querySelectorAll("span:not(.dot)")].map((part) => part.textContent).join(" ")));
    assert(texts.every((row) => row.match(/^(player|npc), object \d+ \d+ m$/)), String(texts));
    const metres = texts.map((row) => Number(row.match(/(\d+) m$/)?.[1]));
    assert.deepEqual(metres, metres.toSorted((a, b) => a - b));
    assert((await page.locator("#seen-by .dot").count()) >= 6, "each row has a dot in the colour of the kind");
    await page.locator("#seen-by .more").click();
    await until("more objects are listed", async () => (await rows.count()) > 6);
    // Selects the tool with its button and the other object with the search, without the Shift key.
    await page.locator("#ask-why").click();
    assert.equal(await page.locator("#ask-why").getAttribute("aria-pressed"), "true");
    const other = ids[kinds.indexOf(0) + 1];
    await page.keyboard.press("/");
    await page.keyboard.type(`object ${other}`);
    await page.keyboard.press("Enter");
    await waitForText("#why", new RegExp(`(Sees|Does not see) .*object ${other}: `));
    assert.equal(await page.locator("#ask-why").getAttribute("aria-pressed"), "false");
    await page.locator("#why button", { hasText: "Select" }).click();
    await waitForText("#picked-name", new RegExp(`object ${other}$`));
    await page.locator("#drop").click();
    await page.keyboard.press("0");
  });

  test("lists sessions in the chosen order, and ended sessions", async () => {
    const { page } = opened;
    await page.locator("#session-list summary").click();
    assert.equal(await page.locator("#operator").isHidden(), true, "kicks and bans are hidden without an operator token");
    await until("the first 12 are listed", async () => (await page.locator("#session-rows tr[data-client]").count()) === 12);
    await waitForText("#session-more", /Show 38 more and [\d,]+ more/);
    await page.locator("#sort-player button").click();
    const players = async () => (await page.locator("#session-rows tr[data-client] td:nth-child(2)").allInnerTexts()).map(Number);
    await until("the order is ascending", async () => (await players()).every((player, nth, all) => nth === 0 || player > (all[nth - 1] ?? 0)));
    await page.locator("#sort-player button").click();
    await until("the order is descending", async () => (await players()).every((player, nth, all) => nth === 0 || player < (all[nth - 1] ?? 0)));
    assert.equal(await page.locator("#sort-player").getAttribute("aria-sort"), "descending");
    await page.locator("#session-more button").click();
    await until("all sent sessions are listed", async () => (await page.locator("#session-rows tr[data-client]").count()) === 50);
    await waitForText("#session-ended", /\d+ s ago\s+session \d+, player \d+: logged out/);
    const client = await page.locator("#session-rows button").first().innerText();
    await page.locator("#session-rows button").first().click();
    await waitForText("#picked-body", new RegExp(`session\\s+${client}`));
    await page.locator("#drop").click();
    await page.locator("#session-list summary").click();
    await page.keyboard.press("0");
  });

  test("has a toolbar without overlaps on a phone", async () => {
    const { page } = opened;
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator("#cues-open").click();
    const boxes = await page.locator(".over button:visible, .over select:visible, .over input:visible").evaluateAll((all) => all.map((one) => {
      const { left, top, right, bottom } = one.getBoundingClientRect();
      return { name: one.id, left, top, right, bottom };
    }));
    assert(boxes.length >= 10, JSON.stringify(boxes));
    for (const [nth, a] of boxes.entries()) {
      assert(a.left >= 0 && a.right <= 390, `${a.name} is not on the screen: ${JSON.stringify(a)}`);
      for (const b of boxes.slice(nth + 1)) assert(a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top, `${a.name} overlaps ${b.name}`);
    }
    // The tool "why" can be used without a keyboard.
    const { ids, kinds } = newest();
    await page.locator("#search-text").fill(`object ${ids[kinds.indexOf(0)]}`);
    await page.locator("#search-text").press("Enter");
    await page.locator("#ask-why").click();
    await waitForText("#said", /Click an object/);
    await page.locator("#drop").click();
    await page.locator("#drop").click();
    await page.locator("#cues-open").click();
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.keyboard.press("0");
  });

  test("edits tiles with the mouse, and shows the change on the map", async () => {
    const { page, received } = opened;
    const { size } = newest();
    // The corner of a free square with a side of at least 8 m.
    const corner = await until("a free square", () => {
      for (let y = 300; y < size[1] - 20; y += 5) {
        const square = [0, 4, 8].flatMap((dy) => [0, 4, 8].map((dx) => blockedAt(received, [500 + dx, y + dy])));
        if (square.every((share) => share === 0)) return /** @type {[number, number]} */ ([500, y]);
      }
      return null;
    });
    const [from, to] = [corner, /** @type {[number, number]} */ ([corner[0] + 8, corner[1] + 8])];
    const middle = /** @type {[number, number]} */ ([corner[0] + 4, corner[1] + 4]);
    const [x, y] = await pixelOf(middle);
    const wall = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--wall").trim());
    const wallPixels = async () => (await colours(page, { x: Math.round(x) - 2, y: Math.round(y) - 2, width: 4, height: 4 })).get(wall) ?? 0;
    await page.keyboard.press("b");
    await drag(from, to);
    await waitForText("#said", /^Tick [\d,]+: Block\(scene: "town"/);
    await until("the map has a wall", () => blockedAt(received, middle) === 255);
    await until("the wall is drawn", async () => (await wallPixels()) > 2);
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await drag([from[0] - 1, from[1] - 1], [to[0] + 1, to[1] + 1]);
    await waitForText("#said", /^Tick [\d,]+: Free\(scene: "town"/);
    await until("the map is free again", () => blockedAt(received, middle) === 0);
    await until("the wall is no longer drawn", async () => (await wallPixels()) === 0);
    await page.keyboard.press("Escape");
  });

  test("runs cues of the script, reports invalid ones, and spawns a crowd at a click", async () => {
    const { page } = opened;
    const gate = "Block(rect_tiles: (990, 600, 20, 4))";
    const proposed = await page.locator("#proposals option").evaluateAll((all) => all.map((option) => /** @type {HTMLOptionElement} */ (option).value));
    const gateCue = proposed.find((value) => value.replaceAll(/scene: \w+(\("\w+"\))?, /g, "").replaceAll(/\s/g, "").includes("990,600,20,4") && value.startsWith("Block"));
    assert(gateCue, `${gate} is not one of ${proposed.join("\n")}`);
    await page.locator("#proposals").selectOption(gateCue);
    assert.equal(await page.locator("#cue-text").inputValue(), gateCue);
    await page.locator("#cue-run").click();
    await waitForText("#said", /^Tick [\d,]+: Block/);
    await until("the gate is closed", () => blockedAt(opened.received, [500, 301]) === 255);
    await page.locator("#cue-text").fill("Blok(rect_tiles: (1, 1, 1, 1))");
    await page.keyboard.press("Enter");
    await waitForText("#said", /^Blok.*: .*(unexpected|expected|unknown|no such)/i);
    assert.equal(await page.locator("#said").getAttribute("class"), "bad");
    const npcs = async () => Number((await text("#now")).match(/NPCs\s+([\d,]+)/)?.[1]?.replaceAll(",", ""));
    const beforehand = await npcs();
    await page.locator("#proposals").selectOption(/** @type {string} */ (proposed.find((value) => value.includes('tag: "guards"') && value.includes("{at}"))));
    await page.mouse.click(...(await pixelOf([500, 500])));
    await until("there are fifty more", async () => (await npcs()) === beforehand + 50);
  });

  test("lists slow ticks with their work", async () => {
    const { page } = opened;
    await page.locator("#cue-text").fill('Spawn(tag: "flood", kind: "npc", count: 1000, behaviour: Wander(radius_m: 30))');
    await page.locator("#cue-run").click();
    await waitForText("#said", /^Tick [\d,]+: Spawn/);
    // Stopping the process makes a tick slow on any machine.
    await until("a tick was slow", async () => {
      await at.holdUp(60);
      return (await text("#slow-count")).match(/\d+ over 50 ms/);
    });
    await waitForText("#slow", /[\d.]+ ms\s+\w+ [\d.]+ ms[\s\S]*tick [\d,]+\s+.*\d+ (messages?|paths?|view links? changed|snapshots? sent|nodes? searched|bytes? sent)/);
    // A click shows the steps of the tick, which add up to its time, and marks the tick in the chart.
    const first = page.locator("#slow button.slow").first();
    const tick = (await first.innerText()).match(/tick ([\d,]+)/)?.[1] ?? "";
    await page.locator("#slow button.slow", { hasText: `tick ${tick}` }).first().click();
    const [, named = "", ms = ""] = await waitForText("#tick-name", /^Tick ([\d,]+): ([\d.]+) ms$/);
    assert.equal(named, tick);
    const steps = await page.locator("#tick-steps b").allInnerTexts();
    const sum = steps.reduce((all, step) => all + parseFloat(step), 0);
    assert(steps.length >= 9 && Math.abs(sum - Number(ms)) < 0.5, `${steps} add up to ${sum}, of ${ms} ms`);
    assert.equal(await page.locator(`#slow button.slow[aria-pressed="true"]`).count(), 1);
    await page.locator("#tick-close").click();
    await page.locator("#tick-detail").waitFor({ state: "hidden" });
  });

  test("fits the screen of a desktop and of a phone, in both colour schemes", async () => {
    await opened.page.keyboard.press("]");
    await takePictures(opened.page, "inspect");
  });

  test("has no warning or error on its console", () => assert.deepEqual(opened.faults, []));
});

describe("the live page with an operator token", { timeout: 5 * PATIENCE_MS }, () => {
  const token = "0123456789abcdef0123456789abcdef";
  /** @type {Awaited<ReturnType<typeof openPage>>} */
  let opened;
  /** @type {string} */
  let folder;
  /** @type {(() => Promise<unknown>)[]} */
  const ends = [];
  const whole = { after: (/** @type {() => Promise<unknown>} */ end) => void ends.push(end) };

  before(async () => {
    folder = mkdtempSync(`${tmpdir()}/throng-operator-`);
    ends.push(async () => rmSync(folder, { recursive: true }));
    writeFileSync(`${folder}/tokens`, `alice ${token}\n`, { mode: 0o600 });
    const any = "127.0.0.1:0";
    const admin = ["--admin", any, "--admin-tokens", `${folder}/tokens`, "--audit-log", `${folder}/audit.log`];
    const at = await serve(whole, "town", "--listen", any, "--inspect", any, "--inspect-actions", ...admin);
    opened = await openPage(await openBrowser(whole), `${at.page}#/${token}`);
    await opened.page.waitForFunction(() => Number(document.body.dataset.frames) >= 3);
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  const waitForText = (/** @type {string} */ of, /** @type {RegExp} */ what) => until(`${of} says ${what}`, async () => (await opened.page.locator(of).innerText()).match(what));
  const audit = () => readFileSync(`${folder}/audit.log`, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

  test("removes the token from its address", async () => {
    assert.equal(new URL(opened.page.url()).hash, "");
  });

  test("kicks and bans only with a reason", async () => {
    const { page } = opened;
    await page.locator("#session-list summary").click();
    await page.locator("#operator").waitFor({ state: "visible" });
    const buttons = page.locator("#session-rows button.act");
    await until("each of the 12 rows has two buttons", async () => (await buttons.count()) === 24);
    assert.equal(await buttons.evaluateAll((all) => all.some((one) => !(/** @type {HTMLButtonElement} */ (one).disabled))), false);
    const player = async () => (await page.locator("#session-rows tr[data-client] td:nth-child(2)").first().innerText()).trim();
    await page.locator("#operator-reason").fill("stands \"in\" the way");
    const kicked = await player();
    await page.locator(`#session-rows button[data-key="kick ${kicked}"]`).click();
    await waitForText("#said", new RegExp(`^Player ${kicked} kicked: stands "in" the way$`));
    await waitForText("#session-ended", new RegExp(`player ${kicked}: kicked`));
    await until("the reason is cleared", async () => (await page.locator("#operator-reason").inputValue()) === "");
    await page.locator("#operator-reason").fill("bots");
    await page.locator("#ban-time").selectOption("86400");
    const banned = await until("another player is first in the list", async () => {
      const now = await player();
      return now !== kicked && now;
    });
    await page.locator(`#session-rows button[data-key="ban ${banned}"]`).click();
    await waitForText("#said", new RegExp(`^Player ${banned} banned: bots$`));
    const lines = audit().map(({ who, action, target, reason }) => [who, action, target, reason]);
    assert.deepEqual(lines, [["alice", "kick", `player ${kicked}`, 'stands "in" the way'], ["alice", "ban", `player ${banned}`, "bots"]]);
  });

  test("runs cues under the name of the operator", async () => {
    const { page } = opened;
    await page.locator("#cue-text").fill("Free(rect_tiles: (1, 1, 1, 1))");
    await page.locator("#cue-run").click();
    await waitForText("#said", /^Tick [\d,]+: Free/);
    const cue = await until("the cue is in the audit log", () => audit().find(({ action }) => action === "cue"));
    assert.deepEqual([cue.who, cue.target], ["alice", "Free(rect_tiles: (1, 1, 1, 1))"]);
  });

  test("has no warning or error on its console", () => assert.deepEqual(opened.faults, []));
});

describe("a run that waits for its page", { timeout: 5 * PATIENCE_MS }, () => {
  /** @type {Awaited<ReturnType<typeof openPage>>} */
  let opened;
  /** @type {(() => Promise<unknown>)[]} */
  const ends = [];
  const whole = { after: (/** @type {() => Promise<unknown>} */ end) => void ends.push(end) };

  before(async () => {
    const page = await pacedRun(whole, "siege", "--threads", "1");
    opened = await openPage(await openBrowser(whole), page);
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  const tick = async () => Number((await opened.page.locator("#at-tick").textContent())?.match(/tick ([\d,]+)/)?.[1]?.replaceAll(",", "") ?? NaN);

  test("waits for the page", async () => {
    await until("no tick has run", async () => (await tick()) === 0);
    assert.equal(await opened.page.locator("#go").textContent(), "Resume");
  });

  test("runs single ticks, by a button and by a key", async () => {
    const { page } = opened;
    await page.locator("#tick").click();
    await until("one tick has run", async () => (await tick()) === 1);
    await until("the new objects are shown", async () => Number(await page.evaluate(() => document.body.dataset.dots)) >= 800);
    await page.locator("#over").focus();
    await page.keyboard.press(".");
    await page.keyboard.press(".");
    await until("three ticks have run", async () => (await tick()) === 3);
  });

  test("runs at a chosen speed, and can be paused", async () => {
    const { page } = opened;
    await page.locator("#speed").selectOption("400");
    await page.locator("#go").click();
    await until("more than 20 ticks have run", async () => (await tick()) > 20);
    assert.equal(await page.locator("#go").textContent(), "Pause");
    await page.locator("#over").focus();
    await page.keyboard.press("p");
    await until("the button offers to resume", async () => (await page.locator("#go").textContent()) === "Resume");
    // Updates of ticks before the pause may arrive after it.
    await until("no more ticks run", async () => {
      const before = await tick();
      await new Promise((resolve) => setTimeout(resolve, 500));
      return (await tick()) === before;
    });
    assert.equal(await page.locator("#go").textContent(), "Resume");
    await takePictures(page, "paced");
  });

  test("has no warning or error on its console", () => assert.deepEqual(opened.faults, []));
});
