import { Reader } from "../src/codec.js";
const VALUE_CHARS_MAX = 40;
const text = new TextDecoder();
function zigzag(value) {
    return (value & 1n) === 1n ? -((value + 1n) / 2n) : value / 2n;
}
export function valueText(value, encoding) {
    const hex = () => `0x${[...value.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}${value.length > 16 ? "…" : ""}`;
    try {
        const reader = new Reader(value);
        const read = () => {
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
    }
    catch {
        return hex();
    }
}
export class Names {
    kinds = [];
    attributes = new Map();
    async load() {
        const response = await fetch("/names").catch(() => null);
        const names = response?.ok ? (await response.json().catch(() => null)) : null;
        this.kinds = names?.kinds ?? [];
        this.attributes = new Map((names?.attributes ?? []).map((attribute) => [attribute.id, attribute]));
    }
    kind(kind) {
        return this.kinds[kind] ?? `kind ${kind}`;
    }
    list(values) {
        const order = [...this.attributes.keys()];
        const place = (id) => (order.includes(id) ? order.indexOf(id) : order.length + id);
        const ids = [...values.keys()].sort((a, b) => place(a) - place(b));
        return ids.map((id) => [this.attributes.get(id)?.name ?? `attribute ${id}`, valueText(values.get(id), this.attributes.get(id)?.encoding)]);
    }
}
