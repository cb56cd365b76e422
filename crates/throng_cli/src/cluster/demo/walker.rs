//! A client of the demo, which walks from portal to portal.

use std::f32::consts::TAU;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use glam::Vec2;
use throng::net::TokenKey;
use throng_client::{Client, ClientSettings, ControlState};

use crate::CliError;
use crate::cluster::world::{PLACE_WAITING, Place, WorldFile};
use crate::token::issue;

/// Validity of a token, and after which silence of the gateway the connection counts as lost, in seconds.
const TOKEN_TIMES_S: (u64, i32) = (60, 2);

/// Between two attempts to connect again.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// What a walker has seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DemoWalkerEvent {
    /// It is in the world for the first time.
    Entered,
    /// It is in another scene, both by number; from the last packet of the one to the first of the other.
    ChangedScene { from: u16, to: u16, pause: Duration },
    /// It is in the world again, in the same scene.
    Returned { pause: Duration },
    /// The connection has ended.
    Disconnected(String),
}

/// A pause from which on a client that stays in its scene counts as having been out of the world.
const OUT_AFTER: Duration = Duration::from_millis(500);

/// A client and its player.
pub(super) struct DemoWalker {
    pub player: u64,
    client: Client,
    /// The addresses of the gateways, its own first.
    gateways: Vec<SocketAddr>,
    key: TokenKey,
    packets: u64,
    /// The scene that it was in last, and when the last packet arrived there.
    last_seen: Option<(u16, Instant)>,
    is_in_world: bool,
    /// How often it has chosen a portal.
    choices: usize,
    goal: Option<(u16, Vec2)>,
    retry_at: Option<Instant>,
    attempts: u32,
}

fn connect(player: u64, gateways: &[SocketAddr], key: TokenKey) -> Result<Client, CliError> {
    let token = issue(player, gateways.to_vec(), TOKEN_TIMES_S, key)?;
    let client = Client::connect(&token.to_bytes(), ClientSettings::default());
    client.map_err(|error| CliError::new(format!("client {player}: {error}")))
}

impl DemoWalker {
    pub fn new(player: u64, gateways: Vec<SocketAddr>, key: TokenKey) -> Result<Self, CliError> {
        Ok(Self {
            client: connect(player, &gateways, key)?,
            player,
            gateways,
            key,
            packets: 0,
            last_seen: None,
            is_in_world: false,
            choices: player as usize,
            goal: None,
            retry_at: None,
            attempts: 0,
        })
    }

    /// Whether it is in a scene of the world now.
    pub const fn is_in_world(&self) -> bool {
        self.is_in_world
    }

    /// The scene of the client's own object; `None` before it has one, and in a waiting room.
    fn place(&self) -> Option<u16> {
        let (own, _) = self.client.mirror().controlled_object()?;
        let place = self.client.get::<Place>(own)?;
        (place != PLACE_WAITING).then_some(place)
    }

    /// Receives what has arrived, and walks on.
    pub fn update(
        &mut self,
        now: Instant,
        world: &WorldFile,
        events: &mut Vec<DemoWalkerEvent>,
    ) -> Result<(), CliError> {
        if let Some(retry_at) = self.retry_at {
            if now < retry_at {
                return Ok(());
            }
            self.retry_at = None;
            self.connect_again()?;
        }
        if let Err(error) = self.client.update(now) {
            if self.attempts == 0 {
                events.push(DemoWalkerEvent::Disconnected(error.to_string()));
            }
            self.is_in_world = false;
            self.retry_at = Some(now + RETRY_DELAY);
            return Ok(());
        }
        while self.client.next_event().is_some() {}
        let packets = self.client.mirror().packets();
        if packets != self.packets {
            self.packets = packets;
            let place = self.place();
            self.is_in_world = place.is_some();
            if let Some(place) = place {
                self.attempts = 0;
                self.see(place, now, events);
            }
        }
        self.walk(now, world);
        Ok(())
    }

    /// Resumes with the token it has, then with new ones.
    fn connect_again(&mut self) -> Result<(), CliError> {
        self.attempts += 1;
        if self.attempts == 1 && self.client.resume().is_ok() {
            return Ok(());
        }
        // Another gateway first each time.
        self.gateways.rotate_left(1);
        let token = issue(self.player, self.gateways.clone(), TOKEN_TIMES_S, self.key)?;
        let reconnected = self.client.reconnect(&token.to_bytes());
        reconnected.map_err(|error| CliError::new(format!("client {}: {error}", self.player)))
    }

    /// A packet has arrived in a scene.
    fn see(&mut self, place: u16, now: Instant, events: &mut Vec<DemoWalkerEvent>) {
        match self.last_seen.replace((place, now)) {
            None => events.push(DemoWalkerEvent::Entered),
            Some((from, then)) => {
                let pause = now.saturating_duration_since(then);
                if from != place {
                    let to = place;
                    events.push(DemoWalkerEvent::ChangedScene { from, to, pause });
                } else if pause >= OUT_AFTER {
                    events.push(DemoWalkerEvent::Returned { pause });
                }
            }
        }
    }

    /// Walks to a portal of the scene: in turn to each of them, each player in an order of its own.
    fn walk(&mut self, now: Instant, world: &WorldFile) {
        let place = self.place();
        let scene = place.and_then(|place| world.scenes.get(usize::from(place)));
        let (Some(place), Some(scene), Some(own)) = (place, scene, self.client.own_position(now))
        else {
            return;
        };
        if self.goal.is_none_or(|(of, _)| of != place) && !scene.portals.is_empty() {
            self.choices += 1;
            let portal = &scene.portals[self.choices % scene.portals.len()];
            self.goal = Some((place, portal.at_m));
        }
        if let Some((_, goal)) = self.goal {
            self.client
                .set_controls(ControlState::towards(direction(goal - own)));
        }
    }

    /// Logs where it is.
    pub fn log(&self, now: Instant) {
        let (player, goal) = (self.player, self.goal);
        let at = self.client.own_position(now);
        let mirror = self.client.mirror();
        let (tick, own, position) = (
            mirror.tick(),
            mirror.controlled_object(),
            mirror.own_position(),
        );
        tracing::debug!(player, ?goal, ?at, tick, ?own, ?position, "walker");
    }

    /// Stands still.
    pub fn stop(&mut self) {
        self.client.set_controls(ControlState::stand(0));
    }

    /// Logs out.
    pub fn leave(self) {
        self.client.leave();
    }
}

/// A direction in 256ths of a turn.
fn direction(way: Vec2) -> u8 {
    let turns = way.y.atan2(way.x) / TAU;
    (turns * 256.0).round().rem_euclid(256.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    use throng::movement::direction_of;

    #[test]
    fn directions_are_those_of_the_server() {
        for turn in 0..=255 {
            assert_eq!(direction(3.0 * direction_of(turn)), turn);
        }
    }
}
