//! A client's state as words, for the state hash.

use super::ClientState;

impl ClientState {
    /// Adds all of the state that affects later ticks to a hash, as words; `known` returns the generation of the object that clients
    /// know by an id. O(links).
    pub fn hash_state(&self, known: impl Fn(u32) -> u32, word: &mut impl FnMut(u64)) {
        word(u64::from(self.client.0) << 8 | u64::from(self.epoch));
        word(self.credit as u64);
        let object = |id: u32, generation: u32| u64::from(id) << 32 | u64::from(generation);
        let controlled = self.sent_controlled.unwrap_or_default();
        word(object(controlled.0, controlled.1));
        let (scene, id, generation) = self.controlled.unwrap_or_default();
        word(object(id, generation));
        word(
            u64::from(scene) << 2
                | u64::from(self.starts_scene) << 1
                | u64::from(self.is_hello_sent),
        );
        word((self.objects.len() as u64) << 32 | self.pending.len() as u64);
        for link in self.objects.as_slice() {
            word(object(link.id, known(link.id)));
            word(
                u64::from(link.turns_missed()) << 24
                    | u64::from(link.tier().number()) << 16
                    | u64::from(link.variant.0) << 8
                    | u64::from(link.class),
            );
        }
        for waiting in &self.pending {
            word(object(waiting.id, waiting.generation));
            word(u64::from(waiting.class));
        }
        word(self.pending_announcements.len() as u64);
        for held in &self.pending_announcements {
            word(held.announced.expires_tick << 1 | u64::from(held.announced.reliable));
            let (id, generation) = held.announced.about.unwrap_or_default();
            word(object(id, generation));
            held.bytes.iter().for_each(|&byte| word(u64::from(byte)));
        }
        for &(id, generation) in &self.despawns {
            word(object(id, generation));
        }
        // Tokens are not state, so only the existence of notices is hashed.
        word(u64::from(self.has_notices()) << 1 | u64::from(self.is_disconnected));
        word(u64::from(self.snapshot_totals[0]) << 32 | u64::from(self.snapshot_totals[1]));
        self.resume_buffer.hash_state(word);
        if let Some(missed) = &self.missed {
            missed
                .messages
                .bytes()
                .iter()
                .for_each(|&byte| word(u64::from(byte)));
        }
        if let Some(kept) = self.kept.as_deref() {
            kept.hash_state(word);
        }
        self.unseen.hash_state(word);
        self.own_position.hash_state(word);
    }
}
