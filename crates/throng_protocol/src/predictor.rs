//! Prediction of the controlled object: inputs are applied at once, and applied again from the position that the server sends.
//!
//! ```text
//! apply_input: an input ─▶ numbered, applied at once, stored ─▶ to be sent
//! reconcile:   OwnPosition (the server's position after input n) ─▶ inputs up to n are dropped ─▶ as predicted? else replay the rest
//! ```
//!
//! The steps use the server's code ([`PlayerStep`]) on the client's map. Positions are exact `f32`s, not wire units: a step of 7.5 cm is
//! less than five units, and rounding would change its direction and speed. So after input n both ends have the same bits, unless the
//! server did something that the client cannot predict: an input was lost, or arrived too late and was refused; a step exceeded the budget;
//! the object was pushed or teleported; the map changed. Each of these is a [`Correction`], after which both agree again. The server sends
//! the object's speed and each change of it (*OwnSpeed*, [`Mirror::own_step_m`]): the stored inputs are replayed at the new speed before
//! the next position is compared. A change is no correction, unless inputs were handled at the new speed before it arrived.
//!
//! At the start of a scene the server also sends the exact position. Before its first input, the client's object may be moved by the
//! server; the predicted position then comes from the object's motion, within half a unit (1/128 m). The first correction fixes that.
//!
//! Bounds: at most [`UNHANDLED_MAX`] inputs are stored; with that many unacknowledged inputs the client does not move. No ECS, no clock.
//! Cost: one step per input; a correction replays the stored inputs, which are few at usual round trips.

use std::collections::VecDeque;

use glam::Vec2;
use throng_core::motion::PlayerMotion;

use crate::mirror::{Mirror, OwnPosition};
use crate::movement::{MoveBudget, MoveRules, PlayerStep};
use crate::wire::{ClientInput, InputMotion, is_newer};

/// Maximum number of stored inputs that the server has not handled: three seconds at 20 per second. A server also stores no more of one
/// client.
pub const UNHANDLED_MAX: usize = 64;

/// The predicted state of the controlled object.
#[derive(Clone, Debug, Default)]
pub struct Predictor {
    /// Scene, id and generation of the object.
    controlled: Option<(u32, u32, u32)>,
    /// Takeovers of the mirror. Another server process may use the same numbers for another object, and counts its own ticks.
    takeovers: u32,
    /// The last position from the server.
    confirmed: Vec2,
    /// Tick of that position.
    confirmed_tick: Option<u64>,
    /// Inputs that the server has not handled as far as is known, oldest first, with the predicted positions.
    unhandled: VecDeque<(ClientInput, Vec2)>,
    /// Number of the last input.
    seq: u16,
    /// Whether the client has sent inputs for this object: from then on only exact positions count.
    has_applied_input: bool,
    /// The length of a step with which the positions of the stored inputs were computed.
    step_m: f32,
    /// Change of the current position by a change of speed, since the last [`take_speed_jump`](Self::take_speed_jump).
    speed_jump_m: Vec2,
}

/// Maximum difference, in metres, between an exact position and the same one in wire units.
const POSITION_TOLERANCE_M: f32 = 1.0 / 64.0;

/// The server's position differs from the predicted one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// After this input.
    pub input: u16,
    /// Distance between the two at that input, in metres.
    pub error_m: f32,
    /// Change of the current predicted position; a renderer can smooth it.
    pub jump_m: Vec2,
}

/// The client does not limit its own moves; the server does.
const UNLIMITED: MoveRules = MoveRules {
    tolerance: 0.0,
    burst_s_max: 0.0,
    rounding_tolerance_m: 0.0,
};

impl Predictor {
    /// Applies an input at once and numbers it. Returns the input to send, once. `None` while the position of the object is unknown, or
    /// while [`UNHANDLED_MAX`] inputs are unacknowledged: then nothing happens.
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

    /// Takes the server's position from the mirror. Call it after each packet. `on` is the ground of the mirror's scene. Each correction is
    /// returned once.
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
        let is_taken_over =
            std::mem::replace(&mut self.takeovers, mirror.takeovers()) != mirror.takeovers();
        if std::mem::replace(&mut self.controlled, own) != own || is_taken_over {
            // Unacknowledged inputs apply to the new object, because the server has not handled them.
            (self.has_applied_input, self.confirmed_tick) = (!self.unhandled.is_empty(), None);
            self.reset(on, id, mirror);
            return None;
        }
        if !self.has_applied_input {
            self.reset(on, id, mirror);
            return None;
        }
        if on.step_m != self.step_m {
            // The server walks the inputs that it has not handled at the new speed.
            let before = self.latest_position();
            self.replay_inputs(on);
            self.speed_jump_m += self.latest_position() - before;
        }
        let own = mirror.own_position()?;
        let is_news = self.confirmed_tick.is_none_or(|tick| own.tick > tick);
        if is_news { self.confirm(on, own) } else { None }
    }

    /// The shift of the predicted position by changes of speed since the last call, in metres; a renderer can smooth it.
    /// `None` if they have not.
    pub fn take_speed_jump(&mut self) -> Option<Vec2> {
        let jump_m = std::mem::take(&mut self.speed_jump_m);
        (jump_m != Vec2::ZERO).then_some(jump_m)
    }

    /// Starts at the position of a new object, without inputs of the client.
    fn reset(&mut self, on: &PlayerStep, id: u32, mirror: &Mirror) {
        let own = mirror.own_position();
        let shown = mirror.position(id, mirror.tick());
        let exact = own.map(|own| own.position);
        let is_same =
            |exact: &Vec2| shown.is_none_or(|at| at.distance(*exact) <= POSITION_TOLERANCE_M);
        let at = exact.filter(is_same).or(shown);
        self.confirmed = at.unwrap_or(self.confirmed);
        self.confirmed_tick = own.map(|own| own.tick);
        self.replay_inputs(on);
    }

    /// Handles the server's position after an input.
    fn confirm(&mut self, on: &PlayerStep, own: OwnPosition) -> Option<Correction> {
        let before = self.latest_position();
        while let Some(&(input, to)) = self.unhandled.front()
            && !is_newer(input.seq, own.input)
        {
            self.confirmed = to;
            self.unhandled.pop_front();
        }
        self.confirmed_tick = Some(own.tick);
        let walked = std::mem::replace(&mut self.confirmed, own.position);
        if walked == own.position {
            return None;
        }
        self.replay_inputs(on);
        Some(Correction {
            input: own.input,
            error_m: walked.distance(own.position),
            jump_m: self.latest_position() - before,
        })
    }

    /// Applies all stored inputs again, from the server's position.
    fn replay_inputs(&mut self, on: &PlayerStep) {
        self.step_m = on.step_m;
        let mut at = self.confirmed;
        for (input, to) in &mut self.unhandled {
            at = position_after(on, at, *input);
            *to = at;
        }
    }

    fn latest_position(&self) -> Vec2 {
        self.unhandled.back().map_or(self.confirmed, |&(_, to)| to)
    }

    /// The predicted position with all inputs so far, in metres; `None` without an object.
    #[must_use]
    pub fn position(&self) -> Option<Vec2> {
        self.controlled.map(|_| self.latest_position())
    }

    /// The last position from the server, in metres; `None` without an object.
    #[must_use]
    pub fn confirmed(&self) -> Option<Vec2> {
        self.controlled.map(|_| self.confirmed)
    }

    /// Inputs that the server has not handled as far as is known, oldest first, with the predicted positions.
    pub fn unhandled(&self) -> impl ExactSizeIterator<Item = (ClientInput, Vec2)> {
        self.unhandled.iter().copied()
    }
}

/// The end of an input's motion; a refused input does not move.
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

    /// A simulated server with one object on open ground.
    struct Far {
        mirror: Mirror,
        sequence: u16,
        tick: u16,
        input: u16,
        at: Vec2,
    }

    fn far_hello(tick: u64) -> Hello {
        Hello {
            client: 1,
            tick_millihertz: 20_000,
            tick,
            mtu_bytes: 1_200,
        }
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
                far_hello(100).write(bytes);
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
        // It knows nothing of another object.
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

    #[test]
    fn object_of_another_process_replaces_one_with_equal_ids() {
        let (mut far, mut predictor) = (Far::new(), Predictor::default());
        predictor.reconcile(&OPEN, &far.mirror);
        let input = predictor.apply_input(&OPEN, towards(0)).unwrap();
        far.handle(input);
        far.send_position();
        predictor.reconcile(&OPEN, &far.mirror);
        let pending = predictor.apply_input(&OPEN, towards(0)).unwrap();
        // The tick of the other process is lower. Its object has the same scene, id and generation.
        (far.tick, far.at) = (5, Vec2::splat(30.0));
        let motion = Motion::of(5, far.at, Vec2::ZERO, 0, 0);
        far.send(Channel::Reliable, |bytes| {
            far_hello(5).write(bytes);
            let token = crate::wire::ResumeToken([1; 16]);
            crate::wire::SessionNotice::Resumed { keeps_state: false }.write(bytes);
            crate::wire::SessionNotice::Welcome { player: 1, token }.write(bytes);
            write_scene(bytes, 1, Vec2::splat(50.0));
            write_controlled_object(bytes, 7, 0);
            write_snapshot_header(bytes, 7, 0, 0, motion, 0);
            write_own_position(bytes, Vec2::splat(30.0));
        });
        predictor.reconcile(&OPEN, &far.mirror);
        assert_eq!(predictor.confirmed(), Some(far.at));
        // Positions of its ticks count from the first one on.
        far.handle(pending);
        far.send_position();
        assert_eq!(predictor.reconcile(&OPEN, &far.mirror), None);
        assert_eq!(
            (predictor.position(), predictor.unhandled().len()),
            (Some(far.at), 0)
        );
    }

    #[test]
    fn stored_inputs_replay_at_a_new_speed_without_correction() {
        let (mut far, mut predictor) = (Far::new(), Predictor::default());
        far.send_position();
        predictor.reconcile(&OPEN, &far.mirror);
        let fast = PlayerStep {
            step_m: 0.2,
            ..OPEN
        };
        let inputs: Vec<_> = (0..6)
            .filter_map(|_| predictor.apply_input(&OPEN, towards(0)))
            .collect();
        // The server handles two, then the object becomes faster.
        for input in &inputs[..2] {
            far.handle(*input);
        }
        far.send_position();
        assert_eq!(predictor.reconcile(&OPEN, &far.mirror), None);
        assert_eq!(predictor.take_speed_jump(), None);
        let before = predictor.position().unwrap();
        far.tick += 1;
        far.at = position_after(&fast, far.at, inputs[2]);
        far.input = inputs[2].seq;
        far.send_position();
        assert_eq!(predictor.reconcile(&fast, &far.mirror), None);
        let jump = predictor.take_speed_jump().unwrap();
        assert!((jump.x - 4.0 * 0.125).abs() < 1e-4, "{jump}");
        assert_eq!(predictor.position(), Some(before + jump));
        assert_eq!(predictor.take_speed_jump(), None, "once");
        for input in &inputs[3..] {
            far.at = position_after(&fast, far.at, *input);
        }
        assert_eq!(predictor.position(), Some(far.at));
    }

    #[test]
    fn speed_jumps_add_up_until_they_are_taken() {
        let (mut far, mut predictor) = (Far::new(), Predictor::default());
        far.send_position();
        predictor.reconcile(&OPEN, &far.mirror);
        for _ in 0..4 {
            predictor.apply_input(&OPEN, towards(0)).unwrap();
        }
        let before = predictor.position().unwrap();
        for step_m in [0.1, 0.2] {
            predictor.reconcile(&PlayerStep { step_m, ..OPEN }, &far.mirror);
        }
        let after = predictor.position().unwrap();
        assert!((after.x - before.x - 4.0 * 0.125).abs() < 1e-4, "{after}");
        let jump = predictor.take_speed_jump().unwrap();
        assert!(jump.distance(after - before) < 1e-5, "{jump}");
    }

    proptest! {
        #![proptest_config(draws!())]

        /// Inputs are lost, the server teleports, positions are lost or delayed: after each position that arrives in time, the confirmed
        /// position is the server's, and the unhandled inputs continue from it.
        #[test]
        fn correction_brings_client_to_the_server_position(
            script in prop::collection::vec((any::<u8>(), 0..10_u8, 0..10_u8), 1..120), lag in 0..12_usize,
        ) {
            let (mut far, mut predictor) = (Far::new(), Predictor::default());
            predictor.reconcile(&OPEN, &far.mirror);
            // Inputs at which the two differ: the first position is not exact either.
            let (mut line, mut partings) = (VecDeque::new(), vec![1_u16]);
            for (direction, what, delivery) in script {
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
                if delivery > 2 && far.input > 0 {
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
