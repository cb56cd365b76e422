//! Who belongs to whom: players, teams, parties, guilds. The one source of truth.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use serde::{Deserialize, Serialize};

use super::WorldError;

/// How many players a party can have.
pub const PARTY_PLAYERS_MAX: usize = 5;

/// A player: persistent over sessions, scenes and servers. On the object that the player controls.
#[derive(
    Component, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[component(immutable, on_insert = player_came, on_discard = player_went)]
pub struct PlayerId(pub u64);

/// A side in a conflict. Inserting, replacing or removing it writes [`StandingChanged`].
#[derive(
    Component, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[component(immutable, on_insert = standing_changed, on_discard = standing_changed)]
pub struct TeamId(pub u32);

/// Up to five players that play together. Set through [`join_party`] and [`leave_party`].
#[derive(
    Component, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[component(immutable, on_insert = standing_changed, on_discard = standing_changed)]
pub struct PartyId(pub u32);

/// A lasting society of players.
#[derive(
    Component, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[component(immutable, on_insert = standing_changed, on_discard = standing_changed)]
pub struct GuildId(pub u32);

/// The team, party or guild of an entity changed.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingChanged {
    /// Whose.
    pub entity: Entity,
}

/// Which entity a player controls.
#[derive(Resource, Debug, Default)]
pub struct Players(BTreeMap<PlayerId, Entity>);

impl Players {
    /// The player's object. O(log players).
    #[must_use]
    pub fn entity(&self, player: PlayerId) -> Option<Entity> {
        self.0.get(&player).copied()
    }

    /// All players that have an object, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerId, Entity)> {
        self.0.iter().map(|(&player, &entity)| (player, entity))
    }
}

/// All parties and their members; the first member leads.
#[derive(Resource, Debug, Default)]
pub struct Parties {
    members: BTreeMap<PartyId, ArrayVec<PlayerId, PARTY_PLAYERS_MAX>>,
    party_of: BTreeMap<PlayerId, PartyId>,
    made: u32,
}

impl Parties {
    /// Makes a party without members; it ends when its last member leaves.
    pub fn make(&mut self) -> PartyId {
        // 0 stands for "no party" wherever standing is packed into plain words.
        self.made += 1;
        let id = PartyId(self.made);
        self.members.insert(id, ArrayVec::new());
        id
    }

    /// The members, the leader first.
    #[must_use]
    pub fn members(&self, party: PartyId) -> &[PlayerId] {
        self.members.get(&party).map_or(&[], ArrayVec::as_slice)
    }

    /// The party that a player is in.
    #[must_use]
    pub fn of(&self, player: PlayerId) -> Option<PartyId> {
        self.party_of.get(&player).copied()
    }

    /// All parties by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (PartyId, &[PlayerId])> {
        self.members
            .iter()
            .map(|(&party, members)| (party, members.as_slice()))
    }

    fn join(&mut self, party: PartyId, player: PlayerId) -> Result<(), WorldError> {
        let members = self
            .members
            .get_mut(&party)
            .ok_or(WorldError::NoSuchParty(party))?;
        if let Some(&other) = self.party_of.get(&player) {
            return Err(WorldError::InParty {
                player,
                party: other,
            });
        }
        members
            .try_push(player)
            .map_err(|_| WorldError::PartyFull(party))?;
        self.party_of.insert(player, party);
        Ok(())
    }

    fn leave(&mut self, player: PlayerId) -> Option<PartyId> {
        let party = self.party_of.remove(&player)?;
        let members = self.members.get_mut(&party)?;
        members.retain(|&mut member| member != player);
        if members.is_empty() {
            self.members.remove(&party);
        }
        Some(party)
    }
}

/// Adds a player to a party, and [`PartyId`] to the player's object if there is one.
///
/// # Errors
/// [`WorldError::NoSuchParty`], [`WorldError::PartyFull`], or [`WorldError::InParty`]; nothing is changed then.
pub fn join_party(world: &mut World, party: PartyId, player: PlayerId) -> Result<(), WorldError> {
    world
        .get_resource_or_init::<Parties>()
        .join(party, player)?;
    if let Some(entity) = world
        .get_resource::<Players>()
        .and_then(|players| players.entity(player))
    {
        world.entity_mut(entity).insert(party);
    }
    Ok(())
}

/// Takes a player out of the party it is in, and gives that party; `None` when it is in none.
pub fn leave_party(world: &mut World, player: PlayerId) -> Option<PartyId> {
    let party = world.get_resource_mut::<Parties>()?.leave(player)?;
    if let Some(entity) = world
        .get_resource::<Players>()
        .and_then(|players| players.entity(player))
    {
        world.entity_mut(entity).remove::<PartyId>();
    }
    Some(party)
}

fn standing_changed(mut world: DeferredWorld, context: HookContext) {
    world.write_message(StandingChanged {
        entity: context.entity,
    });
}

/// Enters a player's object on the list, with the party the player is in already.
fn player_came(mut world: DeferredWorld, context: HookContext) {
    let Some(&player) = world.get::<PlayerId>(context.entity) else {
        return;
    };
    if let Some(mut players) = world.get_resource_mut::<Players>() {
        players.0.insert(player, context.entity);
    }
    if let Some(party) = world
        .get_resource::<Parties>()
        .and_then(|parties| parties.of(player))
    {
        world.commands().entity(context.entity).try_insert(party);
    }
}

fn player_went(mut world: DeferredWorld, context: HookContext) {
    let Some(&player) = world.get::<PlayerId>(context.entity) else {
        return;
    };
    if let Some(mut players) = world.get_resource_mut::<Players>()
        && players.entity(player) == Some(context.entity)
    {
        players.0.remove(&player);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_is_in_one_party_and_an_empty_party_ends() {
        let mut parties = Parties::default();
        let (a, b) = (parties.make(), parties.make());
        parties.join(a, PlayerId(1)).unwrap();
        assert_eq!(
            parties.join(b, PlayerId(1)),
            Err(WorldError::InParty {
                player: PlayerId(1),
                party: a
            })
        );
        assert_eq!(parties.leave(PlayerId(1)), Some(a));
        assert_eq!(parties.members(a), []);
        assert_eq!(
            parties.join(a, PlayerId(2)),
            Err(WorldError::NoSuchParty(a))
        );
        assert_eq!(parties.leave(PlayerId(1)), None);
    }

    #[test]
    fn the_sixth_player_is_refused() {
        let mut parties = Parties::default();
        let party = parties.make();
        (1..=5).for_each(|player| parties.join(party, PlayerId(player)).unwrap());
        assert_eq!(
            parties.join(party, PlayerId(6)),
            Err(WorldError::PartyFull(party))
        );
        assert_eq!(parties.of(PlayerId(6)), None);
    }
}
