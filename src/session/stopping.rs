//! How a server stops: nobody new is let in, then all sessions end.

use std::ops::Bound;

use super::reasons::LogoutReason;
use super::sessions::Sessions;
use crate::wire::ClientId;

impl Sessions {
    /// Lets nobody in any more, and ends all sessions, so many a tick: each is told, and its object saved and despawned as at
    /// any logout. It is over when there [are none](Self::is_empty).
    pub const fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Refuses every new login with [`LogoutReason::Stopping`] from now on, also of clients in the login queue. Players inside play
    /// on, and resume after a lost connection. [`drain`](Self::drain) ends their sessions, too.
    pub const fn refuse_logins(&mut self) {
        self.refuses_logins = true;
    }

    /// Whether it was told to [`refuse_logins`](Self::refuse_logins).
    #[must_use]
    pub const fn is_refusing_logins(&self) -> bool {
        self.refuses_logins
    }

    /// Lets clients in again after [`refuse_logins`](Self::refuse_logins) or a [`drain`](Self::drain), be it over or not.
    pub const fn reopen(&mut self) {
        (self.is_draining, self.refuses_logins) = (false, false);
    }

    /// Whether it was told to [`drain`](Self::drain).
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Ends so many sessions that are to end as are admitted in a tick otherwise.
    pub(super) fn end_some(&mut self) {
        if self.refuses_logins {
            let most = self.rules.admitted_per_tick_max.max(1) as usize;
            let queued: Vec<ClientId> = self.line.iter().take(most).collect();
            for client in queued {
                self.end(client, LogoutReason::Stopping);
            }
        }
        if self.is_draining {
            for _ in 0..self.rules.admitted_per_tick_max.max(1) {
                let Some(client) = self.open.numbers_above(Bound::Unbounded).next() else {
                    break;
                };
                self.end(client, LogoutReason::Stopping);
            }
        }
    }
}
