import { connectRequest, timeoutOf } from "./client_message.js";
import { GIVEN_UP, LOST } from "./close_reason.js";
const nowS = () => performance.now() / 1000;
const SUSPENDED_S = 2;
export function closeText(code, wasOpen = false) {
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
export class Connection {
    session;
    over;
    isOpen = false;
    fault = null;
    socket;
    timeoutS;
    receivedS = nowS();
    updatedS = nowS();
    isOver = false;
    constructor(url, token, session, over) {
        this.session = session;
        this.over = over;
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
    update() {
        if (!this.isOpen) {
            return;
        }
        const now = nowS();
        if (now - this.updatedS > SUSPENDED_S) {
            this.receivedS = now;
        }
        this.updatedS = now;
        if (this.session.isWelcome && now - this.receivedS > this.timeoutS) {
            this.abandon();
            return;
        }
        this.session.act(now, (message) => this.socket.send(message.slice().buffer));
    }
    close() {
        this.socket.close(1000);
    }
    abandon() {
        this.socket.close(GIVEN_UP);
        this.end(LOST);
    }
    end(code) {
        if (!this.isOver) {
            [this.isOver, this.isOpen] = [true, false];
            this.over(code);
        }
    }
    take(data) {
        if (this.isOver) {
            return;
        }
        this.receivedS = nowS();
        try {
            this.session.take(new Uint8Array(data), this.receivedS);
        }
        catch (fault) {
            this.fault = fault;
            this.socket.close();
        }
    }
}
