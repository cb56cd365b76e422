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

/// Messages sent to clients, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounters {
    /// Snapshots of objects that came into view, and messages that start a scene.
    pub snapshots: SentCount,
    /// Objects that went out of view.
    pub despawns: SentCount,
    /// Changed attributes of visible objects.
    pub deltas: SentCount,
    /// Messages about unseen objects: parties, the scene.
    pub unseen: SentCount,
    /// Motions of visible objects.
    pub motions: SentCount,
    /// Announcements.
    pub announcements: SentCount,
    /// Announcements that were dropped: expired before their object was known, object never known, or too many.
    pub expired: u64,
    /// Motions that waited because of the budget, counted once per tick.
    pub deferred: u64,
    /// Objects that clients had kept out of view and that were despawned there because the client kept too many.
    pub kept_evicted: u64,
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
        self.kept_evicted += other.kept_evicted;
    }
}
