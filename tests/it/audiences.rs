//! Promise: attributes reach exactly their registered audience, including custom audiences of an embedder, for any number of players.

use bevy_app::{App, TaskPoolPlugin};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use glam::Vec2;
use throng::aoi::ViewCaps;
use throng::outbox::{MemorySink, Outbox};
use throng::prelude::*;
use throng::session::{ConnectionInfo, connect, control};
use throng::sync::{AttributeSpec, SendRate, SyncPlugin};
use throng::sync::{AudienceAppExt, Membership, Mirror, compare_mirror_exactly};
use throng::wire::{ClientId, Encoding};
use throng::world::{KindId, spawn_object};

/// A trade between two players, who have the same number.
#[derive(Component)]
struct Trade(u32);

/// The quarter of the town where the object stands.
#[derive(Component)]
struct Quarter(u32);

/// Items offered; only visible to the trade partner.
#[derive(Component)]
struct Offer(u32);

/// A spoken text; only for players in the same quarter, and the trade partner.
#[derive(Component)]
struct Noise(u32);

struct Town {
    app: App,
    sink: MemorySink,
    people: Vec<(ClientId, Entity, Mirror)>,
}

impl Town {
    fn new() -> Self {
        let mut app = App::new();
        app.add_plugins((TaskPoolPlugin::default(), TimePlugin, SyncPlugin));
        let trading = app
            .register_audience("trading", |trade: &Trade| Membership::of(trade.0))
            .unwrap();
        let quarter = app
            .register_audience("quarter", |quarter: &Quarter| Membership::of(quarter.0))
            .unwrap();
        let offer = AttributeSpec::new("offer", 1, Encoding::Varint).to(trading);
        app.replicate_field(offer, |offer: &Offer| offer.0);
        let noise = AttributeSpec::new("noise", 2, Encoding::Varint)
            .to(quarter.or(trading))
            .at(SendRate::EveryTick);
        app.replicate_field(noise, |noise: &Noise| noise.0);
        throng::sim::clock::one_tick_per_update(&mut app);
        let sink = MemorySink::default();
        let mut outbox = app.world_mut().resource_mut::<Outbox>();
        outbox.set_sink(sink.clone());
        let scene = open_scene(app.world_mut(), SceneSpec::default(), ()).unwrap();
        let people = (0..4).map(|nth| {
            let world = app.world_mut();
            let sight = (Viewer::new(ViewCaps::all(10)), Viewable::default());
            let values = (Offer(10 + nth), Noise(20 + nth), Quarter(nth % 2));
            let at = Vec2::new(20.0 + nth as f32, 20.0);
            let entity = spawn_object(world, scene, KindId(0), at, (sight, values)).unwrap();
            let client = connect(world, ConnectionInfo::unknown().without_loading()).unwrap();
            assert!(control(world, client, entity));
            (client, entity, Mirror::default())
        });
        let people = people.collect();
        Self { app, sink, people }
    }

    fn run_until_idle(&mut self) {
        for _ in 0..20 {
            self.app.update();
            for (client, packet) in self.sink.take().packets.iter() {
                let mut people = self.people.iter_mut();
                let (.., mirror) = people.find(|person| person.0 == client).unwrap();
                mirror.receive(packet).unwrap();
            }
        }
    }

    /// The values of an attribute of all people, as held by the client of one of them.
    fn client_values(&self, by: usize, attribute: u16) -> Vec<Option<u32>> {
        let of = |&(_, entity, _): &(ClientId, Entity, Mirror)| {
            let id = self.app.world().get::<Object>(entity)?.id().0;
            let object = self.people[by].2.object(id)?;
            object.attributes.get::<u32>(attribute)
        };
        self.people.iter().map(of).collect()
    }
}

#[test]
fn custom_audiences_get_their_attributes_and_no_others() {
    let mut town = Town::new();
    town.run_until_idle();
    assert_eq!(town.client_values(0, 1), [Some(10), None, None, None]);
    assert_eq!(town.client_values(0, 2), [Some(20), None, Some(22), None]);
    for (client, _, mirror) in &town.people {
        assert_eq!(
            compare_mirror_exactly(town.app.world(), *client, mirror),
            Ok(())
        );
    }
    // Two people of different quarters trade, and from then on receive each other's attributes.
    for nth in [0, 1] {
        let entity = town.people[nth].1;
        town.app.world_mut().entity_mut(entity).insert(Trade(7));
    }
    town.run_until_idle();
    assert_eq!(town.client_values(0, 1), [Some(10), Some(11), None, None]);
    assert_eq!(
        town.client_values(1, 2),
        [Some(20), Some(21), None, Some(23)]
    );
    assert_eq!(town.client_values(2, 1), [None, None, Some(12), None]);
    for (client, _, mirror) in &town.people {
        assert_eq!(
            compare_mirror_exactly(town.app.world(), *client, mirror),
            Ok(())
        );
    }
}
