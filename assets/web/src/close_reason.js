import { PROTOCOL_VERSION } from "./server_message.js";
const REASONS = [
    "",
    "the session has ended",
    "the player logged in elsewhere",
    "the client is behind: it does not read fast enough",
    "the server is shutting down",
    "the player was kicked",
    "the address of the client is banned",
    "the player was idle for too long",
    "the client sends too many messages",
    "the login is refused: the authentication failed",
    "the login or the loading took too long",
    "the server is full",
    "the session continues over another connection",
    "the stored player is unavailable: the store does not answer, or another server has the player",
    "the connection is lost: the server received nothing for too long",
];
export const LOST = 1006;
export const INVALID = 1008;
const FULL = 1013;
const REASON_CODES = 4000;
export const GIVEN_UP = REASON_CODES + REASONS.indexOf("the connection is lost: the server received nothing for too long");
export const REFUSED = REASONS.indexOf("the login is refused: the authentication failed");
export const VERSION_CODES = 4100;
const LAST_CODE = 4999;
export function closeReasonText(reason) {
    return REASONS[reason] || `the server closed the connection: this version does not know the reason ${reason}`;
}
export function endText(code, closed) {
    if (closed !== null) {
        return closeReasonText(closed);
    }
    if (code === INVALID) {
        return "the server refused the token or a message: a token is valid once, and for a short time";
    }
    if (code === FULL) {
        return closeReasonText(REASONS.indexOf("the server is full"));
    }
    if (code > VERSION_CODES && code <= LAST_CODE) {
        const server = code - VERSION_CODES;
        const older = server > PROTOCOL_VERSION ? "client" : "server";
        return `the server speaks protocol ${server}, this client ${PROTOCOL_VERSION}: update the ${older}`;
    }
    if (code > REASON_CODES && code < VERSION_CODES) {
        return closeReasonText(code - REASON_CODES);
    }
    return "the connection is lost: nothing arrived from the server for too long, or the network broke";
}
export function mayRetry(code, closed) {
    const isForGood = code === INVALID || code > VERSION_CODES;
    return closed === null && !isForGood;
}
