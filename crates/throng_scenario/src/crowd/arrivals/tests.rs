use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings, ScheduleLabel};

use super::*;
use throng::matchmaking::{
    GroupModeSettings, MatchModeSettings, MatchmakingSettings, ModeId, TicketQueued,
};
use throng::sim::{clock, state_hash};

/// An app with modes `arena` and `duel`, before its first tick. There is no heartbeat, so no match is formed.
fn app(tick_hz: f64, seed: u64, spec: ScenarioMatchMode) -> App {
    let mut app = App::new();
    app.add_plugins((
        bevy_time::TimePlugin,
        throng::sim::SimPlugin {
            tick_hz: Some(tick_hz),
        },
        ArrivalsPlugin,
    ));
    let modes = ["arena", "duel"].map(|name| {
        MatchModeSettings::Groups(GroupModeSettings {
            name: name.to_owned(),
            ..GroupModeSettings::default()
        })
    });
    app.insert_resource(MatchmakingSettings {
        modes: modes.to_vec(),
    })
    .insert_resource(RandomStreams::new(seed))
    .insert_resource(throng::sim::SimSettings {
        heartbeat_ticks: u32::MAX,
    });
    for schedule in [FixedUpdate.intern(), throng::sim::Heartbeat.intern()] {
        app.edit_schedule(schedule, |schedule| {
            let ambiguity_detection = LogLevel::Error;
            schedule.set_build_settings(ScheduleBuildSettings {
                ambiguity_detection,
                ..Default::default()
            });
        });
    }
    app.world_mut().resource_mut::<PartyArrivals>().open(spec);
    clock::one_tick_per_update(&mut app);
    app
}

fn queued(app: &mut App) -> Vec<Ticket> {
    app.world_mut()
        .resource_mut::<Messages<TicketQueued>>()
        .drain()
        .map(|queued| queued.ticket)
        .collect()
}

fn arrivals(app: &mut App) -> Mut<'_, PartyArrivals> {
    app.world_mut().resource_mut::<PartyArrivals>()
}

fn waiting(app: &App) -> usize {
    app.world().resource::<Matchmaker>().waiting_parties()
}

#[test]
fn rates_are_exact_over_a_minute() {
    for (hz, per_s, expected) in [
        (20u64, 3.7, 222),
        (30, 0.1, 6),
        (7, 100.0, 6000),
        (128, 1e9, 60_000_000),
    ] {
        let mut rate = Rate::default();
        let total: u64 = (0..60 * hz)
            .map(|_| rate.events_this_tick(per_s, hz * 1000))
            .sum();
        assert_eq!(total, expected, "{per_s} a second at {hz} Hz");
    }
    for per_s in [0.0, -1.0, f32::NAN, f32::NEG_INFINITY] {
        assert_eq!(Rate::default().events_this_tick(per_s, 1), 0);
    }
}

#[test]
fn minute_of_arrivals_and_cancels_is_exact() {
    let spec = ScenarioMatchMode {
        parties: 100,
        parties_per_s: 7.3,
        cancels_per_s: 2.5,
        ..Default::default()
    };
    let mut app = app(30.0, 1, spec);
    (0..1800).for_each(|_| app.update());
    let matchmaker = app.world().resource::<Matchmaker>();
    let stats = matchmaker.stats(ModeId(0)).unwrap();
    assert_eq!((stats.queued, stats.cancelled), (100 + 438, 150));
    assert_eq!(
        app.world()
            .resource::<throng::matchmaking::MatchmakingStats>()
            .queue_refused,
        0
    );
}

#[test]
fn same_seed_gives_the_same_tickets() {
    let tickets = |seed| {
        let mut app = app(
            20.0,
            seed,
            ScenarioMatchMode {
                parties: 50,
                parties_per_s: 40.0,
                ..Default::default()
            },
        );
        (0..20).for_each(|_| app.update());
        let hash = state_hash(app.world_mut());
        let matchmaker = app.world().resource::<Matchmaker>();
        let queue = matchmaker.modes()[0].queue();
        (
            queue
                .iter()
                .map(|(_, ticket)| ticket.clone())
                .collect::<Vec<_>>(),
            hash,
        )
    };
    assert_eq!(tickets(7).0.len(), 90);
    assert_eq!(tickets(7), tickets(7));
    assert_ne!(tickets(7).0, tickets(8).0);
}

#[test]
fn tickets_are_complete_and_share_no_ids() {
    let mut app = app(
        20.0,
        3,
        ScenarioMatchMode {
            parties: 1000,
            ..Default::default()
        },
    );
    app.update();
    let tickets = queued(&mut app);
    let players: usize = tickets.iter().map(|ticket| usize::from(ticket.size)).sum();
    assert_eq!(
        (tickets.len(), tickets[0].party, tickets[999].party),
        (1000, TicketParty::Synthetic(0), TicketParty::Synthetic(999))
    );
    let members = tickets
        .iter()
        .flat_map(|ticket| ticket.members.iter().copied());
    assert!(members.eq((0..players as u64).map(TicketPlayer::Synthetic)));
}

#[test]
fn party_ids_wrap_around() {
    let mut app = app(
        20.0,
        3,
        ScenarioMatchMode {
            parties: 2,
            ..Default::default()
        },
    );
    arrivals(&mut app).next_party = u32::MAX;
    app.update();
    let tickets = queued(&mut app);
    let parties: Vec<TicketParty> = tickets.iter().map(|ticket| ticket.party).collect();
    assert_eq!(parties, [u32::MAX, 0].map(TicketParty::Synthetic));
}

#[test]
fn scripts_queue_parties_of_a_size_and_cancel_the_oldest() {
    let mut app = app(
        20.0,
        3,
        ScenarioMatchMode {
            parties: 3,
            ..Default::default()
        },
    );
    app.update();
    queue_parties(app.world_mut(), "arena", 2, Some(4)).unwrap();
    cancel_oldest(app.world_mut(), "arena", 2).unwrap();
    queued(&mut app);
    app.update();
    let tickets = queued(&mut app);
    assert_eq!(
        tickets.iter().map(|ticket| ticket.size).collect::<Vec<_>>(),
        [4, 4]
    );
    let matchmaker = app.world().resource::<Matchmaker>();
    let left: Vec<TicketParty> = matchmaker.modes()[0]
        .queue()
        .iter()
        .map(|(_, ticket)| ticket.party)
        .collect();
    assert_eq!(left, [2, 3, 4].map(TicketParty::Synthetic));
    cancel_oldest(app.world_mut(), "arena", u32::MAX).unwrap();
    app.update();
    app.update();
    assert_eq!(waiting(&app), 0);
}

#[test]
fn invalid_script_requests_are_errors_and_change_nothing() {
    let mut arrivals = PartyArrivals::default();
    assert_eq!(
        arrivals.queue_parties("duel", 1, None),
        Err(ArrivalsError::NoSuchMode("duel".to_owned()))
    );
    arrivals.open(ScenarioMatchMode::default());
    assert_eq!(
        arrivals.queue_parties("arena", 1, Some(0)),
        Err(ArrivalsError::Size(0))
    );
    assert_eq!(
        arrivals.queue_parties("arena", 1, Some(6)),
        Err(ArrivalsError::Size(6))
    );
    assert_eq!(
        arrivals.cancel_oldest("duel", 1),
        Err(ArrivalsError::NoSuchMode("duel".to_owned()))
    );
    assert_eq!(arrivals.pending_parties(), 0);
}

#[test]
fn parties_over_the_tick_limit_queue_in_the_next_tick() {
    let parties = PARTIES_PER_TICK_MAX + 5;
    let mut app = app(
        20.0,
        3,
        ScenarioMatchMode {
            parties,
            ..Default::default()
        },
    );
    app.update();
    assert_eq!(
        (
            waiting(&app),
            app.world().resource::<PartyArrivals>().pending_parties()
        ),
        (1 << 17, 5)
    );
    app.update();
    assert_eq!(
        (
            waiting(&app),
            app.world().resource::<PartyArrivals>().pending_parties()
        ),
        ((1 << 17) + 5, 0)
    );
}

#[test]
fn parties_are_pending_until_their_mode_opens() {
    let spec = ScenarioMatchMode {
        mode: "late".to_owned(),
        parties: 4,
        ..Default::default()
    };
    let mut app = app(20.0, 3, spec);
    app.update();
    assert_eq!(
        (
            waiting(&app),
            app.world().resource::<PartyArrivals>().pending_parties()
        ),
        (0, 4)
    );
    let late = GroupModeSettings {
        name: "late".to_owned(),
        ..GroupModeSettings::default()
    };
    app.insert_resource(Matchmaker::new(&[MatchModeSettings::Groups(late)], 20.0).unwrap());
    app.update();
    assert_eq!(
        (
            waiting(&app),
            app.world().resource::<PartyArrivals>().pending_parties()
        ),
        (4, 0)
    );
}

#[test]
fn flows_of_two_modes_are_separate() {
    let mut app = app(
        20.0,
        3,
        ScenarioMatchMode {
            parties: 3,
            ..Default::default()
        },
    );
    let duel = ScenarioMatchMode {
        mode: "duel".to_owned(),
        parties: 5,
        ..Default::default()
    };
    arrivals(&mut app).open(duel.clone());
    arrivals(&mut app).open(ScenarioMatchMode { parties: 1, ..duel });
    app.update();
    let matchmaker = app.world().resource::<Matchmaker>();
    let waiting: Vec<usize> = matchmaker
        .modes()
        .iter()
        .map(|mode| mode.queue().len())
        .collect();
    assert_eq!(waiting, [3, 6]);
}
