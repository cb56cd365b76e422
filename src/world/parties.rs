//! Players, teams, parties and guilds, and the entities that belong to them. Other modules read affiliations only from here.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::*;
use bevy_ecs::world::DeferredWorld;
use throng_core::ids::{GuildId, PartyId, PlayerId, TeamId};
use tracing::warn;

use super::error::PartyError;
use super::membership::is_spawn_pending;
use crate::memory::MemoryUse;

/// The maximum number of players in a party.
pub const PARTY_PLAYERS_MAX: usize = 5;

/// The maximum number of parties at once, including parties without members; further ones are refused.
pub const PARTIES_MAX: usize = 1 << 20;

/// The team, party or guild of an entity changed.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// # use throng::prelude::*;
/// use throng::world::AffiliationChanged;
///
/// fn report(mut changed: MessageReader<AffiliationChanged>) {
///     for it in changed.read() {
///         println!("{} has another team, party or guild", it.entity);
///     }
/// }
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffiliationChanged {
    /// The entity whose affiliation changed; it may be despawned already.
    pub entity: Entity,
}

/// The object of each player.
#[derive(Resource, Debug, Default, MemoryUse)]
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

/// All parties and their members; the first member is the leader.
#[derive(Resource, Debug, Default, MemoryUse)]
pub struct Parties {
    members: BTreeMap<PartyId, ArrayVec<PlayerId, PARTY_PLAYERS_MAX>>,
    party_of: BTreeMap<PlayerId, PartyId>,
    /// The id of the newest party.
    last_id: u32,
    refused: u64,
}

impl Parties {
    /// Creates a party without members; it ends when its last member leaves. O(log parties).
    ///
    /// Ids are used again only after all others were used: four billion parties later.
    ///
    /// # Errors
    /// [`PartyError::TooMany`] at [`PARTIES_MAX`] parties, which is counted; nothing is changed then.
    pub fn create(&mut self) -> Result<PartyId, PartyError> {
        self.create_with_limit(PARTIES_MAX)
    }

    /// Parties that were refused because there were [`PARTIES_MAX`].
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn create_with_limit(&mut self, max: usize) -> Result<PartyId, PartyError> {
        if self.members.len() >= max {
            self.refused += 1;
            return Err(PartyError::TooMany { max });
        }
        // There are far more ids than parties, so a free one exists.
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            let id = PartyId(self.last_id);
            // 0 means "no party" where affiliations are packed into plain words.
            if self.last_id != 0 && !self.members.contains_key(&id) {
                self.members.insert(id, ArrayVec::new());
                return Ok(id);
            }
        }
    }

    /// The members, the leader first.
    #[must_use]
    pub fn members(&self, party: PartyId) -> &[PlayerId] {
        self.members.get(&party).map_or(&[], ArrayVec::as_slice)
    }

    /// The party that a player is in.
    #[must_use]
    pub fn party_of(&self, player: PlayerId) -> Option<PartyId> {
        self.party_of.get(&player).copied()
    }

    /// All parties by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (PartyId, &[PlayerId])> {
        self.members
            .iter()
            .map(|(&party, members)| (party, members.as_slice()))
    }

    /// Creates a party with an id that was given elsewhere, unless it exists.
    fn create_with_id(&mut self, party: PartyId) -> Result<(), PartyError> {
        if self.members.contains_key(&party) {
            return Ok(());
        }
        if self.members.len() >= PARTIES_MAX {
            self.refused += 1;
            return Err(PartyError::TooMany { max: PARTIES_MAX });
        }
        self.members.insert(party, ArrayVec::new());
        Ok(())
    }

    fn join(&mut self, party: PartyId, player: PlayerId) -> Result<(), PartyError> {
        let members = self
            .members
            .get_mut(&party)
            .ok_or(PartyError::NotFound(party))?;
        if let Some(&other) = self.party_of.get(&player) {
            return Err(PartyError::AlreadyMember {
                player,
                party: other,
            });
        }
        members
            .try_push(player)
            .map_err(|_| PartyError::Full(party))?;
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
/// [`PartyError::NotFound`], [`PartyError::Full`], or [`PartyError::AlreadyMember`]; nothing is changed then.
pub fn join_party(world: &mut World, party: PartyId, player: PlayerId) -> Result<(), PartyError> {
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

/// Removes a player from its party and returns that party; `None` without a party.
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

/// Sets all members of a party, the leader first. Creates the party if it does not exist; without members, it ends. Players that are in another
/// party leave that one. For parties that are kept elsewhere, such as those of a cluster: there, do not use [`Parties::create`], whose ids are
/// only unique in this app.
///
/// # Errors
/// [`PartyError::Full`] for more than [`PARTY_PLAYERS_MAX`] members, and [`PartyError::TooMany`] for a new party; nothing is changed then.
pub fn set_party_members(
    world: &mut World,
    party: PartyId,
    members: &[PlayerId],
) -> Result<(), PartyError> {
    if members.len() > PARTY_PLAYERS_MAX {
        return Err(PartyError::Full(party));
    }
    let mut parties = world.get_resource_or_init::<Parties>();
    let before = parties.members(party).to_vec();
    if before.is_empty() && !members.is_empty() {
        parties.create_with_id(party)?;
    }
    for player in before {
        if !members.contains(&player) {
            leave_party(world, player);
        }
    }
    for &player in members {
        let mut parties = world.resource_mut::<Parties>();
        if parties.party_of(player) != Some(party) {
            // It has ended if all its members before have left.
            parties.create_with_id(party)?;
            leave_party(world, player);
            join_party(world, party, player)?;
        }
    }
    let mut parties = world.resource_mut::<Parties>();
    if let Some(ordered) = parties.members.get_mut(&party) {
        ordered.sort_by_key(|player| members.iter().position(|member| member == player));
    }
    Ok(())
}

/// Tracks affiliations from now on, of every entity that gets a [`PlayerId`], a team, a party or a guild.
pub(super) fn register_affiliations(world: &mut World) {
    world.init_resource::<Players>();
    world.init_resource::<Parties>();
    world
        .register_component_hooks::<PlayerId>()
        .on_insert(on_player_inserted)
        .on_discard(on_player_discarded);
    register_affiliation_hooks::<TeamId>(world);
    register_affiliation_hooks::<PartyId>(world);
    register_affiliation_hooks::<GuildId>(world);
}

fn register_affiliation_hooks<T: Component>(world: &mut World) {
    world
        .register_component_hooks::<T>()
        .on_insert(affiliation_changed)
        .on_discard(affiliation_changed);
}

fn affiliation_changed(mut world: DeferredWorld, context: HookContext) {
    world.write_message(AffiliationChanged {
        entity: context.entity,
    });
}

/// Registers a player's object and gives it the player's party. An object whose spawn is pending is registered when it is
/// spawned.
fn on_player_inserted(mut world: DeferredWorld, context: HookContext) {
    let Some(&player) = world.get::<PlayerId>(context.entity) else {
        return;
    };
    if is_spawn_pending(&world, context.entity) {
        return;
    }
    if let Some(mut players) = world.get_resource_mut::<Players>() {
        let entity = context.entity;
        let before = players.0.insert(player, entity);
        if let Some(before) = before.filter(|&before| before != entity) {
            let player = player.0;
            warn!(player, %before, now = %entity, "player id on two objects: the newer object is used");
        }
    }
    if let Some(party) = world
        .get_resource::<Parties>()
        .and_then(|parties| parties.party_of(player))
    {
        world.commands().entity(context.entity).try_insert(party);
    }
}

fn on_player_discarded(mut world: DeferredWorld, context: HookContext) {
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
    fn player_is_in_one_party_and_an_empty_party_ends() {
        let mut parties = Parties::default();
        let (a, b) = (parties.create().unwrap(), parties.create().unwrap());
        parties.join(a, PlayerId(1)).unwrap();
        assert_eq!(
            parties.join(b, PlayerId(1)),
            Err(PartyError::AlreadyMember {
                player: PlayerId(1),
                party: a
            })
        );
        assert_eq!(parties.leave(PlayerId(1)), Some(a));
        assert_eq!(parties.members(a), []);
        assert_eq!(parties.join(a, PlayerId(2)), Err(PartyError::NotFound(a)));
        assert_eq!(parties.leave(PlayerId(1)), None);
    }

    #[test]
    fn parties_over_the_limit_are_refused_until_one_ends() {
        let mut parties = Parties::default();
        let first = parties.create_with_limit(2).unwrap();
        parties.create_with_limit(2).unwrap();
        assert_eq!(
            parties.create_with_limit(2),
            Err(PartyError::TooMany { max: 2 })
        );
        assert_eq!((parties.refused(), parties.iter().count()), (1, 2));
        parties.join(first, PlayerId(1)).unwrap();
        parties.leave(PlayerId(1));
        assert_eq!(parties.create_with_limit(2), Ok(PartyId(3)));
    }

    #[test]
    fn party_ids_wrap_to_the_first_free_one() {
        let mut parties = Parties::default();
        let first = parties.create().unwrap();
        parties.last_id = u32::MAX;
        assert_eq!((first, parties.create()), (PartyId(1), Ok(PartyId(2))));
    }

    #[test]
    fn members_that_are_set_replace_those_before() {
        let mut world = World::new();
        register_affiliations(&mut world);
        let entity = world.spawn(PlayerId(1)).id();
        let other = world.resource_mut::<Parties>().create().unwrap();
        join_party(&mut world, other, PlayerId(9)).unwrap();
        let party = PartyId(70);
        let mut set = |members: &[u64]| {
            let members: Vec<PlayerId> = members.iter().map(|player| PlayerId(*player)).collect();
            set_party_members(&mut world, party, &members).unwrap();
            let parties = world.resource::<Parties>();
            assert_eq!(parties.members(party), members);
            assert_eq!(
                parties.party_of.len(),
                members.len() + parties.members(other).len()
            );
            (
                world.get::<PartyId>(entity).copied(),
                parties.iter().count(),
            )
        };
        assert_eq!(set(&[1, 2, 3, 4, 5]), (Some(party), 2));
        // All at the limit are replaced, in another order.
        assert_eq!(set(&[8, 7, 6, 5, 4]), (None, 2));
        assert_eq!(set(&[4, 1, 9]), (Some(party), 1));
        assert_eq!(set(&[]), (None, 0));
        assert_eq!(set(&[]), (None, 0));
        let six = [1, 2, 3, 4, 5, 6].map(PlayerId);
        let full = set_party_members(&mut world, party, &six);
        assert_eq!(full, Err(PartyError::Full(party)));
    }

    #[test]
    fn sixth_party_member_is_refused() {
        let mut parties = Parties::default();
        let party = parties.create().unwrap();
        (1..=5).for_each(|player| parties.join(party, PlayerId(player)).unwrap());
        assert_eq!(
            parties.join(party, PlayerId(6)),
            Err(PartyError::Full(party))
        );
        assert_eq!(parties.party_of(PlayerId(6)), None);
    }
}
