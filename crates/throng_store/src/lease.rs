//! Leases: a player is live on one server at a time, and writes of a former holder are refused.
//!
//! ```text
//! free ── claim: epoch + 1 ──▶ held until it expires ── renew ──▶ held for longer
//!  ▲                              │        │
//!  └────────── release ───────────┘        └─ expired, or its server restarted: claim, epoch + 1 ──▶ held by another
//! ```
//!
//! The epoch is the fencing token (Gray and Cheriton, *Leases*, 1989; Kleppmann, *How to do distributed locking*, 2016). Every claim
//! increments it, every write carries the epoch of the writer, and the store refuses all but the newest. So the stored data is correct
//! whatever the clocks say.
//!
//! That no player is live on two servers at once depends on one clock, that of the store. A holder measures its lease from before its
//! request, by a clock that only has to run at the same speed. So it stops before the lease expires in the store. Another server gets the
//! lease after it has been expired for [`grace`](LeaseClaim::grace_ms), in case the clock of the store is set forward.
//!
//! A lease never lasts longer than granted, counted from now. A later expiry means that the clock was set back, and is
//! [clamped](LeaseState::clamp_expiry) when the lease is read.

use serde::{Deserialize, Serialize};

/// A process that holds leases: the name that its operator gave it, and its number among the processes of that name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerId {
    /// Name of the server. Two running processes must not share it; a store refuses the second one.
    pub name: String,
    /// Number of this process among those of the name; assigned by the store.
    pub incarnation: u64,
}

/// A request for a lease. Times are Unix milliseconds of the clock of the store.
#[derive(Clone, Copy, Debug)]
pub struct LeaseClaim<'a> {
    /// The claiming server.
    pub by: &'a ServerId,
    /// Current time.
    pub now_ms: u64,
    /// Requested duration.
    pub lease_ms: u64,
    /// How long a lease must be expired before another server gets it.
    pub grace_ms: u64,
}

/// Another server holds the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRefused {
    /// The holder.
    pub holder: ServerId,
    /// Remaining time including the grace period, if it is not renewed.
    pub left_ms: u64,
}

/// The lease of a player, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// Epoch of the last claim; 0 before the first.
    pub epoch: u64,
    /// The holder; `None` if the lease is free.
    pub holder: Option<ServerId>,
    /// Expiry, by the clock of the store.
    pub expires_ms: u64,
    /// Granted duration.
    pub lease_ms: u64,
}

impl LeaseState {
    /// Limits the expiry to the granted duration from now. Returns whether that changed it: then the store has to save it.
    pub fn clamp_expiry(&mut self, now_ms: u64) -> bool {
        let latest_ms = now_ms.saturating_add(self.lease_ms);
        let is_beyond = self.holder.is_some() && self.expires_ms > latest_ms;
        if is_beyond {
            self.expires_ms = latest_ms;
        }
        is_beyond
    }

    /// Grants the lease if it is available, and returns its epoch. A restarted server gets the leases of its former process at once: that
    /// process has ended, and if it still writes, the epoch fences it off.
    ///
    /// # Errors
    /// [`LeaseRefused`]; then only the expiry may have been [clamped](Self::clamp_expiry).
    pub fn claim(&mut self, claim: LeaseClaim) -> Result<u64, LeaseRefused> {
        self.clamp_expiry(claim.now_ms);
        let ends_ms = self.expires_ms.saturating_add(claim.grace_ms);
        if let Some(holder) = &self.holder {
            let is_own = holder.name == claim.by.name && holder.incarnation <= claim.by.incarnation;
            if !is_own && claim.now_ms <= ends_ms {
                return Err(LeaseRefused {
                    holder: holder.clone(),
                    left_ms: ends_ms - claim.now_ms,
                });
            }
        }
        // The stored number may have been edited by hand to the maximum.
        self.epoch = self.epoch.saturating_add(1);
        self.holder = Some(claim.by.clone());
        self.expires_ms = claim.now_ms.saturating_add(claim.lease_ms);
        self.lease_ms = claim.lease_ms;
        Ok(self.epoch)
    }

    /// Whether a writer with this epoch may write. A writer that has released the lease may: then it repeats an earlier write.
    #[must_use]
    pub const fn allows_write(&self, epoch: u64) -> bool {
        self.epoch == epoch
    }

    /// Extends the lease, also an expired one that nobody has taken. `false` if another server has it, or it was released.
    pub fn renew(&mut self, epoch: u64, now_ms: u64, lease_ms: u64) -> bool {
        let is_held = self.allows_write(epoch) && self.holder.is_some();
        if is_held {
            self.expires_ms = now_ms.saturating_add(lease_ms);
            self.lease_ms = lease_ms;
        }
        is_held
    }

    /// Releases the lease. Does nothing if another server has it.
    pub fn release(&mut self, epoch: u64) {
        if self.allows_write(epoch) {
            self.holder = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, incarnation: u64) -> ServerId {
        ServerId {
            name: name.to_owned(),
            incarnation,
        }
    }

    fn claim(lease: &mut LeaseState, by: &ServerId, now_ms: u64) -> Result<u64, LeaseRefused> {
        lease.claim(LeaseClaim {
            by,
            now_ms,
            lease_ms: 100,
            grace_ms: 10,
        })
    }

    #[test]
    fn lease_is_exclusive_until_expiry_plus_clock_grace() {
        let (a, b) = (server("a", 1), server("b", 1));
        let mut lease = LeaseState::default();
        assert_eq!(claim(&mut lease, &a, 1_000), Ok(1));
        let refused = LeaseRefused {
            holder: a.clone(),
            left_ms: 0,
        };
        assert_eq!(claim(&mut lease, &b, 1_110), Err(refused));
        assert!(lease.renew(1, 1_050, 100));
        assert!(claim(&mut lease, &b, 1_111).is_err());
        assert_eq!(claim(&mut lease, &b, 1_161), Ok(2));
        assert!(
            !lease.allows_write(1) && !lease.renew(1, 9_999, 100),
            "it is b's now"
        );
        lease.release(1);
        assert_eq!(lease.holder, Some(b), "a has nothing to give back");
    }

    #[test]
    fn restarted_server_regains_its_leases_from_the_dead_process() {
        let mut lease = LeaseState::default();
        assert_eq!(claim(&mut lease, &server("a", 1), 0), Ok(1));
        assert_eq!(claim(&mut lease, &server("a", 2), 1), Ok(2));
        assert!(claim(&mut lease, &server("a", 1), 2).is_err());
    }

    #[test]
    fn released_lease_cannot_be_renewed_and_is_free_at_once() {
        let mut lease = LeaseState::default();
        assert_eq!(claim(&mut lease, &server("a", 1), 0), Ok(1));
        lease.release(1);
        assert!(!lease.renew(1, 500, 100));
        assert_eq!(claim(&mut lease, &server("b", 1), 1), Ok(2));
    }

    #[test]
    fn lease_lasts_no_longer_than_granted_from_when_it_is_read() {
        let (a, b) = (server("a", 1), server("b", 1));
        let mut lease = LeaseState::default();
        // By a clock that was a year ahead and has been corrected.
        let year_ms = 365 * 86_400_000;
        assert_eq!(claim(&mut lease, &a, year_ms), Ok(1));
        let refused = claim(&mut lease, &b, 1_000).unwrap_err();
        assert_eq!((refused.left_ms, lease.expires_ms), (110, 1_100));
        assert_eq!(claim(&mut lease, &b, 1_050).unwrap_err().left_ms, 60);
        assert_eq!(claim(&mut lease, &b, 1_111), Ok(2));
    }
}
