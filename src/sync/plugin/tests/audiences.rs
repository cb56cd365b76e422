//! Each client receives the attributes of its audiences, and no others.

use super::*;
use crate::sim::state_hash;
use crate::sync::{AUDIENCES_MAX, Membership};
use crate::world::GuildId;

/// Teams are those of the rig: odd and even. A party across teams, one within a team; a guild across parties.
fn assign_affiliations(rig: &mut Rig) {
    let belongings = [
        (0, 1, 5),
        (1, 1, 6),
        (2, 2, 5),
        (3, 3, 6),
        (4, 2, 5),
        (5, 4, 7),
    ];
    for (nth, party, guild) in belongings {
        let mut entity = rig.app.world_mut().entity_mut(rig.players[nth]);
        entity.insert((PartyId(party), GuildId(guild)));
    }
}

#[test]
fn client_holds_exactly_the_attributes_of_its_audiences() {
    for cap in [10, 2] {
        let mut rig = Rig::new(cap);
        assign_affiliations(&mut rig);
        let scene = rig.scenes[0];
        rig.app.world_mut().entity_mut(scene).insert(Score(3));
        rig.rest_and_compare_exactly();
        for nth in 0..rig.players.len() {
            let entity = rig.players[nth];
            let world = rig.app.world_mut();
            world.get_mut::<Vigour>(entity).unwrap().0 += 10;
            world.get_mut::<Mana>(entity).unwrap().0 += 10;
            world.get_mut::<Rank>(entity).unwrap().0 += 10;
        }
        rig.rest_and_compare_exactly();
    }
}

#[test]
fn exact_comparison_finds_attributes_of_former_audiences() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare_exactly();
    let (by, of) = (rig.players[0], rig.players[2]);
    rig.app.world_mut().entity_mut(by).remove::<TeamId>();
    rig.rest_and_compare();
    let (client, end) = (rig.client_of(by), rig.mirrors.0.lock().unwrap());
    let found = compare_mirror_exactly(rig.app.world(), client, &end.mirrors[&client].0);
    let id = reference(&rig, of).id.0;
    let expected = format!("object {id}: attribute 3 is sent to others: [2]");
    assert_eq!(found, Err(expected));
}

#[test]
fn state_hash_depends_on_which_objects_a_client_knows() {
    let mut rig = Rig::new(10);
    rig.rest_and_compare();
    let before = state_hash(rig.app.world_mut());
    let replicator = rig.app.world().resource::<Replicator>();
    let links = &replicator.clients[0].objects;
    let last = *links.as_slice().last().unwrap();
    let mut other = last;
    other.id += 1;
    for (link, is_same) in [(other, false), (last, true)] {
        let mut replicator = rig.app.world_mut().resource_mut::<Replicator>();
        let links = &mut replicator.clients[0].objects;
        links.swap_remove(links.len() - 1);
        links.push(link);
        assert_eq!(state_hash(rig.app.world_mut()) == before, is_same);
    }
    let mut replicator = rig.app.world_mut().resource_mut::<Replicator>();
    for records in replicator.scenes.values_mut() {
        records.set_known_generation(last.id, records.known_generation(last.id) + 1);
    }
    assert_ne!(state_hash(rig.app.world_mut()), before);
}

/// A raid: members publish, and leaders subscribe.
#[derive(Component, Clone, Copy)]
struct Raid {
    number: u32,
    leads: bool,
}

#[derive(Component, Clone, Copy)]
struct Threat(u32);

#[test]
fn custom_audience_receives_attributes_from_the_tick_of_joining() {
    let mut rig = Rig::new(10);
    let leaders = rig
        .app
        .register_audience("leaders", |raid: &Raid| Membership {
            publishes: Some(raid.number),
            subscribes: raid.leads.then_some(raid.number),
        });
    let threat = AttributeSpec::new("threat", 40, Encoding::Varint).to(leaders.unwrap());
    rig.app.replicate_field(threat, |threat: &Threat| threat.0);
    for nth in 0..6 {
        let mut entity = rig.app.world_mut().entity_mut(rig.players[nth]);
        let (number, leads) = (nth as u32 % 2, nth < 2);
        entity.insert((Raid { number, leads }, Threat(nth as u32)));
    }
    rig.rest_and_compare_exactly();
    let (leader, member, stranger) = (rig.players[0], rig.players[2], rig.players[3]);
    assert_eq!(rig.known(leader, member, 40), Some(vec![2]));
    assert_eq!(rig.known(leader, stranger, 40), None);
    assert_eq!(rig.known(member, leader, 40), None, "it leads no party");
    assert_eq!(rig.known(stranger, stranger, 40), Some(vec![3]), "its own");

    rig.app.world_mut().get_mut::<Raid>(member).unwrap().leads = true;
    rig.app.update();
    assert_eq!(rig.known(member, leader, 40), Some(vec![0]));
    rig.rest_and_compare_exactly();

    // A member that leaves publishes no more, and others keep what they received.
    rig.app.world_mut().entity_mut(member).remove::<Raid>();
    rig.app.update();
    rig.app.world_mut().get_mut::<Threat>(member).unwrap().0 = 77;
    rig.rest_and_compare();
    assert_eq!(rig.known(leader, member, 40), Some(vec![2]));

    // In another scene it is still a member of its raid.
    let to = rig.scenes[1];
    for entity in [leader, rig.players[4]] {
        change_scene(rig.app.world_mut(), entity, to, Vec2::splat(50.0)).unwrap();
    }
    rig.rest_and_compare();
    assert_eq!(rig.known(leader, rig.players[4], 40), Some(vec![4]));
}

#[test]
fn audience_names_are_unique_and_their_number_is_limited() {
    let mut rig = Rig::new(10);
    let mut add = |name| rig.app.register_audience(name, |_: &Raid| Membership::NONE);
    assert!(add("a").is_ok());
    assert_eq!(add("a"), Err(AudienceError::Taken("a")));
    let more = ["b", "c", "d", "e"].map(|name| add(name).err());
    assert_eq!(
        more,
        [None, None, None, Some(AudienceError::TooMany("e"))],
        "{AUDIENCES_MAX}"
    );
    rig.rest_and_compare();
}
