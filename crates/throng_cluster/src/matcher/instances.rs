//! The matches of a node.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::NodeRun;
use crate::request::{MatchEntry, MatchId, MatchRequest};

/// A change of a match that waits to be written.
#[derive(Clone, Debug)]
pub(super) enum InstanceWrite {
    Ready,
    End(Vec<u8>),
    Abort,
}

/// The matches of a node, and their changes that wait to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchInstances {
    /// The time at which a match that is over is forgotten, so that a late list does not open it again; `None`: it is not over.
    known: BTreeMap<MatchId, Option<u64>>,
    writes: VecDeque<(MatchId, InstanceWrite)>,
}

impl MatchInstances {
    /// Adds the matches that the store lists. Returns the new ones.
    pub fn on_list(&mut self, now_ms: u64, entries: Vec<MatchEntry>) -> Vec<MatchEntry> {
        self.known
            .retain(|_, until_ms| until_ms.is_none_or(|until_ms| now_ms < until_ms));
        let entries = entries.into_iter();
        let new = entries.filter(|entry| !self.known.contains_key(&entry.id));
        let new: Vec<MatchEntry> = new.collect();
        self.known.extend(new.iter().map(|entry| (entry.id, None)));
        new
    }

    /// Queues a change of a match that is not over. `false` for others.
    pub fn write(&mut self, id: MatchId, write: InstanceWrite) -> bool {
        let is_open = self.known.get(&id) == Some(&None);
        let is_ending = |(of, write): &(MatchId, InstanceWrite)| {
            *of == id && !matches!(write, InstanceWrite::Ready)
        };
        if !is_open || self.writes.iter().any(is_ending) {
            return false;
        }
        self.writes.push_back((id, write));
        true
    }

    /// The request for the next change.
    pub fn next_request(&self, run: NodeRun) -> Option<MatchRequest> {
        let (id, write) = self.writes.front()?;
        let id = *id;
        Some(match write {
            InstanceWrite::Ready => MatchRequest::MatchReady { run, id },
            InstanceWrite::Abort => MatchRequest::AbortMatch { run, id },
            InstanceWrite::End(result) => {
                let result = result.clone();
                MatchRequest::EndMatch { run, id, result }
            }
        })
    }

    /// Handles that the next change was written. Returns the match if it is over.
    pub fn on_written(&mut self, known_until_ms: u64) -> Option<MatchId> {
        let (id, write) = self.writes.pop_front()?;
        if matches!(write, InstanceWrite::Ready) {
            return None;
        }
        self.known.insert(id, Some(known_until_ms));
        Some(id)
    }

    /// Handles that the next change was refused because the match is already over. Returns the match.
    pub fn on_refused(&mut self, known_until_ms: u64) -> Option<MatchId> {
        let (id, _) = self.writes.pop_front()?;
        self.writes.retain(|(of, _)| *of != id);
        self.known.insert(id, Some(known_until_ms));
        Some(id)
    }

    /// Forgets all matches. Returns those that were not over.
    pub fn clear(&mut self) -> Vec<MatchId> {
        self.writes.clear();
        let known = std::mem::take(&mut self.known).into_iter();
        known
            .filter_map(|(id, until_ms)| until_ms.is_none().then_some(id))
            .collect()
    }

    /// The matches that are not over, in ascending order.
    pub fn open(&self) -> impl Iterator<Item = MatchId> {
        let known = self.known.iter().filter(|(_, until_ms)| until_ms.is_none());
        known.map(|(id, _)| *id)
    }
}
