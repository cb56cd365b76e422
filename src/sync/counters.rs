//! Messages and bytes sent to clients, by kind.

/// Messages of one kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCount {
    /// How many messages were sent.
    pub messages: u64,
    /// The bytes of those messages, without the headers of packets.
    pub bytes: u64,
}

impl SentCount {
    /// Counts one message.
    pub const fn add_one(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }

    /// Adds another count.
    pub const fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// What clients were sent, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounters {
    /// Objects that came into sight, and what begins a scene.
    pub snapshots: SentCount,
    /// Objects that went out of sight.
    pub despawns: SentCount,
    /// Changed attributes of objects in sight.
    pub deltas: SentCount,
    /// What is told of objects that need not be in sight: parties, the scene.
    pub unseen: SentCount,
    /// Motions of objects in sight.
    pub motions: SentCount,
    /// Announcements that were sent.
    pub announcements: SentCount,
    /// Announcements that were dropped: too old by the time their object was known, never known at all, or too many.
    pub expired: u64,
    /// Motions that waited because of the budget, once a tick that they waited.
    pub deferred: u64,
}

impl SentCounters {
    /// All messages together.
    #[must_use]
    pub fn total(&self) -> SentCount {
        let mut total = SentCount::default();
        for count in [
            self.snapshots,
            self.despawns,
            self.deltas,
            self.unseen,
            self.motions,
            self.announcements,
        ] {
            total.add(count);
        }
        total
    }

    /// Adds another count.
    pub const fn add(&mut self, other: Self) {
        self.snapshots.add(other.snapshots);
        self.despawns.add(other.despawns);
        self.deltas.add(other.deltas);
        self.unseen.add(other.unseen);
        self.motions.add(other.motions);
        self.announcements.add(other.announcements);
        self.expired += other.expired;
        self.deferred += other.deferred;
    }
}
