//! A client's own object, ahead of the server: inputs are walked at once, and again from wherever the server says it stands.
//!
//! ```text
//! act:    an input ─▶ numbered, walked at once, kept ─▶ to be sent
//! follow: OwnPosition (the server's place after input n) ─▶ what was kept up to n is forgotten ─▶ as walked? else the rest anew
//! ```
//! The steps are the server's own code ([`PlayerStep`]) on the client's map. Places are told exactly, in whole `f32`s and not in
//! units of the wire: a step of 7.5 cm is less than five units, and whoever rounded it would walk another way at another speed. So
//! after input n both ends hold the same bits, unless the server did what a client cannot foresee: an input was lost or came late
//! and was refused, a step went beyond the allowance, the object was pushed or teleported, its speed or the map changed. Each of
//! these is a [`Correction`], after which both hold the same again.
//!
//! Where a scene begins the place is told exactly, too. A client that has not acted yet may be moved by the server, and is where
//! the object's motion has it, to half a unit (1/128 m); the first correction mends that.
//!
//! Bounds: at most [`UNHANDLED_MAX`] inputs are kept; with as many unanswered a client stands still. No ECS, no clock.
//! Cost: a step an input; a correction walks what is kept, a few steps at usual round trips.

use std::collections::VecDeque;

use glam::Vec2;
use throng_core::motion::PlayerMotion;

use crate::mirror::{Mirror, OwnPosition};
use crate::movement::{MoveBudget, MoveRules, PlayerStep};
use crate::wire::{ClientInput, InputMotion, is_newer};

/// Inputs that are kept until the server has handled them, at most: three seconds of them at 20 a second. A server holds no more
/// of one client either.
pub const UNHANDLED_MAX: usize = 64;

/// Where a client's own object is, as far as its inputs go.
#[derive(Clone, Debug, Default)]
pub struct Predictor {
    /// Scene, number and generation of the object that it is about.
    controlled: Option<(u32, u32, u32)>,
    /// Where the server had it last.
    confirmed: Vec2,
    /// At which tick it said so.
    confirmed_tick: Option<u64>,
    /// Inputs that the server has not handled as far as is known, oldest first, and where each led.
    unhandled: VecDeque<(ClientInput, Vec2)>,
    /// The number of the last input.
    seq: u16,
    /// Whether it acted with this object: from then on only what is told exactly counts.
    has_applied_input: bool,
}

/// How far what is told exactly may be from what is told in units of the wire, in metres, where both mean the same place.
const POSITION_TOLERANCE_M: f32 = 1.0 / 64.0;

/// The server had the object elsewhere than it was walked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// After this input.
    pub input: u16,
    /// How far apart the two were there, in metres.
    pub error_m: f32,
    /// From where it seemed to be now to where it is: what is shown may follow smoothly.
    pub jump_m: Vec2,
}

/// A client asks nobody how far it may go: if it is too far, it is told.
const UNLIMITED: MoveRules = MoveRules {
    tolerance: 0.0,
    burst_s_max: 0.0,
    rounding_tolerance_m: 0.0,
};

impl Predictor {
    /// Takes an input, numbers it and walks it at once; what is given is to be sent, once. `None` while it is not known where the
    /// own object is, and where [`UNHANDLED_MAX`] inputs wait for the server: then nothing happens.
    pub fn apply_input(&mut self, on: &PlayerStep, input: ClientInput) -> Option<ClientInput> {
        self.controlled?;
        if self.unhandled.len() >= UNHANDLED_MAX {
            return None;
        }
        self.seq = self.seq.wrapping_add(1);
        let seq = self.seq;
        let input = ClientInput { seq, ..input };
        let to = position_after(on, self.latest_position(), input);
        self.unhandled.push_back((input, to));
        self.has_applied_input = true;
        Some(input)
    }

    /// Takes what the mirror was told last; to be called after each packet. `on` is the ground of the scene that the mirror is in.
    /// A correction is given once.
    pub fn reconcile(&mut self, on: &PlayerStep, mirror: &Mirror) -> Option<Correction> {
        let own = mirror.controlled_object().zip(mirror.scene());
        let own = own.map(|((id, generation), scene)| (scene, id, generation));
        let Some((_, id, _)) = own else {
            *self = Self {
                seq: self.seq,
                ..Self::default()
            };
            return None;
        };
        if std::mem::replace(&mut self.controlled, own) != own {
            // What is under way is for the new object, as far as the server has not handled it.
            (self.has_applied_input, self.confirmed_tick) = (!self.unhandled.is_empty(), None);
            self.reset(on, id, mirror);
            return None;
        }
        if !self.has_applied_input {
            self.reset(on, id, mirror);
            return None;
        }
        let told = mirror.own_position()?;
        let is_news = self.confirmed_tick.is_none_or(|tick| told.tick > tick);
        if is_news {
            self.confirm(on, told)
        } else {
            None
        }
    }

    /// Takes the place of an object with which the client has not acted.
    fn reset(&mut self, on: &PlayerStep, id: u32, mirror: &Mirror) {
        let told = mirror.own_position();
        let shown = mirror.position(id, mirror.tick());
        let exact = told.map(|told| told.position);
        let is_same =
            |exact: &Vec2| shown.is_none_or(|at| at.distance(*exact) <= POSITION_TOLERANCE_M);
        let at = exact.filter(is_same).or(shown);
        self.confirmed = at.unwrap_or(self.confirmed);
        self.confirmed_tick = told.map(|told| told.tick);
        self.replay_inputs(on);
    }

    /// The server's place after an input that it names.
    fn confirm(&mut self, on: &PlayerStep, told: OwnPosition) -> Option<Correction> {
        let before = self.latest_position();
        while let Some(&(input, to)) = self.unhandled.front()
            && !is_newer(input.seq, told.input)
        {
            self.confirmed = to;
            self.unhandled.pop_front();
        }
        self.confirmed_tick = Some(told.tick);
        let walked = std::mem::replace(&mut self.confirmed, told.position);
        if walked == told.position {
            return None;
        }
        self.replay_inputs(on);
        Some(Correction {
            input: told.input,
            error_m: walked.distance(told.position),
            jump_m: self.latest_position() - before,
        })
    }

    /// All that is kept is walked again from where the server has the object.
    fn replay_inputs(&mut self, on: &PlayerStep) {
        let mut at = self.confirmed;
        for (input, to) in &mut self.unhandled {
            at = position_after(on, at, *input);
            *to = at;
        }
    }

    fn latest_position(&self) -> Vec2 {
        self.unhandled.back().map_or(self.confirmed, |&(_, to)| to)
    }

    /// Where the own object is with all inputs so far, in metres; none while the client has none.
    #[must_use]
    pub fn position(&self) -> Option<Vec2> {
        self.controlled.map(|_| self.latest_position())
    }

    /// Where the server had it last, in metres; none while the client has none.
    #[must_use]
    pub fn confirmed(&self) -> Option<Vec2> {
        self.controlled.map(|_| self.confirmed)
    }

    /// The inputs that the server has not handled as far as is known, oldest first, and where each led.
    pub fn unhandled(&self) -> impl ExactSizeIterator<Item = (ClientInput, Vec2)> {
        self.unhandled.iter().copied()
    }
}

/// Where an input leads; one that would be refused leads nowhere.
fn position_after(on: &PlayerStep, from: Vec2, input: ClientInput) -> Vec2 {
    let motion = match input.motion {
        InputMotion::Stand => PlayerMotion::Stand,
        InputMotion::To(to) => PlayerMotion::To(to.metres()),
        InputMotion::Towards(direction) => PlayerMotion::Towards(direction),
    };
    let walked = on.walk(from, motion, MoveBudget(f32::INFINITY), &UNLIMITED);
    walked.map_or(from, |(to, _)| to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{
        Channel, Hello, Motion, PacketHeader, write_controlled_object, write_own_position,
        write_scene, write_snapshot_header,
    };
    use proptest::prelude::*;

    const OPEN: PlayerStep = PlayerStep {
        ground: None,
        size_m: Vec2::splat(50.0),
        step_m: 0.075,
    };

    /// A server of one object on open ground, as packets.
    struct Far {
        mirror: Mirror,
        sequence: u16,
        tick: u16,
        input: u16,
        at: Vec2,
    }

    impl Far {
        fn new() -> Self {
            let mut far = Self {
                mirror: Mirror::default(),
                sequence: 0,
                tick: 100,
                input: 0,
                at: Vec2::splat(10.3),
            };
            let motion = Motion::of(100, far.at, Vec2::ZERO, 0, 0);
            far.send(Channel::Reliable, |bytes| {
                let hello = Hello {
                    client: 1,
                    tick_millihertz: 20_000,
                    tick: 100,
                    mtu_bytes: 1_200,
                };
                hello.write(bytes);
                write_scene(bytes, 1, Vec2::splat(50.0));
                write_controlled_object(bytes, 7, 0);
                write_snapshot_header(bytes, 7, 0, 0, motion, 0);
            });
            far
        }

        fn send(&mut self, channel: Channel, write: impl FnOnce(&mut Vec<u8>)) {
            let header = PacketHeader {
                channel,
                epoch: 1,
                sequence: self.sequence,
                tick: self.tick,
                input: self.input,
            };
            self.sequence += u16::from(channel == Channel::Reliable);
            let mut bytes = header.to_bytes().to_vec();
            write(&mut bytes);
            self.mirror.receive(&bytes).unwrap();
        }

        fn handle(&mut self, input: ClientInput) {
            self.tick += 1;
            self.at = position_after(&OPEN, self.at, input);
            self.input = input.seq;
        }

        fn send_position(&mut self) {
            let at = self.at;
            self.send(Channel::Unreliable, |bytes| write_own_position(bytes, at));
        }
    }

    fn towards(direction: u8) -> ClientInput {
        ClientInput {
            motion: InputMotion::Towards(direction),
            ..ClientInput::default()
        }
    }

    #[test]
    fn input_needs_an_object_and_room_for_unhandled_inputs() {
        let mut predictor = Predictor::default();
        assert_eq!(predictor.apply_input(&OPEN, towards(0)), None);
        assert_eq!(predictor.position(), None);
        let far = Far::new();
        assert_eq!(predictor.reconcile(&OPEN, &far.mirror), None);
        let acted = (0..100).filter_map(|_| predictor.apply_input(&OPEN, towards(0)));
        assert_eq!(acted.count(), UNHANDLED_MAX);
        assert_eq!(predictor.unhandled().len(), UNHANDLED_MAX);
        // Of another object it knows nothing.
        let mut gone = Mirror::default();
        assert_eq!(predictor.reconcile(&OPEN, &gone), None);
        assert_eq!((predictor.position(), predictor.confirmed()), (None, None));
        gone = Far::new().mirror;
        predictor.reconcile(&OPEN, &gone);
        assert_eq!(
            predictor.apply_input(&OPEN, towards(0)).map(|it| it.seq),
            Some(65)
        );
    }

    #[test]
    fn positions_after_the_first_are_exact_across_input_wraparound() {
        let (mut far, mut predictor) = (Far::new(), Predictor::default());
        predictor.seq = u16::MAX - 20;
        predictor.reconcile(&OPEN, &far.mirror);
        let mut corrections = Vec::new();
        for nth in 0..60_u8 {
            let input = predictor.apply_input(&OPEN, towards(nth)).unwrap();
            far.handle(input);
            far.send_position();
            corrections.extend(predictor.reconcile(&OPEN, &far.mirror));
            assert_eq!(predictor.position(), Some(far.at));
        }
        assert_eq!(corrections.len(), 1);
        assert!(corrections[0].error_m <= 1.5 / 128.0, "{corrections:?}");
    }

    proptest! {
        #![proptest_config(draws!())]

        /// Inputs are lost, the server teleports, places are lost or come late: after each that comes in time the place that was
        /// confirmed is the server's, and what is unhandled leads on from there.
        #[test]
        fn correction_brings_client_to_the_server_position(
            script in prop::collection::vec((any::<u8>(), 0..10_u8, 0..10_u8), 1..120), lag in 0..12_usize,
        ) {
            let (mut far, mut predictor) = (Far::new(), Predictor::default());
            predictor.reconcile(&OPEN, &far.mirror);
            // Inputs at which the two part: the first place is not exact either.
            let (mut line, mut partings) = (VecDeque::new(), vec![1_u16]);
            for (direction, what, told) in script {
                let Some(input) = predictor.apply_input(&OPEN, towards(direction)) else {
                    break;
                };
                line.push_back(input);
                if line.len() > lag && let Some(input) = line.pop_front() {
                    if what > 0 {
                        far.handle(input);
                    }
                    if what < 2 {
                        partings.push(input.seq);
                    }
                    if what == 1 {
                        far.at = Vec2::splat(f32::from(direction) / 7.0);
                    }
                }
                if told > 2 && far.input > 0 {
                    far.send_position();
                    let corrected = predictor.reconcile(&OPEN, &far.mirror);
                    let parted = partings.len();
                    partings.retain(|&parting| parting > far.input);
                    if partings.len() == parted {
                        prop_assert_eq!(corrected, None);
                    }
                    prop_assert_eq!(predictor.confirmed(), Some(far.at));
                    let led = predictor.unhandled().fold(far.at, |at, (input, _)| position_after(&OPEN, at, input));
                    prop_assert_eq!(predictor.position(), Some(led));
                    prop_assert_eq!(predictor.reconcile(&OPEN, &far.mirror), None, "once");
                }
            }
        }
    }
}
