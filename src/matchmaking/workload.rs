//! Made-up queues that the benches and tests measure on.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::matcher::{Beat, Matcher};
use super::mode::{ModeError, ModeId, ModeSettings, OPEN, Packing, QueueMode};
use super::ticket::{Ticket, TicketError};

/// Shares of parties of one to five players, in percent.
pub const SHARES: [u32; 5] = [60, 20, 8, 4, 8];

/// Where the power of a party comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Each player's power is the party's skill.
    Skill,
    /// Each player's power is the same random number of 1,000 to 2,000, whatever the skill.
    Apart,
}

/// Parties that come one after the other.
#[derive(Clone, Debug)]
pub struct Source {
    random: Pcg64Mcg,
    power: Power,
    next_party: u32,
    next_player: u64,
}

impl Source {
    /// Parties of skills around 1,500 with a deviation of 300.
    #[must_use]
    pub fn new(seed: u64, power: Power) -> Self {
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
        let fitting = SHARES.iter().position(|&share| {
            let fits = pick < share;
            pick = pick.wrapping_sub(share);
            fits
        });
        let size = fitting.map_or(1, |at| at as u8 + 1);
        let skill = 1500 + bell(&mut self.random, 300.0);
        let strength = match self.power {
            Power::Skill => skill.max(0) as u32,
            Power::Apart => self.random.random_range(1_000..2_000),
        };
        let (party, first) = (self.next_party, self.next_player);
        self.next_party += 1;
        self.next_player += u64::from(size);
        Ticket {
            party,
            size,
            power: u32::from(size) * strength,
            skill,
            level: 1,
            leader_strength: strength,
            mode: ModeId(0),
            since_tick,
            members: (first..self.next_player).collect(),
            wishes: None,
        }
    }

    /// Any number below `below`.
    pub fn below(&mut self, below: usize) -> usize {
        self.random.random_range(0..below.max(1))
    }
}

/// The sum of twelve uniform numbers, which is as good as normal here and needs no logarithm.
fn bell(random: &mut impl Rng, deviation: f64) -> i32 {
    let sum: f64 = (0..12).map(|_| random.random_range(-0.5..0.5f64)).sum();
    (sum * deviation) as i32
}

/// Parties that all came at tick 0, of levels 1 to 60, whatever their skill.
#[must_use]
pub fn tickets_of_levels(parties: u32) -> Vec<Ticket> {
    let mut source = Source::new(1, Power::Skill);
    let mut ticket = || {
        let mut ticket = source.ticket(0);
        ticket.level = 1 + source.below(60) as u16;
        ticket
    };
    (0..parties).map(|_| ticket()).collect()
}

/// Parties that all came at tick 0.
#[must_use]
pub fn tickets(parties: u32, power: Power) -> Vec<Ticket> {
    let mut source = Source::new(1, power);
    (0..parties).map(|_| source.ticket(0)).collect()
}

/// A matcher of one mode of groups of five at 20 ticks a second, without a gap limit, in which these parties
/// wait.
///
/// # Errors
/// [`ModeError`] when `matches_max` is 0.
pub fn queued(
    packing: Packing,
    matches_max: u32,
    tickets: &[Ticket],
) -> Result<Matcher, ModeError> {
    let mode = ModeSettings {
        packing,
        power_gap_start: OPEN,
        matches_per_heartbeat_max: matches_max,
        expire_after_s: 0.0,
        tickets_max: 1 << 24,
        ..ModeSettings::default()
    };
    let mut matcher = Matcher::new(&[QueueMode::Groups(mode)], 20.0)?;
    for ticket in tickets {
        let queued = matcher.queue(ticket.clone());
        debug_assert!(queued.is_ok(), "{queued:?}");
    }
    Ok(matcher)
}

/// The spreads of skill of sets of 2K players in a row, parties taken apart: no way of matching everybody within
/// windows alone is tighter. O(n log n).
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

/// The most matches and the least sum of gaps, by giving every party a group or none. Exponential: for a dozen
/// parties at most.
#[must_use]
pub fn best_by_brute_force(tickets: &[Ticket], group_size: u8) -> (u32, u64) {
    fn place(rest: &[Ticket], groups: &mut Vec<(u8, u64)>, k: u8) -> Option<(u32, u64)> {
        let Some((first, rest)) = rest.split_first() else {
            let full = groups.iter().all(|group| group.0 == k);
            let gaps = groups
                .chunks(2)
                .map(|two| two[0].1.abs_diff(two[1].1))
                .sum();
            return full.then_some((groups.len() as u32 / 2, gaps));
        };
        let mut best = place(rest, groups, k);
        let better = |one: Option<(u32, u64)>, other: Option<(u32, u64)>| match (one, other) {
            (Some(a), Some(b))
                if (a.0, std::cmp::Reverse(a.1)) >= (b.0, std::cmp::Reverse(b.1)) =>
            {
                one
            }
            (_, Some(_)) => other,
            (_, None) => one,
        };
        for at in 0..groups.len() {
            if groups[at].0 + first.size <= k {
                groups[at].0 += first.size;
                groups[at].1 += u64::from(first.power);
                best = better(best, place(rest, groups, k));
                groups[at].0 -= first.size;
                groups[at].1 -= u64::from(first.power);
            }
        }
        // A match opens with its first party.
        groups.extend([(first.size, u64::from(first.power)), (0, 0)]);
        best = better(best, place(rest, groups, k));
        groups.truncate(groups.len() - 2);
        best
    }
    place(tickets, &mut Vec::new(), group_size).unwrap_or((0, 0))
}

/// The requests of half a second.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    arrivals: Vec<Ticket>,
    cancels: Vec<u32>,
}

/// A queue that is held at a number of parties by others that come and give up.
#[derive(Clone, Debug)]
pub struct Churn {
    matcher: Matcher,
    source: Source,
    waiting: Vec<u32>,
    parties: usize,
    now_tick: u64,
}

impl Churn {
    /// So many parties, which came evenly over the last `since_ticks` ticks.
    ///
    /// # Errors
    /// [`ModeError`] when `matches_max` is 0.
    pub fn new(parties: usize, since_ticks: u64, matches_max: u32) -> Result<Self, ModeError> {
        let mut source = Source::new(7, Power::Skill);
        let came = |nth: usize| nth as u64 * since_ticks / parties.max(1) as u64;
        let tickets: Vec<Ticket> = (0..parties).map(|nth| source.ticket(came(nth))).collect();
        Ok(Self {
            matcher: queued(Packing::Windows, matches_max, &tickets)?,
            source,
            waiting: tickets.iter().map(|ticket| ticket.party).collect(),
            parties,
            now_tick: since_ticks,
        })
    }

    /// Who comes in the next half second, and who gives up for it so that the number of parties is held. Anybody
    /// does.
    pub fn requests(&mut self, arrivals: usize) -> Requests {
        let mut requests = Requests::default();
        for nth in 0..arrivals {
            self.now_tick += u64::from(nth % arrivals.div_ceil(10).max(1) == 0);
            requests.arrivals.push(self.source.ticket(self.now_tick));
        }
        let mut waiting = self.matcher.waiting() + arrivals;
        while waiting > self.parties && !self.waiting.is_empty() {
            let at = self.source.below(self.waiting.len());
            let party = self.waiting.swap_remove(at);
            // Some are no longer there, since they were matched meanwhile.
            if self.matcher.ticket(party).is_some() {
                requests.cancels.push(party);
                waiting -= 1;
            }
        }
        let come = requests.arrivals.iter().map(|ticket| ticket.party);
        self.waiting.extend(come);
        requests
    }

    /// Half a second: parties come and give up, and a heartbeat makes matches. Returns how many.
    ///
    /// # Errors
    /// [`TicketError`] when a request is refused.
    pub fn heartbeat(&mut self, requests: Requests, beat: &mut Beat) -> Result<usize, TicketError> {
        for ticket in requests.arrivals {
            self.matcher.queue(ticket)?;
        }
        for party in requests.cancels {
            self.matcher.cancel(party)?;
        }
        let before = beat.matches.len();
        self.matcher.run(self.now_tick, beat);
        Ok(beat.matches.len() - before)
    }

    /// The queue.
    #[must_use]
    pub const fn matcher(&self) -> &Matcher {
        &self.matcher
    }
}
