//! Synthetic parties that queue for battles and give up again, for scenarios and load tests.
//!
//! ```text
//! ArrivalSpec: so many a second ─┐
//! queue_parties(…) ──────────────┼─▶ due parties ──▶ [arrive] ──▶ QueueRequest
//! cancel_oldest(…) ──────────────┴─▶ due cancels ──▶          ──▶ CancelRequest ──▶ matchmaking
//! ```
//! These parties exist in tickets only: they have no objects, and their ids come from ranges of their own,
//! which the players and parties of `world` do not reach (`FIRST_PARTY`, `FIRST_PLAYER`).
//!
//! Invariants: rates are kept in integers, so that k whole seconds bring exactly k times the rate; the same
//! seed brings the same tickets; skill and power are drawn from the random stream `arrivals` and from nothing
//! else.
//!
//! Cost: O(parties that come or go in the tick), of each at most `PARTIES_PER_TICK_MAX` a flow.

use bevy_app::{App, FixedUpdate, Plugin};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use rand::Rng;
use thiserror::Error;
use tracing::debug;

use crate::matchmaking::ticket::PARTY_SIZE_MAX;
use crate::matchmaking::{
    AnswerRequest, CancelRequest, MatchProposed, Matchmaker, MatchmakingPlugin, ModeId,
    QueueRequest, Ticket, tick_mhz,
};
use crate::sim::{self, HashAppExt, RandomStreams, SimSystems, SimTick};

/// The first synthetic party; those of `world` count up from 1. After the last id they begin here again.
pub const FIRST_PARTY: u32 = 1 << 31;

/// The first synthetic player who is known by tickets only.
pub const FIRST_PLAYER: u64 = 1 << 40;

/// Parties that a flow lets queue, and parties that it takes out, in a tick. Further parties that are due
/// come in the ticks that follow ([`Arrivals::due`]); further cancellations are dropped.
pub const PARTIES_PER_TICK_MAX: u32 = 1 << 17;

/// The greatest rate of a flow: parties a second.
pub const RATE_PER_S_MAX: f32 = 1e6;

/// The name of the random stream.
const STREAM: &str = "arrivals";

/// Parties that come and go by themselves. Adds [`MatchmakingPlugin`] when it is missing.
///
/// `arrive` is public so that others who draw from [`RandomStreams`] in [`SimSystems::Think`] can be put
/// before or after it; each draws from a stream of its own, so that either order brings the same tickets.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivalsPlugin;

impl Plugin for ArrivalsPlugin {
    /// Plugins that need this one add it, so it may come more than once.
    fn is_unique(&self) -> bool {
        false
    }

    fn build(&self, app: &mut App) {
        if app.is_plugin_added::<Self>() {
            return;
        }
        sim::install(app);
        app.add_plugins(MatchmakingPlugin);
        app.init_resource::<Arrivals>()
            .add_systems(
                FixedUpdate,
                (
                    arrive.in_set(SimSystems::Think),
                    // Between two sets, it is in nobody's way.
                    accept_matches
                        .after(SimSystems::Think)
                        .before(SimSystems::Navigate),
                ),
            )
            .hash_part("arrivals", |world, hasher| {
                world
                    .resource::<Arrivals>()
                    .digest(&mut |word| hasher.write_u64(word));
            });
    }
}

/// Who comes to queue in a mode, and who gives up.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalSpec {
    /// The mode's name.
    pub mode: String,
    /// Parties that queue in the first tick.
    pub parties: u32,
    /// Parties that come a second, at most a million; to the millionth. Less than 0 and no number count as 0.
    pub parties_per_s: f32,
    /// How often parties of 1, 2, 3, 4 and 5 players come, relative to each other; single players only when
    /// all are 0.
    pub size_weights: [u32; 5],
    /// The mean skill of a party.
    pub skill_mean: i32,
    /// The standard deviation of skill.
    pub skill_deviation: u32,
    /// The mean power of a player.
    pub power_per_player: u32,
    /// The standard deviation of a player's power; nobody's falls below 0.
    pub power_deviation: u32,
    /// Waiting parties that give up a second, the longest-waiting first; limits as in `parties_per_s`.
    pub cancels_per_s: f32,
}

impl Default for ArrivalSpec {
    fn default() -> Self {
        Self {
            mode: "arena".to_owned(),
            parties: 0,
            parties_per_s: 0.0,
            size_weights: [60, 20, 8, 4, 8],
            skill_mean: 1500,
            skill_deviation: 300,
            power_per_player: 1000,
            power_deviation: 200,
            cancels_per_s: 0.0,
        }
    }
}

/// Why parties cannot be made to queue or to give up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrivalsError {
    /// No parties come to this mode.
    #[error("expected a mode that synthetic parties queue in, found `{0}`")]
    NoSuchMode(String),
    /// A party cannot have this many players.
    #[error("expected parties of 1 to 5 players, found {0}")]
    Size(u8),
}

/// The flows of synthetic parties, one a mode.
#[derive(Resource, Clone, Debug)]
pub struct Arrivals {
    flows: Vec<Flow>,
    next_party: u32,
    next_player: u64,
}

/// What comes to one mode.
#[derive(Clone, Debug)]
struct Flow {
    spec: ArrivalSpec,
    arrivals: Rate,
    cancels: Rate,
    /// Parties that are still to queue: at 0 those whose size is drawn, at i those of i players.
    due: [u64; PARTY_SIZE_MAX as usize + 1],
    /// Parties to be taken out in the next tick.
    due_cancels: u64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            flows: Vec::new(),
            next_party: FIRST_PARTY,
            next_player: FIRST_PLAYER,
        }
    }
}

impl Arrivals {
    /// Opens the flow of a mode. If the mode has one, its numbers change, and `parties` come in addition. The
    /// mode itself may open later: until it does, who is due waits outside. O(flows).
    pub fn open(&mut self, spec: ArrivalSpec) {
        let at = self
            .flows
            .iter()
            .position(|flow| flow.spec.mode == spec.mode);
        let parties = u64::from(spec.parties);
        let flow = match at {
            Some(at) => &mut self.flows[at],
            None => self.flows.push_mut(Flow {
                spec: ArrivalSpec::default(),
                arrivals: Rate::default(),
                cancels: Rate::default(),
                due: [0; _],
                due_cancels: 0,
            }),
        };
        flow.due[0] += parties;
        flow.spec = spec;
    }

    /// Lets `parties` more parties queue, all of `size` players, or of sizes drawn by the mode's weights. They
    /// come in the next [`SimSystems::Think`].
    ///
    /// # Errors
    /// [`ArrivalsError`] when the mode has no flow or the size is not 1–5; nothing is changed then.
    pub fn queue_parties(
        &mut self,
        mode: &str,
        parties: u32,
        size: Option<u8>,
    ) -> Result<(), ArrivalsError> {
        let place = match size {
            None => 0,
            Some(size @ 1..=PARTY_SIZE_MAX) => usize::from(size),
            Some(size) => return Err(ArrivalsError::Size(size)),
        };
        self.flow(mode)?.due[place] += u64::from(parties);
        Ok(())
    }

    /// Takes the `parties` longest-waiting parties of a mode, whoever they are, out of the queue in the next
    /// [`SimSystems::Think`]; fewer when fewer wait then, and 131,072 at most.
    ///
    /// # Errors
    /// [`ArrivalsError::NoSuchMode`].
    pub fn cancel_oldest(&mut self, mode: &str, parties: u32) -> Result<(), ArrivalsError> {
        self.flow(mode)?.due_cancels += u64::from(parties);
        Ok(())
    }

    /// Parties that are still to queue, over all modes: after a tick more than nothing only where more than
    /// 131,072 were due in a mode, or the mode is not open. O(flows).
    #[must_use]
    pub fn due(&self) -> u64 {
        self.flows.iter().flat_map(|flow| flow.due).sum()
    }

    fn flow(&mut self, mode: &str) -> Result<&mut Flow, ArrivalsError> {
        let found = self.flows.iter_mut().find(|flow| flow.spec.mode == mode);
        found.ok_or_else(|| ArrivalsError::NoSuchMode(mode.to_owned()))
    }

    /// Feeds the counters, in a fixed order, to a hash.
    fn digest(&self, feed: &mut impl FnMut(u64)) {
        feed(u64::from(self.next_party));
        feed(self.next_player);
        for flow in &self.flows {
            feed(flow.arrivals.remainder);
            feed(flow.cancels.remainder);
            feed(flow.due_cancels);
            flow.due.into_iter().for_each(&mut *feed);
        }
    }
}

impl Flow {
    /// Takes the next party that is due: its size, 0 when that is to be drawn.
    fn take_due(&mut self) -> Option<u8> {
        let place = self.due.iter().position(|&due| due > 0)?;
        self.due[place] -= 1;
        Some(place as u8)
    }
}

/// A rate a second, counted out in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// What the ticks so far left over: in 1 / (10⁶ · `tick_mhz`) of an event.
    remainder: u64,
}

impl Rate {
    /// How many events fall on this tick, of `tick_mhz` ticks in a thousand seconds. O(1).
    fn due(&mut self, per_s: f32, tick_mhz: u64) -> u64 {
        // No number stays none when clamped, and the cast takes it to 0.
        let millionths_per_s = (f64::from(per_s.clamp(0.0, RATE_PER_S_MAX)) * 1e6).round() as u64;
        let event = 1_000_000 * tick_mhz;
        let total = self.remainder + millionths_per_s * 1000;
        self.remainder = total % event;
        total / event
    }
}

/// Lets parties queue and give up.
pub fn arrive(
    tick: Res<SimTick>,
    time: Res<Time<Fixed>>,
    matchmaker: Res<Matchmaker>,
    mut arrivals: ResMut<Arrivals>,
    mut streams: ResMut<RandomStreams>,
    mut queue: MessageWriter<QueueRequest>,
    mut cancel: MessageWriter<CancelRequest>,
) {
    let tick_mhz = tick_mhz(&time);
    let rng = streams.stream(STREAM);
    let Arrivals {
        flows,
        next_party,
        next_player,
    } = &mut *arrivals;
    for flow in flows {
        flow.due[0] += flow.arrivals.due(flow.spec.parties_per_s, tick_mhz);
        let cancels = flow.cancels.due(flow.spec.cancels_per_s, tick_mhz)
            + std::mem::take(&mut flow.due_cancels);
        let Some(mode) = matchmaker.mode_named(&flow.spec.mode) else {
            debug!(mode = flow.spec.mode, "no such mode to queue in");
            continue;
        };
        let oldest = matchmaker.modes()[usize::from(mode.0)].queue().iter();
        let cancels = cancels.min(u64::from(PARTIES_PER_TICK_MAX)) as usize;
        cancel.write_batch(oldest.take(cancels).map(|(_, ticket)| CancelRequest {
            party: ticket.party,
            player: None,
        }));
        for _ in 0..PARTIES_PER_TICK_MAX {
            let Some(size) = flow.take_due() else { break };
            let size = if size == 0 {
                draw_size(rng, &flow.spec.size_weights)
            } else {
                size
            };
            let mut ticket = draw_ticket(rng, &flow.spec, mode, size);
            ticket.party = *next_party;
            ticket.since_tick = tick.0;
            ticket.members = (*next_player..).take(usize::from(size)).collect();
            *next_party = next_party.checked_add(1).unwrap_or(FIRST_PARTY);
            *next_player += u64::from(size);
            queue.write(QueueRequest { ticket });
        }
    }
}

/// Synthetic players accept whatever match is proposed to them.
fn accept_matches(
    mut proposed: MessageReader<MatchProposed>,
    mut answers: MessageWriter<AnswerRequest>,
) {
    for MatchProposed { found } in proposed.read() {
        let players = found
            .groups
            .iter()
            .flatten()
            .flat_map(|ticket| &ticket.members);
        let synthetic = players.copied().filter(|&player| player >= FIRST_PLAYER);
        let accept = true;
        answers.write_batch(synthetic.map(|player| AnswerRequest { player, accept }));
    }
}

/// [`Arrivals::queue_parties`] for scripts that hold the world.
///
/// # Errors
/// As there.
pub fn queue_parties(
    world: &mut World,
    mode: &str,
    parties: u32,
    size: Option<u8>,
) -> Result<(), ArrivalsError> {
    world
        .get_resource_or_init::<Arrivals>()
        .queue_parties(mode, parties, size)
}

/// [`Arrivals::cancel_oldest`] for scripts that hold the world.
///
/// # Errors
/// As there.
pub fn cancel_oldest(world: &mut World, mode: &str, parties: u32) -> Result<(), ArrivalsError> {
    world
        .get_resource_or_init::<Arrivals>()
        .cancel_oldest(mode, parties)
}

/// A ticket of a party without ids that has just come. The leader is the first player drawn.
fn draw_ticket(rng: &mut impl Rng, spec: &ArrivalSpec, mode: ModeId, size: u8) -> Ticket {
    let skill = i64::from(spec.skill_mean) + draw_deviation(rng, spec.skill_deviation);
    let mut power = [0u32; PARTY_SIZE_MAX as usize];
    for power in &mut power[..usize::from(size)] {
        let drawn = i64::from(spec.power_per_player) + draw_deviation(rng, spec.power_deviation);
        *power = drawn.clamp(0, i64::from(u32::MAX)) as u32;
    }
    Ticket {
        party: 0,
        size,
        power: power.into_iter().fold(0, u32::saturating_add),
        skill: skill.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
        level: 1,
        leader_strength: power[0],
        mode,
        since_tick: 0,
        members: Default::default(),
        wishes: None,
    }
}

/// A size from 1 to 5 by these weights.
fn draw_size(rng: &mut impl Rng, weights: &[u32; 5]) -> u8 {
    let total: u64 = weights.iter().copied().map(u64::from).sum();
    // The high half of the product is even over 0..total to within 2⁻²⁹.
    let mut drawn = ((u128::from(rng.next_u64()) * u128::from(total)) >> 64) as u64;
    for (size, weight) in (1..).zip(weights.map(u64::from)) {
        if drawn < weight {
            return size;
        }
        drawn -= weight;
    }
    // All weights are 0.
    1
}

/// How far a value lies from its mean, nearly normally distributed with this standard deviation and never
/// more than six times as far: the sum of twelve even draws of 16 bits, whose own deviation is 2¹⁶. In
/// integers it is the same everywhere.
fn draw_deviation(rng: &mut impl Rng, deviation: u32) -> i64 {
    let mut sum = 0;
    for _ in 0..3 {
        let word = rng.next_u64();
        sum += (0..4)
            .map(|at| (word >> (16 * at) & 0xffff) as i64)
            .sum::<i64>();
    }
    ((sum - 6 * 0xffff) * i64::from(deviation) + (1 << 15)) >> 16
}

#[cfg(test)]
mod tests {
    use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings, ScheduleLabel};
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::matchmaking::{MatchmakingSettings, ModeSettings, QueueMode, TicketQueued};
    use crate::sim::{clock, state_hash};

    /// An app with modes `arena` and `duel`, before its first tick. No heartbeat comes, so that nobody is
    /// matched.
    fn app(tick_hz: f64, seed: u64, spec: ArrivalSpec) -> App {
        let mut app = App::new();
        app.add_plugins((
            bevy_time::TimePlugin,
            sim::SimPlugin {
                tick_hz: Some(tick_hz),
            },
            ArrivalsPlugin,
        ));
        let modes = ["arena", "duel"].map(|name| {
            QueueMode::Groups(ModeSettings {
                name: name.to_owned(),
                ..ModeSettings::default()
            })
        });
        app.insert_resource(MatchmakingSettings {
            modes: modes.to_vec(),
        })
        .insert_resource(RandomStreams::new(seed))
        .insert_resource(sim::SimSettings {
            heartbeat_ticks: u32::MAX,
        });
        for schedule in [FixedUpdate.intern(), sim::Heartbeat.intern()] {
            app.edit_schedule(schedule, |schedule| {
                let ambiguity_detection = LogLevel::Error;
                schedule.set_build_settings(ScheduleBuildSettings {
                    ambiguity_detection,
                    ..Default::default()
                });
            });
        }
        app.world_mut().resource_mut::<Arrivals>().open(spec);
        clock::one_tick_an_update(&mut app);
        app
    }

    fn queued(app: &mut App) -> Vec<Ticket> {
        app.world_mut()
            .resource_mut::<Messages<TicketQueued>>()
            .drain()
            .map(|queued| queued.ticket)
            .collect()
    }

    fn arrivals(app: &mut App) -> Mut<'_, Arrivals> {
        app.world_mut().resource_mut::<Arrivals>()
    }

    fn waiting(app: &App) -> usize {
        app.world().resource::<Matchmaker>().waiting()
    }

    #[test]
    fn rates_are_exact_over_a_minute() {
        for (hz, per_s, expected) in [
            (20u64, 3.7, 222),
            (30, 0.1, 6),
            (7, 100.0, 6000),
            (128, 1e9, 60_000_000),
        ] {
            let mut rate = Rate::default();
            let total: u64 = (0..60 * hz).map(|_| rate.due(per_s, hz * 1000)).sum();
            assert_eq!(total, expected, "{per_s} a second at {hz} Hz");
        }
        for per_s in [0.0, -1.0, f32::NAN, f32::NEG_INFINITY] {
            assert_eq!(Rate::default().due(per_s, 1), 0);
        }
    }

    #[test]
    fn a_minute_of_arrivals_and_cancels_is_exact() {
        let spec = ArrivalSpec {
            parties: 100,
            parties_per_s: 7.3,
            cancels_per_s: 2.5,
            ..Default::default()
        };
        let mut app = app(30.0, 1, spec);
        (0..1800).for_each(|_| app.update());
        let matchmaker = app.world().resource::<Matchmaker>();
        let stats = matchmaker.stats(ModeId(0)).unwrap();
        assert_eq!((stats.queued, stats.cancelled), (100 + 438, 150));
        assert_eq!(
            app.world()
                .resource::<crate::matchmaking::MatchmakingStats>()
                .queue_refused,
            0
        );
    }

    #[test]
    fn sizes_follow_their_weights() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let weights = [60, 20, 8, 0, 12];
        let mut counts = [0u32; 5];
        (0..100_000).for_each(|_| counts[usize::from(draw_size(&mut rng, &weights)) - 1] += 1);
        for (count, weight) in counts.into_iter().zip(weights) {
            // Four standard deviations of the widest class are about 620.
            assert!(count.abs_diff(1000 * weight) < 700, "{counts:?}");
        }
        assert_eq!(counts[3], 0);
        assert_eq!(draw_size(&mut rng, &[0; 5]), 1);
        assert_eq!(draw_size(&mut rng, &[0, 0, 0, 0, u32::MAX]), 5);
    }

    #[test]
    fn deviations_have_mean_zero_and_the_width_asked_for() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let drawn: Vec<i64> = (0..100_000)
            .map(|_| draw_deviation(&mut rng, 1000))
            .collect();
        let mean = drawn.iter().sum::<i64>() / 100_000;
        let variance = drawn.iter().map(|value| value * value).sum::<i64>() / 100_000;
        assert!(mean.abs() <= 13, "{mean}");
        assert!((980_000..1_020_000).contains(&variance), "{variance}");
        let within_one = drawn.iter().filter(|value| value.abs() <= 1000).count();
        assert!((67_000..70_000).contains(&within_one), "{within_one}");
        assert_eq!(draw_deviation(&mut rng, 0), 0);
    }

    #[test]
    fn extreme_numbers_saturate() {
        let mut rng = Pcg64Mcg::seed_from_u64(5);
        let spec = ArrivalSpec {
            skill_mean: i32::MAX,
            skill_deviation: u32::MAX,
            power_per_player: u32::MAX,
            power_deviation: 0,
            ..Default::default()
        };
        for size in 1..=5 {
            let ticket = draw_ticket(&mut rng, &spec, ModeId(0), size);
            assert_eq!((ticket.power, ticket.leader_strength), (u32::MAX, u32::MAX));
        }
    }

    #[test]
    fn the_same_seed_brings_the_same_tickets() {
        let tickets = |seed| {
            let mut app = app(
                20.0,
                seed,
                ArrivalSpec {
                    parties: 50,
                    parties_per_s: 40.0,
                    ..Default::default()
                },
            );
            (0..20).for_each(|_| app.update());
            let hash = state_hash(app.world_mut());
            let matchmaker = app.world().resource::<Matchmaker>();
            let queue = matchmaker.modes()[0].queue();
            (
                queue
                    .iter()
                    .map(|(_, ticket)| ticket.clone())
                    .collect::<Vec<_>>(),
                hash,
            )
        };
        assert_eq!(tickets(7).0.len(), 90);
        assert_eq!(tickets(7), tickets(7));
        assert_ne!(tickets(7).0, tickets(8).0);
    }

    #[test]
    fn tickets_are_whole_and_share_no_ids() {
        let mut app = app(
            20.0,
            3,
            ArrivalSpec {
                parties: 1000,
                ..Default::default()
            },
        );
        app.update();
        let tickets = queued(&mut app);
        let players: usize = tickets.iter().map(|ticket| usize::from(ticket.size)).sum();
        assert_eq!(
            (tickets.len(), tickets[0].party, tickets[999].party),
            (1000, 1 << 31, (1 << 31) + 999)
        );
        let members = tickets
            .iter()
            .flat_map(|ticket| ticket.members.iter().copied());
        assert!(members.eq((1 << 40)..(1 << 40) + players as u64));
    }

    #[test]
    fn party_ids_begin_again_after_the_last() {
        let mut app = app(
            20.0,
            3,
            ArrivalSpec {
                parties: 2,
                ..Default::default()
            },
        );
        arrivals(&mut app).next_party = u32::MAX;
        app.update();
        let parties: Vec<u32> = queued(&mut app).iter().map(|ticket| ticket.party).collect();
        assert_eq!(parties, [u32::MAX, FIRST_PARTY]);
    }

    #[test]
    fn scripts_queue_parties_of_a_size_and_cancel_the_oldest() {
        let mut app = app(
            20.0,
            3,
            ArrivalSpec {
                parties: 3,
                ..Default::default()
            },
        );
        app.update();
        queue_parties(app.world_mut(), "arena", 2, Some(4)).unwrap();
        cancel_oldest(app.world_mut(), "arena", 2).unwrap();
        queued(&mut app);
        app.update();
        let tickets = queued(&mut app);
        assert_eq!(
            tickets.iter().map(|ticket| ticket.size).collect::<Vec<_>>(),
            [4, 4]
        );
        let matchmaker = app.world().resource::<Matchmaker>();
        let left: Vec<u32> = matchmaker.modes()[0]
            .queue()
            .iter()
            .map(|(_, ticket)| ticket.party)
            .collect();
        assert_eq!(left, [2, 3, 4].map(|at| FIRST_PARTY + at));
        cancel_oldest(app.world_mut(), "arena", u32::MAX).unwrap();
        app.update();
        app.update();
        assert_eq!(waiting(&app), 0);
    }

    #[test]
    fn mistakes_of_scripts_are_errors_and_change_nothing() {
        let mut arrivals = Arrivals::default();
        assert_eq!(
            arrivals.queue_parties("duel", 1, None),
            Err(ArrivalsError::NoSuchMode("duel".to_owned()))
        );
        arrivals.open(ArrivalSpec::default());
        assert_eq!(
            arrivals.queue_parties("arena", 1, Some(0)),
            Err(ArrivalsError::Size(0))
        );
        assert_eq!(
            arrivals.queue_parties("arena", 1, Some(6)),
            Err(ArrivalsError::Size(6))
        );
        assert_eq!(
            arrivals.cancel_oldest("duel", 1),
            Err(ArrivalsError::NoSuchMode("duel".to_owned()))
        );
        assert_eq!(arrivals.due(), 0);
    }

    #[test]
    fn more_than_a_tick_takes_come_in_the_next() {
        let parties = PARTIES_PER_TICK_MAX + 5;
        let mut app = app(
            20.0,
            3,
            ArrivalSpec {
                parties,
                ..Default::default()
            },
        );
        app.update();
        assert_eq!(
            (waiting(&app), app.world().resource::<Arrivals>().due()),
            (1 << 17, 5)
        );
        app.update();
        assert_eq!(
            (waiting(&app), app.world().resource::<Arrivals>().due()),
            ((1 << 17) + 5, 0)
        );
    }

    #[test]
    fn parties_wait_outside_until_their_mode_opens() {
        let spec = ArrivalSpec {
            mode: "late".to_owned(),
            parties: 4,
            ..Default::default()
        };
        let mut app = app(20.0, 3, spec);
        app.update();
        assert_eq!(
            (waiting(&app), app.world().resource::<Arrivals>().due()),
            (0, 4)
        );
        let late = ModeSettings {
            name: "late".to_owned(),
            ..ModeSettings::default()
        };
        app.insert_resource(Matchmaker::new(&[QueueMode::Groups(late)], 20.0).unwrap());
        app.update();
        assert_eq!(
            (waiting(&app), app.world().resource::<Arrivals>().due()),
            (4, 0)
        );
    }

    #[test]
    fn flows_of_two_modes_stay_apart() {
        let mut app = app(
            20.0,
            3,
            ArrivalSpec {
                parties: 3,
                ..Default::default()
            },
        );
        let duel = ArrivalSpec {
            mode: "duel".to_owned(),
            parties: 5,
            ..Default::default()
        };
        arrivals(&mut app).open(duel.clone());
        arrivals(&mut app).open(ArrivalSpec { parties: 1, ..duel });
        app.update();
        let matchmaker = app.world().resource::<Matchmaker>();
        let waiting: Vec<usize> = matchmaker
            .modes()
            .iter()
            .map(|mode| mode.queue().len())
            .collect();
        assert_eq!(waiting, [3, 6]);
    }
}
