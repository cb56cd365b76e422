//! A synthetic player at the client's end of a connection: logs in, walks in random directions, and maintains a mirror.

use glam::Vec2;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use throng_protocol::movement::PlayerStep;
use throng_protocol::wire::{ClientInput, ClientMessage, InputMotion, LoginRefusal, SessionNotice};

use throng_protocol::mirror::Mirror;
use throng_protocol::predictor::Predictor;

/// The smallest correction, in metres. Less is a rounding error.
const CORRECTION_M: f32 = 0.01;

/// Mean time between voluntary changes of direction, in ticks of the bot.
const TURN_TICKS: u32 = 100;

/// The program of a synthetic player. No sockets, no clock.
#[derive(Debug)]
pub struct BotClient {
    player: u64,
    mirror: Mirror,
    predictor: Predictor,
    direction: u8,
    random: Pcg64Mcg,
    /// The scene for which it has to send that it is loaded.
    ready_scene: Option<u32>,
    has_logged_in: bool,
    is_stopped: bool,
    closed: Option<u8>,
    refusal: Option<LoginRefusal>,
    mirror_error: Option<String>,
    corrections: u64,
}

impl BotClient {
    /// A player, who logs in by the token. The same seed makes the same turns.
    #[must_use]
    pub fn new(player: u64, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ player.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            player,
            mirror: Mirror::default(),
            predictor: Predictor::default(),
            direction: random.random(),
            random,
            ready_scene: None,
            has_logged_in: false,
            is_stopped: false,
            closed: None,
            refusal: None,
            mirror_error: None,
            corrections: 0,
        }
    }

    /// Id of the player.
    #[must_use]
    pub const fn player(&self) -> u64 {
        self.player
    }

    /// Its mirror of the server's state.
    #[must_use]
    pub const fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Number of times the server's position differed from the predicted one.
    #[must_use]
    pub const fn corrections(&self) -> u64 {
        self.corrections
    }

    /// Number of inputs that the server has not acknowledged.
    #[must_use]
    pub fn unhandled_inputs(&self) -> usize {
        self.predictor.unhandled().len()
    }

    /// Error of the first packet that the mirror could not decode.
    #[must_use]
    pub fn mirror_error(&self) -> Option<&str> {
        self.mirror_error.as_deref()
    }

    /// Reason for which the server closed the session, if it did.
    #[must_use]
    pub const fn closed(&self) -> Option<u8> {
        self.closed
    }

    /// Why the server refused the login, if it did.
    #[must_use]
    pub const fn refusal(&self) -> Option<LoginRefusal> {
        self.refusal
    }

    /// Stops walking.
    pub const fn stop(&mut self) {
        self.is_stopped = true;
    }

    fn step(&self) -> PlayerStep<'static> {
        PlayerStep {
            ground: None,
            size_m: self.mirror.size_m(),
            step_m: self.mirror.own_step_m(),
        }
    }

    /// Handles a packet of the server.
    pub fn receive(&mut self, packet: &[u8]) {
        if self.mirror_error.is_some() {
            return;
        }
        self.mirror_error = self.mirror.receive(packet).err().map(|e| e.to_string());
        for notice in self.mirror.take_notices() {
            match notice {
                SessionNotice::Loading { scene, .. } => self.ready_scene = Some(scene),
                SessionNotice::Closed { reason, refusal } => {
                    (self.closed, self.refusal) = (Some(reason), refusal);
                }
                _ => {}
            }
        }
        let step = self.step();
        let corrected = self.predictor.reconcile(&step, &self.mirror);
        if corrected.is_some_and(|correction| correction.error_m > CORRECTION_M) {
            // It has no map: a correction means that it met a wall.
            self.corrections += 1;
            self.direction = self.random.random();
        }
    }

    /// Runs a tick of the bot, and passes its messages to `say`.
    pub fn update(&mut self, mut say: impl FnMut(&[u8])) {
        if !std::mem::replace(&mut self.has_logged_in, true) {
            say(&ClientMessage::login_by_token().to_bytes());
        }
        if let Some(scene) = self.ready_scene.take() {
            say(&ClientMessage::Ready { scene }.to_bytes());
        }
        if self.is_stopped || self.predictor.position().is_none() {
            return;
        }
        if self.random.random_ratio(1, TURN_TICKS) {
            self.direction = self.random.random();
        }
        let input = ClientInput {
            client_tick: self.mirror.tick() as u16,
            motion: InputMotion::Towards(self.direction),
            heading: self.direction,
            ..ClientInput::default()
        };
        let step = self.step();
        if let Some(input) = self.predictor.apply_input(&step, input) {
            say(&ClientMessage::Input(input).to_bytes());
        }
    }

    /// Its predicted position, in metres.
    #[must_use]
    pub fn position(&self) -> Option<Vec2> {
        self.predictor.position()
    }
}
