//! Audiences: which clients receive an attribute. The relation of a client to an object is defined only here.

use std::fmt;

use crate::sync::scene_messages::SceneMessages;

/// The receivers of an attribute: any of these. The client that controls an object belongs to all its audiences.
///
/// There can be up to [`AUDIENCES_MAX`](crate::sync::AUDIENCES_MAX) custom ones: see
/// [`AudienceAppExt`](crate::sync::AudienceAppExt).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Audience(pub(super) u16);

impl Audience {
    /// The client that controls the object.
    pub const OWNER: Self = Self(1);
    /// Clients of its party, wherever they are: also those that do not see it, those in other scenes, and those of members on other nodes
    /// ([`ForeignMembers`](crate::sync::ForeignMembers)).
    pub const PARTY: Self = Self(1 << 1);
    /// Clients of its team that see it.
    pub const TEAM: Self = Self(1 << 2);
    /// Clients of its guild that see it.
    pub const GUILD: Self = Self(1 << 3);
    /// All clients that see it.
    pub const VIEWERS: Self = Self(1 << 4);
    /// All clients whose own object is in its scene, whether they see it or not. The scene's entity itself also has attributes of
    /// this audience: weather, gates, scores.
    pub const SCENE: Self = Self(1 << 5);

    /// The number of built-in audiences.
    pub(super) const BUILT_IN_COUNT: usize = 6;

    /// A custom audience, by the order of registration.
    pub(super) const fn custom(nth: usize) -> Self {
        Self(1 << (Self::BUILT_IN_COUNT + nth))
    }

    /// The union of two audiences.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Debug for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::OWNER, "owner"),
            (Self::PARTY, "party"),
            (Self::TEAM, "team"),
            (Self::GUILD, "guild"),
            (Self::VIEWERS, "viewers"),
            (Self::SCENE, "scene"),
            (Self::custom(0), "registered 0"),
            (Self::custom(1), "registered 1"),
            (Self::custom(2), "registered 2"),
            (Self::custom(3), "registered 3"),
        ];
        let of = names.iter().filter(|(bit, _)| self.contains(*bit));
        f.debug_set().entries(of.map(|(_, name)| name)).finish()
    }
}

/// The relation of the client that controls the object `own` to another object that it sees.
pub(super) fn relation(records: &SceneMessages, own: u32, other: u32) -> Audience {
    let (mine, theirs) = (records.affiliation(own), records.affiliation(other));
    let mut relation = Audience::VIEWERS.or(Audience::SCENE);
    // In the order of an affiliation.
    let audiences = [Audience::TEAM, Audience::PARTY, Audience::GUILD];
    for ((mine, theirs), audience) in mine.into_iter().zip(theirs).zip(audiences) {
        if mine != 0 && mine == theirs {
            relation = relation.or(audience);
        }
    }
    let (mine, theirs) = (records.memberships(own), records.memberships(other));
    for (nth, (mine, theirs)) in mine.into_iter().zip(theirs).enumerate() {
        if mine.subscribes_to(theirs) {
            relation = relation.or(Audience::custom(nth));
        }
    }
    relation
}
