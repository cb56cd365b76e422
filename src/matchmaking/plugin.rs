//! Matchmaking in the tick: requests in, matches on the heartbeat, facts out.
//!
//! ```text
//! every tick   QueueRequest ──▶ [queue_tickets]  ──▶ TicketQueued    · TicketRefused
//!              CancelRequest ─▶ [cancel_tickets] ──▶ TicketCancelled · TicketRefused
//! Heartbeat                     [make_matches]   ──▶ TicketExpired   · MatchFormed
//! ```
//! Requests are taken in every tick, right before [`SimSystems::Heartbeat`]: a message lives for two ticks, a
//! heartbeat is longer, and a request made on the tick of a heartbeat takes part in it. The requests of one
//! tick are handled in the order in which they were written, all cancellations after all parties that queue,
//! so that a party that queues and leaves at once is gone.
//!
//! Invariant after every tick: [`Matchmaker::conserved`].
//!
//! Limits: a request costs O(1) (more only when it gives waiting time back, see [`Matcher::queue`]), is
//! handled in its own tick, and none is carried over, so that what bounds the writers (for clients the
//! inbox's budget) bounds the work; the queues themselves are bounded by
//! [`ModeSettings::tickets_max`](super::ModeSettings::tickets_max). Every refusal is a message and a count.

use std::ops::{Deref, DerefMut};

use bevy_app::{App, FixedUpdate, Plugin, Startup};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use serde::{Deserialize, Serialize};
use tracing::{debug, error};

use super::matcher::{Match, Matcher};
use super::mode::{ModeError, ModeId, QueueMode};
use super::ticket::{Ticket, TicketError};
use crate::sim::{self, HashAppExt, Heartbeat, HeartbeatSystems, SimSystems, SimTick};

/// Makes battles out of waiting parties, in [`HeartbeatSystems::Match`]. Needs no other plugin of the crate:
/// parties and players are plain numbers to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchmakingPlugin;

impl Plugin for MatchmakingPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.init_resource::<MatchmakingSettings>()
            .init_resource::<Matchmaker>()
            .init_resource::<MatchmakingStats>()
            .add_message::<QueueRequest>()
            .add_message::<CancelRequest>()
            .add_message::<TicketQueued>()
            .add_message::<TicketRefused>()
            .add_message::<TicketCancelled>()
            .add_message::<TicketExpired>()
            .add_message::<MatchFormed>()
            .add_systems(Startup, open_modes)
            .add_systems(
                FixedUpdate,
                (queue_tickets, cancel_tickets)
                    .chain()
                    .after(SimSystems::View)
                    .before(SimSystems::Heartbeat),
            )
            .add_systems(Heartbeat, make_matches.in_set(HeartbeatSystems::Match))
            .hash_part("tickets", |world, hasher| {
                world
                    .resource::<Matchmaker>()
                    .digest(&mut |word| hasher.write_u64(word));
            });
    }
}

/// The modes in which parties can queue.
///
/// Read once, when the app starts, unless a [`Matchmaker`] with modes is there already. To change modes
/// later, insert a new [`Matchmaker`].
#[derive(Resource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchmakingSettings {
    /// The modes; their ids are their places, from 0.
    pub modes: Vec<QueueMode>,
}

/// What is counted beside the statistics of each mode ([`Matcher::stats`]).
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchmakingStats {
    /// Requests to queue that were refused, for whatever reason.
    pub queue_refused: u64,
    /// Cancellations that were refused.
    pub cancel_refused: u64,
}

/// The waiting parties of all modes: a [`Matcher`] as a resource.
///
/// To queue and cancel by messages keeps an order that does not depend on the schedule. Whoever calls
/// [`Matcher::queue`], [`Matcher::cancel`] or [`Matcher::remove_player`] directly (a bulk load, a player who
/// is gone for good) gets the outcome as the result, and no fact is written.
#[derive(Resource, Clone, Debug)]
pub struct Matchmaker(Matcher);

impl Matchmaker {
    /// Opens these modes at `tick_hz` ticks a second. Inserted as a resource it replaces the old one, whose
    /// parties wait no more.
    ///
    /// # Errors
    /// [`ModeError`] when a mode's settings are out of range or two have the same name.
    pub fn new(modes: &[QueueMode], tick_hz: f64) -> Result<Self, ModeError> {
        Matcher::new(modes, tick_hz).map(Self)
    }

    /// Whether the books are right: in every mode queued = matched + cancelled + expired + waiting, counted
    /// in parties. O(modes).
    #[must_use]
    pub fn conserved(&self) -> bool {
        self.modes().iter().all(|mode| {
            let stats = mode.stats();
            let gone = stats.matched_parties + stats.cancelled + stats.expired;
            stats.queued == gone + mode.queue().len() as u64
        })
    }
}

impl Default for Matchmaker {
    /// No modes: every ticket is refused.
    fn default() -> Self {
        Self::new(&[], 1.0).expect("without modes nothing can be out of range")
    }
}

impl Deref for Matchmaker {
    type Target = Matcher;

    fn deref(&self) -> &Matcher {
        &self.0
    }
}

impl DerefMut for Matchmaker {
    fn deref_mut(&mut self) -> &mut Matcher {
        &mut self.0
    }
}

/// A party wants a battle. Answered in the same tick by [`TicketQueued`] or [`TicketRefused`].
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct QueueRequest {
    /// Its ticket. A `since_tick` that is not reached yet counts as now.
    pub ticket: Ticket,
}

/// A party wants to wait no longer. Answered in the same tick by [`TicketCancelled`] or [`TicketRefused`].
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// The party.
    pub party: u32,
    /// The player who asks, and must be a member; `None` when the server itself asks.
    pub player: Option<u64>,
}

/// A party waits from this tick on.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct TicketQueued {
    /// Its ticket.
    pub ticket: Ticket,
}

/// A request was refused; the queues are as they were.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct TicketRefused {
    /// The party that the request was about.
    pub party: u32,
    /// Why.
    pub error: TicketError,
}

/// A party waits no more, since it was asked for.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketCancelled {
    /// The party.
    pub party: u32,
    /// Where it waited.
    pub mode: ModeId,
}

/// A party waits no more, since it has waited too long.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketExpired {
    /// The party.
    pub party: u32,
    /// Where it waited.
    pub mode: ModeId,
}

/// Two groups are to fight each other; their parties wait no more.
#[derive(Message, Clone, Debug, PartialEq)]
pub struct MatchFormed {
    /// Who against whom, and how good a match it is.
    pub found: Match,
}

/// Ticks in a thousand seconds, rounded. A timestep is kept in whole nanoseconds, so that thirty ticks a
/// second last a little less than one; to the millihertz, the rate is the one that was meant.
pub(crate) fn tick_mhz(time: &Time<Fixed>) -> u64 {
    let timestep_ns = time.timestep().as_nanos().max(1);
    ((1_000_000_000_000 + timestep_ns / 2) / timestep_ns).max(1) as u64
}

/// Opens the modes of the settings.
fn open_modes(
    settings: Res<MatchmakingSettings>,
    time: Option<Res<Time<Fixed>>>,
    mut matchmaker: ResMut<Matchmaker>,
) {
    if !matchmaker.modes().is_empty() || settings.modes.is_empty() {
        return;
    }
    let Some(time) = time else {
        error!(
            "no mode of matchmaking is open: expected bevy_time's `TimePlugin`, found no `Time<Fixed>`"
        );
        return;
    };
    match Matchmaker::new(&settings.modes, tick_mhz(&time) as f64 / 1000.0) {
        Ok(opened) => *matchmaker = opened,
        // The app plays on without battles; what is wrong with its numbers is the embedder's to mend.
        Err(reason) => error!(%reason, "no mode of matchmaking is open"),
    }
}

/// Parties that want to wait.
fn queue_tickets(
    tick: Res<SimTick>,
    mut requests: MessageReader<QueueRequest>,
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
    mut queued: MessageWriter<TicketQueued>,
    mut refused: MessageWriter<TicketRefused>,
) {
    for request in requests.read() {
        let mut ticket = request.ticket.clone();
        // Left in the future it would wait behind those who come after it.
        ticket.since_tick = ticket.since_tick.min(tick.0);
        match matchmaker.queue(ticket.clone()) {
            Ok(()) => {
                queued.write(TicketQueued { ticket });
            }
            Err(error) => {
                stats.queue_refused += 1;
                debug!(%error, "party not queued");
                refused.write(TicketRefused {
                    party: ticket.party,
                    error,
                });
            }
        }
    }
}

/// Parties that want to wait no longer.
fn cancel_tickets(
    mut requests: MessageReader<CancelRequest>,
    mut matchmaker: ResMut<Matchmaker>,
    mut stats: ResMut<MatchmakingStats>,
    mut cancelled: MessageWriter<TicketCancelled>,
    mut refused: MessageWriter<TicketRefused>,
) {
    for &CancelRequest { party, player } in requests.read() {
        let ticket = match player {
            Some(player) => matchmaker.cancel_by(party, player),
            None => matchmaker.cancel(party),
        };
        match ticket {
            Ok(ticket) => {
                cancelled.write(TicketCancelled {
                    party,
                    mode: ticket.mode,
                });
            }
            Err(error) => {
                stats.cancel_refused += 1;
                debug!(%error, "party not cancelled");
                refused.write(TicketRefused { party, error });
            }
        }
    }
}

/// Waiting parties become matches.
fn make_matches(
    tick: Res<SimTick>,
    mut matchmaker: ResMut<Matchmaker>,
    mut made: Local<Vec<Match>>,
    mut gone: Local<Vec<Ticket>>,
    mut expired: MessageWriter<TicketExpired>,
    mut formed: MessageWriter<MatchFormed>,
) {
    matchmaker.run(tick.0, &mut made, &mut gone);
    expired.write_batch(gone.drain(..).map(|ticket| TicketExpired {
        party: ticket.party,
        mode: ticket.mode,
    }));
    formed.write_batch(made.drain(..).map(|found| MatchFormed { found }));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{mode, ticket};
    use super::*;
    use crate::matchmaking::ModeSettings;
    use crate::sim::{clock, state_hash};

    /// An app at 20 Hz with a heartbeat every ten ticks, before its first tick.
    fn app(modes: Vec<ModeSettings>) -> App {
        let mut app = App::new();
        app.add_plugins((
            bevy_time::TimePlugin,
            sim::SimPlugin {
                tick_hz: Some(20.0),
            },
            MatchmakingPlugin,
        ));
        let modes = modes.into_iter().map(QueueMode::Groups).collect();
        app.insert_resource(MatchmakingSettings { modes });
        clock::one_tick_an_update(&mut app);
        app
    }

    fn queue(app: &mut App, ticket: Ticket) {
        app.world_mut().write_message(QueueRequest { ticket });
    }

    fn cancel(app: &mut App, party: u32, player: Option<u64>) {
        app.world_mut()
            .write_message(CancelRequest { party, player });
    }

    /// Runs one tick and checks the books.
    fn tick(app: &mut App) {
        app.update();
        assert!(app.world().resource::<Matchmaker>().conserved());
    }

    fn take<M: Message>(app: &mut App) -> Vec<M> {
        app.world_mut()
            .resource_mut::<Messages<M>>()
            .drain()
            .collect()
    }

    fn refused(app: &mut App) -> Vec<TicketError> {
        take::<TicketRefused>(app)
            .into_iter()
            .map(|refused| refused.error)
            .collect()
    }

    #[test]
    fn requests_are_taken_at_once_and_matched_on_the_heartbeat() {
        let mut app = app(vec![mode(5)]);
        queue(&mut app, ticket(1, 5, 0, 1));
        tick(&mut app);
        assert_eq!(
            take::<TicketQueued>(&mut app),
            [TicketQueued {
                ticket: ticket(1, 5, 0, 1)
            }]
        );
        (2..10).for_each(|_| tick(&mut app));
        assert_eq!(take::<MatchFormed>(&mut app), []);
        // The second party asks on the tick of the heartbeat itself.
        queue(&mut app, ticket(2, 5, 0, 10));
        tick(&mut app);
        let formed = take::<MatchFormed>(&mut app);
        assert_eq!(formed.len(), 1);
        assert_eq!(
            formed[0].found.groups,
            [vec![ticket(1, 5, 0, 1)], vec![ticket(2, 5, 0, 10)]]
        );
        assert_eq!(app.world().resource::<Matchmaker>().waiting(), 0);
    }

    #[test]
    fn refusals_are_told_and_counted() {
        let mut app = app(vec![mode(1)]);
        queue(&mut app, ticket(1, 1, 0, 0));
        queue(&mut app, ticket(1, 1, 0, 0));
        queue(&mut app, ticket(2, 2, 0, 0));
        queue(
            &mut app,
            Ticket {
                mode: ModeId(7),
                ..ticket(3, 1, 0, 0)
            },
        );
        cancel(&mut app, 9, None);
        tick(&mut app);
        assert_eq!(
            refused(&mut app),
            [
                TicketError::PartyQueued { party: 1 },
                TicketError::LargerThanGroup {
                    party: 2,
                    size: 2,
                    group_size: 1
                },
                TicketError::UnknownMode {
                    party: 3,
                    mode: ModeId(7),
                    modes: 1
                },
                TicketError::NotQueued { party: 9 },
            ]
        );
        let stats = *app.world().resource::<MatchmakingStats>();
        assert_eq!(
            stats,
            MatchmakingStats {
                queue_refused: 3,
                cancel_refused: 1
            }
        );
        assert_eq!(app.world().resource::<Matchmaker>().waiting(), 1);
    }

    #[test]
    fn a_party_that_queues_and_leaves_in_one_tick_is_gone() {
        let mut app = app(vec![mode(5)]);
        cancel(&mut app, 4, Some(40));
        queue(&mut app, ticket(4, 2, 0, 0));
        tick(&mut app);
        assert_eq!(
            take::<TicketCancelled>(&mut app),
            [TicketCancelled {
                party: 4,
                mode: ModeId(0)
            }]
        );
        assert_eq!(app.world().resource::<Matchmaker>().waiting(), 0);
    }

    #[test]
    fn strangers_cannot_cancel_and_the_server_can() {
        let mut app = app(vec![mode(5)]);
        queue(&mut app, ticket(4, 2, 0, 0));
        cancel(&mut app, 4, Some(77));
        tick(&mut app);
        assert_eq!(
            refused(&mut app),
            [TicketError::NotAMember {
                party: 4,
                player: 77
            }]
        );
        cancel(&mut app, 4, None);
        tick(&mut app);
        assert_eq!(
            take::<TicketCancelled>(&mut app),
            [TicketCancelled {
                party: 4,
                mode: ModeId(0)
            }]
        );
    }

    #[test]
    fn a_party_that_waited_too_long_expires_on_a_heartbeat() {
        let mut app = app(vec![ModeSettings {
            expire_after_s: 1.0,
            ..mode(5)
        }]);
        queue(&mut app, ticket(1, 1, 0, 1));
        (1..30).for_each(|_| tick(&mut app));
        assert_eq!(take::<TicketExpired>(&mut app), []);
        tick(&mut app);
        assert_eq!(
            take::<TicketExpired>(&mut app),
            [TicketExpired {
                party: 1,
                mode: ModeId(0)
            }]
        );
    }

    #[test]
    fn a_ticket_from_the_future_waits_from_now_on() {
        let mut app = app(vec![mode(5)]);
        queue(&mut app, ticket(1, 1, 0, u64::MAX));
        tick(&mut app);
        assert_eq!(
            take::<TicketQueued>(&mut app),
            [TicketQueued {
                ticket: ticket(1, 1, 0, 1)
            }]
        );
    }

    #[test]
    fn settings_out_of_range_open_no_mode_and_stop_nothing() {
        let mut app = app(vec![mode(51)]);
        queue(&mut app, ticket(1, 1, 0, 0));
        tick(&mut app);
        assert_eq!(
            refused(&mut app),
            [TicketError::UnknownMode {
                party: 1,
                mode: ModeId(0),
                modes: 0
            }]
        );
    }

    #[test]
    fn a_matchmaker_that_is_there_before_the_start_is_kept() {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, MatchmakingPlugin));
        app.insert_resource(MatchmakingSettings {
            modes: vec![QueueMode::Groups(mode(5))],
        });
        let own = ModeSettings {
            name: "own".to_owned(),
            ..mode(3)
        };
        app.insert_resource(Matchmaker::new(&[QueueMode::Groups(own)], 20.0).unwrap());
        clock::one_tick_an_update(&mut app);
        assert_eq!(app.world().resource::<Matchmaker>().names(), ["own"]);
    }

    #[test]
    fn seconds_become_as_many_ticks_as_the_rate_says() {
        for hz in [7.0, 20.0, 30.0, 60.0, 128.0] {
            let time = Time::<Fixed>::from_hz(hz);
            assert_eq!(tick_mhz(&time), hz as u64 * 1000);
        }
        let mut app = App::new();
        let modes = vec![QueueMode::Groups(ModeSettings {
            open_after_s: 60.0,
            ..mode(5)
        })];
        app.add_plugins((
            bevy_time::TimePlugin,
            sim::SimPlugin {
                tick_hz: Some(30.0),
            },
            MatchmakingPlugin,
        ))
        .insert_resource(MatchmakingSettings { modes });
        clock::one_tick_an_update(&mut app);
        let rules = app.world().resource::<Matchmaker>().modes()[0].rules();
        assert_eq!(rules.open_after_ticks, 1800);
    }

    #[test]
    fn who_waits_is_part_of_the_state_hash() {
        let hash = |party: Option<u32>| {
            let mut app = app(vec![mode(5)]);
            if let Some(party) = party {
                queue(&mut app, ticket(party, 1, 0, 0));
            }
            tick(&mut app);
            state_hash(app.world_mut())
        };
        assert_eq!(hash(Some(1)), hash(Some(1)));
        assert_ne!(hash(Some(1)), hash(Some(2)));
        assert_ne!(hash(Some(1)), hash(None));
    }

    #[test]
    fn settings_are_read_from_ron_and_unknown_fields_are_refused() {
        let settings: MatchmakingSettings =
            ron::from_str("(modes: [Groups((name: \"duel\", group_size: 1))])").unwrap();
        assert_eq!(settings.modes.len(), 1);
        assert!(ron::from_str::<MatchmakingSettings>("(mode: [])").is_err());
    }
}
