//! The server's way in, as these threads see it.

use std::sync::Arc;

use crate::inbox::{Connected, DisconnectReason};
use crate::wire::ClientId;

/// Takes what clients do. Of the contract of [`transport`](crate::session::transport) it is the handle's part; a
/// [`TransportHandle`](crate::session::TransportHandle) is one.
pub trait ClientIntake: Send + Sync {
    /// A client connected, and has this number from now on; none where there is no room for it.
    fn connect(&self, connected: Connected) -> Option<ClientId>;

    /// A message of a client came; what is not taken is counted there.
    fn receive(&self, client: ClientId, message: &[u8]);

    /// A client's connection is over.
    fn disconnect(&self, client: ClientId, reason: DisconnectReason);
}

/// The same, for several threads.
pub(in crate::net) type SharedIntake = Arc<dyn ClientIntake>;
