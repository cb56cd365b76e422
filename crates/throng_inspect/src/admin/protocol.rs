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
    /// All bans.
    ListBans,
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
    Bans(Vec<Ban>),
    /// The number of ended sessions, and all bans.
    Banned(Result<(usize, Vec<Ban>), BanError>),
    /// The bans that are left; `None`: there was no such ban.
    Lifted(Option<Vec<Ban>>),
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
