//! A client's state as words, for the state hash.

use super::ClientState;

impl ClientState {
    /// Shows all of the state that reaches later ticks, as words; `known` gives the generation of the object that clients know by a
    /// number. O(links).
    pub fn digest(&self, known: impl Fn(u32) -> u32, word: &mut impl FnMut(u64)) {
        word(u64::from(self.client.0) << 8 | u64::from(self.epoch));
        word(self.credit as u64);
        let object = |id: u32, generation: u32| u64::from(id) << 32 | u64::from(generation);
        let told = self.told_own.unwrap_or_default();
        word(object(told.0, told.1));
        let (scene, id, generation) = self.own.unwrap_or_default();
        word(object(id, generation));
        word(u64::from(scene) << 2 | u64::from(self.begins) << 1 | u64::from(self.greeted));
        word((self.links.len() as u64) << 32 | self.waiting.len() as u64);
        for link in self.links.as_slice() {
            word(object(link.id, known(link.id)));
            word(
                u64::from(link.turns_missed()) << 24
                    | u64::from(link.tier().number()) << 16
                    | u64::from(link.variant.0) << 8
                    | u64::from(link.class),
            );
        }
        for waiting in &self.waiting {
            word(object(waiting.id, waiting.generation));
            word(u64::from(waiting.class));
        }
        word(self.held.len() as u64);
        for held in &self.held {
            word(held.announced.expires << 1 | u64::from(held.announced.reliable));
            let (id, generation) = held.announced.from.unwrap_or_default();
            word(object(id, generation));
            held.bytes.iter().for_each(|&byte| word(u64::from(byte)));
        }
        for &(id, generation) in &self.despawns {
            word(object(id, generation));
        }
        // Tokens are no state, so of notices there is but whether there are any.
        word(u64::from(self.has_notices()) << 1 | u64::from(self.is_away));
        word(u64::from(self.snapshots[0]) << 32 | u64::from(self.snapshots[1]));
        self.kept.digest(word);
        if let Some(missed) = &self.missed {
            missed
                .messages
                .bytes()
                .iter()
                .for_each(|&byte| word(u64::from(byte)));
        }
        self.remotes.digest(word);
        self.own_position.digest(word);
    }
}
