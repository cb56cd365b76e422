// Starts the program on free ports, and reads its metrics and state.
// @ts-check
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Timeout of each step: much longer than a step takes, because the machine may be busy. */
export const PATIENCE_MS = 120_000;

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
export const PROGRAM = process.env.THRONG ?? `${ROOT}/target/release/throng`;

/** The addresses that the program prints, by their names in this file. */
const ADDRESSES = /** @type {const} */ ({
  page: /^inspect page: (\S+)/,
  metrics: /^metrics: (\S+)/,
  web: /^play in the browser: (\S+)/,
  truth: /^mirror check: (\S+)/,
});

/** Serves a scenario until the test is over. Returns its addresses, and two functions that suspend the process: `holdUp` for a time,
 * and `pause` until the function that it returns is called.
 * @param {import("node:test").SuiteContext | import("node:test").TestContext | {after: (end: () => Promise<void>) => void}} test
 * @param {...string} words
 * @returns {Promise<Record<keyof ADDRESSES, string> & {holdUp: (ms: number) => Promise<void>, pause: () => (() => void)}>} */
export async function serve(test, ...words) {
  // Ticks may be slow here, so the warnings about slow ticks are not shown.
  const server = spawn(PROGRAM, ["serve", ...words], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, RUST_LOG: "error" } });
  const ended = new Promise((resolve) => server.once("close", resolve));
  test.after(async () => {
    server.kill("SIGINT");
    await ended;
  });
  const names = /** @type {(keyof ADDRESSES)[]} */ (Object.keys(ADDRESSES));
  /** @type {Record<string, string>} */
  const found = {};
  const wanted = names.filter((name) => words.includes({ page: "--inspect", metrics: "--metrics", web: "--web", truth: "--mirror-check" }[name]));
  const lines = createInterface(server.stdout);
  const ready = new Promise((resolve, reject) => {
    server.once("error", reject);
    ended.then(() => reject(new Error(`throng serve ended after printing ${JSON.stringify(found)}`)));
    setTimeout(() => reject(new Error(`throng serve printed only ${JSON.stringify(found)}`)), PATIENCE_MS).unref();
    lines.on("line", (line) => {
      for (const name of names) found[name] ??= line.match(ADDRESSES[name])?.[1] ?? "";
      for (const name of names) if (found[name] === "") delete found[name];
      if (wanted.every((name) => name in found)) resolve(undefined);
    });
  });
  await ready;
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
 * @param {{after: (end: () => Promise<void>) => void}} test @param {...string} words @returns {Promise<string>} */
export async function pacedRun(test, ...words) {
  const run = spawn(PROGRAM, ["run", ...words, "--inspect", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, RUST_LOG: "error" } });
  const ended = new Promise((resolve) => run.once("close", resolve));
  test.after(async () => {
    run.kill("SIGINT");
    await ended;
  });
  const lines = createInterface(run.stderr);
  return new Promise((resolve, reject) => {
    run.once("error", reject);
    ended.then(() => reject(new Error("throng run ended without printing the address of its page")));
    lines.on("line", (line) => {
      const page = line.match(/^inspect page: (http:[^,]+)/)?.[1];
      if (page) resolve(page);
    });
  });
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
