import { connectRequest } from "./client_message.js";
const nowS = () => performance.now() / 1000;
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
