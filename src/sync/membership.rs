//! Memberships of an object in custom audiences.

/// The most audiences that can be registered beside those that there always are.
pub const AUDIENCES_MAX: usize = 4;

/// What an object is in one audience: of which circle it tells, and of which its client learns. A client learns an
/// attribute of an object that it sees when its own object `learns` of the very circle that the other one `tells`.
///
/// All members of a raid tell and learn of the raid's number; where only its leaders are to learn, the others tell alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The circle whose learners are told of this object; none tells nobody.
    pub publishes: Option<u32>,
    /// The circle of which the client that controls this object learns; none learns nothing.
    pub subscribes: Option<u32>,
}

impl Membership {
    /// In no circle.
    pub const NONE: Self = Self {
        publishes: None,
        subscribes: None,
    };

    /// In a circle in which all learn of each other.
    #[must_use]
    pub const fn of(circle: u32) -> Self {
        Self {
            publishes: Some(circle),
            subscribes: Some(circle),
        }
    }

    /// Whether the client of an object that is this learns of one that is `other`.
    #[must_use]
    pub fn subscribes_to(self, other: Self) -> bool {
        self.subscribes.is_some() && self.subscribes == other.publishes
    }
}

/// What an object is in each audience of an embedder's own, in the order in which they were registered.
pub type Memberships = [Membership; AUDIENCES_MAX];
