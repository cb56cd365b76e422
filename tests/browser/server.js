// Starts the program on free ports, and reads its metrics and state.
// @ts-check
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Timeout of each step: much longer than a step takes, because the machine may be busy. */
export const PATIENCE_MS = 120_000;

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
/** The program with the features `cluster` and `webtransport`. */
export const PROGRAM = process.env.THRONG ?? `${ROOT}/target/debug/throng`;

/** The addresses that the program prints, by their names in this file, with the arguments that let it print them. */
const ADDRESSES = /** @type {const} */ ({
  page: { argument: "--inspect", line: /^inspect page: (\S+)/ },
  metrics: { argument: "--metrics", line: /^metrics: (\S+)/ },
  web: { argument: "--web", line: /^play in the browser: (\S+)/ },
  truth: { argument: "--mirror-check", line: /^mirror check: (\S+)/ },
});

/** The part of a test that ends what it has started. @typedef {{after: (end: () => Promise<void>) => void}} Test */

/** Starts a program that runs until the test is over, and waits until it has printed a line for each of these expressions. Returns the process,
 * and the first group that each expression has found. @template {string} Name
 * @param {Test} test @param {string} program @param {string[]} words @param {Record<Name, RegExp>} expected
 * @param {"SIGINT" | "SIGKILL"} signal ends it */
export async function start(test, program, words, expected, signal = "SIGINT") {
  // Ticks may be slow here, so the warnings about slow ticks are not shown.
  const running = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, RUST_LOG: "error" } });
  const ended = new Promise((resolve) => running.once("close", resolve));
  test.after(async () => {
    running.kill(signal);
    await ended;
  });
  const missing = new Map(/** @type {[Name, RegExp][]} */ (Object.entries(expected)));
  const found = /** @type {Record<Name, string>} */ ({});
  /** @type {string[]} */
  const said = [];
  await new Promise((resolve, reject) => {
    const fail = (/** @type {string} */ what) => reject(new Error(`${program} ${words[0]} ${what}: ${said.join("\n")}`));
    running.once("error", reject);
    ended.then(() => fail("ended after printing"));
    setTimeout(() => fail("printed only"), PATIENCE_MS).unref();
    if (missing.size === 0) resolve(undefined);
    for (const stream of [running.stdout, running.stderr]) createInterface(stream).on("line", (line) => {
      if (missing.size === 0) return;
      said.push(line);
      for (const [name, expression] of missing) {
        const match = line.match(expression);
        if (match) {
          found[name] = match[1];
          missing.delete(name);
        }
      }
      if (missing.size === 0) resolve(undefined);
    });
  });
  return { process: running, found };
}

/** Serves a scenario until the test is over. Returns its addresses, and two functions that suspend the process: `holdUp` for a time,
 * and `pause` until the function that it returns is called.
 * @param {Test} test @param {...string} words
 * @returns {Promise<Record<keyof ADDRESSES, string> & {holdUp: (ms: number) => Promise<void>, pause: () => (() => void)}>} */
export async function serve(test, ...words) {
  const printed = Object.entries(ADDRESSES).filter(([, { argument }]) => words.includes(argument));
  const lines = Object.fromEntries(printed.map(([name, { line }]) => [name, line]));
  const { process: server, found } = await start(test, PROGRAM, ["serve", ...words], lines);
  // Errors while the test runs.
  server.stderr.pipe(process.stderr, { end: false });
  const pause = () => {
    server.kill("SIGSTOP");
    return () => void server.kill("SIGCONT");
  };
  const holdUp = async (/** @type {number} */ ms) => {
    const proceed = pause();
    await new Promise((resolve) => setTimeout(resolve, ms));
    proceed();
  };
  return /** @type {any} */ ({ ...found, holdUp, pause });
}

/** Starts a run that waits for its inspect page, and ends it after the test. Returns the address of the page.
 * @param {Test} test @param {...string} words @returns {Promise<string>} */
export async function pacedRun(test, ...words) {
  const page = /^inspect page: (http:[^,]+)/;
  return (await start(test, PROGRAM, ["run", ...words, "--inspect", "127.0.0.1:0"], { page })).found.page;
}

/** Reads metrics, summed over all labels, by name. @param {string} url @returns {Promise<Map<string, number>>} */
export async function metrics(url) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const line of (await (await fetch(url)).text()).split("\n")) {
    const [, name, value] = line.match(/^(\w+)(?:\{.*\})? (\S+)$/) ?? [];
    if (name) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return sums;
}

/** Requests the server's own state: see `crates/throng_cli/src/mirror_check.rs`. @param {string} address @param {string} question @param {Uint8Array} [bytes] @returns {Promise<string>} */
export function truth(address, question, bytes = new Uint8Array()) {
  const [host, port] = address.split(":");
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host);
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`${question}: no answer`)));
    socket.once("error", reject);
    createInterface(socket).once("line", (line) => {
      socket.destroy();
      resolve(line);
    }).once("close", () => reject(new Error(`${question}: no answer`)));
    socket.write(`${question}\n`);
    socket.write(bytes);
  });
}

/** Calls `check` every 50 ms until it returns a truthy value, and returns this value. @template T @param {string} what @param {() => Promise<T | null | undefined | false> | T | null | undefined | false} check @returns {Promise<T>} */
export async function until(what, check) {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (performance.now() > end) throw new Error(`not reached within ${PATIENCE_MS / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
