// A session over the browser's WebTransport.

import { connectRequest, timeoutOf } from "./client_message.js";
import { GIVEN_UP, LOST } from "./close_reason.js";
import type { Line } from "./connection.js";
import { Endpoint } from "./endpoint.js";
import type { Session } from "./session.js";

const nowS = () => performance.now() / 1000;

/** Timeout of the connection attempt, in seconds. If datagrams are not blocked, it takes a few round trips. */
const OPEN_S_MAX = 3;

/** A layer between an endpoint and the network: a page can simulate a worse one. */
export interface DatagramLink {
  /** Sends a packet. */
  send(packet: Uint8Array, nowS: number): void;
  /** Receives a packet. */
  receive(packet: Uint8Array, nowS: number): void;
  /** Delivers the packets that are due to the network and to the endpoint. */
  update(nowS: number, send: (packet: Uint8Array) => void, take: (packet: Uint8Array) => void): void;
}

/** A connection over datagrams: some are lost, and reliable messages are sent again. */
export class DatagramConnection implements Line {
  isOpen = false;
  /** Whether the connection was ever open. */
  wasOpen = false;
  fault: unknown = null;
  private readonly transport: WebTransport;
  private readonly endpoint = new Endpoint();
  private readonly timeoutS: number;
  private receivedS = nowS();
  private writer: WritableStreamDefaultWriter<Uint8Array> | null = null;

  constructor(
    url: string,
    /** The SHA-256 of the server's certificate. */
    sha256: Uint8Array,
    token: Uint8Array,
    private readonly session: Session,
    /** The connection has ended, with a code as for a `Connection`. */
    over: (code: number) => void,
    private readonly link: DatagramLink | null = null,
  ) {
    const request = connectRequest(token);
    this.timeoutS = timeoutOf(token);
    this.transport = new WebTransport(url, {
      serverCertificateHashes: [{ algorithm: "sha-256", value: sha256.slice() }],
      congestionControl: "low-latency",
    });
    this.transport.closed.catch(() => undefined);
    void this.run(request)
      .catch(() => LOST)
      .then((code) => {
        this.isOpen = false;
        // After a loss the server may still receive this.
        this.abandon();
        over(code);
      });
  }

  /** Sends pending packets. Call it once per frame. */
  update(): void {
    const { writer } = this;
    if (!this.isOpen || writer === null) {
      return;
    }
    if (nowS() - this.receivedS > this.timeoutS) {
      this.abandon();
      return;
    }
    try {
      this.session.act(nowS(), (message) => this.endpoint.push(message));
    } catch (fault) {
      this.fail(fault);
    }
    // Do not write packets that the browser cannot send yet: they would be outdated when it sends them.
    const write = (packet: Uint8Array) => void writer.write(packet.slice()).catch(() => undefined);
    const { link } = this;
    if ((writer.desiredSize ?? 0) > 0) {
      this.endpoint.flush(nowS(), (packet) => (link === null ? write(packet) : link.send(packet, nowS())));
    }
    link?.update(nowS(), write, (packet) => this.take(packet));
  }

  /** Closes the connection. */
  close(): void {
    this.transport.close();
  }

  /** Gives the connection up as lost. */
  abandon(): void {
    this.transport.close({ closeCode: GIVEN_UP, reason: "" });
  }

  /** Runs the connection from the handshake to its end. Returns the server's code. */
  private async run(request: Uint8Array): Promise<number> {
    const late = setTimeout(() => this.transport.close(), OPEN_S_MAX * 1000);
    await this.transport.ready.finally(() => clearTimeout(late));
    const stream = await this.transport.createBidirectionalStream();
    const requestWriter = stream.writable.getWriter();
    await requestWriter.write(request.slice());
    // Do not wait until it is read: a server that refuses the client may not read it.
    void requestWriter.close().catch(() => undefined);
    this.writer = this.transport.datagrams.writable.getWriter();
    this.receivedS = nowS();
    [this.isOpen, this.wasOpen] = [true, true];
    void this.receiveDatagrams().catch(() => undefined);
    return this.code(stream.readable);
  }

  /** The two bytes with the server's close code. */
  private async code(stream: ReadableStream<Uint8Array>): Promise<number> {
    const bytes: number[] = [];
    const reader = stream.getReader();
    for (let read = await reader.read(); !read.done && bytes.length < 2; read = await reader.read()) {
      bytes.push(...read.value.subarray(0, 2));
    }
    return bytes.length < 2 ? LOST : bytes[0]! | (bytes[1]! << 8);
  }

  private async receiveDatagrams(): Promise<void> {
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
    const now = (this.receivedS = nowS());
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
