// Tests of the page for playing.
// @ts-check
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { colours, listenTo, openBrowser, openPage, takePictures } from "./browser.js";
import { PATIENCE_MS, serve, truth, until } from "./server.js";

/** The state of the page. @typedef {{size: {x: number, y: number}, own: number, place: {x: number, y: number}, tick: number, inSight: number}} Walker */

/** Encodes the state of the page's mirror as a packet, for the comparison with the server's state (like `throng client`). Runs in the page. @returns {Promise<number[]>} */
async function packetOfMirror() {
  // This is a script of the page, not a module of the tests.
  const { Writer } = await import(/** @type {any} */ ("/src/codec.js"));
  const { mirror } = /** @type {any} */ (globalThis).throng.session;
  const tick = mirror.tick % 65_536;
  const writer = new Writer().byte(0).byte(1).u16(0).u16(tick).u16(0);
  writer.byte(7).varint(4).varint(0).varint(Math.round(1000 / mirror.tickS)).varint(mirror.tick).varint(1200);
  writer.byte(1).varint(mirror.scene).varint(Math.round(mirror.size.x * 64)).varint(Math.round(mirror.size.y * 64));
  writer.byte(2).varint(mirror.own.id).varint(mirror.own.generation);
  const values = (/** @type {Map<number, Uint8Array>} */ all) => {
    writer.varint(all.size);
    for (const [id, value] of all) writer.varint(id).varint(value.length).raw(value);
  };
  for (const [id, { generation, kind, motion, attributes }] of mirror.objects) {
    const moves = motion.velocityX !== 0 || motion.velocityY !== 0;
    writer.byte(4).varint(id).varint(generation).varint(kind);
    writer.byte(motion.at).byte((motion.isJump ? 1 : 0) + (moves ? 2 : 0) + (motion.floor ? 4 : 0)).varint(motion.x).varint(motion.y).byte(motion.heading);
    if (moves) writer.u16(motion.velocityX).u16(motion.velocityY);
    if (motion.floor) writer.byte(motion.floor);
    values(attributes);
  }
  for (const { scene, id, generation, kind, attributes } of mirror.remotes.values()) {
    writer.byte(10).varint(scene).varint(id).varint(generation).varint(kind);
    values(attributes);
  }
  if (mirror.ownSpeed) writer.byte(22).raw(new Uint8Array(Float32Array.of(mirror.ownSpeed.speedMS).buffer));
  return [...writer.finish()];
}

for (const [transport, without] of /** @type {[string, string[]][]} */ ([["WebTransport", []], ["a WebSocket", ["WebTransport"]]])) describe(`the page of a player, over ${transport}`, { timeout: 5 * PATIENCE_MS }, () => {
  /** @type {Awaited<ReturnType<typeof openPage>>} */
  let opened;
  /** @type {Awaited<ReturnType<typeof openPage>>} */
  let inspect;
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let at;
  /** @type {(() => Promise<unknown>)[]} */
  const ends = [];
  const whole = { after: (/** @type {() => Promise<unknown>} */ end) => void ends.push(end) };

  before(async () => {
    const any = "127.0.0.1:0";
    at = await serve(whole, "town", "--listen", any, "--web", any, "--inspect", any, "--inspect-actions", "--mirror-check", any);
    const browser = await openBrowser(whole);
    opened = await openPage(browser, at.web, {}, without);
    inspect = await openPage(browser, at.page);
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  const text = (/** @type {string} */ of) => opened.page.locator(of).innerText();
  const playerNumber = () => opened.page.evaluate(() => String(/** @type {any} */ (globalThis).throng.player));
  /** @returns {Promise<Walker>} */
  const walker = () => opened.page.evaluate(() => {
    const { session } = /** @type {any} */ (globalThis).throng;
    return { size: session.mirror.size, own: session.mirror.own.id, place: session.predictor.position, tick: session.mirror.tick, inSight: session.mirror.objects.size - 1 };
  });
  /** The server's state of an object, over the WebSocket of the live page. @param {number} id @returns {Promise<any>} */
  const serverState = (id) => inspect.page.evaluate((id) => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://${location.host}/live`);
    socket.onerror = reject;
    let scene = -1;
    socket.onmessage = ({ data }) => {
      const message = typeof data === "string" ? JSON.parse(data) : {};
      if (message.type === "hello") scene = message.scenes[0].id;
      if (message.type === "hello") socket.send(JSON.stringify({ scene, selected: id, other: null, wait_reasons: false, heat: null }));
      if (message.type !== "selected" || message.id !== id) return;
      socket.close();
      resolve(message);
    };
  }), id);

  test("connects a guest, who sees other players", async () => {
    await opened.page.waitForFunction(() => /** @type {any} */ (globalThis).throng.session?.mirror.own);
    await until("the transport is shown", async () => (await text("#line")) === `connected over ${transport}`);
    await until("other objects are in view", async () => Number(await text("#sight")) > 0);
    await until("the round trip is known", async () => (await text("#trip")).match(/^\d+ ms$/));
    const own = await serverState((await walker()).own);
    assert.equal(own.player, await playerNumber());
    assert.equal(await opened.page.title(), "Play · throng");
    // The page shows the same name and player number as the live page, and the values of the attributes.
    await until("the name of the object is shown", async () => (await text("#you-name")) === `player, object ${own.id}`);
    const rows = await until("the attributes are shown", async () => (await text("#attributes")).match(/player\n(\d+)\nhealth\n(\d+)/));
    assert.equal(rows[1], own.player);
    assert.equal(rows[2], Object.fromEntries(own.attributes).health);
  });

  test("shows the whole scene in a corner, and the form of the simulated network", async () => {
    const { page } = opened;
    const box = /** @type {{x: number, y: number, width: number, height: number}} */ (await page.locator("#minimap").boundingBox());
    const { size, place } = await walker();
    assert(Math.abs(box.width / box.height - size.x / size.y) < 0.05, `${box.width} × ${box.height} for ${size.x} × ${size.y} m`);
    const own = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--own").trim());
    // The minimap has a dot at the own position, and walls elsewhere.
    const at = { x: box.x + 1 + (place.x / size.x) * (box.width - 2), y: box.y + 1 + (place.y / size.y) * (box.height - 2) };
    const dot = await colours(page, { x: Math.round(at.x) - 2, y: Math.round(at.y) - 2, width: 4, height: 4 });
    assert((dot.get(own) ?? 0) > 4, JSON.stringify([...dot]));
    assert((await colours(page, box)).size > 10, "the minimap has walls in many shades");
    assert.equal(await text("#bad-line summary"), "Simulated network");
  });

  test("shows chat and announcements", async () => {
    const { page } = opened;
    await page.locator("#view").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type("is anybody here? www");
    await page.keyboard.press("Enter");
    await until("the own message is shown", async () => (await text("#words")).includes("you: is anybody here? www"));
    // Keys in the text field do not move the player.
    await page.keyboard.press("Escape");
    await inspect.page.locator("#cue-text").fill('Announce(tag: "travellers", count: 1, scope: Scene, text: "the gate is open")');
    await inspect.page.locator("#cue-run").click();
    await until("the announcement is shown", async () => (await text("#words")).match(/the gate is open/));
  });

  test("walks while a key is held, and the server has the same position", async () => {
    const { page } = opened;
    const from = await walker();
    // If a wall blocks one direction, another one is free.
    for (const [key, x, y] of /** @type {[string, number, number][]} */ ([["ArrowRight", 1, 0], ["KeyS", 0, 1], ["KeyA", -1, 0], ["ArrowUp", 0, -1]])) {
      const before = (await walker()).place;
      await page.keyboard.down(key);
      const began = await walker();
      await until("time for four metres passes", async () => (await walker()).tick > began.tick + 60);
      await page.keyboard.up(key);
      const { place } = await walker();
      const along = (place.x - before.x) * x + (place.y - before.y) * y;
      assert(along > -0.01, `${key} leads from ${JSON.stringify(before)} to ${JSON.stringify(place)}`);
      if (along > 2) break;
    }
    await until("it stands at the same position in the page and at the server", async () => {
      const [one, server, two] = [await walker(), await serverState(from.own), await walker()];
      return one.tick < two.tick && Math.hypot(one.place.x - two.place.x, one.place.y - two.place.y) === 0 && Math.hypot(server.at[0] - two.place.x, server.at[1] - two.place.y) < 0.01;
    });
    const { place } = await walker();
    assert(Math.hypot(place.x - from.place.x, place.y - from.place.y) > 2, `from ${JSON.stringify(from.place)} to ${JSON.stringify(place)}`);
    assert.equal(await page.locator("#hint").isHidden(), true);
    await until("its position is shown", async () => (await text("#place")) === `${place.x.toFixed(0)}, ${place.y.toFixed(0)} m`);
  });

  test("walks towards the pointer while it is pressed", async () => {
    const { page } = opened;
    const from = (await walker()).place;
    for (const [x, y] of [[900, 450], [720, 700], [300, 450], [720, 150]]) {
      await page.mouse.move(x ?? 0, y ?? 0);
      await page.mouse.down();
      const { tick } = await walker();
      await until("time passes", async () => (await walker()).tick > tick + 40);
      await page.mouse.up();
      const { place } = await walker();
      if (Math.hypot(place.x - from.x, place.y - from.y) > 1) return;
    }
    assert.fail(`it did not move in any direction: ${JSON.stringify(await walker())}`);
  });

  test("stops at a newly built wall like on the server, and receives its removal", async () => {
    const { page } = opened;
    const cue = async (/** @type {string} */ text) => {
      await inspect.page.locator("#cue-text").fill(text);
      await inspect.page.locator("#cue-run").click();
    };
    const isWall = (/** @type {number} */ x, /** @type {number} */ y) => page.evaluate(([x, y]) => /** @type {any} */ (globalThis).throng.walls?.isBlocked(x, y), [x, y]);
    const { place, size } = await walker();
    // It walks along its row of tiles to the side with more space, and a wall is built at the end.
    const direction = place.x < size.x / 2 ? 1 : -1;
    const [x, y] = [Math.floor(place.x / 0.5), Math.floor(place.y / 0.5)];
    const end = x + 4 * direction;
    const wall = (direction > 0 ? end : end + 1) * 0.5;
    await cue(`Free(rect_tiles: (${Math.min(x, end)}, ${y}, 5, 1))`);
    await cue(`Block(rect_tiles: (${end}, ${y}, 1, 1))`);
    await until("the page has this wall only", async () => (await isWall(end, y)) && !(await isWall(x + direction, y)) && !(await isWall(x + 2 * direction, y)) && !(await isWall(x + 3 * direction, y)));
    const key = direction > 0 ? "ArrowRight" : "ArrowLeft";
    await page.keyboard.down(key);
    const { tick } = await walker();
    /** The distance to the wall in metres at each check. @type {number[]} */
    const left = [];
    await until("time for three metres and more passes", async () => {
      const now = await walker();
      left.push((wall - now.place.x) * direction);
      return now.tick > tick + 60;
    });
    await page.keyboard.up(key);
    // The page never shows it inside the wall, from where the server would correct it.
    assert(Math.min(...left) >= 0 && Math.min(...left) < 0.2, `from ${place.x} to the wall at ${wall}: ${left} m left`);
    await cue(`Free(rect_tiles: (${end}, ${y}, 1, 1))`);
    await until("the wall is removed from the page", async () => !(await isWall(end, y)));
  });

  test("is late and sees fewer players over a slow connection, and shows the server's positions", async () => {
    const [page] = await Promise.all([inspect.page.waitForEvent("popup"), inspect.page.locator("#walk").click()]);
    const { faults } = listenTo(page);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.waitForFunction(() => /** @type {any} */ (globalThis).throng?.session?.predictor.position);
    /** The delay in ticks, the number of objects in the mirror, the distance of each from its position at the server,
     * the number of server positions, and the distance of the own object from its position at the server. */
    const compare = () => page.evaluate(() => {
      const { session, ghosts } = /** @type {any} */ (globalThis).throng;
      const own = session.predictor.position;
      const truth = /** @type {any[]} */ ([...ghosts.of(session.mirror.scene)]);
      const off = truth.filter(({ id }) => session.mirror.objects.has(id)).map(({ id, at }) => {
        const shown = session.position(id, performance.now() / 1000);
        return Math.hypot(shown.x - at.x, shown.y - at.y);
      });
      const ghost = truth.find(({ id }) => id === session.mirror.own.id);
      return { late: ghosts.tick - session.mirror.tick, tick: session.mirror.tick, inSight: session.mirror.objects.size, off, around: truth.length, behind: ghost ? Math.hypot(ghost.at.x - own.x, ghost.at.y - own.y) : Infinity };
    });
    await until("the server's positions are shown", async () => {
      const { inSight, off, around } = await compare();
      // Walking objects are a few ticks late, but most are less than 1 m from their position at the server.
      return inSight > 3 && off.length >= inSight - 3 && around > 2_000 && off.filter((metres) => metres < 1).length > off.length / 2;
    });
    await page.locator("#bad-line summary").click();
    await page.locator("#lag").fill("1000");
    await page.locator("#loss").fill("10");
    await page.locator("#cap").fill("2");
    await until("the mirror has at most two other players", () => page.evaluate(() => [.../** @type {any} */ (globalThis).throng.session.mirror.objects.values()].filter(({ kind }) => kind === 0).length <= 3));
    await until("the data is more than 12 ticks late", async () => (await compare()).late > 12);
    await page.locator("#view").focus();
    // If a wall blocks one direction, another one is free.
    let isAhead = false;
    for (const key of ["KeyD", "KeyS", "KeyA", "KeyW"]) {
      await page.keyboard.down(key);
      const began = (await compare()).tick;
      await until("60 ticks pass, or the page is ahead of the server", async () => {
        const { behind, tick } = await compare();
        isAhead = behind > 0.8;
        return isAhead || tick > began + 60;
      });
      if (isAhead) await takePictures(page, "ghosts");
      await page.keyboard.up(key);
      if (isAhead) break;
    }
    await until("the server has the same position", async () => (await compare()).behind < 0.1);
    assert.deepEqual(faults, []);
    await page.close();
  });

  test("reconnects after a lost connection, and controls the same object", async () => {
    const { page, faults } = opened;
    /** @type {string[]} */
    const requests = [];
    page.on("request", (request) => new URL(request.url()).pathname === "/token" && requests.push(request.url()));
    const before = await walker();
    const isReturning = () => page.evaluate(() => /** @type {any} */ (globalThis).throng.line?.isReturning === true);
    // Suspends the server: no packet arrives.
    const proceed = at.pause();
    try {
      await until("the page detects the loss and reconnects", isReturning);
      assert.match(await text("#line"), /reconnecting$/);
    } finally {
      proceed();
    }
    await until("the connection is restored", async () => !(await isReturning()) && (await text("#line")).startsWith("connected over "));
    await until("ticks arrive", async () => (await walker()).tick > before.tick + 60);
    const { own, place } = await walker();
    assert.equal(own, before.own);
    assert(Math.hypot(place.x - before.place.x, place.y - before.place.y) < 0.1, `from ${JSON.stringify(before.place)} to ${JSON.stringify(place)}`);
    // It has not requested another token.
    assert.deepEqual(requests, []);
    // The browser reports each failed attempt on the console.
    faults.splice(0, faults.length, ...faults.filter((fault) => !fault.includes("/play")));
  });

  test("fits the screen of a desktop and of a phone, in both colour schemes", () => takePictures(opened.page, "walk"));

  test("has the same state as the server when all objects stand", async () => {
    assert.equal(await truth(at.truth, "rest"), "resting");
    const player = await playerNumber();
    let last = "";
    await until("the mirror equals the server's state", async () => {
      const packet = Uint8Array.from(await opened.page.evaluate(packetOfMirror));
      const answer = await truth(at.truth, `mirror ${player} ${packet.length}`, packet);
      if (answer !== last) last = answer;
      return answer === "same";
    }).catch((error) => assert.fail(`${error.message}: ${last}`));
    const now = await walker();
    const server = await serverState(now.own);
    assert.equal(now.inSight, server.sees.length);
    assert(now.inSight > 0);
    assert(Math.hypot(server.at[0] - now.place.x, server.at[1] - now.place.y) < 0.01);
  });

  test("has no warning or error on its console", () => assert.deepEqual([...opened.faults, ...inspect.faults], []));
});
