//! Memberships of an object in custom audiences.

/// The maximum number of custom audiences.
pub const AUDIENCES_MAX: usize = 4;

/// The membership of an object in one audience. A client receives an attribute of an object that it sees if its own object
/// `subscribes` to the circle that the other object `publishes` to.
///
/// Example: all members of a raid publish and subscribe to the raid's number; if only leaders may receive, the others only publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The circle whose subscribers receive attributes of this object; `None` for no one.
    pub publishes: Option<u32>,
    /// The circle whose attributes the client of this object receives; `None` for nothing.
    pub subscribes: Option<u32>,
}

impl Membership {
    /// No circle.
    pub const NONE: Self = Self {
        publishes: None,
        subscribes: None,
    };

    /// A circle in which all members receive from each other.
    #[must_use]
    pub const fn of(circle: u32) -> Self {
        Self {
            publishes: Some(circle),
            subscribes: Some(circle),
        }
    }

    /// Whether the client of an object with this membership receives from one with `other`.
    #[must_use]
    pub fn subscribes_to(self, other: Self) -> bool {
        self.subscribes.is_some() && self.subscribes == other.publishes
    }
}

/// The memberships of an object in all custom audiences, in the order of registration.
pub type Memberships = [Membership; AUDIENCES_MAX];
