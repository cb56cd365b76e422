//! The list of sessions.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use thiserror::Error;

use crate::wire::ClientId;
use crate::world::PlayerId;

/// A connection of a client: who plays by it, and which object it controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who plays; `None` before the login.
    pub player: Option<PlayerId>,
    /// The object that this client controls, or watches through.
    pub controls: Option<Entity>,
    /// The number of its newest message that was handled or refused, modulo 65,536: packets say so, and a client that counts
    /// what it sent knows what the server has seen. Every message that came from it counts, whatever became of it.
    pub inputs: u16,
    /// Whether packets are made for it; a client that only sends (a load generator's, say) needs none.
    pub receives: bool,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogoutReason {
    /// The client said so.
    Requested,
    /// The connection ended.
    Disconnected,
    /// The same player logged in elsewhere.
    Replaced,
    /// It took too little of what was sent to it.
    Behind,
    /// What is kept of the player cannot be had, or is another server's by now.
    Unavailable,
}

impl LogoutReason {
    /// The reason's name in event files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Disconnected => "disconnected",
            Self::Replaced => "replaced",
            Self::Behind => "behind",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SessionRefused {
    /// As many as there may be.
    #[error("the server is full: {0} sessions are open")]
    Full(usize),
}

/// All sessions, by ascending number.
#[derive(Resource, Debug, Default)]
pub struct Sessions {
    open: BTreeMap<ClientId, Session>,
    by_player: BTreeMap<PlayerId, ClientId>,
    connected: u32,
}

impl Sessions {
    /// Opens a session, up to `sessions_max`. O(log sessions).
    ///
    /// # Errors
    /// [`SessionRefused::Full`].
    pub(super) fn connect(
        &mut self,
        sessions_max: u32,
        receives: bool,
    ) -> Result<ClientId, SessionRefused> {
        if self.open.len() >= sessions_max as usize || self.connected == u32::MAX {
            return Err(SessionRefused::Full(self.open.len()));
        }
        self.connected += 1;
        let client = ClientId(self.connected);
        self.open.insert(
            client,
            Session {
                player: None,
                controls: None,
                inputs: 0,
                receives,
            },
        );
        Ok(client)
    }

    /// An open session.
    #[must_use]
    pub fn get(&self, client: ClientId) -> Option<&Session> {
        self.open.get(&client)
    }

    /// The session of a player.
    #[must_use]
    pub fn of(&self, player: PlayerId) -> Option<ClientId> {
        self.by_player.get(&player).copied()
    }

    /// All sessions by ascending number.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &Session)> {
        self.open.iter().map(|(&client, session)| (client, session))
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The number of a client's newest message that was handled or refused; 0 of one that is not there.
    #[must_use]
    pub fn input(&self, client: ClientId) -> u16 {
        self.get(client).map_or(0, |session| session.inputs)
    }

    /// A client's messages up to this number were handled or refused. `false` when there is no such session.
    pub(super) fn settle(&mut self, client: ClientId, number: u16) -> bool {
        let session = self.open.get_mut(&client);
        session.map(|session| session.inputs = number).is_some()
    }

    /// Gives a session its player. `false` when there is no such session, or it has a player already.
    pub(super) fn log_in(&mut self, client: ClientId, player: PlayerId) -> bool {
        let Some(session) = self
            .open
            .get_mut(&client)
            .filter(|session| session.player.is_none())
        else {
            return false;
        };
        session.player = Some(player);
        self.by_player.insert(player, client);
        true
    }

    /// Ends a session and gives what it was.
    pub(super) fn close(&mut self, client: ClientId) -> Option<Session> {
        let session = self.open.remove(&client)?;
        if let Some(player) = session.player
            && self.by_player.get(&player) == Some(&client)
        {
            self.by_player.remove(&player);
        }
        Some(session)
    }

    pub(super) fn set_control(&mut self, client: ClientId, entity: Option<Entity>) -> bool {
        self.open
            .get_mut(&client)
            .map(|session| session.controls = entity)
            .is_some()
    }
}
