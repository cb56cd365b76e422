//! The names that the parts of a scenario may refer to.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::behaviours::Behaviours;
use crate::scenario::schema::{Action, Scenario, ScenarioCrowd};
use throng::world::{ObjectCategory, ObjectKinds};

/// The names that parts of a scenario may use.
pub(in crate::scenario) struct Names<'a> {
    pub(super) kinds: BTreeSet<&'a str>,
    /// Scenes that are open from the start.
    pub(super) scenes: BTreeSet<&'a str>,
    /// Scenes that are open at some time.
    pub(super) all_scenes: BTreeSet<&'a str>,
    pub tags: BTreeSet<&'a str>,
    /// The kinds of class `Player`.
    pub(super) player_kinds: BTreeSet<&'a str>,
    /// The tags of crowds of players.
    pub player_tags: BTreeSet<&'a str>,
    pub(super) modes: BTreeSet<&'a str>,
    pub(super) attributes: BTreeSet<&'a str>,
    /// The ranges of the scenario's own attributes.
    pub(super) ranges: BTreeMap<&'a str, (i64, i64)>,
    /// The kinds as in the run, with their ids.
    pub(super) object_kinds: &'a ObjectKinds,
    pub(super) behaviours: &'a Behaviours,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        object_kinds: &'a ObjectKinds,
        attributes: &[&'a str],
        behaviours: &'a Behaviours,
    ) -> Self {
        let scenes: BTreeSet<_> = scenario
            .scenes
            .iter()
            .map(|scene| scene.name.as_str())
            .collect();
        let mut all_scenes = scenes.clone();
        // A kind of the scenario replaces the built-in one of its name.
        let kinds = object_kinds.iter().chain(&scenario.kinds);
        let classes: BTreeMap<_, _> = kinds.map(|kind| (kind.name.as_str(), kind.class)).collect();
        let mut crowds: Vec<&ScenarioCrowd> = scenario.crowds.iter().collect();
        for cue in &scenario.script {
            match cue.action() {
                Action::Spawn(crowd) => crowds.push(crowd),
                Action::OpenScene(scene) => _ = all_scenes.insert(&scene.name),
                _ => {}
            }
        }
        let of_players = |crowd: &&&ScenarioCrowd| {
            classes.get(crowd.kind.as_str()) == Some(&ObjectCategory::Player)
        };
        let player_crowds = crowds.iter().filter(of_players);
        let player_tags = player_crowds.map(|crowd| crowd.tag.as_str()).collect();
        let mut tags: BTreeSet<_> = crowds.iter().map(|crowd| crowd.tag.as_str()).collect();
        tags.remove("");
        Self {
            player_kinds: classes
                .iter()
                .filter(|(_, class)| **class == ObjectCategory::Player)
                .map(|(name, _)| *name)
                .collect(),
            kinds: classes.into_keys().collect(),
            scenes,
            all_scenes,
            tags,
            player_tags,
            modes: scenario
                .queues
                .iter()
                .map(|queue| queue.mode.as_str())
                .collect(),
            attributes: attributes
                .iter()
                .copied()
                .chain(scenario.attributes.iter().map(|own| own.name.as_str()))
                .collect(),
            ranges: scenario
                .attributes
                .iter()
                .map(|own| (own.name.as_str(), own.bounds()))
                .collect(),
            object_kinds,
            behaviours,
        }
    }
}
