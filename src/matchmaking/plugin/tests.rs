//! The plugin: requests in, messages out.

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};

use super::*;
use crate::matchmaking::{Backfill, GroupModeSettings, ModeId, UNLIMITED};
use crate::session::{ConnectionLost, LoggedOut, LogoutReason, SessionResumed};
use crate::sim::{self, clock, state_hash};
use crate::wire::ClientId;
use crate::world::{PartyId, PlayerId};

/// A mode named "arena" without expiry and without a gap limit, with a narrow window.
fn mode(group_size: u8) -> GroupModeSettings {
    GroupModeSettings {
        group_size,
        expire_after_s: 0.0,
        priority_after_s: 0.0,
        skill_window_start: 20,
        power_gap_start: UNLIMITED,
        ..GroupModeSettings::default()
    }
}

/// A party whose players are 10 × its id and the following; each player's power is 10.
fn ticket(party: u32, size: u8, skill: i32, since_tick: u64) -> Ticket {
    let players = (0..u64::from(size)).map(|at| PlayerId(10 * u64::from(party) + at));
    Ticket::new(PartyId(party), players)
        .power(10 * u32::from(size))
        .skill(skill)
        .level(1)
        .waiting_since(since_tick)
}

/// An app at 20 Hz with a heartbeat every ten ticks, before its first tick.
fn app(modes: Vec<GroupModeSettings>) -> App {
    let mut app = App::new();
    app.add_plugins((
        bevy_time::TimePlugin,
        sim::SimPlugin {
            tick_hz: Some(20.0),
        },
        MatchmakingPlugin,
    ));
    let modes = modes.into_iter().map(MatchModeSettings::Groups).collect();
    app.insert_resource(MatchmakingSettings { modes });
    clock::one_tick_per_update(&mut app);
    app
}

fn queue(app: &mut App, ticket: Ticket) {
    app.world_mut().write_message(QueueRequest { ticket });
}

fn cancel(app: &mut App, party: u32, player: Option<u64>) {
    app.world_mut().write_message(CancelRequest {
        party: PartyId(party).into(),
        player: player.map(|player| PlayerId(player).into()),
    });
}

/// Runs one tick and checks the counters.
fn tick(app: &mut App) {
    app.update();
    assert!(app.world().resource::<Matchmaker>().tickets_conserved());
}

fn take<M: Message>(app: &mut App) -> Vec<M> {
    app.world_mut()
        .resource_mut::<Messages<M>>()
        .drain()
        .collect()
}

fn refused(app: &mut App) -> Vec<TicketError> {
    take::<TicketRefused>(app)
        .into_iter()
        .map(|refused| refused.error)
        .collect()
}

#[test]
fn requests_are_queued_at_once_and_matched_on_the_heartbeat() {
    let mut app = app(vec![mode(5)]);
    queue(&mut app, ticket(1, 5, 0, 1));
    tick(&mut app);
    assert_eq!(
        take::<TicketQueued>(&mut app),
        [TicketQueued {
            ticket: ticket(1, 5, 0, 1)
        }]
    );
    (2..10).for_each(|_| tick(&mut app));
    assert_eq!(take::<MatchFormed>(&mut app), []);
    // The second party queues in the tick of the heartbeat itself.
    queue(&mut app, ticket(2, 5, 0, 10));
    tick(&mut app);
    let formed = take::<MatchFormed>(&mut app);
    assert_eq!(formed.len(), 1);
    assert_eq!(
        formed[0].match_info.groups,
        [vec![ticket(1, 5, 0, 1)], vec![ticket(2, 5, 0, 10)]]
    );
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 0);
}

#[test]
fn party_entity_queues_with_its_ticket_and_cancels_without_it() {
    let mut app = app(vec![mode(5)]);
    let [stays, leaves] = [1, 2].map(|party| {
        let ticket = PartyTicket(ticket(party, 2, 0, 0));
        app.world_mut().spawn(ticket).id()
    });
    tick(&mut app);
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 2);
    app.world_mut().despawn(leaves);
    tick(&mut app);
    assert_eq!(
        app.world().resource::<Matchmaker>().party_of(PlayerId(20)),
        None
    );
    app.world_mut().entity_mut(stays).remove::<PartyTicket>();
    tick(&mut app);
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 0);
    assert_eq!(refused(&mut app), []);
}

#[test]
fn logout_cancels_tickets_in_the_same_tick() {
    let mut app = app(vec![mode(5)]);
    queue(&mut app, ticket(1, 2, 0, 0));
    tick(&mut app);
    // One that is queued already, and one whose party queues in the same tick.
    queue(&mut app, ticket(2, 2, 0, 0));
    for player in [11, 20, 99] {
        app.world_mut().write_message(LoggedOut {
            client: ClientId(1),
            client_entity: Entity::PLACEHOLDER,
            player: PlayerId(player),
            entity: None,
            reason: LogoutReason::Requested,
        });
    }
    tick(&mut app);
    let cancelled = take::<TicketCancelled>(&mut app);
    let parties: Vec<u32> = cancelled
        .iter()
        .map(|message| message.party.number())
        .collect();
    assert_eq!(parties, [1, 2]);
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 0);
    assert_eq!(refused(&mut app), []);
}

fn drop_connection(app: &mut App, player: u64, client: u32) {
    app.world_mut().write_message(ConnectionLost {
        client: ClientId(client),
        client_entity: Entity::PLACEHOLDER,
        player: PlayerId(player),
        entity: None,
    });
}

fn resume_session(app: &mut App, player: u64, client: u32, before: u32) {
    app.world_mut().write_message(SessionResumed {
        client: ClientId(client),
        previous_client: ClientId(before),
        client_entity: Entity::PLACEHOLDER,
        player: PlayerId(player),
        entity: None,
    });
}

fn matches_in(app: &mut App, ticks: u32) -> usize {
    let formed = (0..ticks).map(|_| {
        tick(app);
        take::<MatchFormed>(app).len()
    });
    formed.sum()
}

fn queued(app: &App) -> (usize, Option<u64>) {
    let matchmaker = app.world().resource::<Matchmaker>();
    let since = matchmaker
        .ticket(PartyId(1))
        .map(|ticket| ticket.since_tick);
    (matchmaker.waiting_parties(), since)
}

#[test]
fn party_with_an_absent_member_is_suspended_until_all_return() {
    let mut app = app(vec![mode(2)]);
    for party in [1, 2] {
        queue(&mut app, ticket(party, 2, 0, 0));
    }
    tick(&mut app);
    let (_, since) = queued(&app);
    // Both of one party are disconnected; one is lost again in the tick in which it came back.
    drop_connection(&mut app, 10, 1);
    drop_connection(&mut app, 11, 2);
    assert_eq!(matches_in(&mut app, 20), 0);
    assert_eq!(queued(&app), (1, None));
    resume_session(&mut app, 10, 3, 1);
    resume_session(&mut app, 11, 4, 2);
    drop_connection(&mut app, 11, 4);
    tick(&mut app);
    assert_eq!(queued(&app).0, 1);
    // Nor does it queue again with an absent member.
    queue(&mut app, ticket(1, 2, 0, 0));
    tick(&mut app);
    assert_eq!(queued(&app).0, 1);
    resume_session(&mut app, 11, 5, 4);
    tick(&mut app);
    assert_eq!(queued(&app), (2, since));
    assert_eq!(matches_in(&mut app, 20), 1);
}

#[test]
fn logout_of_a_former_session_does_not_end_a_later_absence() {
    let mut app = app(vec![mode(5)]);
    // The player logged in again, and that connection was lost. The end of the session before is reported last.
    drop_connection(&mut app, 10, 4);
    app.world_mut().write_message(LoggedOut {
        client: ClientId(1),
        client_entity: Entity::PLACEHOLDER,
        player: PlayerId(10),
        entity: None,
        reason: LogoutReason::Replaced,
    });
    tick(&mut app);
    queue(&mut app, ticket(1, 2, 0, 0));
    tick(&mut app);
    assert_eq!(queued(&app), (0, None), "suspended");
    resume_session(&mut app, 10, 5, 4);
    tick(&mut app);
    assert_eq!(queued(&app).0, 1);
}

#[test]
fn suspended_ticket_is_dropped_at_logout_or_cancellation() {
    let mut app = app(vec![mode(5)]);
    for by_request in [false, true] {
        queue(&mut app, ticket(1, 2, 0, 0));
        tick(&mut app);
        drop_connection(&mut app, 10, 1);
        tick(&mut app);
        if by_request {
            cancel(&mut app, 1, Some(11));
        } else {
            app.world_mut().write_message(LoggedOut {
                client: ClientId(1),
                client_entity: Entity::PLACEHOLDER,
                player: PlayerId(10),
                entity: None,
                reason: LogoutReason::Disconnected,
            });
        }
        tick(&mut app);
        resume_session(&mut app, 10, 2, 1);
        tick(&mut app);
        assert_eq!(queued(&app), (0, None));
    }
}

#[test]
fn proposed_match_is_accepted_or_declined_by_messages() {
    let mut app = app(vec![GroupModeSettings {
        accept_timeout_s: 10.0,
        ..mode(1)
    }]);
    for party in [1, 2] {
        queue(&mut app, ticket(party, 1, 0, 0));
    }
    (0..10).for_each(|_| tick(&mut app));
    let proposed = take::<MatchProposed>(&mut app);
    assert_eq!(proposed.len(), 1);
    for (player, accept) in [(10, true), (99, true), (20, true)] {
        app.world_mut().write_message(MatchResponse {
            player: PlayerId(player).into(),
            accept,
        });
    }
    tick(&mut app);
    let formed = take::<MatchFormed>(&mut app);
    assert_eq!(formed[0].match_info, proposed[0].match_info);
    assert_eq!(
        app.world().resource::<MatchmakingStats>().response_refused,
        1
    );
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 0);
}

#[test]
fn backfill_and_spectating_work_through_messages() {
    let mut app = app(vec![mode(5)]);
    queue(&mut app, ticket(1, 2, 0, 0));
    app.world_mut().write_message(BackfillRequest {
        id: 7,
        mode: ModeId(0),
        group: 1,
        backfill: Backfill {
            missing: 2,
            level: 1,
            ..Backfill::default()
        },
    });
    for party in [Some(1), None] {
        app.world_mut().write_message(SpectateRequest {
            player: PlayerId(99).into(),
            party: party.map(|party| PartyId(party).into()),
        });
    }
    tick(&mut app);
    let filled = take::<BackfillResult>(&mut app);
    assert_eq!(
        (filled[0].id, filled[0].group, filled[0].tickets.len()),
        (7, 1, 1)
    );
    let stats = app.world().resource::<MatchmakingStats>();
    assert_eq!(stats.spectate_refused, 1, "there is no room");
    assert!(app.world().resource::<Matchmaker>().tickets_conserved());
}

#[test]
fn refusals_are_messages_and_counted() {
    let mut app = app(vec![mode(1)]);
    queue(&mut app, ticket(1, 1, 0, 0));
    queue(&mut app, ticket(1, 1, 0, 0));
    queue(&mut app, ticket(2, 2, 0, 0));
    queue(
        &mut app,
        Ticket {
            mode: ModeId(7),
            ..ticket(3, 1, 0, 0)
        },
    );
    cancel(&mut app, 9, None);
    tick(&mut app);
    assert_eq!(
        refused(&mut app),
        [
            TicketError::PartyAlreadyQueued {
                party: PartyId(1).into()
            },
            TicketError::LargerThanGroup {
                party: PartyId(2).into(),
                size: 2,
                group_size: 1
            },
            TicketError::UnknownMode {
                party: PartyId(3).into(),
                mode: ModeId(7),
                modes: 1
            },
            TicketError::NotQueued {
                party: PartyId(9).into()
            },
        ]
    );
    let stats = *app.world().resource::<MatchmakingStats>();
    assert_eq!(
        stats,
        MatchmakingStats {
            queue_refused: 3,
            cancel_refused: 1,
            response_refused: 0,
            spectate_refused: 0,
        }
    );
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 1);
}

#[test]
fn party_that_queues_and_cancels_in_one_tick_is_not_queued() {
    let mut app = app(vec![mode(5)]);
    cancel(&mut app, 4, Some(40));
    queue(&mut app, ticket(4, 2, 0, 0));
    tick(&mut app);
    assert_eq!(
        take::<TicketCancelled>(&mut app),
        [TicketCancelled {
            party: PartyId(4).into(),
            mode: ModeId(0)
        }]
    );
    assert_eq!(app.world().resource::<Matchmaker>().waiting_parties(), 0);
}

#[test]
fn cancellation_is_limited_to_members_and_the_server() {
    let mut app = app(vec![mode(5)]);
    queue(&mut app, ticket(4, 2, 0, 0));
    cancel(&mut app, 4, Some(77));
    tick(&mut app);
    assert_eq!(
        refused(&mut app),
        [TicketError::NotAMember {
            party: PartyId(4).into(),
            player: PlayerId(77).into()
        }]
    );
    cancel(&mut app, 4, None);
    tick(&mut app);
    assert_eq!(
        take::<TicketCancelled>(&mut app),
        [TicketCancelled {
            party: PartyId(4).into(),
            mode: ModeId(0)
        }]
    );
}

#[test]
fn overdue_party_expires_on_a_heartbeat() {
    let mut app = app(vec![GroupModeSettings {
        expire_after_s: 1.0,
        ..mode(5)
    }]);
    queue(&mut app, ticket(1, 1, 0, 1));
    (1..30).for_each(|_| tick(&mut app));
    assert_eq!(take::<TicketExpired>(&mut app), []);
    tick(&mut app);
    assert_eq!(
        take::<TicketExpired>(&mut app),
        [TicketExpired {
            party: PartyId(1).into(),
            mode: ModeId(0)
        }]
    );
}

#[test]
fn ticket_with_a_future_tick_waits_from_now() {
    let mut app = app(vec![mode(5)]);
    queue(&mut app, ticket(1, 1, 0, u64::MAX));
    tick(&mut app);
    assert_eq!(
        take::<TicketQueued>(&mut app),
        [TicketQueued {
            ticket: ticket(1, 1, 0, 1)
        }]
    );
}

#[test]
fn invalid_settings_open_no_mode_and_do_not_panic() {
    let mut app = app(vec![mode(51)]);
    queue(&mut app, ticket(1, 1, 0, 0));
    tick(&mut app);
    assert_eq!(
        refused(&mut app),
        [TicketError::UnknownMode {
            party: PartyId(1).into(),
            mode: ModeId(0),
            modes: 0
        }]
    );
}

#[test]
fn existing_matchmaker_is_kept_at_startup() {
    let mut app = App::new();
    app.add_plugins((bevy_time::TimePlugin, MatchmakingPlugin));
    app.insert_resource(MatchmakingSettings {
        modes: vec![MatchModeSettings::Groups(mode(5))],
    });
    let own = GroupModeSettings {
        name: "own".to_owned(),
        ..mode(3)
    };
    app.insert_resource(Matchmaker::new(&[MatchModeSettings::Groups(own)], 20.0).unwrap());
    clock::one_tick_per_update(&mut app);
    assert_eq!(app.world().resource::<Matchmaker>().names(), ["own"]);
}

#[test]
fn seconds_convert_to_ticks_at_the_tick_rate() {
    for hz in [7.0, 20.0, 30.0, 60.0, 128.0] {
        let time = Time::<Fixed>::from_hz(hz);
        assert_eq!(tick_rate_millihertz(&time), hz as u64 * 1000);
    }
    let mut app = App::new();
    let modes = vec![MatchModeSettings::Groups(GroupModeSettings {
        limits_off_after_s: 60.0,
        ..mode(5)
    })];
    app.add_plugins((
        bevy_time::TimePlugin,
        sim::SimPlugin {
            tick_hz: Some(30.0),
        },
        MatchmakingPlugin,
    ))
    .insert_resource(MatchmakingSettings { modes });
    clock::one_tick_per_update(&mut app);
    let rules = app.world().resource::<Matchmaker>().modes()[0].tick_settings();
    assert_eq!(rules.limits_off_after_ticks, 1800);
}

#[test]
fn queued_tickets_are_in_the_state_hash() {
    let hash = |party: Option<u32>| {
        let mut app = app(vec![mode(5)]);
        if let Some(party) = party {
            queue(&mut app, ticket(party, 1, 0, 0));
        }
        tick(&mut app);
        state_hash(app.world_mut())
    };
    assert_eq!(hash(Some(1)), hash(Some(1)));
    assert_ne!(hash(Some(1)), hash(Some(2)));
    assert_ne!(hash(Some(1)), hash(None));
}

#[test]
fn settings_are_read_from_ron_and_unknown_fields_are_refused() {
    let settings: MatchmakingSettings =
        ron::from_str("(modes: [Groups((name: \"duel\", group_size: 1))])").unwrap();
    assert_eq!(settings.modes.len(), 1);
    assert!(ron::from_str::<MatchmakingSettings>("(mode: [])").is_err());
}

#[test]
fn unknown_mode_is_logged_once() {
    let mut app = app(vec![mode(2)]);
    // Warnings are collected on this thread.
    sim::single_threaded(&mut app);
    let warnings = sim::logged_warnings(|| {
        for party in 1..4 {
            let mut lost = ticket(party, 1, 0, 0);
            lost.mode = ModeId(9);
            queue(&mut app, lost);
            tick(&mut app);
        }
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let start = "parties refused: unknown mode; party=1; mode=9; modes=[\"";
    assert!(warnings[0].starts_with(start), "{warnings:?}");
}
