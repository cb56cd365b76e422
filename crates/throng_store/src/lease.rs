//! Leases: a player is live on one server at a time, and a late writer changes nothing.
//!
//! ```text
//! free ── claim: epoch + 1 ──▶ held until it expires ── renew ──▶ held for longer
//!  ▲                              │        │
//!  └────────── release ───────────┘        └─ expired, or its server came back: claim, epoch + 1 ──▶ held by another
//! ```
//! The epoch is the fencing token (Gray and Cheriton, *Leases*, 1989; Kleppmann, *How to do distributed locking*, 2016): every
//! claim gets a higher one, every write carries the writer's, and the store refuses a write with any but the newest. So what
//! is stored is right whatever clocks say.
//!
//! That no player is live on two servers at once rests on one clock, that of the store. A holder counts the time of a lease from
//! before it asks for it, by a clock that only has to run as fast: so it stops before the lease expires in the store. Another
//! server gets the lease when it has been expired for [`grace`](LeaseClaim::grace_ms). The grace is for a clock of the store
//! that is set forward.
//!
//! A lease never lasts longer than from now on for as long as it was granted: an expiry beyond that is of a clock that was set
//! back since, and is [bounded](LeaseState::bound) when it is read.

use serde::{Deserialize, Serialize};

/// A process that holds leases: the name that its operator gave it, and which process of that name it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerId {
    /// Its name. Two processes that run at the same time must not share it; a store refuses the second one.
    pub name: String,
    /// Counts the processes of that name; the store gives it.
    pub incarnation: u64,
}

/// Who asks for a lease, when, and for how long. Times in milliseconds of the Unix clock of the store.
#[derive(Clone, Copy, Debug)]
pub struct LeaseClaim<'a> {
    /// For whom.
    pub by: &'a ServerId,
    /// The time.
    pub now_ms: u64,
    /// How long it is to last.
    pub lease_ms: u64,
    /// How long a lease has to be expired before another server gets it.
    pub grace_ms: u64,
}

/// Somebody else holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRefused {
    /// Who does.
    pub holder: ServerId,
    /// How much longer, if it is not renewed, the grace included.
    pub left_ms: u64,
}

/// The lease of a player, as a store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// Which claim was the last; 0 before the first.
    pub epoch: u64,
    /// Who holds it; `None` when it is free.
    pub holder: Option<ServerId>,
    /// When it expires, by the clock of the store.
    pub expires_ms: u64,
    /// For how long it was granted.
    pub lease_ms: u64,
}

impl LeaseState {
    /// Bounds the expiry by the time for which the lease was granted. Whether that changed it: then the store has to keep it.
    pub fn clamp_expiry(&mut self, now_ms: u64) -> bool {
        let latest_ms = now_ms.saturating_add(self.lease_ms);
        let is_beyond = self.holder.is_some() && self.expires_ms > latest_ms;
        if is_beyond {
            self.expires_ms = latest_ms;
        }
        is_beyond
    }

    /// Gives it to whoever asks, if it can be had, and says its epoch. A server whose process is gone gets its own back at
    /// once by its next process: the dead do not write, and if they do, they are fenced off.
    ///
    /// # Errors
    /// [`LeaseRefused`], and nothing changes but an expiry that is to be [bounded](Self::clamp_expiry).
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
        // A number that somebody wrote by hand may be the last one.
        self.epoch = self.epoch.saturating_add(1);
        self.holder = Some(claim.by.clone());
        self.expires_ms = claim.now_ms.saturating_add(claim.lease_ms);
        self.lease_ms = claim.lease_ms;
        Ok(self.epoch)
    }

    /// Whether a writer of this epoch may write. One that released it may: what it wrote before is then written again.
    #[must_use]
    pub const fn allows_write(&self, epoch: u64) -> bool {
        self.epoch == epoch
    }

    /// Extends it, also when it has expired and nobody took it. `false` when it is another's, or was given back.
    pub fn renew(&mut self, epoch: u64, now_ms: u64, lease_ms: u64) -> bool {
        let is_held = self.allows_write(epoch) && self.holder.is_some();
        if is_held {
            self.expires_ms = now_ms.saturating_add(lease_ms);
            self.lease_ms = lease_ms;
        }
        is_held
    }

    /// Gives it back. Nothing happens when it is another's.
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
        // By a clock that was a year ahead, and was set right since.
        let year_ms = 365 * 86_400_000;
        assert_eq!(claim(&mut lease, &a, year_ms), Ok(1));
        let refused = claim(&mut lease, &b, 1_000).unwrap_err();
        assert_eq!((refused.left_ms, lease.expires_ms), (110, 1_100));
        assert_eq!(claim(&mut lease, &b, 1_050).unwrap_err().left_ms, 60);
        assert_eq!(claim(&mut lease, &b, 1_111), Ok(2));
    }
}
