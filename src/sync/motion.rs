//! Motion bases: clients extrapolate motion from a base, and the server renews it when the extrapolation would be wrong.
//!
//! Every object has one base for all its viewers. It is replaced when the extrapolated position differs from the real one by more than the
//! tolerance. An object that is only moved in some ticks (a player whose client sends ten inputs per second moves in every other tick) is
//! compared only in these ticks.
//!
//! The base of a moving object is sent unreliably and repeated at growing intervals, since any packet may be lost. A base at rest, or after
//! a jump, is sent reliably. Both count as a change of the object's motion.

use glam::Vec2;

use crate::wire::Motion;

/// Ages in ticks at which a moving base is repeated. At the last one it is renewed, because clients receive only eight bits
/// of its tick.
const REPEAT_AT: [u64; 4] = [6, 20, 60, 120];

/// The heading error at which a base is renewed, in 256ths of a turn: 11°.
const HEADING_TOLERANCE: u8 = 8;

/// The motion of an object in this tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MotionState {
    /// Its position.
    pub position: Vec2,
    /// Its velocity, in metres per second.
    pub velocity: Vec2,
    /// The direction that it faces.
    pub heading: u8,
    /// Its storey.
    pub floor: u8,
    /// Whether it was moved here without walking.
    pub jumped: bool,
}

impl MotionState {
    /// The same as a message to clients, at a tick.
    #[must_use]
    pub fn motion(self, tick: u64) -> Motion {
        Motion {
            discontinuity: self.jumped,
            ..Motion::of(
                tick as u8,
                self.position,
                self.velocity,
                self.heading,
                self.floor,
            )
        }
    }
}

/// The base from which all clients extrapolate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MotionBase {
    /// The motion that clients receive.
    pub motion: Motion,
    /// The tick of that motion.
    pub base_tick: u64,
    /// The object's position at the last sample.
    last_position: Vec2,
    /// The generation of its object.
    pub generation: u32,
    /// Whether there is a base.
    is_set: bool,
    /// The number of repetitions so far.
    repeats: u8,
}

impl MotionBase {
    /// Whether it is sent reliably.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.motion.is_at_rest() | self.motion.discontinuity
    }

    /// The position that clients extrapolate.
    #[must_use]
    pub fn extrapolated(&self, tick: u64, tick_s: f32) -> Vec2 {
        self.motion
            .position_after((tick - self.base_tick.min(tick)) as f32 * tick_s)
    }

    /// The object's position at the last sample.
    #[must_use]
    pub const fn last_position(&self) -> Vec2 {
        self.last_position
    }

    /// The base for the object's current motion: a new one, or the same one repeated; `None` if nothing has to be sent.
    #[inline]
    pub fn next(
        &self,
        generation: u32,
        now: MotionState,
        tick: u64,
        reckoning: DeadReckoning,
    ) -> Option<Self> {
        if self.generation != generation || !self.is_set || now.jumped {
            return Some(Self::new(generation, now, tick));
        }
        let (held, age) = (self.motion, tick - self.base_tick.min(tick));
        let wrong = held.floor != now.floor
            || if Motion::rounds_to_rest(now.velocity) {
                let motion = now.motion(tick);
                let same = (held.position, held.heading) == (motion.position, motion.heading);
                !(held.is_at_rest() && same)
            } else {
                let off = held.heading.wrapping_sub(now.heading);
                off.min(off.wrapping_neg()) > HEADING_TOLERANCE
                    || now.position != self.last_position && {
                        let reckoned = self.extrapolated(tick, reckoning.tick_s);
                        reckoned.distance_squared(now.position) > reckoning.tolerance_m.powi(2)
                    }
            };
        let repeat = repeat_at(self.repeats, reckoning.update_doublings);
        // A base with a discontinuity is sent only once. If the object walks on, the base is renewed, so that it does not become outdated.
        let walks_on = held.discontinuity && !held.is_at_rest() && age >= REPEAT_AT[0];
        if wrong || walks_on {
            return Some(Self::new(generation, now, tick));
        }
        if self.is_reliable() || repeat.is_none_or(|at| age < at) {
            return None;
        }
        if usize::from(self.repeats) + 1 == REPEAT_AT.len() {
            return Some(Self::new(generation, now, tick));
        }
        Some(Self {
            last_position: now.position,
            repeats: self.repeats + 1,
            ..*self
        })
    }

    /// Sets the sampled position if nothing else changed.
    pub const fn set_position(&mut self, position: Vec2) {
        self.last_position = position;
    }

    fn new(generation: u32, now: MotionState, tick: u64) -> Self {
        Self {
            motion: now.motion(tick),
            base_tick: tick,
            last_position: now.position,
            generation,
            is_set: true,
            repeats: 0,
        }
    }

    /// Samples the object's current motion; returns whether something has to be sent.
    #[cfg(test)]
    fn update(
        &mut self,
        generation: u32,
        now: MotionState,
        tick: u64,
        reckoning: DeadReckoning,
    ) -> bool {
        let next = self.next(generation, now, tick, reckoning);
        self.set_position(now.position);
        next.is_some_and(|next| {
            *self = next;
            true
        })
    }
}

/// The tolerance and repetition of dead reckoning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadReckoning {
    /// The length of a tick, in seconds.
    pub tick_s: f32,
    /// The largest position error of clients, in metres.
    pub tolerance_m: f32,
    /// How often the time before a repetition is doubled.
    pub update_doublings: u8,
}

/// The age at which a base with this many repetitions is repeated; none when it has to be renewed.
fn repeat_at(repeats: u8, doublings: u8) -> Option<u64> {
    let last = REPEAT_AT[REPEAT_AT.len() - 1];
    let at = REPEAT_AT.get(usize::from(repeats))?;
    Some((at << doublings).min(last))
}

/// How often a client receives an object's motion: every tick, or every second, fourth or eighth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tier(u8);

impl Tier {
    /// The number of tiers, without [doubling](Self::doubled).
    pub const COUNT: usize = 4;

    /// The ticks between turns of the slowest tier.
    pub const TICKS_MAX: u64 = 1 << (Self::COUNT - 1);

    /// All tiers, the most frequent first.
    pub const ALL: [Self; Self::COUNT] = [Self(0), Self(1), Self(2), Self(3)];

    /// The tier with this [number](Self::number); numbers above the range are reduced to their last bits.
    pub const fn from_number(number: u8) -> Self {
        Self(number % Self::COUNT as u8)
    }

    /// The ticks between two turns.
    #[must_use]
    pub const fn ticks(self) -> u64 {
        1 << self.0
    }

    /// The tier of an object at this distance (squared): half as frequent with every doubling of the distance from
    /// `full_rate_distance_m` on, and twice as frequent if its class is higher than that of unrelated objects.
    #[must_use]
    pub fn of(distance_squared: f32, full_rate_distance_m: f32, class: u8) -> Self {
        let near = full_rate_distance_m * full_rate_distance_m;
        let tier = u8::from(distance_squared > near)
            + u8::from(distance_squared > near * 4.0)
            + u8::from(distance_squared > near * 16.0);
        Self(tier.saturating_sub(u8::from(class > 1)))
    }

    /// The binary logarithm of the ticks between turns.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The tier whose turns are half as frequent, this many times over.
    #[must_use]
    pub const fn doubled(self, times: u8) -> Self {
        Self(self.0 + times)
    }

    /// Whether it is the tier's turn in this tick; objects take turns by their id.
    #[must_use]
    pub const fn is_due(self, tick: u64, id: u32) -> bool {
        (tick as u32).wrapping_add(id) & ((1 << self.0) - 1) == 0
    }

    /// For 64 objects with consecutive ids, the first a multiple of 64: those that have this tier's turn in a tick, one bit
    /// each. For tiers whose turns are at most 64 ticks apart.
    #[must_use]
    pub const fn turn_mask(self, tick: u64) -> u64 {
        debug_assert!(self.ticks() <= u64::BITS as u64, "ids would matter above");
        let ticks = self.ticks() as u32;
        let every = u64::MAX / (u64::MAX >> (u64::BITS - ticks));
        every << ((tick as u32).wrapping_neg() % ticks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RECKONING: DeadReckoning = DeadReckoning {
        tick_s: 0.05,
        tolerance_m: 0.05,
        update_doublings: 0,
    };

    fn walking(position: Vec2, velocity: Vec2) -> MotionState {
        MotionState {
            position,
            velocity,
            heading: 0,
            floor: 0,
            jumped: false,
        }
    }

    #[test]
    fn straight_walk_needs_one_base_and_its_end_another() {
        let (mut base, velocity) = (MotionBase::default(), Vec2::new(3.0, -1.0));
        let (mut bases, mut news) = (Vec::new(), 0);
        for tick in 100..180 {
            let at = Vec2::splat(50.0) + velocity * ((tick - 100) as f32 * 0.05);
            news += u32::from(base.update(1, walking(at, velocity), tick, RECKONING));
            bases.push(base.base_tick);
        }
        let end = base.last_position;
        assert!(bases.iter().all(|&made| made == 100));
        assert_eq!(news, 4, "the base and its repetitions");
        assert!(!base.is_reliable());
        assert!(base.update(1, walking(end, Vec2::ZERO), 180, RECKONING));
        assert!(base.is_reliable());
        assert!((181..1000).all(|tick| !base.update(1, walking(end, Vec2::ZERO), tick, RECKONING)));
        assert!(base.update(2, walking(end, Vec2::ZERO), 1000, RECKONING));
    }

    #[test]
    fn moving_base_is_renewed_before_its_tick_wraps() {
        for (jumped_at, update_doublings) in [(None, 0), (Some(300), 0), (None, 1), (Some(300), 3)]
        {
            let reckoning = DeadReckoning {
                update_doublings,
                ..RECKONING
            };
            let mut base = MotionBase::default();
            for tick in 0..2000 {
                let at = Vec2::new(tick as f32 * 0.05, 0.0);
                let jumped = Some(tick) == jumped_at;
                let now = MotionState {
                    jumped,
                    ..walking(at, Vec2::X)
                };
                base.update(1, now, tick, reckoning);
                assert!(tick - base.base_tick < 128, "at {tick}");
            }
        }
    }

    proptest! {
        #![proptest_config(draws!())]

        /// Whatever an object does, clients that received everything are off by at most the tolerance and a quantum
        /// while it moves, and not at all at rest.
        #[test]
        fn extrapolation_stays_within_the_tolerance(steps in prop::collection::vec((0..4u8, -40..40i8, -40..40i8), 1..200)) {
            let (mut base, mut position, mut velocity) = (MotionBase::default(), Vec2::splat(100.0), Vec2::ZERO);
            for (tick, (what, x, y)) in (7..).zip(steps) {
                let jumped = what == 3;
                match what {
                    0 => velocity = Vec2::new(f32::from(x), f32::from(y)) / 8.0,
                    1 => velocity = Vec2::ZERO,
                    3 => position = Vec2::new(f32::from(x), f32::from(y)) + 100.0,
                    _ => {}
                }
                position = (position + velocity * 0.05).max(Vec2::ZERO);
                let now = MotionState { jumped, ..walking(position, velocity) };
                base.update(1, now, tick, RECKONING);
                let off = base.extrapolated(tick, 0.05).distance(position);
                let most = if velocity == Vec2::ZERO { 0.0 } else { RECKONING.tolerance_m };
                prop_assert!(off <= most + 1.5 / 64.0, "{} at {}", off, tick);
            }
        }
    }

    #[test]
    fn turn_mask_matches_single_turns() {
        for (tick, doublings) in (100..170).flat_map(|tick| (0..4).map(move |of| (tick, of))) {
            for tier in Tier::ALL.map(|tier| tier.doubled(doublings)) {
                let turns = (0..64).filter(|&id| tier.is_due(tick, id + 640));
                let expected = turns.fold(0, |all, id| all | 1 << id);
                assert_eq!(tier.turn_mask(tick), expected, "{tier:?} at {tick}");
            }
        }
    }

    #[test]
    fn tiers_double_with_distance_and_favour_related_objects() {
        let tier = |distance: f32, class| Tier::of(distance * distance, 20.0, class).0;
        assert_eq!([5.0, 30.0, 70.0, 300.0].map(|m| tier(m, 1)), [0, 1, 2, 3]);
        assert_eq!([5.0, 30.0, 70.0, 300.0].map(|m| tier(m, 3)), [0, 0, 1, 2]);
        let turns = |tier: Tier| (0..64).filter(|&tick| tier.is_due(tick, 5)).count();
        assert_eq!([0, 1, 2, 3].map(|tier| turns(Tier(tier))), [64, 32, 16, 8]);
        assert_eq!([0, 3].map(|tier| turns(Tier(tier).doubled(1))), [32, 4]);
    }
}
