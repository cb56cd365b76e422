// What the tests use of Node, whose types would be a package more.

declare module "node:test" {
  export function test(name: string, run: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    (value: unknown, message?: string): asserts value;
    equal(found: unknown, expected: unknown, message?: string): void;
    deepEqual(found: unknown, expected: unknown, message?: string): void;
    throws(run: () => unknown, expected?: unknown): void;
  };
  export default assert;
}
declare module "node:fs" {
  export function readFileSync(path: URL, encoding: "utf8"): string;
}
