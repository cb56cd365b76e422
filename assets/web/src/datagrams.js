import { connectRequest, timeoutOf } from "./client_message.js";
import { GIVEN_UP, LOST } from "./close_reason.js";
import { Endpoint } from "./endpoint.js";
const nowS = () => performance.now() / 1000;
const OPEN_S_MAX = 3;
export class DatagramConnection {
    session;
    link;
    isOpen = false;
    wasOpen = false;
    fault = null;
    transport;
    endpoint = new Endpoint();
    timeoutS;
    receivedS = nowS();
    writer = null;
    constructor(url, sha256, token, session, over, link = null) {
        this.session = session;
        this.link = link;
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
            this.abandon();
            over(code);
        });
    }
    update() {
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
        }
        catch (fault) {
            this.fail(fault);
        }
        const write = (packet) => void writer.write(packet.slice()).catch(() => undefined);
        const { link } = this;
        if ((writer.desiredSize ?? 0) > 0) {
            this.endpoint.flush(nowS(), (packet) => (link === null ? write(packet) : link.send(packet, nowS())));
        }
        link?.update(nowS(), write, (packet) => this.take(packet));
    }
    close() {
        this.transport.close();
    }
    abandon() {
        this.transport.close({ closeCode: GIVEN_UP, reason: "" });
    }
    async run(request) {
        const late = setTimeout(() => this.transport.close(), OPEN_S_MAX * 1000);
        await this.transport.ready.finally(() => clearTimeout(late));
        const stream = await this.transport.createBidirectionalStream();
        const requestWriter = stream.writable.getWriter();
        await requestWriter.write(request.slice());
        void requestWriter.close().catch(() => undefined);
        this.writer = this.transport.datagrams.writable.getWriter();
        this.receivedS = nowS();
        [this.isOpen, this.wasOpen] = [true, true];
        void this.receiveDatagrams().catch(() => undefined);
        return this.code(stream.readable);
    }
    async code(stream) {
        const bytes = [];
        const reader = stream.getReader();
        for (let read = await reader.read(); !read.done && bytes.length < 2; read = await reader.read()) {
            bytes.push(...read.value.subarray(0, 2));
        }
        return bytes.length < 2 ? LOST : bytes[0] | (bytes[1] << 8);
    }
    async receiveDatagrams() {
        const { link } = this;
        const reader = this.transport.datagrams.readable.getReader();
        for (let read = await reader.read(); !read.done && this.fault === null; read = await reader.read()) {
            if (link === null) {
                this.take(read.value);
            }
            else {
                link.receive(read.value, nowS());
            }
        }
    }
    take(packet) {
        const now = (this.receivedS = nowS());
        try {
            this.endpoint.receive(packet, now, (message) => this.session.take(message, now));
        }
        catch (fault) {
            this.fail(fault);
        }
    }
    fail(fault) {
        this.fault ??= fault;
        this.transport.close();
    }
}
