//! Audiences: who learns an attribute. This is the one place where they are defined.

use std::fmt;

use crate::sync::records::Affiliation;

/// Who learns an attribute: any of these. The client that controls an object belongs to all audiences of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Audience(pub(super) u8);

impl Audience {
    /// The client that controls the object.
    pub const OWNER: Self = Self(1);
    /// Clients of its party, wherever they are: also those that do not see it, and those in other scenes.
    pub const PARTY: Self = Self(1 << 1);
    /// Clients of its team that see it.
    pub const TEAM: Self = Self(1 << 2);
    /// Clients of its guild that see it.
    pub const GUILD: Self = Self(1 << 3);
    /// Everybody who sees it.
    pub const VIEWERS: Self = Self(1 << 4);
    /// Everybody whose own object is in its scene, whether they see it or not. The scene's entity itself has attributes of
    /// this audience too: weather, gates, scores.
    pub const SCENE: Self = Self(1 << 5);
    /// Both of two.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn meets(self, other: Self) -> bool {
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
        ];
        let of = names.iter().filter(|(bit, _)| self.contains(*bit));
        f.debug_set().entries(of.map(|(_, name)| name)).finish()
    }
}

/// What a client is to an object that it sees, by whom its own belongs to.
pub(super) fn relation(own: Affiliation, other: Affiliation) -> Audience {
    let both = |nth: usize| own[nth] != 0 && own[nth] == other[nth];
    let mut relation = Audience::VIEWERS.or(Audience::SCENE);
    for (nth, audience) in [Audience::TEAM, Audience::PARTY, Audience::GUILD]
        .into_iter()
        .enumerate()
    {
        if both(nth) {
            relation = relation.or(audience);
        }
    }
    relation
}
