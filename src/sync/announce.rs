//! One-time messages: damage, chat, a spell. Encoded once, sent to the clients concerned, not stored.

use glam::Vec2;

use crate::memory::MemoryUse;
use crate::outbox::MessageSpan;

/// An announcement as clients of a scene may get it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResolvedAnnouncement {
    /// The message, in the shared bytes.
    pub span: MessageSpan,
    /// Whom it is about: number and generation. Who does not know it yet is told after its snapshot.
    pub about: Option<(u32, u32)>,
    /// Whether it must not be lost.
    pub reliable: bool,
    /// When it is of no use any more.
    pub expires_tick: u64,
    /// Its place among the announcements of its tick.
    pub index: u32,
}

/// The announcements of a scene in a tick.
#[derive(Clone, Debug, Default, MemoryUse)]
pub struct Announcements {
    /// To those who see an object, by its id; ascending.
    viewers: Vec<(u32, ResolvedAnnouncement)>,
    /// To those near a place: where, and the radius squared.
    near: Vec<(Vec2, f32, ResolvedAnnouncement)>,
    /// To all in the scene.
    all: Vec<ResolvedAnnouncement>,
}

impl Announcements {
    /// Forgets the last tick's.
    pub fn clear(&mut self) {
        self.viewers.clear();
        self.near.clear();
        self.all.clear();
    }

    /// To all who see an object, and to the client that controls it.
    pub fn add_to_viewers(&mut self, of: u32, announced: ResolvedAnnouncement) {
        self.viewers.push((of, announced));
    }

    /// To all whose own object is near a place.
    pub fn add_near(&mut self, at: Vec2, radius_m: f32, announced: ResolvedAnnouncement) {
        self.near.push((at, radius_m * radius_m, announced));
    }

    /// To all.
    pub fn add_to_all(&mut self, announced: ResolvedAnnouncement) {
        self.all.push(announced);
    }

    /// Call it after the last one. O(n log n).
    pub fn sort(&mut self) {
        // Stable: those about one object stay in their order.
        self.viewers.sort_by_key(|&(of, _)| of);
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.viewers.is_empty() && self.near.is_empty() && self.all.is_empty()
    }

    /// Those to all who see this object.
    pub fn for_object(&self, id: u32) -> impl Iterator<Item = ResolvedAnnouncement> {
        let start = self.viewers.partition_point(|&(of, _)| of < id);
        let same = self.viewers[start..].iter();
        same.take_while(move |&&(of, _)| of == id)
            .map(|&(_, announced)| announced)
    }

    /// Those to a client whose own object is here.
    pub fn for_position(&self, own: Vec2) -> impl Iterator<Item = ResolvedAnnouncement> {
        let near = self.near.iter();
        let near = near.filter(move |(at, radius2, _)| at.distance_squared(own) <= *radius2);
        let near = near.map(|&(.., announced)| announced);
        self.all.iter().copied().chain(near)
    }
}
