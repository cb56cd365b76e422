// Names of kinds and attributes, and attribute values as texts. The server sends the names as JSON, if it has any.

import { Reader } from "../src/codec.js";

/** An attribute: its id in packets, its name, and the encoding of its values. */
export type AttributeName = { id: number; name: string; encoding: string };

/** Longest shown value, in characters. */
const VALUE_CHARS_MAX = 40;

const text = new TextDecoder();

/** A zigzag number: 0, −1, 1, −2, … */
function zigzag(value: bigint): bigint {
  return (value & 1n) === 1n ? -((value + 1n) / 2n) : value / 2n;
}

/** An encoded value as a text; its bytes in hexadecimal if it does not fit its encoding. */
export function valueText(value: Uint8Array, encoding: string | undefined): string {
  const hex = () => `0x${[...value.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}${value.length > 16 ? "…" : ""}`;
  try {
    const reader = new Reader(value);
    const read = (): string | null => {
      switch (encoding) {
        case "u8":
          return `${reader.byte()}`;
        case "u16":
          return `${reader.u16()}`;
        case "u32":
          return `${reader.u32()}`;
        case "varint":
          return `${reader.varint64()}`;
        case "zigzag":
          return `${zigzag(reader.varint64())}`;
        case "f32":
          return `${Number(reader.f32().toPrecision(6))}`;
        case "bytes":
          return text.decode(reader.rest());
        default:
          return null;
      }
    };
    const shown = read();
    if (shown === null || !reader.isEmpty) {
      return hex();
    }
    return shown.length > VALUE_CHARS_MAX ? `${shown.slice(0, VALUE_CHARS_MAX)}…` : shown;
  } catch {
    return hex();
  }
}

/** Names by number. If the server sends no names, the numbers are shown. */
export class Names {
  private kinds: string[] = [];
  private attributes = new Map<number, AttributeName>();

  /** Loads the names; without a response there are none. */
  async load(): Promise<void> {
    const response = await fetch("/names").catch(() => null);
    const names = response?.ok ? ((await response.json().catch(() => null)) as { kinds?: string[]; attributes?: AttributeName[] } | null) : null;
    this.kinds = names?.kinds ?? [];
    this.attributes = new Map((names?.attributes ?? []).map((attribute) => [attribute.id, attribute]));
  }

  /** The name of a kind. */
  kind(kind: number): string {
    return this.kinds[kind] ?? `kind ${kind}`;
  }

  /** The names and values of attributes, in the order of the server's list of names. */
  list(values: ReadonlyMap<number, Uint8Array>): [string, string][] {
    const order = [...this.attributes.keys()];
    const place = (id: number) => (order.includes(id) ? order.indexOf(id) : order.length + id);
    const ids = [...values.keys()].sort((a, b) => place(a) - place(b));
    return ids.map((id) => [this.attributes.get(id)?.name ?? `attribute ${id}`, valueText(values.get(id)!, this.attributes.get(id)?.encoding)]);
  }
}
