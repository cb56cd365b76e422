// A session over a WebSocket of the browser.

import { connectRequest } from "./client_message.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

/** Why a connection ended, by the code that its callback receives, and whether it was ever open. */
export function closeText(code: number, wasOpen = false): string {
  switch (code) {
    case 1000:
      return "the server closed the connection";
    case 1008:
      return "token rejected: it was used before, is expired or of another key";
    case 1013:
      return "the server is full";
    default:
      return wasOpen
        ? "nothing was received from the server for too long"
        : "no answer from any of the token's servers (1): none runs there, or the token was used before, is expired or of another key";
  }
}

/** The transport of a session. */
export interface Line {
  /** Whether the connection is open; false while connecting, and after it has ended. */
  isOpen: boolean;
  /** The error, if the connection ended because of an invalid message. */
  fault: unknown;
  /** Sends pending messages. Call it once per frame. */
  update(): void;
  /** Closes the connection. */
  close(): void;
}

/** A connection, which ends once. To continue after a loss, call `session.reconnect()` and connect with a new token. */
export class Connection implements Line {
  isOpen = false;
  fault: unknown = null;
  private readonly socket: WebSocket;

  constructor(
    url: string,
    token: Uint8Array,
    private readonly session: Session,
    /** The connection has ended, with a close code; `endText` has a sentence for it, and `mayRetry` whether a new connection may help. */
    private readonly over: (code: number) => void,
  ) {
    const request = connectRequest(token);
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.socket.send(request);
      this.isOpen = true;
    };
    this.socket.onmessage = ({ data }) => this.take(data);
    this.socket.onclose = ({ code }) => {
      this.isOpen = false;
      this.over(code);
    };
  }

  /** Sends pending messages. Call it once per frame. */
  update(): void {
    if (this.isOpen) {
      this.session.act(nowS(), (message) => this.socket.send(message.slice().buffer));
    }
  }

  /** Closes the connection. */
  close(): void {
    this.socket.close(1000);
  }

  private take(data: unknown): void {
    try {
      this.session.take(new Uint8Array(data as ArrayBuffer), nowS());
    } catch (fault) {
      this.fault = fault;
      this.socket.close();
    }
  }
}
