export { WireError } from "./codec.js";
export { clientMessage, connectRequest } from "./client_message.js";
export { Connection } from "./connection.js";
export { TileGround } from "./ground.js";
export { Mirror } from "./mirror.js";
export { Predictor, directionOf } from "./predictor.js";
export { PROTOCOL_VERSION } from "./server_message.js";
export { Session } from "./session.js";
