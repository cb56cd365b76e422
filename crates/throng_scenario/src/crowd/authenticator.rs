//! The authenticator of synthetic players, for runs with crowds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_ecs::prelude::*;

use throng::session::{AdmissionClass, Authenticator, LoginRequest, LoginResponder};
use throng::sim::StateHasher;
use throng::world::PlayerId;

/// Accepts players that the transport has authenticated, accepts synthetic players in the class of their crowd, and keeps a list
/// of banned addresses. All clones share their state: one goes to [`Authentication::new`](throng::session::Authentication::new),
/// one is a resource.
#[derive(Resource, Clone, Debug, Default)]
pub struct CrowdAuthenticator {
    list: Arc<Mutex<AdmissionList>>,
}

#[derive(Debug, Default)]
struct AdmissionList {
    /// The class of synthetic players, by the first player of each consecutive range.
    classes: BTreeMap<PlayerId, AdmissionClass>,
    banned: BTreeSet<IpAddr>,
}

impl CrowdAuthenticator {
    fn list(&self) -> MutexGuard<'_, AdmissionList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the class of all players from this one on, up to the start of the next range.
    pub(super) fn classify(&self, first: PlayerId, class: AdmissionClass) {
        self.list().classes.insert(first, class);
    }

    /// Refuses connections from an address from now on, for all players. Open connections stay.
    pub fn ban(&self, address: SocketAddr) {
        self.list().banned.insert(address.ip());
    }

    /// The number of banned addresses.
    #[must_use]
    pub fn banned_count(&self) -> usize {
        self.list().banned.len()
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        for &address in &self.list().banned {
            let bits = match address {
                IpAddr::V4(address) => u128::from(address.to_bits()),
                IpAddr::V6(address) => address.to_bits(),
            };
            hasher.write_u64((bits >> 64) as u64);
            hasher.write_u64(bits as u64);
        }
    }
}

impl Authenticator for CrowdAuthenticator {
    fn authenticate(&mut self, login: &LoginRequest<'_>, answer: LoginResponder) {
        if login.claims.player != Some(login.player) {
            answer.refuse();
            return;
        }
        let list = self.list();
        let class = list.classes.range(..=login.player).next_back();
        let class = class.map_or(AdmissionClass::Standard, |(_, &class)| class);
        drop(list);
        answer.accept_as(login.player, class);
    }

    fn is_banned(&mut self, address: SocketAddr) -> bool {
        self.list().banned.contains(&address.ip())
    }
}
