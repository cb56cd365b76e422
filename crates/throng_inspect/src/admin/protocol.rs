//! The messages between the thread and the tick.

use serde::Serialize;
use throng::session::{Ban, BanError, BanTarget};
use throng::world::PlayerId;
use tokio::sync::oneshot;

/// A command, and where its outcome goes.
pub(super) struct AdminCommand {
    pub action: AdminAction,
    pub reply: oneshot::Sender<AdminOutcome>,
}

/// What an operator requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AdminAction {
    /// The players with ids above one, by ascending id.
    ListPlayers { after: Option<u64>, limit: usize },
    /// One player.
    ShowPlayer(PlayerId),
    /// Ends the session of a player.
    Kick(PlayerId),
    /// Bans, players by id and then address ranges, without the first ones.
    ListBans { skip: usize, limit: usize },
    /// Adds a ban, and ends the sessions of its target.
    Ban(Ban),
    /// Removes a ban.
    Lift(BanTarget),
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AdminOutcome {
    Players {
        players: Vec<LoggedInPlayer>,
        /// The last id, if there are more players.
        next: Option<u64>,
    },
    /// `None`: the player is not logged in.
    Player(Option<LoggedInPlayer>),
    /// Whether the player was logged in.
    Kicked(bool),
    Bans {
        bans: Vec<Ban>,
        /// The value of `skip` for the next page, if there are more bans.
        next: Option<usize>,
    },
    /// The number of ended sessions.
    Banned(Result<usize, BanError>),
    /// Whether there was such a ban.
    Lifted(bool),
}

/// A player that is logged in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct LoggedInPlayer {
    pub player: u64,
    pub client: u32,
    pub state: String,
    pub address: Option<String>,
    /// The scene and the id of its object, if it controls one.
    pub scene: Option<u32>,
    pub object: Option<u32>,
    /// In metres.
    pub position: Option<[f32; 2]>,
}
