// Issues a connect token of throng with Node.js, without packages: for login services that are not written in Rust, and as an
// example for other languages. `throng tokens --listen` does the same over HTTP.
//
//   node connect_token.mjs server.key 7 203.0.113.5:7000 [USER_DATA_HEX] > token.hex
//
// The token has the layout of netcode 1.02 (all integers are little-endian), with the id of the key in the nonce. The sealed part
// is XChaCha20-Poly1305: HChaCha20 of the key and the first 16 bytes of the nonce is the key of ChaCha20-Poly1305 (RFC 8439), whose
// nonce is four zero bytes and the other 8 bytes. In other languages: `crypto_aead_xchacha20poly1305_ietf_encrypt` of libsodium
// does both steps.
import { createCipheriv, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIPv4, isIPv6 } from "node:net";
import { fileURLToPath } from "node:url";

const VERSION = Buffer.from("NETCODE 1.02\0", "latin1");
const TOKEN_BYTES = 2048;
const PRIVATE_BYTES = 1024; // with the tag
const TAG_BYTES = 16;
const USER_DATA_BYTES = 256;
// `throng`, a zero byte, and the protocol version of the server in the last byte (`throng::wire::PROTOCOL_VERSION`).
export const PROTOCOL_ID = Buffer.from("throng\0\0", "latin1").readBigUInt64LE() | (4n << 56n);

/** The first key of a key file: its id (null if it has none) and its 32 bytes. */
export function readKey(text) {
    for (const line of text.split("\n").map((line) => line.trim())) {
        const found = /^(?:(\d+)\s+)?([0-9a-fA-F]{64})$/.exec(line);
        if (found) return { id: found[1] === undefined ? null : Number(found[1]), bytes: Buffer.from(found[2], "hex") };
        if (line !== "" && !line.startsWith("#")) throw new Error("expected the id of a key, a space and 64 hexadecimal digits");
    }
    throw new Error("expected at least one key");
}

/** A token of 2,048 bytes. `player` is a BigInt; `servers` are texts such as `203.0.113.5:7000` or `[2001:db8::1]:7000`. */
export function connectToken({ key, player, servers, userData = Buffer.alloc(0), lifetimeS = 30, timeoutS = 10, protocol = PROTOCOL_ID }) {
    if (servers.length < 1 || servers.length > 32) throw new Error("expected 1 to 32 servers");
    if (userData.length > USER_DATA_BYTES) throw new Error(`expected at most ${USER_DATA_BYTES} bytes of user data`);
    const created = BigInt(Math.floor(Date.now() / 1000));
    const expires = created + BigInt(lifetimeS);
    const addresses = Buffer.concat([u32(servers.length), ...servers.map(address)]);
    const keys = randomBytes(64); // keys of the connection: to the server, to the client
    // Bytes 0-7 of the nonce are the id of the key; the rest is random. A key without an id has a nonce of random bytes only.
    const nonce = key.id === null ? randomBytes(24) : Buffer.concat([Buffer.from("key\0", "latin1"), u32(key.id), randomBytes(16)]);
    const secret = Buffer.alloc(PRIVATE_BYTES - TAG_BYTES);
    Buffer.concat([u64(player), i32(timeoutS), addresses, keys, userData]).copy(secret);
    const sealed = seal(key.bytes, nonce, Buffer.concat([VERSION, u64(protocol), u64(expires)]), secret);
    const token = Buffer.alloc(TOKEN_BYTES);
    Buffer.concat([VERSION, u64(protocol), u64(created), u64(expires), nonce, sealed, i32(timeoutS), addresses, keys]).copy(token);
    return token;
}

/** XChaCha20-Poly1305: the encrypted bytes and their tag. */
export function seal(key, nonce, associated, bytes) {
    const shortNonce = Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]);
    const cipher = createCipheriv("chacha20-poly1305", hchacha20(key, nonce.subarray(0, 16)), shortNonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated, { plaintextLength: bytes.length });
    return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** HChaCha20 of draft-irtf-cfrg-xchacha-03, section 2.2. */
export function hchacha20(key, nonce) {
    const words = (bytes) => Array.from({ length: bytes.length / 4 }, (_, nth) => bytes.readUInt32LE(4 * nth));
    const state = Uint32Array.from([...words(Buffer.from("expand 32-byte k", "latin1")), ...words(key), ...words(nonce)]);
    const mix = (target, added, changed, bits) => {
        state[target] += state[added];
        const mixed = state[changed] ^ state[target];
        state[changed] = (mixed << bits) | (mixed >>> (32 - bits));
    };
    const quarter = (a, b, c, d) => {
        mix(a, b, d, 16);
        mix(c, d, b, 12);
        mix(a, b, d, 8);
        mix(c, d, b, 7);
    };
    for (let round = 0; round < 10; round++) {
        for (let nth = 0; nth < 4; nth++) quarter(nth, nth + 4, nth + 8, nth + 12);
        for (let nth = 0; nth < 4; nth++) quarter(nth, 4 + ((nth + 1) % 4), 8 + ((nth + 2) % 4), 12 + ((nth + 3) % 4));
    }
    const subkey = Buffer.alloc(32);
    [0, 1, 2, 3, 12, 13, 14, 15].forEach((word, nth) => subkey.writeUInt32LE(state[word], 4 * nth));
    return subkey;
}

function number(bytes, write) {
    const buffer = Buffer.alloc(bytes);
    write(buffer);
    return buffer;
}
const u32 = (value) => number(4, (buffer) => buffer.writeUInt32LE(value));
const i32 = (value) => number(4, (buffer) => buffer.writeInt32LE(value));
const u64 = (value) => number(8, (buffer) => buffer.writeBigUInt64LE(value));

/** An address in a token: 1 and 4 bytes, or 2 and 16 bytes, then the port in 2 bytes. */
function address(text) {
    const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*)):(\d+)$/.exec(text) ?? [];
    const end = number(2, (buffer) => buffer.writeUInt16LE(Number(port)));
    if (plain !== undefined && isIPv4(plain)) return Buffer.concat([Buffer.from([1, ...plain.split(".").map(Number)]), end]);
    if (bracketed === undefined || !isIPv6(bracketed)) throw new Error(`expected IP:PORT, found ${text}`);
    // The URL parser writes an IPv6 address in its shortest form, without a part in decimal notation.
    const [head, tail] = new URL(`http://[${bracketed}]/`).hostname.slice(1, -1).split("::");
    const parts = (side) => (side ? side.split(":") : []);
    const zeros = tail === undefined ? 0 : 8 - parts(head).length - parts(tail).length;
    const all = [...parts(head), ...Array(zeros).fill("0"), ...parts(tail)];
    return Buffer.concat([Buffer.from([2]), ...all.map((part) => number(2, (buffer) => buffer.writeUInt16BE(parseInt(part, 16)))), end]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [file, player, servers, userData = ""] = process.argv.slice(2);
    if (servers === undefined) {
        console.error("usage: node connect_token.mjs KEY_FILE PLAYER IP:PORT[,IP:PORT…] [USER_DATA_HEX]");
        process.exit(2);
    }
    const key = readKey(readFileSync(file, "utf8"));
    const token = connectToken({ key, player: BigInt(player), servers: servers.split(","), userData: Buffer.from(userData, "hex") });
    console.log(token.toString("hex"));
}
