//! One-time messages: damage, chat, a spell. Encoded once, sent to the clients concerned, not stored.

use glam::Vec2;

use crate::memory::MemoryUse;
use crate::outbox::MessageSpan;

/// An announcement with its receivers resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolvedAnnouncement {
    /// The position of the message in the shared bytes.
    pub span: MessageSpan,
    /// The object concerned: id and generation. A client that does not know it yet receives the message after its snapshot.
    pub about: Option<(u32, u32)>,
    /// Whether it is sent reliably.
    pub reliable: bool,
    /// The tick after which it is dropped.
    pub expires_tick: u64,
    /// Its index among the announcements of its tick.
    pub index: u32,
}

/// The announcements of a scene in a tick.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Announcements {
    /// For the viewers of an object, by its id; ascending.
    viewers: Vec<(u32, ResolvedAnnouncement)>,
    /// For clients near a position: the position, and the radius squared.
    near: Vec<(Vec2, f32, ResolvedAnnouncement)>,
    /// For all clients in the scene.
    all: Vec<ResolvedAnnouncement>,
}

impl Announcements {
    /// Removes those of the last tick.
    pub fn clear(&mut self) {
        self.viewers.clear();
        self.near.clear();
        self.all.clear();
    }

    /// Adds one for all viewers of an object and the client that controls it.
    pub fn add_to_viewers(&mut self, of: u32, announced: ResolvedAnnouncement) {
        self.viewers.push((of, announced));
    }

    /// Adds one for all clients whose own object is near a position.
    pub fn add_near(&mut self, at: Vec2, radius_m: f32, announced: ResolvedAnnouncement) {
        self.near.push((at, radius_m * radius_m, announced));
    }

    /// Adds one for all clients.
    pub fn add_to_all(&mut self, announced: ResolvedAnnouncement) {
        self.all.push(announced);
    }

    /// Call this after the last addition. O(n log n).
    pub fn sort(&mut self) {
        // Stable: announcements about one object keep their order.
        self.viewers.sort_by_key(|&(of, _)| of);
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.viewers.is_empty() && self.near.is_empty() && self.all.is_empty()
    }

    /// The announcements for the viewers of this object.
    pub fn for_object(&self, id: u32) -> impl Iterator<Item = ResolvedAnnouncement> {
        let start = self.viewers.partition_point(|&(of, _)| of < id);
        let same = self.viewers[start..].iter();
        same.take_while(move |&&(of, _)| of == id)
            .map(|&(_, announced)| announced)
    }

    /// The announcements for a client whose own object is at this position.
    pub fn for_position(&self, own: Vec2) -> impl Iterator<Item = ResolvedAnnouncement> {
        let near = self.near.iter();
        let near = near.filter(move |(at, radius2, _)| at.distance_squared(own) <= *radius2);
        let near = near.map(|&(.., announced)| announced);
        self.all.iter().copied().chain(near)
    }
}
