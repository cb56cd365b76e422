//! The interface through which the transport threads pass clients and messages to the server.

use std::sync::Arc;

use throng_protocol::wire::ClientId;

use crate::inbox::{ConnectionInfo, DisconnectReason};

/// Receives connections and messages of clients for a server. `throng::session::TransportHandle` implements it; the documentation of
/// `throng::session::transport` is the contract.
///
/// An endpoint calls it while it locks its clients. A handler must not wait for a lock under which something else calls the endpoint's
/// [`PacketSink`](crate::outbox::PacketSink).
pub trait ConnectionHandler: Send + Sync {
    /// A client has connected. Returns its id from now on, or `None` if there is no room for it.
    fn connect(&self, connected: ConnectionInfo) -> Option<ClientId>;

    /// A message of a client was received. The handler counts the messages that it refuses.
    fn receive(&self, client: ClientId, message: &[u8]);

    /// The connection of a client has ended.
    fn disconnect(&self, client: ClientId, reason: DisconnectReason);
}

/// A handler that several threads share.
pub(crate) type SharedIntake = Arc<dyn ConnectionHandler>;
