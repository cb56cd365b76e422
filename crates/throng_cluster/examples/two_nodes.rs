//! Two nodes in one process: a player with 3 gold goes from one app to the other. Watch which app has it.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::thread;
use std::time::Duration;

use bevy_app::{App, FixedMain};
use bevy_ecs::prelude::*;
use throng_cluster::{
    BusPeer, ClusterKey, ClusterPlayers, ClusterPlugin, ClusterRecord, ClusterStore,
    DriverSettings, DriverStartError, LocalBus, MessageBus, NodeDriver, PlayerHooks, PlayerMove,
    SharedRows,
};
use throng_core::clock::Stopwatch;
use throng_core::ids::PlayerId;

#[derive(Component, Debug)]
struct Gold(u8);

struct Game;

impl PlayerHooks for Game {
    fn on_collect(&self, world: &World, player: Entity) -> Vec<u8> {
        world
            .get::<Gold>(player)
            .map_or_else(Vec::new, |gold| vec![gold.0])
    }

    fn on_receive(&self, world: &mut World, _: PlayerId, record: &ClusterRecord) -> Entity {
        // A new player has no bytes.
        let gold = record.bytes.first().copied().unwrap_or(3);
        world.spawn(Gold(gold)).id()
    }
}

fn node(name: &str, rows: &SharedRows, bus: &LocalBus) -> Result<App, DriverStartError> {
    let open = || Box::new(rows.clone()) as Box<dyn ClusterStore>;
    let driver = NodeDriver::start(&DriverSettings::new(name), open, |run| {
        let own = BusPeer::Node(run.node);
        let transport = Box::new(bus.join(own));
        Ok(MessageBus::new(
            transport,
            ClusterKey::new(&[7; 32]),
            own,
            run.run,
        ))
    })?;
    let mut app = App::new();
    app.add_plugins(ClusterPlugin::new(Game));
    app.world_mut()
        .resource_mut::<ClusterPlayers>()
        .open(driver);
    Ok(app)
}

fn main() -> Result<(), DriverStartError> {
    let (rows, bus, clock) = (
        SharedRows::default(),
        LocalBus::default(),
        Stopwatch::start(),
    );
    let mut apps = [node("n1", &rows, &bus)?, node("n2", &rows, &bus)?];
    let player = PlayerId(7);
    apps[0].world().resource::<ClusterPlayers>().log_in(player);
    for tick in 0..100 {
        rows.set_now_ms(clock.elapsed().as_millis() as u64);
        apps.iter_mut()
            .for_each(|app| app.world_mut().run_schedule(FixedMain));
        if tick == 50 {
            let to = "n2".to_owned();
            apps[0].world_mut().write_message(PlayerMove { player, to });
        }
        if tick % 10 == 0 || (50..55).contains(&tick) {
            let gold = apps.each_ref().map(|app| {
                let entity = app.world().resource::<ClusterPlayers>().entity(player);
                entity.and_then(|entity| app.world().get::<Gold>(entity))
            });
            println!("tick {tick:2}: n1 has {:?}, n2 has {:?}", gold[0], gold[1]);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
