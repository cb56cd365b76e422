//! Gateways hold the connections of clients and pass their messages to nodes.
//!
//! ```text
//! client ═ UDP, WebSocket ═▶ endpoint ─▶ ClientGateway ═ LinkSet, MessageBus ═▶ GatewayPort ─▶ ConnectionHandler of the node
//!        ◀═════════════════ sink     ◀─               ◀════════════════════════             ◀─ GatewaySink, the outbox of the node
//! ```
//!
//! A gateway has the sockets, tokens, encryption and retransmission of `throng_net`; a node handles the clients like its own. The links between
//! them carry the messages of clients and the reliable packets of the node reliably: each end keeps them until the other end acknowledges them.
//! If too much waits for a client, it is closed as [`SlowConsumer`](throng_protocol::wire::CloseReason::SlowConsumer); the tick never waits. When
//! a gateway dies, its clients are lost at the node, and may connect again with their tokens.
//!
//! A new client goes to the node of its player, if there is a route and that node is linked; otherwise to the node for logins with the fewest
//! clients of this gateway. Nodes for logins are those that broadcast their presence and do not drain, and those of the settings. When a route
//! to another node arrives, the client goes there over the same connection, with the messages that it has sent since; the former node ends its
//! session as [`Moved`](throng_net::inbox::DisconnectReason::Moved). When a node dies, its clients wait for the route of the node that claims
//! their players. Nodes count packets and epochs of a client from 0; the gateway adds the numbers that the client has received before.
//!
//! | file | contains |
//! |---|---|
//! | `relayed_message` | the messages between a gateway and a node about a client |
//! | `client_gateway` | the gateway: a [`ConnectionHandler`](throng_net::ConnectionHandler) for its endpoints, and its thread |
//! | `buffered_packets` | packets for clients, until the lock of the gateway is released |
//! | `gateway_settings` | its settings |
//! | `gateway_client` | a client: its node, and its messages while it has none |
//! | `packet_numbers` | translates the packet numbers of each node into those of the connection |
//! | `gateway_state` | the state that the endpoints and the thread of a gateway share |
//! | `login_nodes` | the nodes that a gateway knows |
//! | `node_clients` | which client has which number at its node |
//! | `gateway_port` | the node's end of the links |
//! | `counted_times` | how often something took how long |
//! | `hand_off_timer` | how long the hand-off of a client's player takes |
//! | `moved_session` | passes resume tokens from node to node |

mod buffered_packets;
mod client_gateway;
mod counted_times;
mod gateway_client;
mod gateway_port;
mod gateway_settings;
mod gateway_state;
mod hand_off_timer;
mod login_nodes;
mod moved_session;
mod node_clients;
mod packet_numbers;
mod relayed_message;

pub use client_gateway::ClientGateway;
pub use counted_times::CountedTimes;
pub use gateway_port::{GatewayPort, GatewayPortStats, GatewaySink};
pub use gateway_settings::GatewaySettings;
pub use gateway_state::GatewayStats;
#[cfg(feature = "server")]
pub(crate) use moved_session::MovedSession;

/// The longest packet that every endpoint of a gateway can send in one datagram, in bytes. Limit the packets of a node's outbox to it.
pub const GATEWAY_PACKET_BYTES_MAX: usize = 1_140;
