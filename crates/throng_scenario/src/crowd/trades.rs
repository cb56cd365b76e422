//! Synthetic players that persist and trade: coins and items change owners, and none may be doubled or lost.
//!
//! Every player starts with [`START_COINS`] coins and [`START_ITEMS`] items, each with a unique name that contains its first
//! owner. So the expected content of a store is known: the coins of all its players, and exactly their items, with any owner
//! now.

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

/// The property of a player.
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
    /// The property of a player without a record.
    #[must_use]
    pub fn starting(player: PlayerId) -> Self {
        let ware = |nth| format!("{:x}.{nth}", player.0);
        Self {
            coins: START_COINS,
            items: (0..START_ITEMS).map(ware).collect(),
        }
    }

    /// The property of a player by its record; the starting property when the record is new.
    #[must_use]
    pub fn from_record(record: &PlayerRecord) -> Self {
        let coins = record.count(COINS_ID, COINS_ENCODING);
        let wares = record.value(ITEMS_ID, ITEMS_ENCODING);
        let (Some(coins), Some(AttributeValue::Bytes(wares))) = (coins, wares) else {
            return Self::starting(record.player);
        };
        let wares = String::from_utf8_lossy(&wares);
        Self {
            coins: u32::try_from(coins).unwrap_or(u32::MAX),
            items: wares.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

impl StateHashed for Inventory {
    fn hash(&self, hasher: &mut StateHasher) {
        hasher.write_u64(u64::from(self.coins));
        hasher.write_bytes(self.items.join(" ").as_bytes());
    }
}

/// Synthetic players trade with each other, and their property persists. Adds [`CrowdPlugin`] and [`PlayerStorePlugin`] when they
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
        let wares = spec("wares", ITEMS_ID, ITEMS_ENCODING);
        app.replicate_field(coins, |owner: &Inventory| owner.coins)
            .replicate_field(wares, |owner: &Inventory| {
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

/// The property of online players without an object, such as spectators, until they get one.
#[derive(Resource, Clone, Debug, Default, MemoryUse)]
struct DetachedInventories(#[memory(each_value)] BTreeMap<PlayerId, Inventory>);

/// Keeps the property of a player whose object is removed, for its next one.
fn store_inventory(
    gone: On<Remove<Inventory>>,
    owners: Query<(&PlayerId, &Inventory)>,
    directory: Res<PlayerStore>,
    mut left: ResMut<DetachedInventories>,
) {
    if let Ok((&player, belongings)) = owners.get(gone.entity)
        && directory.is_live(player)
    {
        left.0.insert(player, belongings.clone());
    }
}

/// Gives loaded players their property, and new objects the property of the old ones.
fn insert_inventories(
    mut loaded: MessageReader<PlayerLoaded>,
    (players, directory): (Res<Players>, Res<PlayerStore>),
    mut left: ResMut<DetachedInventories>,
    mut commands: Commands,
) {
    // The property kept for a player that left is older than its record.
    left.0.retain(|&player, _| directory.is_live(player));
    for PlayerLoaded { record, .. } in loaded.read() {
        left.0.insert(record.player, Inventory::from_record(record));
    }
    left.0.retain(|&player, belongings| {
        let Some(entity) = players.entity(player) else {
            return true;
        };
        commands.entity(entity).try_insert(belongings.clone());
        false
    });
}

/// Pairs of players trade.
fn trade(
    mut owners: Query<(Entity, &PlayerId, &mut Inventory), With<CrowdMember>>,
    mut transfers: MessageWriter<AtomicSaveRequest>,
    (crowds, directory): (Res<Crowds>, Res<PlayerStore>),
    mut streams: ResMut<RandomStreams>,
) {
    if crowds.is_halted() {
        return;
    }
    let here = owners.iter().map(|(entity, &player, _)| (player, entity));
    let mut here: Vec<(PlayerId, Entity)> = here
        .filter(|&(player, _)| directory.is_live(player))
        .collect();
    if here.len() < 2 {
        return;
    }
    here.sort_unstable();
    let random = streams.stream("trades");
    for _ in 0..TRADES_PER_TICK {
        let mut pick = || here[random.random_range(0..here.len())];
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
    use rand::SeedableRng;

    use super::*;

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
        let mut wares: Vec<&String> = owners.iter().flat_map(|owner| &owner.items).collect();
        wares.sort_unstable();
        wares.dedup();
        assert_eq!(
            (coins, wares.len()),
            (4 * START_COINS, 4 * START_ITEMS as usize)
        );
    }

    #[test]
    fn trades_fill_a_bag_and_no_more() {
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
}
