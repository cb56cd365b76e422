//! Who synthetic players are to the server: the hook of a run that has crowds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_ecs::prelude::*;

use crate::session::{AdmissionClass, Authenticator, LoginAnswer, LoginAsked};
use crate::sim::StateHasher;
use crate::world::PlayerId;

/// Lets in whom its transport vouches for, synthetic players in the class of their crowd, and keeps a list of banned addresses.
/// Every clone is the same: one goes to [`Authentication::new`](crate::session::Authentication::new), one is a resource.
#[derive(Resource, Clone, Debug, Default)]
pub struct CrowdAuthenticator {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of synthetic players the class, by the first of those who follow each other in it.
    classes: BTreeMap<PlayerId, AdmissionClass>,
    banned: BTreeSet<IpAddr>,
}

impl CrowdAuthenticator {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From a player on all are of a class, up to the next of whom it is said.
    pub(super) fn classify(&self, first: PlayerId, class: AdmissionClass) {
        self.known().classes.insert(first, class);
    }

    /// Connections from an address are refused from now on, whoever they are of. Those that are there stay.
    pub fn ban(&self, address: SocketAddr) {
        self.known().banned.insert(address.ip());
    }

    /// How many addresses are banned.
    #[must_use]
    pub fn banned(&self) -> usize {
        self.known().banned.len()
    }

    pub(super) fn hash(&self, hasher: &mut StateHasher) {
        for &address in &self.known().banned {
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
    fn ask(&mut self, login: &LoginAsked<'_>, answer: LoginAnswer) {
        if login.claims.player != Some(login.player) {
            answer.refuse();
            return;
        }
        let known = self.known();
        let class = known.classes.range(..=login.player).next_back();
        let class = class.map_or(AdmissionClass::Anybody, |(_, &class)| class);
        drop(known);
        answer.accept_as(login.player, class);
    }

    fn is_banned(&mut self, address: SocketAddr) -> bool {
        self.known().banned.contains(&address.ip())
    }
}
