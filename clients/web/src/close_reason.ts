// Texts for the ends of connections.

import { PROTOCOL_VERSION } from "./server_message.js";

/** A sentence for each reason in *Closed*, by number. */
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

/** Close codes (RFC 6455): the connection was lost; the server refused the token or a message; it is full. */
export const LOST = 1006;
export const INVALID = 1008;
const FULL = 1013;
/** The close code for a reason is the sum of this and its number. */
const REASON_CODES = 4000;
/** The code with which a client closes a connection that it gives up as lost. Any other code ends the session. */
export const GIVEN_UP = REASON_CODES + REASONS.indexOf("the connection is lost: the server received nothing for too long");
/** The number of the reason in *Closed* after a refused login. */
export const REFUSED = REASONS.indexOf("the login is refused: the authentication failed");
/** The close code of a server that speaks another version of the protocol is the sum of this and that version. */
export const VERSION_CODES = 4100;
const LAST_CODE = 4999;

/** A sentence for a reason in *Closed*. */
export function closeReasonText(reason: number): string {
  return REASONS[reason] || `the server closed the connection: this version does not know the reason ${reason}`;
}

/** Why a connection has ended: the close code of the connection, and the reason in *Closed*, if the session received one. */
export function endText(code: number, closed: number | null): string {
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

/** Whether a new connection may help: the connection was lost, the client was behind, or the server is full. */
export function mayRetry(code: number, closed: number | null): boolean {
  const isForGood = code === INVALID || code > VERSION_CODES;
  return closed === null && !isForGood;
}
