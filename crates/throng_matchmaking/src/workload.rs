//! Synthetic queues for benches and tests, and separate parts to measure.

use std::cmp::Reverse;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_core::ids::{PartyId, PlayerId};

use super::match_mode_settings::MatchModeSettings;
use super::matches::HeartbeatOutcome;
use super::matchmaking_core::MatchmakingCore;
use super::mode::{GroupModeSettings, ModeError, Packing, UNLIMITED};
use super::ticket::{ModeId, Ticket, TicketError, TicketParty};

pub use super::pack::arrival::ArrivalPacker;
pub use super::pack::exact::PARTIES_MAX;
pub use super::pack::sweep::{SweepSeat, Sweeper};
pub use super::queue::skill_index::SkillEntry;

/// The share of parties of one to five players, in percent.
pub const PARTY_SIZE_PERCENT: [u32; 5] = [60, 20, 8, 4, 8];

/// Where the power of a party comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartyPowerSource {
    /// Each player's power is the party's skill.
    Skill,
    /// Each player's power is the same random number of 1,000 to 2,000, whatever the skill.
    Independent,
}

/// A source of random parties.
#[derive(Clone, Debug)]
pub struct PartySource {
    random: Pcg64Mcg,
    power: PartyPowerSource,
    next_party: u32,
    next_player: u64,
}

impl PartySource {
    /// Creates a source of parties with skills around 1,500 and a deviation of 300.
    #[must_use]
    pub fn new(seed: u64, power: PartyPowerSource) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            power,
            next_party: 0,
            next_player: 0,
        }
    }

    /// The next party, waiting since `since_tick`.
    pub fn ticket(&mut self, since_tick: u64) -> Ticket {
        let mut pick = self.random.random_range(0..100u32);
        let fitting = PARTY_SIZE_PERCENT.iter().position(|&share| {
            let fits = pick < share;
            pick = pick.wrapping_sub(share);
            fits
        });
        let size = fitting.map_or(1, |at| at as u8 + 1);
        let skill = 1500 + sample_normal(&mut self.random, 300.0);
        let strength = match self.power {
            PartyPowerSource::Skill => skill.max(0) as u32,
            PartyPowerSource::Independent => self.random.random_range(1_000..2_000),
        };
        let (party, first) = (self.next_party, self.next_player);
        self.next_party += 1;
        self.next_player += u64::from(size);
        Ticket {
            party: PartyId(party).into(),
            size,
            power: u32::from(size) * strength,
            skill,
            level: 1,
            leader_strength: strength,
            mode: ModeId(0),
            since_tick,
            members: (first..self.next_player)
                .map(|player| PlayerId(player).into())
                .collect(),
            preferences: None,
        }
    }

    /// Any number below `below`.
    pub fn random_below(&mut self, below: usize) -> usize {
        self.random.random_range(0..below.max(1))
    }
}

/// The sum of twelve uniform numbers, which is close enough to a normal distribution here and needs no logarithm.
fn sample_normal(random: &mut impl Rng, deviation: f64) -> i32 {
    let sum: f64 = (0..12).map(|_| random.random_range(-0.5..0.5f64)).sum();
    (sum * deviation) as i32
}

/// Parties that all arrived at tick 0, of levels 1 to 60, independent of their skill.
#[must_use]
pub fn tickets_of_levels(parties: u32) -> Vec<Ticket> {
    let mut source = PartySource::new(1, PartyPowerSource::Skill);
    let mut ticket = || {
        let mut ticket = source.ticket(0);
        ticket.level = 1 + source.random_below(60) as u16;
        ticket
    };
    (0..parties).map(|_| ticket()).collect()
}

/// Parties that all arrived at tick 0.
#[must_use]
pub fn tickets(parties: u32, power: PartyPowerSource) -> Vec<Ticket> {
    let mut source = PartySource::new(1, power);
    (0..parties).map(|_| source.ticket(0)).collect()
}

/// A matchmaker with one mode of groups of five at 20 ticks a second, without a gap limit, in which these parties
/// wait.
///
/// # Errors
/// [`ModeError`] when `matches_max` is 0.
pub fn matcher_with_queue(
    packing: Packing,
    matches_max: u32,
    tickets: &[Ticket],
) -> Result<MatchmakingCore, ModeError> {
    let mode = GroupModeSettings {
        packing,
        power_gap_start: UNLIMITED,
        matches_per_heartbeat_max: matches_max,
        expire_after_s: 0.0,
        tickets_max: 1 << 24,
        ..GroupModeSettings::default()
    };
    let mut matcher = MatchmakingCore::new(&[MatchModeSettings::Groups(mode)], 20.0)?;
    for ticket in tickets {
        let queued = matcher.enqueue(ticket.clone());
        debug_assert!(queued.is_ok(), "{queued:?}");
    }
    Ok(matcher)
}

/// The spreads of skill of sets of 2K players in a row, parties taken apart: no matching of all players that uses
/// only windows is tighter. O(n log n).
#[must_use]
pub fn least_spreads(tickets: &[Ticket], group_size: u8) -> Vec<u32> {
    let mut skills: Vec<i32> = tickets
        .iter()
        .flat_map(|ticket| std::iter::repeat_n(ticket.skill, usize::from(ticket.size)))
        .collect();
    skills.sort_unstable();
    let rows = skills.chunks_exact(2 * usize::from(group_size.max(1)));
    rows.map(|row| row[row.len() - 1].abs_diff(row[0]))
        .collect()
}

/// The value at or below which `percent` of the values lie; 0 without values. O(n log n).
#[must_use]
pub fn percentile(mut values: Vec<u32>, percent: usize) -> u32 {
    values.sort_unstable();
    let nth = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(nth).copied().unwrap_or(0)
}

/// The maximum number of parties that [`best_by_brute_force`] uses.
pub const BRUTE_FORCE_MAX: usize = 16;

/// The most matches and the least sum of gaps, by trying all ways: every two groups of exactly K players that share no
/// party are a match, then every set of matches is tried, by the first remaining party. Of more than
/// [`BRUTE_FORCE_MAX`] parties, only that many are used. O(3ⁿ) time, O(2ⁿ) memory.
#[must_use]
pub fn best_by_brute_force(tickets: &[Ticket], group_size: u8) -> (u32, u64) {
    let tickets = &tickets[..tickets.len().min(BRUTE_FORCE_MAX)];
    let sets = 1usize << tickets.len();
    let (mut players, mut powers) = (vec![0u32; sets], vec![0u64; sets]);
    for set in 1..sets {
        let (first, rest) = (&tickets[set.trailing_zeros() as usize], set & (set - 1));
        players[set] = players[rest] + u32::from(first.size);
        powers[set] = powers[rest] + u64::from(first.power);
    }
    let is_group = |&set: &usize| players[set] == u32::from(group_size);
    let groups: Vec<usize> = (1..sets).filter(is_group).collect();
    // The least gap of each set that is a match, by the set's first party.
    let mut gaps: Vec<Option<u64>> = vec![None; sets];
    for (at, &one) in groups.iter().enumerate() {
        for &other in groups[at + 1..].iter().filter(|&&other| one & other == 0) {
            let gap = powers[one].abs_diff(powers[other]);
            let least = gaps[one | other].get_or_insert(gap);
            *least = gap.min(*least);
        }
    }
    let mut matches: Vec<Vec<(usize, u64)>> = vec![Vec::new(); tickets.len()];
    for (set, gap) in gaps.into_iter().enumerate() {
        let gap = gap.map(|gap| (set, gap));
        if let Some(gap) = gap {
            matches[set.trailing_zeros() as usize].push(gap);
        }
    }
    // Smaller sets come first. More matches are better, then smaller gaps.
    let mut best = vec![(0u32, Reverse(0u64)); sets];
    for left in 1..sets {
        best[left] = best[left & (left - 1)];
        for &(set, gap) in &matches[left.trailing_zeros() as usize] {
            if set & left == set {
                let (count, Reverse(sum)) = best[left ^ set];
                best[left] = best[left].max((count + 1, Reverse(sum + gap)));
            }
        }
    }
    let (count, Reverse(sum)) = best[sets - 1];
    (count, sum)
}

/// The requests of half a second.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    arrivals: Vec<Ticket>,
    cancels: Vec<TicketParty>,
}

/// A queue with a constant number of parties, while parties arrive and cancel.
#[derive(Clone, Debug)]
pub struct Churn {
    matcher: MatchmakingCore,
    source: PartySource,
    waiting: Vec<TicketParty>,
    parties: usize,
    now_tick: u64,
}

impl Churn {
    /// Creates a queue of this many parties, which arrived evenly over the last `since_ticks` ticks.
    ///
    /// # Errors
    /// [`ModeError`] when `matches_max` is 0.
    pub fn new(parties: usize, since_ticks: u64, matches_max: u32) -> Result<Self, ModeError> {
        let mut source = PartySource::new(7, PartyPowerSource::Skill);
        let came = |nth: usize| nth as u64 * since_ticks / parties.max(1) as u64;
        let tickets: Vec<Ticket> = (0..parties).map(|nth| source.ticket(came(nth))).collect();
        Ok(Self {
            matcher: matcher_with_queue(Packing::Windows, matches_max, &tickets)?,
            source,
            waiting: tickets.iter().map(|ticket| ticket.party).collect(),
            parties,
            now_tick: since_ticks,
        })
    }

    /// The parties that arrive in the next half second, and those that cancel so that the number of parties stays constant.
    /// Any party may cancel.
    pub fn requests(&mut self, arrivals: usize) -> Requests {
        let mut requests = Requests::default();
        for nth in 0..arrivals {
            self.now_tick += u64::from(nth % arrivals.div_ceil(10).max(1) == 0);
            requests.arrivals.push(self.source.ticket(self.now_tick));
        }
        let mut waiting = self.matcher.waiting_parties() + arrivals;
        while waiting > self.parties && !self.waiting.is_empty() {
            let at = self.source.random_below(self.waiting.len());
            let party = self.waiting.swap_remove(at);
            // Some were matched meanwhile.
            if self.matcher.ticket(party).is_some() {
                requests.cancels.push(party);
                waiting -= 1;
            }
        }
        let come = requests.arrivals.iter().map(|ticket| ticket.party);
        self.waiting.extend(come);
        requests
    }

    /// Runs half a second: parties arrive and cancel, and a heartbeat makes matches. Returns the number of matches.
    ///
    /// # Errors
    /// [`TicketError`] when a request is refused.
    pub fn heartbeat(
        &mut self,
        requests: Requests,
        outcome: &mut HeartbeatOutcome,
    ) -> Result<usize, TicketError> {
        for ticket in requests.arrivals {
            self.matcher.enqueue(ticket)?;
        }
        for party in requests.cancels {
            self.matcher.cancel(party)?;
        }
        let before = outcome.matches.len();
        self.matcher.run_heartbeat(self.now_tick, outcome);
        Ok(outcome.matches.len() - before)
    }

    /// The matchmaker that receives the requests.
    #[must_use]
    pub const fn matcher(&self) -> &MatchmakingCore {
        &self.matcher
    }
}
