// A throng client for browsers.

export { WireError } from "./codec.js";
export { closeReasonText, endText, mayRetry } from "./close_reason.js";
export { clientMessage, connectRequest } from "./client_message.js";
export type { ClientInput, InputMotion } from "./client_message.js";
export { Connection, closeText } from "./connection.js";
export type { Line } from "./connection.js";
export { DatagramConnection } from "./datagrams.js";
export type { DatagramLink } from "./datagrams.js";
export { Endpoint } from "./endpoint.js";
export { TileGround } from "./ground.js";
export { Mirror } from "./mirror.js";
export type { MirrorObject, MirrorRemote, OwnPosition } from "./mirror.js";
export { Predictor, directionOf } from "./predictor.js";
export type { Correction, Ground } from "./predictor.js";
export { PROTOCOL_VERSION, refusalText } from "./server_message.js";
export type { Attribute, Motion, Notice, Refusal, ServerMessage, Vec } from "./server_message.js";
export { ResumingConnection } from "./resuming.js";
export type { OpenLine, ResumeSettings } from "./resuming.js";
export { Session } from "./session.js";
export type { SessionEvents, SessionSettings } from "./session.js";
