// Test vectors, which the library's tests keep up to date, and the state of a mirror in their format.

import { readFileSync } from "node:fs";

import type { Mirror } from "../src/mirror.js";
import type { Notice } from "../src/server_message.js";

/** The values of a file, one per line. */
export function vectors<T>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(`../../tests/vectors/${name}.json`, import.meta.url), "utf8")) as T[];
}

export function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function nameOf(notice: Notice): string {
  switch (notice.kind) {
    case "welcome":
      return `welcome ${notice.player} ${hexOf(notice.token)}`;
    case "loading":
      return `loading ${notice.scene} [${notice.size.x}, ${notice.size.y}]`;
    case "closed": {
      const { reason, refusal } = notice;
      return refusal === null ? `closed ${reason}` : `closed ${reason} ${Object.values(refusal).join(" ")}`;
    }
    default:
      return Object.values(notice).join(" ");
  }
}

const valuesOf = (attributes: Map<number, Uint8Array>) =>
  [...attributes].sort(([a], [b]) => a - b).map(([id, value]) => [id, hexOf(value)]);

/** The state of a mirror, in the format of the vectors. */
export function stateOf(mirror: Mirror): Record<string, unknown> {
  const { scene, size, own, ownPosition, ownSpeed, tick, tickS, timePercent, input, received, packets, ignored, announces } = mirror;
  const ids = [...mirror.objects.keys()].sort((a, b) => a - b);
  const objects = ids.map((id) => {
    const object = mirror.objects.get(id)!;
    const { motion, motionTick, generation, kind, attributes } = object;
    const later = mirror.positionAfter(id, 0.25)!;
    return {
      id,
      generation,
      kind,
      tick: motionTick,
      units: [motion.x, motion.y],
      velocity: [motion.velocityX, motion.velocityY],
      heading: motion.heading,
      floor: motion.floor,
      isJump: motion.isJump,
      later: [later.x, later.y],
      attributes: valuesOf(attributes),
    };
  });
  const order = (a: { scene: number; id: number }, b: { scene: number; id: number }) => a.scene - b.scene || a.id - b.id;
  const remotes = [...mirror.remotes.values()].sort(order).map((remote) => ({ ...remote, attributes: valuesOf(remote.attributes) }));
  return {
    scene,
    size: [size.x, size.y],
    own: own && [own.id, own.generation],
    ownPosition: ownPosition && [ownPosition.tick, ownPosition.input, ownPosition.position.x, ownPosition.position.y],
    ownSpeed: ownSpeed && [ownSpeed.tick, ownSpeed.speedMS],
    tick,
    tickS,
    timePercent,
    input,
    received,
    packets,
    ignored,
    announces,
    objects,
    remotes,
  };
}
