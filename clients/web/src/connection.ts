// A session over a WebSocket of the browser.

import { connectRequest, timeoutOf } from "./client_message.js";
import { GIVEN_UP, LOST } from "./close_reason.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

/** A longer pause between two updates, in seconds, means that the page was suspended and may have missed messages. */
const SUSPENDED_S = 2;

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
  /** Leaves: closes the connection and ends the session. */
  close(): void;
  /** Gives the connection up as lost. The server keeps the session for a while. */
  abandon(): void;
}

/** A connection, which ends once. A `ResumingConnection` makes it again after a loss. */
export class Connection implements Line {
  isOpen = false;
  fault: unknown = null;
  private readonly socket: WebSocket;
  private readonly timeoutS: number;
  private receivedS = nowS();
  private updatedS = nowS();
  private isOver = false;

  constructor(
    url: string,
    token: Uint8Array,
    private readonly session: Session,
    /** The connection has ended, with a close code; `endText` has a sentence for it, and `mayRetry` whether a new connection may help. */
    private readonly over: (code: number) => void,
  ) {
    const request = connectRequest(token);
    this.timeoutS = timeoutOf(token);
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      if (!this.isOver) {
        this.socket.send(request);
        this.isOpen = true;
      }
    };
    this.socket.onmessage = ({ data }) => this.take(data);
    this.socket.onclose = ({ code }) => this.end(code);
  }

  /** Sends pending messages. Call it once per frame. */
  update(): void {
    if (!this.isOpen) {
      return;
    }
    const now = nowS();
    if (now - this.updatedS > SUSPENDED_S) {
      this.receivedS = now;
    }
    this.updatedS = now;
    // A browser takes minutes to notice that a network is gone. The server replies to the pings of a session.
    if (this.session.isWelcome && now - this.receivedS > this.timeoutS) {
      this.abandon();
      return;
    }
    this.session.act(now, (message) => this.socket.send(message.slice().buffer));
  }

  /** Closes the connection. */
  close(): void {
    this.socket.close(1000);
  }

  /** Gives the connection up as lost. Its end does not wait for the server, which may be out of reach. */
  abandon(): void {
    this.socket.close(GIVEN_UP);
    this.end(LOST);
  }

  private end(code: number): void {
    if (!this.isOver) {
      [this.isOver, this.isOpen] = [true, false];
      this.over(code);
    }
  }

  private take(data: unknown): void {
    if (this.isOver) {
      return;
    }
    this.receivedS = nowS();
    try {
      this.session.take(new Uint8Array(data as ArrayBuffer), this.receivedS);
    } catch (fault) {
      this.fault = fault;
      this.socket.close();
    }
  }
}
