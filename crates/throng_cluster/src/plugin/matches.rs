//! Tickets and matches, as messages.
//!
//! ```text
//! MatchTicket, MatchTicketCancel ──▶ rows ──▶ MatchTicketChanged, MatchTicketInvalid
//! MatchOpened ──▶ the game opens an instance ──▶ MatchReport ──▶ players arrive: MatchAssigned … MatchReport ──▶ they go home: MatchEnded
//! ```
//! The plugin hands players off to the node of their match, and home after it. The game only implements its hooks.

use std::collections::BTreeMap;

use bevy_app::{App, FixedPostUpdate, FixedPreUpdate};
use bevy_ecs::prelude::*;
use throng_core::ids::PlayerId;

use super::ClusterSystems;
use super::cluster_players::{ClusterPlayer, ClusterPlayers};
use super::collect::PlayerMove;
use crate::ids::NodeRun;
use crate::matcher::{MatchOutput, TicketNotAdded, TicketOutcome};
use crate::request::{
    MatchEntry, MatchId, TicketHome, TicketId, TicketMember, TicketRating, TravelGoal,
};

/// Request: a party queues for a match. After the match, all its players go home to this node and this scene, even if they were on another
/// node.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{MatchTicket, TicketRating};
/// use throng_core::ids::PlayerId;
///
/// fn queue(player: PlayerId, mut tickets: MessageWriter<MatchTicket>) {
///     let rating = TicketRating { skill: 1_500, ..TicketRating::default() };
///     tickets.write(MatchTicket { mode: "duel".to_owned(), players: vec![player], scene: "town".to_owned(), rating });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MatchTicket {
    /// The name of the mode.
    pub mode: String,
    /// The players, the leader first.
    pub players: Vec<PlayerId>,
    /// The scene on this node to which they go home.
    pub scene: String,
    /// The values by which matches are made.
    pub rating: TicketRating,
}

/// Request: cancels a ticket.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{MatchTicketCancel, TicketId};
///
/// fn cancel(id: TicketId, mut cancels: MessageWriter<MatchTicketCancel>) {
///     cancels.write(MatchTicketCancel(id));
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchTicketCancel(
    /// The ticket.
    pub TicketId,
);

/// The outcome of a [`MatchTicket`] or [`MatchTicketCancel`] of this node.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{MatchTicketChanged, TicketOutcome};
///
/// fn log(mut changes: MessageReader<MatchTicketChanged>) {
///     for it in changes.read().filter(|it| it.outcome == TicketOutcome::Added) {
///         println!("the party of {:?} waits with the ticket {:?}", it.leader, it.id);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchTicketChanged {
    /// The ticket.
    pub id: TicketId,
    /// The leader; only of a ticket that this node tried to add.
    pub leader: Option<PlayerId>,
    /// The outcome.
    pub outcome: TicketOutcome,
}

/// A [`MatchTicket`] or [`MatchTicketCancel`] was not sent: the ticket does not fit its mode, or the node cannot send it now.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::MatchTicketInvalid;
///
/// fn log(mut invalid: MessageReader<MatchTicketInvalid>) {
///     invalid.read().for_each(|it| println!("the party of {:?} does not queue: {}", it.leader, it.error));
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MatchTicketInvalid {
    /// The leader; `None` of a cancellation.
    pub leader: Option<PlayerId>,
    /// The reason.
    pub error: TicketNotAdded,
}

/// This node got a match. The game opens an instance, and reports that with [`MatchReport`].
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{MatchOpened, MatchReport, MatchStep};
///
/// fn open(mut matches: MessageReader<MatchOpened>, mut reports: MessageWriter<MatchReport>) {
///     for MatchOpened(entry) in matches.read() {
///         // … opens a scene for `entry.players`.
///         reports.write(MatchReport { id: entry.id, step: MatchStep::Opened });
///     }
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MatchOpened(
    /// The match.
    pub MatchEntry,
);

/// A match of this node was aborted, for example because the node was declared dead while it could not reach the store. The game closes the
/// instance. While the node is only paused, its matches stay open.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::MatchClosed;
///
/// fn close(mut matches: MessageReader<MatchClosed>) {
///     matches.read().for_each(|it| println!("{:?} is closed", it.0));
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchClosed(
    /// The match.
    pub MatchId,
);

/// The progress of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchStep {
    /// The instance is open, and its players can come.
    Opened,
    /// The match is over, with this result. Its players go home.
    Ended(Vec<u8>),
    /// The match cannot be opened or continued. Its players go home, and its tickets wait again if the mode is
    /// [requeued](crate::ClusterModeSettings::is_requeued).
    Failed,
}

/// Request: the game reports the progress of a match of this node.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{MatchId, MatchReport, MatchStep};
///
/// fn end(id: MatchId, mut reports: MessageWriter<MatchReport>) {
///     reports.write(MatchReport { id, step: MatchStep::Ended(b"2:1".to_vec()) });
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MatchReport {
    /// The match.
    pub id: MatchId,
    /// The progress.
    pub step: MatchStep,
}

/// The match of a player of this node is open.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::MatchAssigned;
///
/// fn enter(mut assigned: MessageReader<MatchAssigned>) {
///     for it in assigned.read() {
///         match it.moves_to {
///             Some(run) => println!("{:?} goes to node {}", it.player, run.node.0),
///             None => println!("{:?} is here for {:?}: it enters the instance", it.player, it.id),
///         }
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchAssigned {
    /// The player.
    pub player: PlayerId,
    /// The match.
    pub id: MatchId,
    /// The node to which the player is handed off; `None` if the match is on this node. The message may be repeated until the player is
    /// there.
    pub moves_to: Option<NodeRun>,
}

/// The match of a player is over, and the player is at home on this node, or stays on this node because its home is dead.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::MatchEnded;
///
/// fn return_home(mut ended: MessageReader<MatchEnded>) {
///     ended.read().for_each(|it| println!("{:?} is back in {}", it.player, it.home.scene));
/// }
/// ```
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct MatchEnded {
    /// The player.
    pub player: PlayerId,
    /// Its home, as in the ticket.
    pub home: TicketHome,
}

/// A player that has arrived on this node is in no match, or in one of this node. For games that save with a player in which match it is:
/// that match may be over, if the node of the player has died.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use throng_cluster::{ClusterPlayers, MatchId, NoMatchElsewhere};
///
/// /// From the record of the player.
/// #[derive(Component)]
/// struct InMatch(MatchId);
///
/// fn forget_match(mut found: MessageReader<NoMatchElsewhere>, players: Res<ClusterPlayers>, mut commands: Commands) {
///     for player in found.read().filter_map(|it| players.entity(it.0)) {
///         commands.entity(player).remove::<InMatch>();
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMatchElsewhere(
    /// The player.
    pub PlayerId,
);

/// The leaders of tickets that wait to be added.
#[derive(Resource, Default)]
struct TicketLeaders(BTreeMap<TicketId, PlayerId>);

/// Adds the messages and systems of matches.
pub(super) fn add_matches(app: &mut App) {
    app.init_resource::<TicketLeaders>()
        .add_message::<MatchTicket>()
        .add_message::<MatchTicketCancel>()
        .add_message::<MatchTicketChanged>()
        .add_message::<MatchTicketInvalid>()
        .add_message::<MatchOpened>()
        .add_message::<MatchClosed>()
        .add_message::<MatchReport>()
        .add_message::<MatchAssigned>()
        .add_message::<MatchEnded>()
        .add_message::<NoMatchElsewhere>()
        .add_systems(
            FixedPreUpdate,
            (rejoin_matches, read_matches)
                .chain()
                .after(ClusterSystems::Arrive),
        )
        .add_systems(
            FixedPostUpdate,
            send_matches.before(ClusterSystems::Collect),
        );
}

/// Sends players that have just arrived to their match, if it is on another node.
fn rejoin_matches(
    players: Res<ClusterPlayers>,
    arrived: Query<&ClusterPlayer, Added<ClusterPlayer>>,
) {
    let Some(driver) = players.driver().filter(|_| !arrived.is_empty()) else {
        return;
    };
    driver.with_matches(|matches| {
        arrived.iter().for_each(|player| matches.rejoin(player.0));
    });
}

/// Writes the messages about matches, and requests hand-offs of players.
fn read_matches(world: &mut World) {
    let players = world.resource::<ClusterPlayers>();
    let Some(driver) = players.driver() else {
        return;
    };
    let outputs = driver.take_match_outputs(|player| players.is_free(player));
    if outputs.is_empty() {
        return;
    }
    let nodes = driver.nodes();
    let name = |run: NodeRun| nodes.iter().find(|entry| entry.run == run);
    for output in outputs {
        match output {
            MatchOutput::Open(entry) => _ = world.write_message(MatchOpened(entry)),
            MatchOutput::Close(id) => _ = world.write_message(MatchClosed(id)),
            MatchOutput::Move(travel) => {
                let player = travel.player;
                if let (TravelGoal::Match(id), moves_to) = (travel.goal, travel.to) {
                    world.write_message(MatchAssigned {
                        player,
                        id,
                        moves_to,
                    });
                }
                // If the node is not in the list yet, the move is repeated later.
                if let Some(node) = travel.to.and_then(name) {
                    let to = node.name.clone();
                    world.write_message(PlayerMove { player, to });
                }
            }
            MatchOutput::Arrived(player, TravelGoal::Home(home)) => {
                world.write_message(MatchEnded { player, home });
            }
            MatchOutput::Arrived(player, TravelGoal::Match(id)) => {
                world.write_message(MatchAssigned {
                    player,
                    id,
                    moves_to: None,
                });
            }
            MatchOutput::NoTravel(player) => _ = world.write_message(NoMatchElsewhere(player)),
            MatchOutput::Ticket(id, outcome) => {
                let leader = world.resource_mut::<TicketLeaders>().0.remove(&id);
                world.write_message(MatchTicketChanged {
                    id,
                    leader,
                    outcome,
                });
            }
            MatchOutput::Store(..) | MatchOutput::Wake(_) => {}
        }
    }
}

/// Passes the requests of the game to the [`MatchNode`](crate::MatchNode).
fn send_matches(
    players: Res<ClusterPlayers>,
    mut leaders: ResMut<TicketLeaders>,
    mut tickets: MessageReader<MatchTicket>,
    mut cancels: MessageReader<MatchTicketCancel>,
    mut reports: MessageReader<MatchReport>,
    mut invalid: MessageWriter<MatchTicketInvalid>,
) {
    let Some(driver) = players.driver() else {
        return;
    };
    let node = driver.with_node(|node, _| node.run().node);
    driver.with_matches(|matches| {
        for ticket in tickets.read() {
            let members = ticket.players.iter().map(|player| TicketMember {
                player: *player,
                home: TicketHome {
                    node,
                    scene: ticket.scene.clone(),
                },
            });
            let leader = ticket.players.first().copied();
            let rating = ticket.rating.clone();
            match matches.add_ticket(&ticket.mode, members.collect(), rating) {
                Ok(id) => leaders.0.extend(leader.map(|leader| (id, leader))),
                Err(error) => _ = invalid.write(MatchTicketInvalid { leader, error }),
            }
        }
        for MatchTicketCancel(id) in cancels.read() {
            if let Err(error) = matches.cancel_ticket(*id) {
                let leader = None;
                invalid.write(MatchTicketInvalid { leader, error });
            }
        }
        for MatchReport { id, step } in reports.read() {
            let is_known = match step {
                MatchStep::Opened => matches.match_opened(*id),
                MatchStep::Ended(result) => matches.end_match(*id, result.clone()),
                MatchStep::Failed => matches.abort_match(*id),
            };
            if !is_known {
                tracing::debug!(?id, "match is not played on this node");
            }
        }
    });
}
