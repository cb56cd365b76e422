// A connection that is opened again after a loss, and resumes the session.

import { INVALID, LOST, REFUSED, VERSION_CODES, mayRetry } from "./close_reason.js";
import type { Line } from "./connection.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

/** Pauses between two attempts in seconds: the first, and the longest. They are shortened at random by up to a half,
 * so that not all clients reconnect at once. */
const PAUSE_S = 0.25;
const PAUSE_S_MAX = 3;
/** Time limit of an attempt, until the server has replied. */
const ATTEMPT_S_MAX = 5;
/** After a connection that lasted this long, the pauses start again with the shortest. */
const STABLE_S = 10;
/** The server notices a loss within this time, and refuses the token until then. */
const NOTICED_S_MAX = 15;
/** The close code with which the server has ended the session. */
const NORMAL = 1000;

/** Opens a connection with a token, and calls `over` with a close code at its end. Each call must use the same token and session. */
export type OpenLine = (over: (code: number) => void) => Line;

/** Settings and events of a connection that resumes. */
export type ResumeSettings = {
  /** How long the server keeps a session whose connection was lost, in seconds: `reconnect_grace_s` and `return_s` of the server. */
  keepS?: number;
  /** The connection was lost, with this close code. It is opened again; a `welcome` message follows when the session continues. */
  lost?: (code: number) => void;
};

/**
 * The connection of a player. When it is lost, it is opened again with the same token until the session continues, or the server does not
 * keep it any longer. Time passes only in `update`, which a game calls once per frame.
 */
export class ResumingConnection implements Line {
  private line: Line | null = null;
  /** Number of the current connection. Callbacks of earlier ones have no effect. */
  private nth = 0;
  private openedS = 0;
  /** When the session began or continued over the current connection. */
  private welcomedS: number | null = null;
  /** Whether the session has begun over the first connection: only then the token resumes it. */
  private hasBegun = false;
  /** The loss after which it reconnects: its time and close code. */
  private loss: { atS: number; code: number } | null = null;
  private nextS = 0;
  private failures = 0;
  private isOver = false;
  private lastFault: unknown = null;

  constructor(
    private readonly session: Session,
    private readonly open: OpenLine,
    /**
     * The connection has ended for good, with a close code; `endText` has a sentence for it. With `mayLogIn`, a new connection with another
     * token may help, after `session.reconnect()`.
     */
    private readonly over: (code: number, mayLogIn: boolean) => void,
    private readonly settings: ResumeSettings = {},
  ) {
    this.connect();
  }

  get isOpen(): boolean {
    return this.line?.isOpen ?? false;
  }

  get fault(): unknown {
    return this.line?.fault ?? this.lastFault;
  }

  /** Whether the connection is lost and is being opened again. */
  get isReturning(): boolean {
    return this.loss !== null;
  }

  /** Sends pending messages, and opens a lost connection again when it is time. Call it once per frame. */
  update(): void {
    this.line?.update();
    if (this.isOver) {
      return;
    }
    const now = nowS();
    if (this.line !== null && this.welcomedS === null && this.session.isWelcome) {
      this.welcomedS = now;
      this.hasBegun = true;
      this.loss = null;
    }
    const { loss } = this;
    if (loss === null) {
      return;
    }
    if (now >= loss.atS + (this.settings.keepS ?? 30)) {
      this.drop();
      this.finish(loss.code, true);
    } else if (this.line === null && now >= this.nextS) {
      this.session.reconnect();
      this.connect();
    } else if (this.line !== null && now >= this.openedS + ATTEMPT_S_MAX) {
      this.drop();
      this.wait(now);
    }
  }

  /** Opens a lost connection at the next update instead of after a pause: for example when the browser is online again. */
  retry(): void {
    this.nextS = 0;
  }

  /** Leaves: closes the connection and ends the session. */
  close(): void {
    if (this.isOver) {
      return;
    }
    const { line } = this;
    this.nth += 1;
    this.finish(NORMAL, false);
    line?.close();
  }

  /** Gives the connection up as lost, and does not open it again. The server keeps the session for a while. */
  abandon(): void {
    if (!this.isOver) {
      this.drop();
      this.finish(LOST, true);
    }
  }

  private connect(): void {
    const nth = (this.nth += 1);
    [this.openedS, this.welcomedS] = [nowS(), null];
    const line = this.open((code) => {
      if (this.nth === nth) {
        this.nth += 1;
        this.ended(code);
      }
    });
    if (this.nth === nth) {
      this.line = line;
    }
  }

  /** Gives up the current connection or attempt. */
  private drop(): void {
    this.nth += 1;
    this.line?.abandon();
    this.line = null;
  }

  private ended(code: number): void {
    const now = nowS();
    const { closed, refusal } = this.session;
    this.lastFault = this.line?.fault ?? null;
    this.line = null;
    // The connection may end between the welcome and the next update.
    if (this.welcomedS === null && this.session.isWelcome) {
      [this.welcomedS, this.hasBegun, this.loss] = [now, true, null];
    }
    const { loss } = this;
    if (this.lastFault !== null || !this.hasBegun) {
      this.finish(code, this.lastFault === null && mayRetry(code, closed));
    } else if (loss !== null && closed === REFUSED && refusal?.cause === "byGame") {
      // The server no longer has the session, and the token cannot log in again.
      this.finish(loss.code, true);
    } else if (closed !== null || code === NORMAL || code > VERSION_CODES) {
      this.finish(code, false);
    } else if (code === INVALID && (loss === null || now >= loss.atS + NOTICED_S_MAX)) {
      this.finish(loss?.code ?? code, loss !== null);
    } else {
      if (loss === null) {
        this.loss = { atS: now, code };
        this.failures = now >= (this.welcomedS ?? now) + STABLE_S ? 0 : this.failures;
      }
      this.wait(now);
      if (loss === null) {
        this.settings.lost?.(code);
      }
    }
  }

  private wait(now: number): void {
    const pauseS = Math.min(PAUSE_S * 2 ** this.failures, PAUSE_S_MAX);
    this.nextS = now + pauseS * (1 - Math.random() / 2);
    this.failures += 1;
  }

  private finish(code: number, mayLogIn: boolean): void {
    [this.isOver, this.loss, this.line] = [true, null, null];
    this.over(code, mayLogIn);
  }
}
