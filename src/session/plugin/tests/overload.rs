//! Sessions under overload.

use super::*;
use crate::inbox::ClientQuota;
use crate::session::SessionState;
use crate::sim::{
    LOAD_FULL, LoadMeasure, Overload, OverloadLevel, OverloadSettings, OverloadThresholds,
    WorkAppExt,
};
use crate::wire::SessionNotice;

/// The estimated share of a tick that ticks take, in percent.
#[derive(Resource, Default)]
struct TickPercent(u64);

/// One level per tick, up and down.
fn app_with_overload(change: impl FnOnce(&mut SessionSettings)) -> App {
    let (mut app, _) = app_with_characters();
    let mut settings = SessionSettings::default();
    change(&mut settings);
    let none = OverloadThresholds {
        stretch: 0.5,
        defer: 0.5,
        refuse: 0.5,
        dilate: 0.5,
    };
    app.insert_resource(settings)
        .insert_resource(OverloadSettings {
            measure: LoadMeasure::Work,
            smoothing_s: 0.0,
            enter_after_s: 0.0,
            leave_after_s: 0.0,
            leave_at: none,
            ..OverloadSettings::default()
        })
        .init_resource::<TickPercent>()
        .add_cost_estimator(|world, _| {
            let tick = world.resource::<bevy_time::Time<bevy_time::Fixed>>();
            tick.timestep().as_nanos() as u64 * world.resource::<TickPercent>().0 / 100
        });
    app
}

fn run_at_load(app: &mut App, percent: u64) -> OverloadLevel {
    app.world_mut().resource_mut::<TickPercent>().0 = percent;
    (0..6).for_each(|_| app.update());
    app.world().resource::<Overload>().level()
}

fn send_login(app: &mut App, player: u64) -> ClientId {
    let client = connect_as(app, player);
    send(app, client, ClientMessage::login(player));
    app.update();
    client
}

fn state(app: &App, client: ClientId) -> Option<SessionState> {
    let sessions = app.world().resource::<Sessions>();
    sessions.get(client).map(|session| session.state)
}

fn notices(app: &App, client: ClientId) -> Vec<SessionNotice> {
    let notices = written::<SessionNoticeRequest>(app).into_iter();
    notices
        .filter(|request| request.client == client)
        .map(|request| request.notice)
        .collect()
}

#[test]
fn logins_under_overload_are_queued_and_admitted_in_order() {
    let mut app = app_with_overload(|settings| settings.queue_max = 2);
    let inside = send_login(&mut app, 1);
    assert_eq!(state(&app, inside), Some(SessionState::InWorld));
    assert_eq!(run_at_load(&mut app, 97), OverloadLevel::QueuedLogins);

    let first = send_login(&mut app, 2);
    assert_eq!(state(&app, first), Some(SessionState::Queued));
    assert_eq!(
        notices(&app, first),
        [SessionNotice::Queued { position: 1 }]
    );
    let second = send_login(&mut app, 3);
    assert_eq!(
        notices(&app, second),
        [SessionNotice::Queued { position: 2 }]
    );
    // There is a free slot, but no room in the queue.
    let third = send_login(&mut app, 4);
    assert_eq!(state(&app, third), None);
    let closed = written::<SessionClosed>(&app);
    assert_eq!(closed.last().unwrap().reason, LogoutReason::Full);
    (0..100).for_each(|_| app.update());
    assert_eq!(state(&app, first), Some(SessionState::Queued));
    assert_eq!(state(&app, inside), Some(SessionState::InWorld));

    app.world_mut().resource_mut::<TickPercent>().0 = 0;
    app.update();
    assert_eq!(
        app.world().resource::<Overload>().level(),
        OverloadLevel::DeferredWork
    );
    let players: Vec<u64> = written::<LoggedIn>(&app)
        .iter()
        .map(|login| login.player.0)
        .collect();
    assert_eq!(players, [2, 3]);
}

#[test]
fn time_rate_is_sent_to_all_clients_including_later_ones() {
    let mut app = app_with_overload(|_| ());
    let client = send_login(&mut app, 1);
    assert_eq!(run_at_load(&mut app, 100), OverloadLevel::TimeDilated);
    // A little more than this, with the cost of sessions themselves.
    app.world_mut().resource_mut::<TickPercent>().0 = 190;
    app.update();
    let half = SessionNotice::TimeRate { percent: 50 };
    assert_eq!(notices(&app, client), [half]);
    let late = send_login(&mut app, 2);
    let said = notices(&app, late);
    assert!(said.contains(&half), "{said:?}");
    assert_eq!(notices(&app, client), []);
    app.update();
    assert_eq!(notices(&app, late), []);
    app.world_mut().resource_mut::<TickPercent>().0 = 0;
    app.update();
    let whole = SessionNotice::TimeRate { percent: 100 };
    assert!(notices(&app, client).contains(&whole) && notices(&app, late).contains(&whole));
    app.update();
    assert_eq!(notices(&app, client), []);
}

#[test]
fn steady_sender_is_not_flooding_while_time_is_dilated() {
    let refused = |percent: u64| {
        let mut app = app_with_overload(|_| ());
        app.insert_resource(InboxSettings {
            quota: ClientQuota {
                messages_per_s: 64,
                messages_max: 8,
                violations_max: 50,
                ..ClientQuota::default()
            },
            ..InboxSettings::default()
        });
        let client = send_login(&mut app, 1);
        run_at_load(&mut app, percent);
        let transport = app.world().resource::<TransportHandle>().clone();
        let ping = ClientMessage::Face { heading: 1 }.to_bytes();
        for _ in 0..100 {
            // At a quarter of real time, four times as many messages arrive within a tick.
            for _ in 0..4 {
                let _ = transport.receive(client, &ping);
            }
            app.update();
        }
        let counters = app.world().resource::<Inbox>().counters();
        (counters.refused, state(&app, client))
    };
    assert_eq!(
        refused(u64::from(LOAD_FULL)),
        (0, Some(SessionState::InWorld))
    );
    // In real time that is a flood.
    let (count, session) = refused(0);
    assert!(count > 50 && session.is_none());
}
