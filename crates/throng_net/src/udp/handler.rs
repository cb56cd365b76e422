//! The server's way in, as these threads see it.

use std::sync::Arc;

use throng_protocol::wire::ClientId;

use crate::inbox::{ConnectionInfo, DisconnectReason};

/// Takes connections and messages of clients: the receiving side of a server. `throng::session::TransportHandle` implements it, and the
/// page of `throng::session::transport` is its contract.
pub trait ConnectionHandler: Send + Sync {
    /// A client connected, and has this number from now on; none where there is no room for it.
    fn connect(&self, connected: ConnectionInfo) -> Option<ClientId>;

    /// A message of a client came; what is not taken is counted there.
    fn receive(&self, client: ClientId, message: &[u8]);

    /// A client's connection is over.
    fn disconnect(&self, client: ClientId, reason: DisconnectReason);
}

/// The same, for several threads.
pub(crate) type SharedIntake = Arc<dyn ConnectionHandler>;
