// Starts the program on free ports.
// @ts-check
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Timeout of all steps; much longer than they take, for busy machines. */
export const PATIENCE_MS = 120_000;

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
export const PROGRAM = process.env.THRONG ?? `${ROOT}/target/release/throng`;

/** The addresses that it prints, by their names in this file. */
const ADDRESSES = /** @type {const} */ ({
  page: /^inspect page: (\S+)/,
  metrics: /^metrics: (\S+)/,
  web: /^play in the browser: (\S+)/,
  truth: /^mirror check: (\S+)/,
});

/** Serves a scenario until the test is over. Returns its addresses, and two functions that suspend it: for a time, or until the function that `pause` returns is called.
 * @param {import("node:test").SuiteContext | import("node:test").TestContext | {after: (end: () => Promise<void>) => void}} test
 * @param {...string} words
 * @returns {Promise<Record<keyof ADDRESSES, string> & {holdUp: (ms: number) => Promise<void>, pause: () => (() => void)}>} */
export async function serve(test, ...words) {
  // Ticks are slow here; warnings about them are not shown.
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
  const told = new Promise((resolve, reject) => {
    server.once("error", reject);
    ended.then(() => reject(new Error(`throng serve ended, and had said ${JSON.stringify(found)}`)));
    setTimeout(() => reject(new Error(`throng serve had said ${JSON.stringify(found)} only`)), PATIENCE_MS).unref();
    lines.on("line", (line) => {
      for (const name of names) found[name] ??= line.match(ADDRESSES[name])?.[1] ?? "";
      for (const name of names) if (found[name] === "") delete found[name];
      if (wanted.every((name) => name in found)) resolve(undefined);
    });
  });
  await told;
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

/** Starts a run that waits for its page, until the test is over. Returns the address of the page.
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
    ended.then(() => reject(new Error("throng run ended, and had not said where its page is")));
    lines.on("line", (line) => {
      const page = line.match(/^inspect page: (http:[^,]+)/)?.[1];
      if (page) resolve(page);
    });
  });
}

/** Metrics by name, with the sum over their labels. @param {string} url @returns {Promise<Map<string, number>>} */
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

/** Calls `look` until it returns something, and returns that. @template T @param {string} what @param {() => Promise<T | null | undefined | false> | T | null | undefined | false} look @returns {Promise<T>} */
export async function until(what, look) {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`after ${PATIENCE_MS / 1000} s still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
