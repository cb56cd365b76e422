// A session over a WebSocket of the browser.

import { connectRequest } from "./client_message.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

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
