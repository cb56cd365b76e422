// Starts a headless browser, opens pages in it and records their errors.
// @ts-check
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";
import { PATIENCE_MS, ROOT } from "./server.js";

const FLAGS = [
  "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** The folder for pictures of pages. */
const PICTURES = `${ROOT}/target/browser`;

/** A browser with a fresh profile, until the tests are over. @param {{after: (end: () => Promise<void>) => void}} test @param {string[]} [flags] */
export async function openBrowser(test, flags = []) {
  const executablePath = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
  const browser = await chromium.launch({ executablePath, args: [...FLAGS, ...flags], timeout: PATIENCE_MS });
  test.after(() => browser.close());
  return browser;
}

/** Opens a page, and records the warnings and errors of its console and all messages that its WebSockets receive.
 * @param {import("playwright-core").Browser} browser @param {string} url @param {import("playwright-core").BrowserContextOptions} [how]
 * @param {string[]} [without] global names that are removed */
export async function openPage(browser, url, how = {}, without = []) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, ...how });
  await page.addInitScript((names) => names.forEach((name) => Reflect.deleteProperty(globalThis, name)), without);
  const { faults, heard } = listenTo(page);
  await page.goto(url);
  return { page, faults, heard };
}

/** Records the same for a page that another one opened. @param {import("playwright-core").Page} page */
export function listenTo(page) {
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("requestfailed", (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on("response", (answer) => answer.status() >= 400 && faults.push(`${answer.url()}: ${answer.status()}`));
  /** @type {(string | Buffer)[]} */
  const heard = [];
  page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => heard.push(payload)));
  return { faults, heard };
}

/** Pictures of a page in both colour schemes, on a desk and on a phone. None of them is wider than its screen.
 * @param {import("playwright-core").Page} page @param {string} name @param {boolean} [isWhole] also what is below the screen's edge */
export async function takePictures(page, name, isWhole = false) {
  mkdirSync(PICTURES, { recursive: true });
  for (const [width, height] of [[1440, 900], [390, 844]]) {
    await page.setViewportSize({ width: width ?? 0, height: height ?? 0 });
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      await page.emulateMedia({ colorScheme });
      // It is drawn again with these colours and this size.
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      await page.screenshot({ path: `${PICTURES}/${name}-${width}-${colorScheme}.png`, fullPage: isWhole });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > (width ?? 0)) throw new Error(`${name} is ${wide} pixels wide on a screen of ${width}`);
    }
  }
}

/** The colours of the pixels of a part of a page, as "#rrggbb", with how many have it.
 * @param {import("playwright-core").Page} page @param {{x: number, y: number, width: number, height: number}} clip @returns {Promise<Map<string, number>>} */
export async function colours(page, clip) {
  const picture = (await page.screenshot({ clip })).toString("base64");
  const counts = await page.evaluate(async (picture) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0))]));
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(image.width, image.height).getContext("2d"));
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, image.width, image.height);
    /** @type {Record<string, number>} */
    const counts = {};
    for (let at = 0; at < data.length; at += 4) {
      const colour = `#${[0, 1, 2].map((part) => (data[at + part] ?? 0).toString(16).padStart(2, "0")).join("")}`;
      counts[colour] = (counts[colour] ?? 0) + 1;
    }
    return counts;
  }, picture);
  return new Map(Object.entries(counts));
}
