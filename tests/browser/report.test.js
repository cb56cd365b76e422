// Tests of the report pages of runs, which are opened from files.
// @ts-check
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { openBrowser, openPage, takePictures } from "./browser.js";
import { PATIENCE_MS, PROGRAM, ROOT } from "./server.js";

// This name is wider than the screen of a phone and has no spaces: reports show file names, and must break them.
const FOLDER = `${ROOT}/target/browser/reports_of_runs_whose_folder_has_a_name_as_long_as_some_have`;

/** Runs the program and stores its output. Expectations about time may fail on a busy machine. @param {string} into @param {...string} words */
function run(into, ...words) {
  const file = openSync(`${FOLDER}/${into}`, "w");
  try {
    const { status, error } = spawnSync(PROGRAM, words, { stdio: ["ignore", file, "inherit"] });
    assert(status === 0 || status === 1, `${words.join(" ")}: ${error ?? status}`);
  } finally {
    closeSync(file);
  }
}

describe("reports", { timeout: 5 * PATIENCE_MS }, () => {
  /** @type {(() => Promise<unknown>)[]} */
  const ends = [];
  /** @type {import("playwright-core").Browser} */
  let browser;
  before(async () => {
    mkdirSync(FOLDER, { recursive: true });
    browser = await openBrowser({ after: (end) => void ends.push(end) });
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  /** Opens a report, and checks its title, its layout, and that it loads no other file. @param {string} name @param {RegExp} title */
  async function openReport(name, title) {
    const requests = /** @type {string[]} */ ([]);
    const { page, faults } = await openPage(browser, pathToFileURL(`${FOLDER}/${name}.html`).href);
    page.on("request", (request) => requests.push(request.url()));
    assert.match(await page.title(), title);
    await page.reload();
    await takePictures(page, name, true);
    const squeezed = await page.locator("td, th").evaluateAll((cells) => cells.filter((cell) => cell.clientHeight > 6 * cell.clientWidth).map((cell) => cell.textContent));
    assert.deepEqual(squeezed, [], "cells that are squeezed to one letter per line on a phone");
    assert.deepEqual(faults, []);
    // The page loads only its own file.
    assert.equal(requests.length, 1, String(requests));
    return page;
  }

  test("of a run have plots, the script and the expectations", async () => {
    const images = ["--picture", `${FOLDER}/last.png`, "--animation", `${FOLDER}/film.png`];
    run("one.json", "run", "siege", "--ticks", "200", "--json", "--report", `${FOLDER}/report-one.html`, ...images);
    const page = await openReport("report-one", /siege/);
    assert((await page.locator("svg").count()) >= 4);
    await page.getByText("paths exact").first().waitFor();
    await page.getByText(/^[\d.\s]+× real time$/).first().waitFor();
    // The table of contents links to each section, and the page contains the picture and the animation.
    const links = await page.locator(".contents a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    const sections = await page.locator("section").evaluateAll((all) => all.map(({ id }) => `#${id}`));
    assert.deepEqual(links, sections);
    const sizes = await page.locator(".image img").evaluateAll((all) => all.map((image) => /** @type {HTMLImageElement} */ (image).naturalWidth));
    assert(sizes.length === 2 && sizes.every((width) => width >= 100), String(sizes));
  });

  test("of two runs show the changes", async () => {
    const template = `${ROOT}/assets/scenarios/template.ron`;
    run("two.json", "run", template, "--ticks", "120", "--json");
    run("three.json", "run", template, "--ticks", "120", "--json", "--set", "people=100");
    run("moved.txt", "report", `${FOLDER}/two.json`, `${FOLDER}/three.json`, "--report", `${FOLDER}/report-two.html`);
    const page = await openReport("report-two", /changes/);
    assert((await page.locator("table tr").count()) > 5);
    await page.getByText(/Different parameters: people 200 → 100\.$/).waitFor();
    await page.getByText("×").first().waitFor();
  });
});
