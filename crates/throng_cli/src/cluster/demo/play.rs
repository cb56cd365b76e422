//! The run of the demo: clients, kills, the end.

use std::thread;
use std::time::{Duration, Instant};

use super::Demo;
use super::compare::compare_mirrors;
use super::figures::DemoFigures;
use super::fleet::{Fleet, FleetState};
use super::hand_off_times::{HandOffPhase, HandOffReader};
use super::servers::DemoServers;
use super::walker::DemoWalker;
use crate::cluster::store_args::failed;
use crate::cluster::world::{TravellerRecord, WorldFile};
use crate::key_file::KeyFile;
use crate::terminal::wrapped;
use crate::{CliError, CliStatus, is_interrupted, print};

/// Between two looks at the sockets of clients.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long all clients may take to be in the world, at first and after a kill.
const ENTER_TIME: Duration = Duration::from_secs(60);

/// How long the clients walk without `--seconds` and `--kill`.
const WALK_TIME: Duration = Duration::from_secs(30);

/// Before a kill, from a kill to the restart, and the least time from a kill to the next step.
const REST_TIME: Duration = Duration::from_secs(2);
const DOWN_TIME: Duration = Duration::from_secs(1);
const WATCH_TIME: Duration = Duration::from_secs(4);

/// How long players may take to be saved after their clients have left.
const SAVE_TIME: Duration = Duration::from_secs(60);

/// Which process is killed next, and what is under way.
#[derive(Clone, Copy, Debug)]
enum KillStep {
    /// Nothing until then.
    Rest(Instant),
    /// A process is down.
    Down(Instant),
    /// It runs again; clients come back.
    Watch(Instant),
    Done,
}

/// The run.
pub(super) struct Play<'w> {
    walkers: Vec<DemoWalker>,
    world: &'w WorldFile,
    figures: DemoFigures,
    state: FleetState,
    is_quiet: bool,
    /// The member that is killed next.
    next: usize,
    hand_off_times: HandOffReader,
    /// How often each process was killed.
    rounds: usize,
    step: KillStep,
    /// Clients that did not come back in time.
    is_lost: bool,
}

impl<'w> Play<'w> {
    pub fn new(
        demo: &Demo,
        (world, fleet): (&'w WorldFile, &Fleet),
        is_quiet: bool,
    ) -> Result<Self, CliError> {
        let now = Instant::now();
        Ok(Self {
            walkers: Vec::with_capacity(demo.clients.into()),
            world,
            figures: DemoFigures::default(),
            state: FleetState::default(),
            is_quiet,
            next: 0,
            hand_off_times: HandOffReader::start(fleet.metrics())?,
            rounds: 0,
            step: if demo.kill {
                KillStep::Rest(now)
            } else {
                KillStep::Done
            },
            is_lost: false,
        })
    }

    fn print(&self, line: &str) -> Result<(), CliError> {
        if self.is_quiet {
            return Ok(());
        }
        print(&wrapped(line, 17))
    }

    /// Lets the clients walk, and prints the result.
    pub fn run(
        &mut self,
        demo: &Demo,
        fleet: &mut Fleet,
        servers: &mut DemoServers,
    ) -> Result<CliStatus, CliError> {
        let key = KeyFile::single(&fleet.token_key()).read(&[])?.first();
        for player in 1..=u64::from(demo.clients) {
            let mut gateways = fleet.gateways().to_vec();
            let own = player as usize % gateways.len();
            gateways.rotate_left(own);
            self.walkers.push(DemoWalker::new(player, gateways, key)?);
        }
        let default = if demo.kill { Duration::ZERO } else { WALK_TIME };
        let walk_time = demo.seconds.map_or(default, Duration::from_secs_f64);
        let is_complete = self.walk(walk_time, fleet, servers)?;
        let inside = self.count_inside(Instant::now());
        let compared = compare_mirrors(&mut self.walkers, self.world, fleet.mirror_checks())?;
        let (saved, gold) = self.end(fleet, servers)?;
        let clients = usize::from(demo.clients);
        let given = u64::from(self.world.gold) * u64::from(demo.clients);
        let mut lines = vec![format!(
            "clients      {inside} of {clients} in the world at the end"
        )];
        lines.extend(self.figures.summary());
        lines.extend(self.hand_off_times.lines());
        lines.extend(compared.lines());
        lines.push(format!(
            "gold         {gold} of {given} in the store; {saved} of {clients} players saved"
        ));
        for line in &lines {
            self.print(line)?;
        }
        let is_kept = gold == given && saved == clients && inside == clients && !self.is_lost;
        let is_kept = is_kept && compared.is_equal();
        Ok(if is_kept && is_complete {
            CliStatus::Done
        } else {
            CliStatus::Failed
        })
    }

    fn count_inside(&self, now: Instant) -> usize {
        let walkers = self.walkers.iter();
        walkers.filter(|walker| walker.is_in_world(now)).count()
    }

    /// Lets the clients walk until the time is over and all kills are done. Returns whether all clients had been in the world.
    fn walk(
        &mut self,
        walk_time: Duration,
        fleet: &mut Fleet,
        servers: &mut DemoServers,
    ) -> Result<bool, CliError> {
        let begun = Instant::now();
        let (mut seconds, mut all_entered_at) = (0, None);
        let mut events = Vec::new();
        while !is_interrupted() {
            let now = Instant::now();
            if now >= begun + Duration::from_secs(seconds) {
                fleet.check()?;
                match fleet.read() {
                    Ok(state) => self.state = state,
                    // Postgres may be the one that was killed.
                    Err(_) if matches!(self.step, KillStep::Down(_) | KillStep::Watch(_)) => {}
                    Err(error) => return Err(error),
                }
                self.print(&self.figures.second_line(seconds, &self.state))?;
                self.walkers.iter().for_each(|walker| walker.log(now));
                seconds = begun.elapsed().as_secs() + 1;
            }
            for walker in &mut self.walkers {
                walker.update(now, self.world, &mut events)?;
                for event in events.drain(..) {
                    self.figures.count(&event, &self.state, self.world);
                }
            }
            if all_entered_at.is_none() {
                if self.figures.entered == self.walkers.len() {
                    all_entered_at = Some(now);
                    self.hand_off_times.set_phase(HandOffPhase::Walking);
                    if matches!(self.step, KillStep::Rest(_)) {
                        self.step = KillStep::Rest(now + REST_TIME);
                    }
                } else if now > begun + ENTER_TIME {
                    break;
                }
            }
            let walked = all_entered_at.map(|entered| now.saturating_duration_since(entered));
            let Some(walked) = walked else {
                thread::sleep(POLL_INTERVAL);
                continue;
            };
            self.follow_kills((now, walked >= walk_time), fleet, servers)?;
            // Not in the middle of a long hand-off.
            let is_over = walked >= walk_time && self.count_inside(now) == self.walkers.len();
            let is_late = walked >= walk_time + ENTER_TIME;
            if (is_over || is_late) && matches!(self.step, KillStep::Done) {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(all_entered_at.is_some())
    }

    /// Kills and restarts one process after the other, each of them at least once.
    fn follow_kills(
        &mut self,
        (now, is_time_over): (Instant, bool),
        fleet: &mut Fleet,
        servers: &mut DemoServers,
    ) -> Result<(), CliError> {
        let server = self.next.checked_sub(fleet.len());
        match self.step {
            KillStep::Rest(until) if now >= until => {
                let name = match server {
                    Some(nth) => servers.kill(nth),
                    None => fleet.kill(self.next),
                };
                self.print(&format!("       {name} is killed"))?;
                self.figures.begin_kill(name);
                self.hand_off_times.set_phase(HandOffPhase::Disturbed);
                self.step = KillStep::Down(now);
            }
            KillStep::Down(since) if now >= since + DOWN_TIME => {
                match server {
                    Some(nth) => servers.restart(nth)?,
                    None => fleet.restart(self.next)?,
                }
                self.step = KillStep::Watch(since);
            }
            KillStep::Watch(since) if now < since + WATCH_TIME => servers.keep_running()?,
            KillStep::Watch(since) => {
                let is_late = now >= since + ENTER_TIME;
                if self.count_inside(now) < self.walkers.len() && !is_late {
                    return Ok(());
                }
                self.is_lost |= is_late;
                if let Some(line) = self.figures.end_kill() {
                    self.print(&line)?;
                }
                self.hand_off_times.set_phase(HandOffPhase::Walking);
                self.next += 1;
                if self.next == fleet.len() + DemoServers::COUNT {
                    (self.next, self.rounds) = (0, self.rounds + 1);
                }
                self.step = if is_time_over && self.rounds > 0 {
                    KillStep::Done
                } else {
                    KillStep::Rest(now + REST_TIME)
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// The clients leave, and the processes end. Returns how many players are saved without an owner, and the gold of all.
    fn end(&mut self, fleet: &mut Fleet, servers: &DemoServers) -> Result<(usize, u64), CliError> {
        for mut walker in self.walkers.drain(..) {
            walker.halt();
            walker.leave();
        }
        let begun = Instant::now();
        loop {
            let players = fleet.rows().read_player_overview().map_err(failed)?;
            let is_saved = players.iter().all(|player| !player.is_owned);
            if is_saved || begun.elapsed() > SAVE_TIME {
                break;
            }
            thread::sleep(10 * POLL_INTERVAL);
        }
        if !fleet.stop() {
            self.print("not every process has ended in order")?;
        }
        let players = servers.rows().read_player_overview().map_err(failed)?;
        let mut gold = 0;
        for player in &players {
            // A player that was never saved has what it was given.
            let record = TravellerRecord::from_bytes(&player.record.bytes);
            gold += u64::from(record.map_or(self.world.gold, |record| record.gold));
        }
        let saved = players.iter().filter(|player| !player.is_owned).count();
        Ok((saved, gold))
    }
}
