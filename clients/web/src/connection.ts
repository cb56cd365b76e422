// A session over a WebSocket of the browser.

import { connectRequest } from "./client_message.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

/** How a session is carried, whichever way. */
export interface Line {
  /** Whether it is there; false before, and again once it is over. */
  isOpen: boolean;
  /** What did not fit, where that is why it is over. */
  fault: unknown;
  /** Sends what is due; to be called once a frame. */
  update(): void;
  /** Leaves. */
  close(): void;
}

/** A connection, which ends once: a lost one is replaced by another with a new token, after `session.reconnect()`. */
export class Connection implements Line {
  isOpen = false;
  fault: unknown = null;
  private readonly socket: WebSocket;

  constructor(
    url: string,
    token: Uint8Array,
    private readonly session: Session,
    /** It is over, with the code of RFC 6455: 1000 the server is done, 1008 the token is good for nothing, 1013 there is no room. */
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

  /** Sends what is due; to be called once a frame. */
  update(): void {
    if (this.isOpen) {
      this.session.act(nowS(), (message) => this.socket.send(message.slice().buffer));
    }
  }

  /** Leaves. */
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
