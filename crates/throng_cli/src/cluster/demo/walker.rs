//! A client of the demo, which walks from portal to portal.

use std::f32::consts::TAU;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use glam::Vec2;
use throng::net::TokenKey;
use throng_client::{
    Client, ClientError, ClientEvent, ClientSettings, ClientStartError, ControlState, Mirror,
};

use crate::CliError;
use crate::cluster::world::{PLACE_WAITING, Place, WorldFile, WorldScene};
use crate::token::issue;

/// Validity of a token, and after which silence of the gateway the connection counts as lost, in seconds.
const TOKEN_TIMES_S: (u64, i32) = (60, 2);

/// How near a player comes to a goal, in metres.
const ARRIVED_M: f32 = 1.0;

/// Silence of the gateway after which a client tries the next one. A gateway sends something every 100 ms.
const SILENCE: Duration = Duration::from_millis(300);

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
pub(super) const OUT_AFTER: Duration = Duration::from_millis(500);

/// A client and its player.
pub(super) struct DemoWalker {
    pub player: u64,
    client: Client,
    /// The addresses of the gateways, its own first.
    gateways: Vec<SocketAddr>,
    key: TokenKey,
    packets: u64,
    /// Whether the session continues over the current connection. What the client knows of a lost one does not count.
    is_welcome: bool,
    /// The scene that it was in last, and when the last packet arrived there.
    last_seen: Option<(u16, Instant)>,
    /// How often it has chosen a portal.
    choices: usize,
    /// The number of a scene, and a portal or a board in it.
    goal: Option<(u16, Vec2)>,
    is_halted: bool,
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
            is_welcome: false,
            last_seen: None,
            choices: player as usize,
            goal: None,
            is_halted: false,
            retry_at: None,
            attempts: 0,
        })
    }

    /// Whether it is in the world: the last packet there is recent. In a short change of scene it still is.
    pub fn is_in_world(&self, now: Instant) -> bool {
        let recent = |at| now.saturating_duration_since(at) < OUT_AFTER;
        self.retry_at.is_none() && self.last_seen.is_some_and(|(_, at)| recent(at))
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
            if matches!(error, ClientError::Refused(_)) {
                // The token is used up, so there is no first attempt with it.
                self.attempts = self.attempts.max(1);
            }
            self.retry_at = Some(now + RETRY_DELAY);
            return Ok(());
        }
        // Longer after all gateways were tried: one that many clients have just come to is slow.
        let gateways = self.gateways.len() as u32;
        let patience = SILENCE * 2_u32.pow(self.attempts.div_ceil(gateways).min(4));
        if gateways > 1 && self.client.silence() >= patience {
            events.push(DemoWalkerEvent::Disconnected("silent gateway".to_owned()));
            (self.attempts, self.is_welcome) = (self.attempts + 1, false);
            let resumed = self.client.resume_elsewhere();
            return self.resumed(resumed);
        }
        while let Some(event) = self.client.next_event() {
            self.is_welcome |= matches!(event, ClientEvent::Welcomed { .. });
        }
        let packets = self.client.mirror().packets();
        if packets != self.packets {
            self.packets = packets;
            if let Some(place) = self.place().filter(|_| self.is_welcome) {
                self.attempts = 0;
                self.see(place, now, events);
            }
        }
        self.walk(now, world);
        Ok(())
    }

    fn resumed(&self, result: Result<(), ClientStartError>) -> Result<(), CliError> {
        result.map_err(|error| CliError::new(format!("client {}: {error}", self.player)))
    }

    /// Resumes with the token it has, unless it was refused, then with new ones. The gateway that has ended the connection is tried last.
    fn connect_again(&mut self) -> Result<(), CliError> {
        (self.attempts, self.is_welcome) = (self.attempts + 1, false);
        if self.attempts == 1 && self.client.resume_elsewhere().is_ok() {
            return Ok(());
        }
        // Another gateway first each time.
        self.gateways.rotate_left(1);
        let token = issue(self.player, self.gateways.clone(), TOKEN_TIMES_S, self.key)?;
        let reconnected = self.client.reconnect(&token.to_bytes());
        self.resumed(reconnected)
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

    /// Walks to the portals and boards of the scene in turn, each player in an order of its own.
    fn walk(&mut self, now: Instant, world: &WorldFile) {
        let place = self.place();
        let scene = place.and_then(|place| world.scenes.get(usize::from(place)));
        let (Some(place), Some(scene), Some(own)) = (place, scene, self.client.own_position(now))
        else {
            return;
        };
        let has_arrived = |goal: Vec2| own.distance(goal) < ARRIVED_M;
        if self
            .goal
            .is_none_or(|(of, goal)| of != place || has_arrived(goal))
        {
            self.choices += 1;
            let goals = goals(scene);
            let next = goals.get(self.choices % goals.len().max(1));
            self.goal = next.map(|goal| (place, *goal));
        }
        if let Some((_, goal)) = self.goal.filter(|_| !self.is_halted) {
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

    /// Stands still from now on.
    pub fn halt(&mut self) {
        self.is_halted = true;
        self.client.set_controls(ControlState::stand(0));
    }

    /// What it has received of the world.
    pub const fn mirror(&self) -> &Mirror {
        self.client.mirror()
    }

    /// Logs out.
    pub fn leave(self) {
        self.client.leave();
    }
}

/// Where a player walks to in a scene.
fn goals(scene: &WorldScene) -> Vec<Vec2> {
    let portals = scene.portals.iter().map(|portal| portal.at_m);
    portals
        .chain(scene.boards.iter().map(|board| board.at_m))
        .collect()
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
