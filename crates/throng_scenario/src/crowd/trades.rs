//! Synthetic players that persist and trade: coins and items change owners, and none may be duplicated or lost.
//!
//! Every player starts with [`START_COINS`] coins and [`START_ITEMS`] items, each with a unique name that contains its first
//! owner. The expected content of a store is therefore known: the sum of all coins, and each item exactly once, with any owner.

use std::collections::BTreeMap;

use bevy_app::{App, FixedUpdate};
use bevy_ecs::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::crowds::{CrowdMember, Crowds};
use super::plugin::{CrowdPlugin, CrowdSystems};
use throng::memory::{MemoryAppExt, MemoryUse};
use throng::sim::{HashAppExt, RandomStreams, SimSystems, StateHasher};
use throng::store::{
    AtomicSaveRequest, PlayerLoaded, PlayerRecord, PlayerStore, PlayerStorePlugin,
};
use throng::sync::{AttributeSpec, Audience, ReplicateAppExt};
use throng::wire::{AttributeValue, Encoding};
use throng::world::{ObjectHashAppExt, PlayerId, Players, StateHashed};

/// Coins with which a player starts.
pub const START_COINS: u32 = 100;

/// Items with which a player starts.
pub const START_ITEMS: u32 = 2;

/// Maximum number of items of a player.
const ITEMS_MAX: usize = 8;

/// Maximum number of trades per tick.
const TRADES_PER_TICK: usize = 8;

/// Maximum number of coins per trade.
const PRICE_MAX: u32 = 20;

/// The wire and store numbers of the attributes.
const COINS_ID: u16 = 900;
const ITEMS_ID: u16 = 901;

const COINS_ENCODING: Encoding = Encoding::Varint;
const ITEMS_ENCODING: Encoding = Encoding::Bytes { max: 200 };

/// The coins and items of a player.
///
/// ```
/// use throng::prelude::PlayerId;
/// use throng_scenario::crowd::Inventory;
///
/// let inventory = Inventory::starting(PlayerId(10));
/// assert_eq!(inventory.items[0], "a.0"); // the first item of player 10, in hexadecimal
/// ```
#[derive(Component, Clone, Debug, PartialEq, Eq, MemoryUse)]
pub struct Inventory {
    /// Its coins.
    pub coins: u32,
    /// Its items, each as the id of its first owner in hexadecimal, a dot, and its index among that owner's items.
    #[memory(each)]
    pub items: Vec<String>,
}

impl Inventory {
    /// The inventory of a player without a record.
    #[must_use]
    pub fn starting(player: PlayerId) -> Self {
        let item = |nth| format!("{:x}.{nth}", player.0);
        Self {
            coins: START_COINS,
            items: (0..START_ITEMS).map(item).collect(),
        }
    }

    /// The inventory in a player's record; the starting inventory if the record is new.
    #[must_use]
    pub fn from_record(record: &PlayerRecord) -> Self {
        let coins = record.count(COINS_ID, COINS_ENCODING);
        let items = record.value(ITEMS_ID, ITEMS_ENCODING);
        let (Some(coins), Some(AttributeValue::Bytes(items))) = (coins, items) else {
            return Self::starting(record.player);
        };
        let items = String::from_utf8_lossy(&items);
        Self {
            coins: u32::try_from(coins).unwrap_or(u32::MAX),
            items: items.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

impl StateHashed for Inventory {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.coins));
        hasher.write_bytes(self.items.join(" ").as_bytes());
    }
}

/// Synthetic players trade with each other, and their inventories persist. Adds [`CrowdPlugin`] and [`PlayerStorePlugin`] when they
/// are missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct TradePlugin;

throng::sim::sim_plugin!(TradePlugin, (CrowdPlugin, PlayerStorePlugin));

impl TradePlugin {
    fn add_to(app: &mut App) {
        let spec = |name, id, encoding| {
            let spec = AttributeSpec::new(name, id, encoding);
            spec.to(Audience::OWNER).persistent()
        };
        let coins = spec("coins", COINS_ID, COINS_ENCODING);
        let items = spec("wares", ITEMS_ID, ITEMS_ENCODING);
        app.replicate_field(coins, |owner: &Inventory| owner.coins)
            .replicate_field(items, |owner: &Inventory| {
                AttributeValue::from(owner.items.join(" ").as_str())
            })
            .init_resource::<DetachedInventories>()
            .count_memory::<DetachedInventories>("crowd")
            .add_observer(store_inventory)
            .hash_component::<Inventory>("belongings")
            .hash_part("belongings_left", |world, hasher| {
                for (player, left) in &world.resource::<DetachedInventories>().0 {
                    hasher.write_u64(player.0);
                    left.hash(hasher);
                }
            })
            .add_systems(
                FixedUpdate,
                (insert_inventories, trade)
                    .chain()
                    .after(CrowdSystems)
                    .in_set(TradeSystems)
                    .in_set(SimSystems::Think),
            );
    }
}

/// The systems of trades in `Think`; the first cues of scripts run before them.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TradeSystems;

/// The inventories of online players without an object, such as spectators, until they get one.
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
struct DetachedInventories(#[memory(each_value)] BTreeMap<PlayerId, Inventory>);

/// Stores the inventory of a player whose object is removed, for its next object.
fn store_inventory(
    gone: On<Remove<Inventory>>,
    owners: Query<(&PlayerId, &Inventory)>,
    store: Res<PlayerStore>,
    mut left: ResMut<DetachedInventories>,
) {
    if let Ok((&player, inventory)) = owners.get(gone.entity)
        && store.is_live(player)
    {
        left.0.insert(player, inventory.clone());
    }
}

/// Inserts inventories into objects of players: from the record of a loaded player, or as stored when its last object was removed.
fn insert_inventories(
    mut loaded: MessageReader<PlayerLoaded>,
    (players, store): (Res<Players>, Res<PlayerStore>),
    mut left: ResMut<DetachedInventories>,
    mut commands: Commands,
) {
    // Drop the inventories of players that left; their records are newer.
    left.0.retain(|&player, _| store.is_live(player));
    for PlayerLoaded { record, .. } in loaded.read() {
        left.0.insert(record.player, Inventory::from_record(record));
    }
    left.0.retain(|&player, inventory| {
        let Some(entity) = players.entity(player) else {
            return true;
        };
        commands.entity(entity).try_insert(inventory.clone());
        false
    });
}

/// Lets random pairs of players trade, up to 8 times per tick.
fn trade(
    mut owners: Query<(Entity, &PlayerId, &mut Inventory), With<CrowdMember>>,
    mut transfers: MessageWriter<AtomicSaveRequest>,
    (crowds, store): (Res<Crowds>, Res<PlayerStore>),
    mut streams: ResMut<RandomStreams>,
) {
    if crowds.is_halted() {
        return;
    }
    let traders = owners.iter().map(|(entity, &player, _)| (player, entity));
    let mut traders: Vec<(PlayerId, Entity)> = traders
        .filter(|&(player, _)| store.is_live(player))
        .collect();
    if traders.len() < 2 {
        return;
    }
    traders.sort_unstable();
    let random = streams.stream("trades");
    for _ in 0..TRADES_PER_TICK {
        let mut pick = || traders[random.random_range(0..traders.len())];
        let (one, other) = (pick(), pick());
        let Ok([(.., mut giver), (.., mut taker)]) = owners.get_many_mut([one.1, other.1]) else {
            continue;
        };
        trade_between(&mut giver, &mut taker, random);
        let players = [one.0, other.0];
        transfers.write(AtomicSaveRequest { players });
    }
}

/// One player gives coins, and perhaps an item.
fn trade_between(giver: &mut Inventory, taker: &mut Inventory, random: &mut Pcg64Mcg) {
    // A value written into the store by hand may exceed the limit.
    let room = u32::MAX - taker.coins;
    let coins = random
        .random_range(1..=PRICE_MAX)
        .min(giver.coins)
        .min(room);
    giver.coins -= coins;
    taker.coins += coins;
    if random.random_bool(0.5) && !giver.items.is_empty() && taker.items.len() < ITEMS_MAX {
        let nth = random.random_range(0..giver.items.len());
        taker.items.push(giver.items.swap_remove(nth));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;
    use crate::scenario::{LoadedScenario, RunOptions, ScenarioRun};
    use throng::store::{MemoryDisk, PlayerStoreSettings, StoreReplyMode};

    #[test]
    fn trades_conserve_coins_and_items_and_fit_their_encoding() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let players = [1, u64::from(u32::MAX) * 2, 3, 4].map(PlayerId);
        let mut owners = players.map(Inventory::starting);
        for _ in 0..10_000 {
            let giver = random.random_range(0..4);
            let taker = (giver + random.random_range(1..4)) % 4;
            let [giver, taker] = owners.get_disjoint_mut([giver, taker]).unwrap();
            trade_between(giver, taker, &mut random);
            let value = AttributeValue::from(taker.items.join(" ").as_str());
            assert!(ITEMS_ENCODING.fits(&value) && taker.items.len() <= ITEMS_MAX);
        }
        let coins: u32 = owners.iter().map(|owner| owner.coins).sum();
        let mut items: Vec<&String> = owners.iter().flat_map(|owner| &owner.items).collect();
        items.sort_unstable();
        items.dedup();
        assert_eq!(
            (coins, items.len()),
            (4 * START_COINS, 4 * START_ITEMS as usize)
        );
    }

    #[test]
    fn trades_respect_the_item_limit() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut giver = Inventory::starting(PlayerId(1));
        let mut taker = Inventory::starting(PlayerId(2));
        giver.items = (0..20).map(|nth| format!("item{nth}")).collect();
        for _ in 0..200 {
            trade_between(&mut giver, &mut taker, &mut random);
        }
        assert_eq!((taker.items.len(), ITEMS_MAX), (8, 8));
        assert_eq!(giver.items.len(), 20 + START_ITEMS as usize - 8);
    }

    /// Players who log in and out, and watch others: while they watch they have no object.
    const MARKET: &str = r#"Scenario(name: "market", duration_s: 1000,
        scenes: [Scene(name: "a", map: Generate(Random(width_tiles: 60, height_tiles: 60, fill: 0)))],
        crowds: [
            Crowd(tag: "people", kind: "player", count: 40, churn_per_s: 10, behaviour: Wander(radius_m: 5)),
            Crowd(tag: "dogs", kind: "npc", count: 4, behaviour: Wander(radius_m: 5)),
        ],
        script: [
            Every(t_s: 0.7, run: Spectate(tag: "people", count: 9, follow: "dogs")),
            Every(t_s: 0.7, from_s: 1, run: Release(tag: "people", count: 7)),
        ])"#;

    /// What every player had when it was last here, and how often each case occurred.
    #[derive(Resource, Default)]
    struct TradeAudit {
        inventories: BTreeMap<PlayerId, Inventory>,
        live: BTreeSet<PlayerId>,
        detached: usize,
        departures: usize,
        returns: usize,
    }

    /// After each tick: every live player has one inventory, on its object or detached; a player who left has none; and no coin or item
    /// was doubled or lost by leaving, watching or returning.
    fn audit_inventories(
        owners: Query<(&PlayerId, &Inventory)>,
        (left, directory): (Res<DetachedInventories>, Res<PlayerStore>),
        mut audit: ResMut<TradeAudit>,
    ) {
        let audit = &mut *audit;
        let attached = owners
            .iter()
            .map(|(&player, inventory)| (player, inventory));
        let detached = left
            .0
            .iter()
            .map(|(&player, inventory)| (player, inventory));
        let mut held = BTreeSet::new();
        for (player, inventory) in attached.chain(detached) {
            if !directory.is_live(player) {
                // Its record is the only property that counts; what it left is removed within a tick.
                assert!(!left.0.contains_key(&player) || audit.live.contains(&player));
                continue;
            }
            assert!(held.insert(player), "{player:?} has two inventories");
            let is_new = !audit.live.contains(&player);
            if let Some(before) = audit.inventories.get(&player)
                && is_new
            {
                audit.returns += 1;
                // It may have traded in this tick already.
                let coins = before.coins.abs_diff(inventory.coins);
                assert!(coins <= PRICE_MAX * TRADES_PER_TICK as u32);
            }
            audit.inventories.insert(player, inventory.clone());
        }
        audit.detached += left.0.len();
        audit.departures += audit.live.difference(&held).count();
        audit.live = held;
        let count = audit.inventories.len() as u32;
        let coins: u32 = audit.inventories.values().map(|owner| owner.coins).sum();
        assert_eq!(coins, count * START_COINS);
        let items = audit.inventories.values().flat_map(|owner| &owner.items);
        let items: BTreeSet<&String> = items.collect();
        assert_eq!(items.len() as u32, count * START_ITEMS);
    }

    #[test]
    fn inventories_leave_and_return_with_their_players() {
        let loaded = LoadedScenario::from_text("market.ron", MARKET).unwrap();
        let options = RunOptions {
            ticks: Some(600),
            configure: vec![Box::new(|app| {
                app.add_plugins(TradePlugin).init_resource::<TradeAudit>();
                app.add_systems(FixedUpdate, audit_inventories.in_set(SimSystems::Last));
                app.insert_resource(PlayerStoreSettings {
                    reply_mode: StoreReplyMode::NextTick,
                    ..PlayerStoreSettings::default()
                });
                let mut directory = app.world_mut().resource_mut::<PlayerStore>();
                directory.open(MemoryDisk::default()).unwrap();
            })],
            ..RunOptions::default()
        };
        let mut run = ScenarioRun::new(loaded, options).unwrap();
        while run.step().unwrap() {}
        let audit = run.server().world().resource::<TradeAudit>();
        assert_eq!(audit.inventories.len(), 40);
        let counts = [audit.detached, audit.departures, audit.returns];
        assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
    }
}
