// A session over the browser's WebTransport.

import { connectRequest } from "./client_message.js";
import type { Line } from "./connection.js";
import { Endpoint } from "./endpoint.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

/** How long it may take until there is a connection, in seconds: where datagrams are let through, it is a few round trips. */
const OPEN_S_MAX = 3;
/** Where a token says after how long without a packet the connection is lost, in seconds. */
const TIMEOUT_AT = 1085;
/** What the end of a line without a word is called (RFC 6455). */
const LOST = 1006;

/** What is between an endpoint and the net, where that is not the net alone: a page that shows a worse one. */
export interface DatagramLink {
  /** A packet goes out. */
  send(packet: Uint8Array, nowS: number): void;
  /** A packet came. */
  receive(packet: Uint8Array, nowS: number): void;
  /** Hands on what is due by now, to the net and to the endpoint. */
  update(nowS: number, send: (packet: Uint8Array) => void, take: (packet: Uint8Array) => void): void;
}

/** A line over datagrams: some get lost, and what must arrive is said again. */
export class DatagramConnection implements Line {
  isOpen = false;
  /** Whether there ever was a connection. */
  wasOpen = false;
  fault: unknown = null;
  private readonly transport: WebTransport;
  private readonly endpoint = new Endpoint();
  private readonly timeoutS: number;
  private heardS = nowS();
  private writer: WritableStreamDefaultWriter<Uint8Array> | null = null;

  constructor(
    url: string,
    /** The SHA-256 of the server's certificate. */
    sha256: Uint8Array,
    token: Uint8Array,
    private readonly session: Session,
    /** It is over, with the code as of a `Connection`. */
    over: (code: number) => void,
    private readonly link: DatagramLink | null = null,
  ) {
    const request = connectRequest(token);
    const timeoutS = new DataView(token.buffer, token.byteOffset).getInt32(TIMEOUT_AT, true);
    this.timeoutS = timeoutS < 0 ? Infinity : timeoutS;
    this.transport = new WebTransport(url, {
      serverCertificateHashes: [{ algorithm: "sha-256", value: sha256.slice() }],
      congestionControl: "low-latency",
    });
    this.transport.closed.catch(() => undefined);
    void this.run(request)
      .catch(() => LOST)
      .then((code) => {
        this.isOpen = false;
        this.transport.close();
        over(code);
      });
  }

  /** Sends what is due; to be called once a frame. */
  update(): void {
    const { writer } = this;
    if (!this.isOpen || writer === null) {
      return;
    }
    if (nowS() - this.heardS > this.timeoutS) {
      this.transport.close();
      return;
    }
    try {
      this.session.act(nowS(), (message) => this.endpoint.push(message));
    } catch (fault) {
      this.fail(fault);
    }
    // What the browser cannot send yet is not made: it would be old by then.
    const write = (packet: Uint8Array) => void writer.write(packet.slice()).catch(() => undefined);
    const { link } = this;
    if ((writer.desiredSize ?? 0) > 0) {
      this.endpoint.flush(nowS(), (packet) => (link === null ? write(packet) : link.send(packet, nowS())));
    }
    link?.update(nowS(), write, (packet) => this.take(packet));
  }

  /** Leaves. */
  close(): void {
    this.transport.close();
  }

  /** From the handshake to the end; gives the code that the server says. */
  private async run(request: Uint8Array): Promise<number> {
    const late = setTimeout(() => this.transport.close(), OPEN_S_MAX * 1000);
    await this.transport.ready.finally(() => clearTimeout(late));
    const stream = await this.transport.createBidirectionalStream();
    const shown = stream.writable.getWriter();
    await shown.write(request.slice());
    // It is only waited for that it went out, and who is not let in may not read it.
    void shown.close().catch(() => undefined);
    this.writer = this.transport.datagrams.writable.getWriter();
    this.heardS = nowS();
    [this.isOpen, this.wasOpen] = [true, true];
    void this.hear().catch(() => undefined);
    return this.code(stream.readable);
  }

  /** The two bytes that the server says at the end. */
  private async code(stream: ReadableStream<Uint8Array>): Promise<number> {
    const bytes: number[] = [];
    const reader = stream.getReader();
    for (let read = await reader.read(); !read.done && bytes.length < 2; read = await reader.read()) {
      bytes.push(...read.value.subarray(0, 2));
    }
    return bytes.length < 2 ? LOST : bytes[0]! | (bytes[1]! << 8);
  }

  private async hear(): Promise<void> {
    const { link } = this;
    const reader = this.transport.datagrams.readable.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    for (let read = await reader.read(); !read.done && this.fault === null; read = await reader.read()) {
      if (link === null) {
        this.take(read.value);
      } else {
        link.receive(read.value, nowS());
      }
    }
  }

  private take(packet: Uint8Array): void {
    const now = (this.heardS = nowS());
    try {
      this.endpoint.receive(packet, now, (message) => this.session.take(message, now));
    } catch (fault) {
      this.fail(fault);
    }
  }

  private fail(fault: unknown): void {
    this.fault ??= fault;
    this.transport.close();
  }
}
