//! Clients of a node whose connections a gateway holds.
//!
//! ```text
//! client ═ UDP, WebSocket ═▶ endpoint ─▶ ClientGateway ═ LinkSet, MessageBus ═▶ GatewayPort ─▶ ConnectionHandler of the node
//!        ◀═════════════════ sink     ◀─               ◀════════════════════════             ◀─ GatewaySink, the outbox of the node
//! ```
//!
//! A gateway has the sockets, tokens, encryption and repeats of `throng_net`; a node sees its clients as if they were its own. What clients
//! send is reliable on the way, and so are the reliable packets of the node: kept until the other end acknowledges them. A client for whom
//! too much waits is closed as [`SlowConsumer`](throng_protocol::wire::CloseReason::SlowConsumer); the tick never waits. When a gateway is gone, its clients are lost at the node, and may come back
//! with their token.
//!
//! A new client goes to the node of its player if a route says so and the node is linked, else to the node for logins with the fewest clients
//! of this gateway. Nodes for logins are those that broadcast their presence and do not drain. When a route says that its player is on another node now, the client goes there over the same connection, with what it has sent since; the
//! former node ends its session as [`Moved`](throng_net::inbox::DisconnectReason::Moved). When a node is gone, its clients wait for the route of the node that claims their players.
//! Nodes count packets and epochs of a client from 0; the gateway adds what the client has received before.
//!
//! | file | contains |
//! |---|---|
//! | `relayed_message` | what a gateway and a node send each other about a client |
//! | `client_gateway` | the gateway: a [`ConnectionHandler`](throng_net::ConnectionHandler) for its endpoints, and its thread |
//! | `gateway_client` | a client: its node, and its messages while it has none |
//! | `packet_numbers` | the numbers of packets, which go on from node to node |
//! | `gateway_state` | what the endpoints and the thread of a gateway share |
//! | `login_nodes` | the nodes that a gateway knows |
//! | `gateway_port` | the node's end |

mod client_gateway;
mod gateway_client;
mod gateway_port;
mod gateway_settings;
mod gateway_state;
mod login_nodes;
mod packet_numbers;
mod relayed_message;

pub use client_gateway::ClientGateway;
pub use gateway_port::{GatewayPort, GatewayPortStats, GatewaySink};
pub use gateway_settings::GatewaySettings;
pub use gateway_state::GatewayStats;

/// The longest packet that every endpoint of a gateway can send in one datagram, in bytes. Limit the packets of a node's outbox to it.
pub const GATEWAY_PACKET_BYTES_MAX: usize = 1_140;
