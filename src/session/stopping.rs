//! How a server stops: it refuses logins, then ends all sessions.

use std::ops::Bound;

use super::reasons::LogoutReason;
use super::sessions::Sessions;
use crate::wire::ClientId;

impl Sessions {
    /// Refuses logins and ends all sessions, a limited number per tick: the client is notified, and its object is saved and despawned as
    /// at any logout. It is over when there are [no sessions](Self::is_empty).
    pub const fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Refuses every new login with [`LogoutReason::Stopping`] from now on, also of clients in the login queue. Players inside play
    /// on, and resume after a lost connection. [`drain`](Self::drain) ends their sessions, too.
    pub const fn refuse_logins(&mut self) {
        self.refuses_logins = true;
    }

    /// Whether logins are [refused](Self::refuse_logins).
    #[must_use]
    pub const fn is_refusing_logins(&self) -> bool {
        self.refuses_logins
    }

    /// Accepts logins again after [`refuse_logins`](Self::refuse_logins) or [`drain`](Self::drain).
    pub const fn reopen(&mut self) {
        (self.is_draining, self.refuses_logins) = (false, false);
    }

    /// Whether all sessions are being [ended](Self::drain).
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Ends sessions that must end, at most as many as may be admitted in a tick.
    pub(super) fn end_draining(&mut self) {
        if self.refuses_logins {
            let most = self.settings.admitted_per_tick_max.max(1) as usize;
            let queued: Vec<ClientId> = self.queue.iter().take(most).collect();
            for client in queued {
                self.end(client, LogoutReason::Stopping);
            }
        }
        if self.is_draining {
            for _ in 0..self.settings.admitted_per_tick_max.max(1) {
                let Some(client) = self.open.ids_after(Bound::Unbounded).next() else {
                    break;
                };
                self.end(client, LogoutReason::Stopping);
            }
        }
    }
}
