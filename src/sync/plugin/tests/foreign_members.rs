//! Members of parties that are not in this world.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::unseen::unseen_value;
use super::*;
use crate::world::PlayerId;

const VIGOUR: u16 = 5;
const MEMBER: PlayerId = PlayerId(70);
const OTHER: PlayerId = PlayerId(71);

fn set(rig: &mut Rig, player: PlayerId, party: u32, values: &[(u16, &[u8])]) {
    let world = rig.app.world_mut();
    let attributes = world.resource::<Attributes>().clone();
    let mut foreign = world.resource_mut::<ForeignMembers>();
    let values = values.iter().copied();
    foreign.set(&attributes, player, PartyId(party), KindId(3), values);
}

fn remove(rig: &mut Rig, player: PlayerId) {
    let world = rig.app.world_mut();
    assert!(world.resource_mut::<ForeignMembers>().remove(player));
}

fn object(rig: &Rig, player: PlayerId) -> ObjectRef {
    let foreign = rig.app.world().resource::<ForeignMembers>();
    foreign.object(player).unwrap()
}

fn join(rig: &mut Rig, nth: usize, party: u32) {
    let entity = rig.players[nth];
    rig.app
        .world_mut()
        .entity_mut(entity)
        .insert(PartyId(party));
}

/// The value that the client of a player has of a member elsewhere.
fn known(rig: &Rig, by: usize, of: ObjectRef) -> Option<Vec<u8>> {
    unseen_value(rig, rig.players[by], of, VIGOUR)
}

fn has_state(rig: &Rig) -> bool {
    let replicator = rig.app.world().resource::<Replicator>();
    replicator.scenes.contains_key(&FOREIGN_SCENE)
}

#[test]
fn party_receives_a_foreign_member_until_it_is_removed() {
    let mut rig = Rig::new(10);
    join(&mut rig, 0, 7);
    join(&mut rig, 1, 7);
    join(&mut rig, 2, 8);
    set(&mut rig, MEMBER, 7, &[(VIGOUR, &[40])]);
    rig.rest_and_compare_exactly();
    let of = object(&rig, MEMBER);
    let of_each = |rig: &Rig| [0, 1, 2, 3].map(|by| known(rig, by, of));
    let all = |value: u8| [Some(vec![value]), Some(vec![value]), None, None];
    assert_eq!(of_each(&rig), all(40));

    let before = rig.sent().unseen.messages;
    set(&mut rig, MEMBER, 7, &[(VIGOUR, &[41])]);
    rig.app.update();
    assert_eq!(of_each(&rig), all(41));
    set(&mut rig, MEMBER, 7, &[(VIGOUR, &[41])]);
    rig.rest_and_compare_exactly();
    assert_eq!(
        rig.sent().unseen.messages,
        before + 2,
        "equal values are not sent"
    );

    remove(&mut rig, MEMBER);
    rig.rest_and_compare_exactly();
    assert_eq!(of_each(&rig), [None, None, None, None]);
    assert!(!has_state(&rig));
}

#[test]
fn foreign_member_follows_its_party_and_loses_values() {
    let mut rig = Rig::new(10);
    join(&mut rig, 0, 7);
    join(&mut rig, 2, 8);
    set(&mut rig, MEMBER, 7, &[(VIGOUR, &[40])]);
    rig.rest_and_compare_exactly();
    let of = object(&rig, MEMBER);
    set(&mut rig, MEMBER, 8, &[(VIGOUR, &[41])]);
    rig.rest_and_compare_exactly();
    assert_eq!([0, 2].map(|by| known(&rig, by, of)), [None, Some(vec![41])]);
    // Without values it is still a member.
    set(&mut rig, MEMBER, 8, &[]);
    rig.rest_and_compare_exactly();
    assert_eq!(known(&rig, 2, of), None);
    assert_eq!(object(&rig, MEMBER), of);
    // A client that comes into the party receives it.
    join(&mut rig, 0, 8);
    set(&mut rig, MEMBER, 8, &[(VIGOUR, &[42])]);
    rig.rest_and_compare();
    assert_eq!(
        [0, 2].map(|by| known(&rig, by, of)),
        [Some(vec![42]), Some(vec![42])]
    );
}

#[test]
fn values_that_parties_do_not_receive_are_ignored() {
    let mut rig = Rig::new(10);
    join(&mut rig, 0, 7);
    // For viewers; unknown; not a value.
    let values: [(u16, &[u8]); 4] = [(1, &[9]), (999, &[9]), (VIGOUR, &[0x80]), (VIGOUR, &[])];
    set(&mut rig, MEMBER, 7, &values);
    rig.rest_and_compare_exactly();
    let of = object(&rig, MEMBER);
    for attribute in [1, VIGOUR, 999] {
        assert_eq!(unseen_value(&rig, rig.players[0], of, attribute), None);
    }
    let foreign = rig.app.world().resource::<ForeignMembers>();
    assert_eq!(foreign.values_ignored(), 4);
}

#[test]
fn reused_object_id_has_another_generation() {
    let mut rig = Rig::new(10);
    join(&mut rig, 0, 7);
    set(&mut rig, MEMBER, 7, &[(VIGOUR, &[40])]);
    rig.rest_and_compare_exactly();
    let first = object(&rig, MEMBER);
    // In the same tick.
    remove(&mut rig, MEMBER);
    set(&mut rig, OTHER, 7, &[(VIGOUR, &[50])]);
    let second = object(&rig, OTHER);
    assert_eq!((first.scene, first.id), (second.scene, second.id));
    assert_eq!(first.scene, FOREIGN_SCENE);
    rig.rest_and_compare_exactly();
    assert_eq!(
        [first, second].map(|of| known(&rig, 0, of)),
        [None, Some(vec![50])]
    );
}

#[test]
fn published_values_are_those_that_parties_receive() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let world = rig.app.world();
    let (kind, values) = party_values(world, rig.players[4]).unwrap();
    assert_eq!(kind, KindId(0));
    assert_eq!(values.collect::<Vec<_>>(), [(VIGOUR, &[4][..])]);
    assert!(party_values(world, rig.scenes[0]).is_none());
}

/// Every mirror is compared with the parties and the members elsewhere, after random changes of both.
#[test]
fn mirrors_match_random_foreign_members() {
    for seed in 0..6 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut rig = Rig::new(2);
        for _ in 0..40 {
            for _ in 0..rng.random_range(0..6) {
                let player = PlayerId(rng.random_range(50..58));
                let party = rng.random_range(1..4);
                match rng.random_range(0..8) {
                    0 => {
                        let mut foreign = rig.app.world_mut().resource_mut::<ForeignMembers>();
                        foreign.remove(player);
                    }
                    1 => {
                        let nth = rng.random_range(0..rig.players.len());
                        join(&mut rig, nth, party);
                    }
                    2 => {
                        let entity = rig.players[rng.random_range(0..rig.players.len())];
                        rig.app.world_mut().entity_mut(entity).remove::<PartyId>();
                    }
                    3 => {
                        let entity = rig.players[rng.random_range(0..rig.players.len())];
                        let to = rig.scenes[rng.random_range(0..2)];
                        change_scene(rig.app.world_mut(), entity, to, Vec2::splat(50.0)).unwrap();
                    }
                    4 => set(&mut rig, player, party, &[]),
                    5 if rng.random_bool(0.1) => {
                        rig.app.world_mut().resource_mut::<ForeignMembers>().clear();
                    }
                    _ => set(
                        &mut rig,
                        player,
                        party,
                        &[(VIGOUR, &[rng.random_range(0..9)])],
                    ),
                }
            }
            (0..rng.random_range(1..3)).for_each(|_| rig.app.update());
            if rng.random_bool(0.2) {
                rig.rest_and_compare();
            }
        }
        rig.rest_and_compare();
    }
}
