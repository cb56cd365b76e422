// Takes the pictures of the README with the release program: THRONG=../../target/release/throng node pictures.js. Writes docs/pictures. Not a test.
// @ts-check
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import gifenc from "gifenc";
import { openBrowser, openPage } from "./browser.js";
import { PROGRAM, ROOT, serve } from "./server.js";

const FOLDER = `${ROOT}/docs/pictures`;
const SIZE = { width: 900, height: 576 };
const FRAMES = 12;
const FRAME_MS = 250;

/** The pixels of a screenshot. @param {import("playwright-core").Page} page @param {string} picture as base64 @returns {Promise<Uint8Array>} */
async function pixels(page, picture) {
  const bytes = await page.evaluate(async (picture) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0))]));
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(image.width, image.height).getContext("2d"));
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, image.width, image.height);
    let text = "";
    for (let at = 0; at < data.length; at += 32_768) text += String.fromCharCode(...data.subarray(at, at + 32_768));
    return btoa(text);
  }, picture);
  return Uint8Array.from(Buffer.from(bytes, "base64"));
}

/** Writes an animation of a page. `act` is called before each frame. @param {import("playwright-core").Page} page @param {string} name @param {(frame: number) => Promise<unknown>} act */
async function film(page, name, act) {
  const pictures = [];
  for (let frame = 0; frame < FRAMES; frame += 1) {
    await act(frame);
    await page.waitForTimeout(FRAME_MS);
    pictures.push((await page.screenshot()).toString("base64"));
  }
  const encoder = gifenc.GIFEncoder();
  /** @type {number[][] | undefined} */
  let palette;
  for (const picture of pictures) {
    const rgba = await pixels(page, picture);
    palette ??= gifenc.quantize(rgba, 32);
    encoder.writeFrame(gifenc.applyPalette(rgba, palette), SIZE.width, SIZE.height, { palette, delay: FRAME_MS });
  }
  encoder.finish();
  writeFileSync(`${FOLDER}/${name}`, encoder.bytes());
}

/** @type {(() => Promise<unknown>)[]} */
const ends = [];
const whole = { after: (/** @type {() => Promise<unknown>} */ end) => void ends.push(end) };
try {
  const any = "127.0.0.1:0";
  const at = await serve(whole, "town", "--listen", any, "--web", any, "--inspect", any);
  const browser = await openBrowser(whole);
  const live = await openPage(browser, at.page, { viewport: SIZE });
  await live.page.waitForFunction(() => Number(document.body.dataset.frames) >= 3 && document.body.dataset.view);
  await film(live.page, "live_page.gif", async () => {});
  await live.page.close();
  const walking = await openPage(browser, at.web, { viewport: SIZE });
  await walking.page.waitForTimeout(3_000);
  await film(walking.page, "walking_page.gif", async (frame) => {
    const key = ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"][Math.floor(frame / 3)] ?? "ArrowRight";
    if (frame % 3 === 0) for (const other of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]) await walking.page.keyboard.up(other);
    await walking.page.keyboard.down(key);
  });
  await walking.page.close();
  const file = `${ROOT}/target/browser/report_of_town.html`;
  execFileSync(PROGRAM, ["run", "town", "--report", file, "--quiet"], { stdio: "inherit" });
  const report = await openPage(browser, pathToFileURL(file).href, { viewport: SIZE });
  await report.page.waitForTimeout(1_000);
  await report.page.screenshot({ path: `${FOLDER}/report.png` });
} finally {
  for (const end of ends.reverse()) await end();
}
