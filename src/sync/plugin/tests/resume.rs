//! A client that reconnects, compared with one that was never disconnected.

use proptest::prelude::*;

use super::*;
use crate::inbox::DisconnectReason;
use crate::session::{LoggedIn, Sessions, TransportHandle};
use crate::wire::{ClientMessage, Reassembler, ResumeToken, ServerMessage};
use crate::world::{Player, PlayerId};

/// An event of the test.
#[derive(Clone, Debug)]
enum GapStep {
    Hurt(usize, u32),
    /// An object jumps, or goes out of view.
    Jump(usize, u8),
    /// An announcement about an object or to all clients in the scene.
    Announce(usize, bool),
    /// The player moves to the other scene.
    Cross,
    /// Its object dies, and it gets another.
    Die,
    Wait(u8),
    /// Nothing is received any more; its transport detects that this many ticks later.
    Cut(u8),
    /// It reconnects, with its received position or with nothing.
    Return(bool),
    /// It reconnects, and nothing of the reply arrives.
    ReturnInVain,
}

fn steps() -> impl Strategy<Value = Vec<GapStep>> {
    let other = 0..OTHERS;
    let step = prop_oneof![
        4 => (other.clone(), 1..500_u32).prop_map(|(of, value)| GapStep::Hurt(of, value)),
        3 => (other.clone(), any::<u8>()).prop_map(|(of, to)| GapStep::Jump(of, to)),
        5 => (other, any::<bool>()).prop_map(|(of, to_all)| GapStep::Announce(of, to_all)),
        1 => Just(GapStep::Cross),
        1 => Just(GapStep::Die),
        6 => (1..6_u8).prop_map(GapStep::Wait),
        4 => (1..9_u8).prop_map(GapStep::Cut),
        4 => prop::bool::weighted(0.8).prop_map(GapStep::Return),
        1 => Just(GapStep::ReturnInVain),
    ];
    prop::collection::vec(step, 0..60)
}

const OTHERS: usize = 5;

/// The client's end of a connection.
#[derive(Default)]
struct FarClient {
    client: Option<ClientId>,
    is_cut: bool,
    mirror: Mirror,
    reassembler: Reassembler,
    announced: Vec<Vec<u8>>,
    fault: Option<String>,
}

#[derive(Clone, Default)]
struct FarLine(Arc<Mutex<FarClient>>);

impl PacketSink for FarLine {
    fn deliver(&mut self, client: ClientId, channel: Channel, packet: &[u8]) {
        let mut end = self.0.lock().unwrap();
        let end = &mut *end;
        if end.is_cut || end.client != Some(client) || end.fault.is_some() {
            return;
        }
        end.fault = end.mirror.receive(packet).err().map(|it| it.to_string());
        if channel == Channel::Reliable {
            let received = end.reassembler.accept(packet).unwrap();
            let mut reader = WireReader::new(received.messages);
            while !reader.is_empty() {
                if let ServerMessage::Announce { bytes, .. } =
                    ServerMessage::read(&mut reader).unwrap()
                {
                    end.announced.push(bytes.to_vec());
                }
            }
        }
    }
}

/// A server, and one player's client.
struct Comeback {
    app: App,
    line: FarLine,
    scenes: [Entity; 2],
    others: Vec<Entity>,
    token: Option<ResumeToken>,
    loads: bool,
    /// The number of ticks until its transport detects that the connection is lost.
    noticed_in: Option<u8>,
    /// Whether it ever reconnected with nothing.
    forgot: bool,
    /// It reconnected with nothing, and has not received a *Welcome* since.
    has_nothing: bool,
    /// The position that it reports.
    received: Option<u32>,
    is_never_away: bool,
    said: u32,
}

const PLAYER: u64 = 7;

/// The sessions whose object spawns in these ticks.
#[derive(Resource, Default)]
struct Births(Vec<(u64, Entity)>);

impl Comeback {
    fn new(is_never_away: bool, loads: bool, resume_buffer_bytes_max: u32) -> Self {
        let mut app = App::new();
        app.add_plugins((bevy_time::TimePlugin, SyncPlugin));
        let health = AttributeSpec::new("health", 1, Encoding::Varint).at(SendRate::EveryTick);
        app.replicate_field(health, Health::value);
        crate::sim::single_threaded(&mut app);
        crate::sim::clock::one_tick_per_update(&mut app);
        app.insert_resource(SyncSettings {
            resume_buffer_bytes_max,
            ..SyncSettings::default()
        });
        let line = FarLine::default();
        let mut outbox = app.world_mut().resource_mut::<Outbox>();
        outbox.set_sink(line.clone());
        let scenes =
            [(); 2].map(|()| open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap());
        let others = (0..OTHERS).map(|nth| {
            let at = Vec2::new(20.0 + 5.0 * nth as f32, 40.0);
            let viewable = Viewable {
                keep: nth % 2 == 1,
                ..Viewable::default()
            };
            let values = (viewable, Health(1));
            spawn_object(app.world_mut(), scenes[0], KindId(1), at, values).unwrap()
        });
        let others = others.collect();
        // The game takes its time, and may use a session that is gone by then.
        let scene = scenes[0];
        let welcome = move |mut new: MessageReader<LoggedIn>,
                            mut births: ResMut<Births>,
                            tick: Res<SimTick>,
                            mut commands: Commands| {
            births
                .0
                .extend(new.read().map(|new| (tick.0 + 3, new.client_entity)));
            births.0.retain(|&(at, session)| {
                if at <= tick.0 {
                    let sight = (
                        Viewer::new(ViewCaps::all(20)),
                        Viewable::default(),
                        Health(9),
                    );
                    let place = (InScene(scene), Position(Vec2::splat(30.0)));
                    commands.spawn((
                        Player,
                        PlayerId(PLAYER),
                        ControlledBy(session),
                        sight,
                        place,
                    ));
                }
                at > tick.0
            });
        };
        app.init_resource::<Births>()
            .add_systems(FixedUpdate, welcome.in_set(SimSystems::Think));
        let mut comeback = Self {
            app,
            line,
            scenes,
            others,
            token: None,
            loads,
            noticed_in: None,
            forgot: false,
            has_nothing: false,
            received: None,
            is_never_away,
            said: 0,
        };
        comeback.connect();
        comeback.send(ClientMessage::login(PLAYER));
        comeback
    }

    fn transport(&self) -> TransportHandle {
        self.app.world().resource::<TransportHandle>().clone()
    }

    fn connect(&mut self) {
        let connected = ConnectionInfo {
            requires_ready: self.loads,
            ..ConnectionInfo::player(PLAYER)
        };
        let client = self.transport().connect(connected).unwrap();
        let mut end = self.line.0.lock().unwrap();
        (end.client, end.is_cut) = (Some(client), false);
        end.reassembler = Reassembler::default();
        end.mirror.reconnect();
    }

    fn send(&self, message: ClientMessage) {
        let client = self.line.0.lock().unwrap().client.unwrap();
        let _ = self.transport().receive(client, &message.to_bytes());
    }

    fn tick(&mut self) {
        if let Some(ticks) = &mut self.noticed_in {
            *ticks = ticks.saturating_sub(1);
            if *ticks == 0 {
                self.notice();
            }
        }
        self.app.update();
        let notices = self.line.0.lock().unwrap().mirror.take_notices();
        for notice in notices {
            match notice {
                SessionNotice::Welcome { token, .. } => {
                    (self.token, self.has_nothing) = (Some(token), false);
                }
                // The token before the last is valid once the connection is known to be lost.
                SessionNotice::ResumeRefused => self.resume(self.token.unwrap()),
                SessionNotice::Loading { scene, .. } => self.send(ClientMessage::Ready { scene }),
                _ => {}
            }
        }
    }

    /// Its transport detects that the connection is lost.
    fn notice(&mut self) {
        self.noticed_in = None;
        let client = self.line.0.lock().unwrap().client.unwrap();
        self.transport().disconnect(client, DisconnectReason::Lost);
    }

    fn session(&self) -> Option<crate::session::Session> {
        let sessions = self.app.world().resource::<Sessions>();
        sessions.get(sessions.client_of(PlayerId(PLAYER))?).copied()
    }

    fn step(&mut self, step: &GapStep) {
        let world = self.app.world_mut();
        match *step {
            GapStep::Hurt(of, value) => {
                world.get_mut::<Health>(self.others[of]).unwrap().0 = value;
            }
            GapStep::Jump(of, to) => {
                let far = if to < 60 { 700.0 } else { 0.0 };
                let at = Vec2::new(10.0 + far + f32::from(to) / 8.0, 45.0);
                let _ = teleport(world, self.others[of], at);
            }
            GapStep::Announce(of, to_all) => {
                self.said += 1;
                let from = world.get::<Object>(self.others[of]).unwrap().reference();
                let scope = if to_all {
                    AnnouncementScope::Scene(from.scene)
                } else {
                    AnnouncementScope::Viewers(from)
                };
                world.write_message(AnnouncementRequest {
                    about: Some(from),
                    scope,
                    channel: Channel::Reliable,
                    ttl_ticks: 100,
                    bytes: self.said.to_le_bytes().to_vec(),
                });
                self.tick();
            }
            GapStep::Cross => {
                if let Some(entity) = self.session().and_then(|session| session.controlled_entity) {
                    let world = self.app.world_mut();
                    let here = world.get::<Object>(entity).unwrap().scene_entity();
                    let next = self.scenes[usize::from(here == self.scenes[0])];
                    change_scene(world, entity, next, Vec2::splat(30.0)).unwrap();
                }
                self.tick();
            }
            GapStep::Die => {
                if let Some(session) = self.session()
                    && let Some(entity) = session.controlled_entity
                {
                    let world = self.app.world_mut();
                    let by = world.get::<ControlledBy>(entity).unwrap().0;
                    let tick = world.resource::<SimTick>().0;
                    world.despawn(entity);
                    world.resource_mut::<Births>().0.push((tick + 4, by));
                }
            }
            GapStep::Wait(ticks) => (0..ticks).for_each(|_| self.tick()),
            GapStep::Cut(noticed_in) => self.drop_connection(noticed_in),
            GapStep::Return(keeps) => self.reconnect(keeps),
            GapStep::ReturnInVain => {
                if self.is_away() {
                    self.reconnect(true);
                    self.line.0.lock().unwrap().is_cut = true;
                    self.noticed_in = Some(2);
                }
                self.tick();
                self.tick();
            }
        }
    }

    fn is_away(&self) -> bool {
        self.line.0.lock().unwrap().is_cut
    }

    fn drop_connection(&mut self, noticed_in: u8) {
        // Before its first *Welcome* there is nothing to resume.
        if self.is_never_away || self.token.is_none() || self.is_away() {
            return;
        }
        self.line.0.lock().unwrap().is_cut = true;
        self.noticed_in = Some(noticed_in);
    }

    fn reconnect(&mut self, keeps: bool) {
        let Some(token) = self.token.filter(|_| self.is_away()) else {
            return;
        };
        if self.noticed_in.is_some() {
            // It reconnects before that is known, or in the same tick.
            self.notice();
        }
        let received = {
            let mut end = self.line.0.lock().unwrap();
            if !keeps {
                (self.forgot, self.has_nothing) = (true, true);
                end.mirror = Mirror::default();
            }
            (!self.has_nothing).then(|| end.mirror.received_bytes())
        };
        self.connect();
        self.received = received;
        self.resume(token);
    }

    fn resume(&self, token: ResumeToken) {
        self.send(ClientMessage::Resume {
            player: PLAYER,
            token,
            received: self.received,
        });
    }

    /// Waits until everything is at rest; the client then has what it should. Returns what was announced, and the objects that it has.
    fn rest(&mut self) -> Result<(Vec<Vec<u8>>, Vec<u32>), String> {
        self.step(&GapStep::Return(true));
        (0..40).for_each(|_| self.tick());
        let end = self.line.0.lock().unwrap();
        if let Some(fault) = &end.fault {
            return Err(fault.clone());
        }
        let client = end.client.unwrap();
        let session = self.session();
        if session
            .and_then(|session| session.controlled_entity)
            .is_none()
        {
            return Err("its session ended, or it has no object".into());
        }
        compare_mirror(self.app.world(), client, &end.mirror)?;
        Ok((end.announced.clone(), end.mirror.ids()))
    }
}

/// Compares a client that was disconnected with one that never was.
fn check(
    script: &[GapStep],
    loads: bool,
    resume_buffer_bytes_max: u32,
) -> Result<(), TestCaseError> {
    let [(expected, _), (found, forgot)] = [true, false].map(|is_never_away| {
        let mut comeback = Comeback::new(is_never_away, loads, resume_buffer_bytes_max);
        script.iter().for_each(|step| comeback.step(step));
        // Both take the same time, so that the same is announced before the same tick.
        (comeback.rest(), comeback.forgot)
    });
    let ((expected, kept), (found, kept_after)) = match (expected, found) {
        (Ok(expected), Ok(found)) => (expected, found),
        (expected, found) => {
            return Err(TestCaseError::fail(format!(
                "{:?}, {:?}",
                expected.err(),
                found.err()
            )));
        }
    };
    // A client that loads a scene may miss an object that comes into view and leaves meanwhile.
    if !loads {
        prop_assert_eq!(kept_after, kept, "objects that it has");
    }
    // Nothing twice, and everything in order.
    let mut rest = expected.iter();
    for text in &found {
        prop_assert!(rest.any(|of| of == text), "{found:?} of {expected:?}");
    }
    // For a client that loads it depends on its own pace; for one that has nothing, on the packets in flight.
    if !loads && !forgot {
        prop_assert_eq!(&found, &expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(draws!(200))]

    #[test]
    fn resumed_client_matches_one_that_never_left(
        script in steps(),
        loads in any::<bool>(),
        resume_buffer_bytes_max in prop::sample::select(vec![700_u32, 16_384]),
    ) {
        check(&script, loads, resume_buffer_bytes_max)?;
    }
}

/// What a client receives in the tick in which it reconnects, after this number of ticks.
fn resume_after(ticks: u32, hurt_every: u32) -> (bool, usize) {
    let mut comeback = Comeback::new(false, false, 16_384);
    (0..10).for_each(|_| comeback.tick());
    comeback.drop_connection(1);
    for tick in 0..ticks {
        if tick % hurt_every == 0 {
            comeback.step(&GapStep::Hurt(tick as usize % OTHERS, tick + 2));
        }
        comeback.tick();
    }
    let before = comeback.line.0.lock().unwrap().announced.len();
    comeback.step(&GapStep::Announce(0, true));
    comeback.reconnect(true);
    comeback.app.update();
    let mut end = comeback.line.0.lock().unwrap();
    let keeps = end.mirror.take_notices().into_iter();
    let mut keeps = keeps.filter_map(|notice| match notice {
        SessionNotice::Resumed { keeps_state: keeps } => Some(keeps),
        _ => None,
    });
    (keeps.next().unwrap(), end.announced.len() - before)
}

#[test]
fn short_gap_resends_missed_messages_long_gap_the_full_state() {
    assert_eq!(resume_after(4, 4), (true, 1));
    assert_eq!(
        resume_after(150, 1),
        (false, 1),
        "more was missed than there is"
    );
    assert_eq!(
        resume_after(300, 1_000),
        (false, 1),
        "motions would be misread"
    );
}

#[test]
fn missed_announcements_over_the_limit_end_the_session() {
    let mut comeback = Comeback::new(false, false, 200);
    (0..10).for_each(|_| comeback.tick());
    comeback.drop_connection(1);
    for _ in 0..40 {
        comeback.step(&GapStep::Announce(0, true));
    }
    assert!(comeback.session().is_none());
}

#[test]
fn resume_position_never_sent_ends_the_session() {
    let mut comeback = Comeback::new(false, false, 16_384);
    (0..10).for_each(|_| comeback.tick());
    comeback.drop_connection(1);
    comeback.tick();
    comeback.tick();
    let token = comeback.token.unwrap();
    comeback.connect();
    comeback.send(ClientMessage::Resume {
        player: PLAYER,
        token,
        received: Some(1 << 30),
    });
    (0..3).for_each(|_| comeback.tick());
    assert!(comeback.session().is_none());
    let end = comeback.line.0.lock().unwrap();
    assert_eq!(end.fault, None);
}

/// Moves the other objects by their velocities, as movement does. The next tick sends it.
fn walk(comeback: &mut Comeback, velocities: &[Vec2; OTHERS]) {
    let world = comeback.app.world_mut();
    let tick_s = world.resource::<Time<Fixed>>().timestep().as_secs_f32();
    for (&entity, &velocity) in comeback.others.iter().zip(velocities) {
        world.get_mut::<Velocity>(entity).unwrap().0 = velocity;
        world.get_mut::<Position>(entity).unwrap().0 += velocity * tick_s;
    }
}

/// The largest distance between an object and where the client shows it, in metres.
fn shown_error_m(comeback: &Comeback) -> f32 {
    let (world, end) = (comeback.app.world(), comeback.line.0.lock().unwrap());
    let tick = world.resource::<SimTick>().0;
    let errors = comeback.others.iter().map(|&entity| {
        let id = world.get::<Object>(entity).unwrap().id().0;
        let shown = end.mirror.position(id, tick).expect("it sees it");
        shown.distance(world.get::<Position>(entity).unwrap().0)
    });
    errors.fold(0.0, f32::max)
}

/// Motions of moving objects are sent unreliably, so those of the gap are lost; a repetition may come a second later.
#[test]
fn moving_objects_are_right_in_the_tick_of_a_resume() {
    // At rest, walking on, turning back, starting and stopping.
    let before = [0.0, 4.0, 6.0, 0.0, 5.0].map(|x| Vec2::new(x, 0.0));
    let in_the_gap = [0.0, 4.0, -6.0, 7.0, 0.0].map(|x| Vec2::new(x, 0.0));
    for (gap_ticks, keeps) in [(1, true), (3, true), (9, true), (12, true), (9, false)] {
        let mut comeback = Comeback::new(false, false, 16_384);
        (0..10).for_each(|_| comeback.tick());
        for _ in 0..30 {
            walk(&mut comeback, &before);
            comeback.tick();
            assert!(shown_error_m(&comeback) < 0.1);
        }
        comeback.drop_connection(1);
        for _ in 0..gap_ticks {
            walk(&mut comeback, &in_the_gap);
            comeback.tick();
        }
        comeback.reconnect(keeps);
        walk(&mut comeback, &in_the_gap);
        comeback.app.update();
        let notices = comeback.line.0.lock().unwrap().mirror.take_notices();
        let resumed = SessionNotice::Resumed { keeps_state: keeps };
        assert!(notices.contains(&resumed), "{gap_ticks}: {notices:?}");
        for _ in 0..30 {
            let error_m = shown_error_m(&comeback);
            assert!(error_m < 0.1, "{error_m} m after {gap_ticks} ticks");
            walk(&mut comeback, &in_the_gap);
            comeback.tick();
        }
    }
}
