import { connectRequest } from "./client_message.js";
const nowS = () => performance.now() / 1000;
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
    constructor(url, token, session, over) {
        this.session = session;
        this.over = over;
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
    update() {
        if (this.isOpen) {
            this.session.act(nowS(), (message) => this.socket.send(message.slice().buffer));
        }
    }
    close() {
        this.socket.close(1000);
    }
    take(data) {
        try {
            this.session.take(new Uint8Array(data), nowS());
        }
        catch (fault) {
            this.fault = fault;
            this.socket.close();
        }
    }
}
