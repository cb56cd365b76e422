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

/** Starts a browser with a new profile, which is closed after the tests. @param {{after: (end: () => Promise<void>) => void}} test @param {string[]} [flags] */
export async function openBrowser(test, flags = []) {
  const executablePath = execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
  const browser = await chromium.launch({ executablePath, args: [...FLAGS, ...flags], timeout: PATIENCE_MS });
  test.after(() => browser.close());
  return browser;
}

/** Opens a page, and records its faults (warnings and errors of the console, failed requests) and all messages that its WebSockets receive.
 * @param {import("playwright-core").Browser} browser @param {string} url @param {import("playwright-core").BrowserContextOptions} [how]
 * @param {string[]} [without] global names that are removed before the page's scripts run */
export async function openPage(browser, url, how = {}, without = []) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, ...how });
  await page.addInitScript((names) => names.forEach((name) => Reflect.deleteProperty(globalThis, name)), without);
  const { faults, received } = listenTo(page);
  await page.goto(url);
  return { page, faults, received };
}

/** Records the same for a page that was opened by another page. @param {import("playwright-core").Page} page */
export function listenTo(page) {
  page.setDefaultTimeout(PATIENCE_MS);
  /** @type {string[]} */
  const faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("requestfailed", (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on("response", (answer) => answer.status() >= 400 && faults.push(`${answer.url()}: ${answer.status()}`));
  /** @type {(string | Buffer)[]} */
  const received = [];
  page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => received.push(payload)));
  return { faults, received };
}

/** Takes screenshots of a page in both colour schemes, in the size of a desktop and of a phone. Fails if the page is wider than the screen.
 * @param {import("playwright-core").Page} page @param {string} name @param {boolean} [isWhole] whether to include the part below the screen */
export async function takePictures(page, name, isWhole = false) {
  mkdirSync(PICTURES, { recursive: true });
  for (const [width, height] of [[1440, 900], [390, 844]]) {
    await page.setViewportSize({ width: width ?? 0, height: height ?? 0 });
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      await page.emulateMedia({ colorScheme });
      // Waits until the page is drawn with the new colours and size.
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      await page.screenshot({ path: `${PICTURES}/${name}-${width}-${colorScheme}.png`, fullPage: isWhole });
      const pageWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      if (pageWidth > (width ?? 0)) throw new Error(`${name} is ${pageWidth} pixels wide on a screen of ${width}`);
    }
  }
}

/** Counts the pixels of each colour ("#rrggbb") in a part of a page.
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
