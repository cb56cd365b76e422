//! Announcements reach the clients concerned.

use super::*;
use crate::wire::Channel;

fn announce(rig: &mut Rig, from: Entity, scope: AnnouncementScope, class: Channel, text: &str) {
    let from = rig.app.world().get::<Object>(from).unwrap().reference();
    rig.app.world_mut().write_message(AnnouncementRequest {
        about: Some(from),
        scope,
        channel: class,
        ttl_ticks: 4,
        bytes: text.as_bytes().to_vec(),
    });
}

/// The players' clients that received this last, in the order of joining.
fn clients_with(rig: &Rig, text: &str) -> Vec<usize> {
    let end = rig.mirrors.0.lock().unwrap();
    let has_received = |&entity: &Entity| {
        let last = end.mirrors[&rig.client_of(entity)].0.last_announcement();
        last.is_some_and(|(_, bytes)| bytes == text.as_bytes())
    };
    (0..)
        .zip(&rig.players)
        .filter(|(_, entity)| has_received(entity))
        .map(|(nth, _)| nth)
        .collect()
}

/// The number of clients that received each of this tick's announcements.
fn receivers(rig: &Rig) -> Vec<(AnnouncementScope, u32)> {
    let messages = rig.app.world().resource::<Messages<AnnouncementSent>>();
    let messages = messages.iter_current_update_messages();
    messages
        .map(|announced| (announced.scope, announced.receivers))
        .collect()
}

#[test]
fn announcement_reaches_only_its_scope() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let object = |rig: &Rig, nth: usize| *rig.app.world().get::<Object>(rig.players[nth]).unwrap();
    change_scene(
        rig.app.world_mut(),
        rig.players[5],
        rig.scenes[1],
        Vec2::splat(50.0),
    )
    .unwrap();
    rig.app.update();
    let (first, last) = (object(&rig, 0), object(&rig, 5));
    let at = Vec2::new(20.0, 50.0);
    let (scene, radius_m) = (first.scene(), 15.0);
    let client = rig.client_of(rig.players[2]);
    let party = PartyId(3);
    for nth in [1, 5] {
        let entity = rig.players[nth];
        rig.app.world_mut().entity_mut(entity).insert(party);
    }
    for (scope, who) in [
        (AnnouncementScope::Party(party), vec![1, 5]),
        (
            AnnouncementScope::Viewers(first.reference()),
            vec![0, 1, 2, 3, 4],
        ),
        (
            AnnouncementScope::Radius {
                scene,
                at,
                radius_m,
            },
            vec![0, 1],
        ),
        (AnnouncementScope::Scene(last.scene()), vec![5]),
        (AnnouncementScope::Client(client), vec![2]),
    ] {
        for class in [Channel::Reliable, Channel::Unreliable] {
            let (from, text) = (rig.players[0], format!("{scope:?} {class:?}"));
            announce(&mut rig, from, scope, class, &text);
            rig.app.update();
            assert_eq!(clients_with(&rig, &text), who, "{text}");
            let reached = receivers(&rig);
            assert_eq!(reached, [(scope, who.len() as u32)]);
        }
    }
    rig.rest_and_compare();
}

#[test]
fn announcement_follows_its_objects_snapshot_or_is_dropped() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        enters_per_tick_max: 1,
        ..SyncSettings::default()
    });
    rig.app.update();
    // The first client knows the third player by now, and receives the second one in a few ticks.
    let (first, second) = (rig.players[0], rig.players[1]);
    let of = rig.app.world().get::<Object>(second).unwrap().reference();
    announce(
        &mut rig,
        second,
        AnnouncementScope::Viewers(of),
        Channel::Reliable,
        "soon",
    );
    let mut waited = 0;
    while rig.known(first, second, 1).is_none() {
        assert!(!clients_with(&rig, "soon").contains(&0));
        rig.app.update();
        waited += 1;
    }
    assert!(waited > 1 && clients_with(&rig, "soon").contains(&0));
    rig.rest_and_compare();
}

/// Announces the second player while the first one does not know it yet, in `count` messages that expire after `ttl_ticks`. Returns the
/// number of ticks until the first player knows it, the last message that reached its client by then, and the number of dropped ones.
fn announce_before_its_snapshot(count: u32, ttl_ticks: u32) -> (u32, String, u64) {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        enters_per_tick_max: 1,
        ..SyncSettings::default()
    });
    rig.app.update();
    let (first, second) = (rig.players[0], rig.players[1]);
    let (client, about) = (rig.client_of(first), reference(&rig, second));
    for nth in 1..=count {
        rig.app.world_mut().write_message(AnnouncementRequest {
            about: Some(about),
            scope: AnnouncementScope::Client(client),
            channel: Channel::Reliable,
            ttl_ticks,
            bytes: nth.to_string().into_bytes(),
        });
    }
    let mut ticks = 0;
    while rig.known(first, second, 1).is_none() {
        rig.app.update();
        ticks += 1;
    }
    let last = {
        let end = rig.mirrors.0.lock().unwrap();
        let last = end.mirrors[&client].0.last_announcement();
        last.map_or_else(String::new, |(_, bytes)| {
            String::from_utf8_lossy(bytes).into_owned()
        })
    };
    rig.rest_and_compare();
    (ticks, last, rig.sent().expired)
}

#[test]
fn waiting_announcement_expires_after_its_last_tick() {
    let (ticks, last, expired) = announce_before_its_snapshot(1, 100);
    assert!(ticks > 1);
    assert_eq!((last.as_str(), expired), ("1", 0));
    // The first of these ticks is that of the announcement.
    let in_time = announce_before_its_snapshot(1, ticks - 1);
    assert_eq!(in_time, (ticks, "1".to_owned(), 0));
    let late = announce_before_its_snapshot(1, ticks - 2);
    assert_eq!(late, (ticks, String::new(), 1));
}

#[test]
fn announcements_that_wait_are_limited() {
    let (_, last, expired) = announce_before_its_snapshot(64, 100);
    assert_eq!((last.as_str(), expired), ("64", 0));
    let (_, last, expired) = announce_before_its_snapshot(66, 100);
    assert_eq!((last.as_str(), expired), ("64", 2));
}

#[test]
fn announcement_about_a_former_object_skips_its_successor() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let former = rig.players.remove(1);
    let about = reference(&rig, former);
    rig.app.world_mut().despawn(former);
    (0..12).for_each(|_| rig.app.update());
    rig.join(10, 1);
    (0..12).for_each(|_| rig.app.update());
    let now = reference(&rig, rig.players[5]);
    assert_eq!((now.scene, now.id), (about.scene, about.id));
    assert_ne!(now.generation, about.generation);
    for (of, text, count) in [(about, "former", 0), (now, "now", 6)] {
        rig.app.world_mut().write_message(AnnouncementRequest {
            about: None,
            scope: AnnouncementScope::Viewers(of),
            channel: Channel::Reliable,
            ttl_ticks: 4,
            bytes: text.as_bytes().to_vec(),
        });
        rig.app.update();
        assert_eq!(clients_with(&rig, text).len(), count, "{text}");
    }
}

#[test]
fn announcement_to_a_client_without_object_is_dropped() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (entity, other) = (rig.players[0], rig.players[1]);
    let client = rig.client_of(entity);
    rig.app
        .world_mut()
        .entity_mut(entity)
        .remove::<ControlledBy>();
    announce(
        &mut rig,
        other,
        AnnouncementScope::Client(client),
        Channel::Reliable,
        "lost",
    );
    rig.app.update();
    assert!(control(rig.app.world_mut(), client, entity));
    rig.app.update();
    assert!(clients_with(&rig, "lost").is_empty());
    rig.rest_and_compare();
}

#[test]
fn long_announcement_arrives_whole_and_motions_resume() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let (first, text) = (rig.players[0], "x".repeat(300_000));
    let of = rig.app.world().get::<Object>(first).unwrap().reference();
    announce(
        &mut rig,
        first,
        AnnouncementScope::Viewers(of),
        Channel::Reliable,
        &text,
    );
    rig.app.update();
    assert_eq!(clients_with(&rig, &text), [0, 1, 2, 3, 4, 5]);
    (0..140).for_each(|_| rig.app.update());
    let before = rig.sent();
    for _ in 0..20 {
        let world = rig.app.world_mut();
        world.get_mut::<Velocity>(first).unwrap().0 = Vec2::new(0.0, 2.0);
        world.get_mut::<Position>(first).unwrap().0.y += 0.3;
        rig.app.update();
    }
    let sent = rig.sent();
    assert!(sent.motions.messages - before.motions.messages > 20);
    assert_eq!(sent.deferred, before.deferred);
}

#[test]
fn new_viewer_receives_announcements_of_the_same_tick() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        bytes_per_client_s: 1_000_000,
        ..SyncSettings::default()
    });
    let speaker = rig.players[1];
    let scope = AnnouncementScope::Viewers(reference(&rig, speaker));
    announce(&mut rig, speaker, scope, Channel::Reliable, "hello");
    rig.app.update();
    assert_eq!(clients_with(&rig, "hello"), [0, 1, 2, 3, 4, 5]);
    assert_eq!(receivers(&rig), [(scope, 6)]);
}

#[test]
fn announcement_of_an_object_never_seen_is_dropped() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        enters_per_tick_max: 1,
        ..SyncSettings::default()
    });
    rig.app.update();
    let speaker = rig.players.pop().unwrap();
    let scope = AnnouncementScope::Viewers(reference(&rig, speaker));
    announce(&mut rig, speaker, scope, Channel::Reliable, "farewell");
    rig.app.update();
    rig.app.world_mut().despawn(speaker);
    (0..12).for_each(|_| rig.app.update());
    // Two of its team knew it at the announcement; the others still waited when it left.
    assert_eq!(clients_with(&rig, "farewell"), [1, 3]);
}

#[test]
fn announcement_to_another_scene_names_no_object() {
    let mut rig = Rig::new(10);
    let (speaker, listener) = (rig.players[0], rig.players[1]);
    let to = rig.scenes[1];
    change_scene(rig.app.world_mut(), listener, to, Vec2::splat(50.0)).unwrap();
    rig.rest_and_compare();
    let client = rig.client_of(listener);
    for scope in [
        AnnouncementScope::Client(client),
        AnnouncementScope::Scene(reference(&rig, listener).scene),
    ] {
        announce(&mut rig, speaker, scope, Channel::Reliable, "who?");
        rig.app.update();
        let end = rig.mirrors.0.lock().unwrap();
        let last = end.mirrors[&client].0.last_announcement();
        assert_eq!(last, Some((None, b"who?".as_slice())));
    }
}

#[test]
fn announcements_over_the_tick_limit_are_dropped_and_counted() {
    let mut rig = Rig::new(10);
    rig.app.insert_resource(SyncSettings {
        announce_bytes_per_tick: 10,
        ..SyncSettings::default()
    });
    rig.rest_and_compare();
    let speaker = rig.players[0];
    let scope = AnnouncementScope::Scene(reference(&rig, speaker).scene);
    for text in ["123456", "654321", "1234"] {
        announce(&mut rig, speaker, scope, Channel::Reliable, text);
    }
    rig.app.update();
    assert_eq!(receivers(&rig), [(scope, 6), (scope, 6)]);
    let stats = rig.app.world().resource::<SyncStats>();
    assert_eq!(stats.announcements_refused, 1);
}
