import { INVALID, LOST, REFUSED, VERSION_CODES, mayRetry } from "./close_reason.js";
const nowS = () => performance.now() / 1000;
const PAUSE_S = 0.25;
const PAUSE_S_MAX = 3;
const ATTEMPT_S_MAX = 5;
const STABLE_S = 10;
const NOTICED_S_MAX = 15;
const NORMAL = 1000;
export class ResumingConnection {
    session;
    open;
    over;
    settings;
    line = null;
    nth = 0;
    openedS = 0;
    welcomedS = null;
    hasBegun = false;
    loss = null;
    nextS = 0;
    failures = 0;
    isOver = false;
    lastFault = null;
    constructor(session, open, over, settings = {}) {
        this.session = session;
        this.open = open;
        this.over = over;
        this.settings = settings;
        this.connect();
    }
    get isOpen() {
        return this.line?.isOpen ?? false;
    }
    get fault() {
        return this.line?.fault ?? this.lastFault;
    }
    get isReturning() {
        return this.loss !== null;
    }
    update() {
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
        }
        else if (this.line === null && now >= this.nextS) {
            this.session.reconnect();
            this.connect();
        }
        else if (this.line !== null && now >= this.openedS + ATTEMPT_S_MAX) {
            this.drop();
            this.wait(now);
        }
    }
    retry() {
        this.nextS = 0;
    }
    close() {
        if (this.isOver) {
            return;
        }
        const { line } = this;
        this.nth += 1;
        this.finish(NORMAL, false);
        line?.close();
    }
    abandon() {
        if (!this.isOver) {
            this.drop();
            this.finish(LOST, true);
        }
    }
    connect() {
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
    drop() {
        this.nth += 1;
        this.line?.abandon();
        this.line = null;
    }
    ended(code) {
        const now = nowS();
        const { closed, refusal } = this.session;
        this.lastFault = this.line?.fault ?? null;
        this.line = null;
        if (this.welcomedS === null && this.session.isWelcome) {
            [this.welcomedS, this.hasBegun, this.loss] = [now, true, null];
        }
        const { loss } = this;
        if (this.lastFault !== null || !this.hasBegun) {
            this.finish(code, this.lastFault === null && mayRetry(code, closed));
        }
        else if (loss !== null && closed === REFUSED && refusal?.cause === "byGame") {
            this.finish(loss.code, true);
        }
        else if (closed !== null || code === NORMAL || code > VERSION_CODES) {
            this.finish(code, false);
        }
        else if (code === INVALID && (loss === null || now >= loss.atS + NOTICED_S_MAX)) {
            this.finish(loss?.code ?? code, loss !== null);
        }
        else {
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
    wait(now) {
        const pauseS = Math.min(PAUSE_S * 2 ** this.failures, PAUSE_S_MAX);
        this.nextS = now + pauseS * (1 - Math.random() / 2);
        this.failures += 1;
    }
    finish(code, mayLogIn) {
        [this.isOver, this.loss, this.line] = [true, null, null];
        this.over(code, mayLogIn);
    }
}
