//! Entries without effect: they are allowed, but probably a mistake.

use std::collections::BTreeMap;

use super::names::Names;
use super::object_kinds;
use crate::crowd::CrowdNetworkConditions;
use crate::scenario::behaviours::Behaviours;
use crate::scenario::schema::{Action, BehaviourSpec, Cue, Expectation, Scenario, ScenarioCrowd};
use crate::scenario::text::{ValidationError, ValuePath};
use throng::session::AdmissionClass;
use throng::world::ObjectCategory;

/// Returns a warning for each entry of a valid scenario without effect: cues after its end, settings of players for NPCs, network
/// conditions that apply to no client, counts above the number of objects that can exist, expectations that nothing can exercise.
pub(in crate::scenario) fn unused_entries(
    scenario: &Scenario,
    behaviours: &Behaviours,
) -> Vec<ValidationError> {
    let kinds = object_kinds(scenario);
    let names = Names::new(scenario, &kinds, &[], behaviours);
    let root = ValuePath::root();
    let mut problems = Vec::new();
    let is_player = |crowd: &ScenarioCrowd| {
        let kind = kinds.find(&crowd.kind).and_then(|id| kinds.get(id));
        kind.is_some_and(|kind| kind.class == ObjectCategory::Player)
    };
    for (place, crowd) in crowds(scenario) {
        if !is_player(crowd) {
            problems.extend(player_only_fields(&place, crowd));
        }
    }
    if has_no_share(&scenario.network) {
        let message =
            "expected a `share` above 0, found 0: these network conditions apply to no client";
        problems.push(ValidationError::new(root.field("network"), message));
    }
    let tag_counts = counts_by_tag(scenario);
    for (index, cue) in scenario.script.iter().enumerate() {
        let place = root.field("script").item(index);
        problems.extend(after_end(&place, cue, scenario));
        problems.extend(outside_range(&place, cue, &names));
        let action = cue.action();
        problems.extend(exceeds_crowd(
            &place.field("run"),
            action,
            &tag_counts,
            &names,
        ));
        if let Action::SetNetwork(network) = cue.action()
            && has_no_share(network)
        {
            let message =
                "expected a `share` above 0, found 0: these network conditions apply to no client";
            problems.push(ValidationError::new(place.field("run"), message));
        }
    }
    let has = ScenarioContents::new(scenario, is_player);
    for (index, expectation) in scenario.expect.iter().enumerate() {
        let place = root.field("expect").item(index);
        if let Some(why) = has.missing_for(expectation, scenario) {
            let message = format!("nothing can exercise this expectation: {why}");
            problems.push(ValidationError::new(place, message));
        }
    }
    problems
}

/// All crowds with their paths, including those that cues spawn.
fn crowds(scenario: &Scenario) -> Vec<(ValuePath, &ScenarioCrowd)> {
    let root = ValuePath::root();
    let initial = scenario.crowds.iter().enumerate();
    let initial = initial.map(|(index, crowd)| (root.field("crowds").item(index), crowd));
    let spawned = scenario.script.iter().enumerate();
    let spawned = spawned.filter_map(|(index, cue)| match cue.action() {
        Action::Spawn(crowd) => Some((root.field("script").item(index).field("run"), crowd)),
        _ => None,
    });
    initial.chain(spawned).collect()
}

/// Warnings for fields that have an effect for players only, in a crowd of another kind.
fn player_only_fields(place: &ValuePath, crowd: &ScenarioCrowd) -> Vec<ValidationError> {
    let kind = &crowd.kind;
    let fields = [
        ("client_share", crowd.client_share > 0.0),
        ("churn_per_s", crowd.churn_per_s > 0.0),
        ("party_size", crowd.party_size > 1),
        ("sends_inputs", crowd.sends_inputs),
        (
            "admission_class",
            crowd.admission_class != AdmissionClass::default(),
        ),
        ("view_range_m", crowd.view_range_m.is_some()),
    ];
    let fields = fields.into_iter().filter(|(_, is_set)| *is_set);
    fields
        .map(|(field, _)| {
            let message = format!("`{field}` has no effect: a `{kind}` is not a player");
            ValidationError::new(place.field(field), message)
        })
        .collect()
}

fn has_no_share(network: &CrowdNetworkConditions) -> bool {
    network.share == 0.0 && *network != CrowdNetworkConditions::default()
}

/// A warning for a cue whose time is after the end.
fn after_end(place: &ValuePath, cue: &Cue, scenario: &Scenario) -> Option<ValidationError> {
    let end_s = scenario.duration_s;
    let (field, first_s) = match cue {
        Cue::At { t_s, .. } => ("t_s", *t_s),
        Cue::Every { t_s, from_s, .. } if *from_s == 0.0 => ("t_s", *t_s),
        Cue::Every { from_s, .. }
        | Cue::Ramp { from_s, .. }
        | Cue::When { from_s, .. }
        | Cue::WhenCount { from_s, .. } => ("from_s", *from_s),
    };
    (first_s >= end_s).then(|| {
        let message =
            format!("this cue never runs: the scenario ends at {end_s} s, found {first_s}");
        ValidationError::new(place.field(field), message)
    })
}

/// A warning for a condition that no value of a custom attribute fulfils.
fn outside_range(place: &ValuePath, cue: &Cue, names: &Names) -> Option<ValidationError> {
    let Cue::When {
        attribute,
        below,
        at_least,
        ..
    } = cue
    else {
        return None;
    };
    let &(min, max) = names.ranges.get(attribute.as_str())?;
    let (field, limit) = match (*below, *at_least) {
        (Some(below), _) if below <= min => ("below", below),
        (_, Some(at_least)) if at_least > max => ("at_least", at_least),
        _ => return None,
    };
    let message =
        format!("this cue never runs: `{attribute}` is {min} to {max}, found {field} {limit}");
    Some(ValidationError::new(place.field(field), message))
}

/// The maximum number of objects with each tag; unlimited if a crowd is spawned repeatedly.
fn counts_by_tag(scenario: &Scenario) -> BTreeMap<&str, u64> {
    let count =
        |crowd: &ScenarioCrowd| u64::from(crowd.count) * u64::from(scenario.copies_of(crowd));
    let initial = scenario.crowds.iter().map(|crowd| (crowd, count(crowd)));
    let spawned = scenario.script.iter().filter_map(|cue| {
        let Action::Spawn(crowd) = cue.action() else {
            return None;
        };
        let is_once = matches!(cue, Cue::At { .. } | Cue::Ramp { .. });
        let is_endless = !is_once && crowd.count > 0;
        Some((crowd, if is_endless { u64::MAX } else { count(crowd) }))
    });
    let mut tag_counts = BTreeMap::new();
    for (crowd, count) in initial.chain(spawned) {
        let total: &mut u64 = tag_counts.entry(crowd.tag.as_str()).or_default();
        *total = total.saturating_add(count);
    }
    tag_counts
}

/// A warning for an action on more objects than can exist.
fn exceeds_crowd(
    place: &ValuePath,
    action: &Action,
    tag_counts: &BTreeMap<&str, u64>,
    names: &Names,
) -> Option<ValidationError> {
    let tag = action.tag()?;
    if action.is_about_players() && !names.player_tags.contains(tag) {
        let message = format!("expected a crowd of players, but `{tag}` has none");
        return Some(ValidationError::new(place.field("tag"), message));
    }
    let total = tag_counts.get(tag).copied().unwrap_or(0);
    let wanted = action.count().map_or(1, u64::from);
    (wanted > total).then(|| match total {
        0 => ValidationError::new(place.field("tag"), format!("tag `{tag}` matches no object")),
        _ => {
            let message = format!(
                "expected at most {total} (all objects with the tag `{tag}`), found {wanted}"
            );
            ValidationError::new(place.field("count"), message)
        }
    })
}

/// The contents of a scenario that expectations need, as far as they are known before a run.
struct ScenarioContents {
    objects: bool,
    players: bool,
    clients: bool,
    walkers: bool,
    queues: bool,
}

impl ScenarioContents {
    fn new(scenario: &Scenario, is_player: impl Fn(&ScenarioCrowd) -> bool) -> Self {
        let crowds: Vec<&ScenarioCrowd> = crowds(scenario)
            .into_iter()
            .map(|(_, crowd)| crowd)
            .filter(|crowd| crowd.count > 0)
            .collect();
        let stands = |behaviour: &BehaviourSpec| *behaviour == BehaviourSpec::default();
        let mut actions = scenario.script.iter().map(Cue::action);
        let is_ordered_to_walk = actions.any(|action| match action {
            Action::Gather { .. } => true,
            Action::SetBehaviour { behaviour, .. } => !stands(behaviour),
            _ => false,
        });
        let queues = &scenario.queues;
        let has_match_scenes = queues.iter().any(|queue| queue.match_scene.is_some());
        let walks = |crowd: &&ScenarioCrowd| !stands(&crowd.behaviour);
        Self {
            objects: !crowds.is_empty() || has_match_scenes,
            players: crowds.iter().any(|crowd| is_player(crowd)) || has_match_scenes,
            clients: crowds
                .iter()
                .any(|crowd| is_player(crowd) && crowd.client_share > 0.0),
            walkers: has_match_scenes
                || !crowds.is_empty() && (is_ordered_to_walk || crowds.iter().any(walks)),
            queues: !queues.is_empty() || !scenario.settings.matchmaking.modes.is_empty(),
        }
    }

    /// Why nothing can exercise an expectation; `None` when something can.
    fn missing_for(&self, expectation: &Expectation, scenario: &Scenario) -> Option<String> {
        let (plain, window) = expectation.split_window();
        if let Some((from_s, _)) = window
            && from_s >= scenario.duration_s
        {
            let end_s = scenario.duration_s;
            return Some(format!(
                "the scenario ends at {end_s} s, before it is checked"
            ));
        }
        let (is_there, why) = match plain {
            Expectation::ViewsWithinCap | Expectation::ViewsStable => {
                (self.players, "no crowd has players")
            }
            Expectation::MirrorsEqual | Expectation::BytesPerClientUnder(_) => {
                (self.clients, "no crowd of players has a `client_share`")
            }
            Expectation::PathsExact { .. } | Expectation::NoUnreachable => {
                (self.walkers, "no object walks")
            }
            Expectation::NoObjectOnBlockedTile | Expectation::NoLeaks => {
                (self.objects, "there are no objects")
            }
            Expectation::MatchesAtLeast(_) | Expectation::WaitUnderS(_) => {
                (self.queues, "there are no queues")
            }
            Expectation::TicketsConserved => (
                self.players || self.queues || self.walkers,
                "there are no objects",
            ),
            Expectation::NoScriptErrors | Expectation::NoCuesWithoutEffect => {
                (!scenario.script.is_empty(), "there is no script")
            }
            Expectation::TickP99UnderMs(_)
            | Expectation::SetP99UnderMs(..)
            | Expectation::TicksUnderMs { .. } => {
                let warm_up_s = plain.tick_limit().map_or(0.0, |limit| limit.warm_up_s);
                let is_long = warm_up_s < scenario.duration_s;
                (is_long, "the scenario ends within the warm-up")
            }
            Expectation::AllowScriptErrors
            | Expectation::HashIs(_)
            | Expectation::Counter { .. }
            | Expectation::After { .. }
            | Expectation::Between { .. } => (true, ""),
        };
        (!is_there).then(|| why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::parse;

    /// The warnings for a scenario of 10 s with ten players `p` and five NPCs `n`, as `path: message`.
    fn warnings_of(fields: &str) -> Vec<String> {
        let text = format!(
            "Scenario(name: \"x\", duration_s: 10, scenes: [Scene(name: \"a\")], crowds: [
                Crowd(tag: \"p\", kind: \"player\", count: 10), Crowd(tag: \"n\", count: 5)], {fields})"
        );
        let scenario = parse("t.ron", &text).unwrap_or_else(|error| panic!("{error} in {text}"));
        let problems = unused_entries(&scenario, &Behaviours::default());
        problems.iter().map(ToString::to_string).collect()
    }

    /// A custom attribute.
    const OWN: &str =
        "attributes: [Attribute(name: \"mana\", encoding: U8, range: (5, 9), start: 5)]";

    #[test]
    fn unused_entries_give_a_warning_at_their_path() {
        let at = |time: &str, action: &str| format!("script: [At(t_s: {time}, run: {action})]");
        for (fields, warning) in [
            (
                "script: [At(t_s: 10, run: Despawn(tag: \"p\"))]".to_owned(),
                "script[0].t_s: this cue never runs",
            ),
            (
                "script: [Every(t_s: 1, from_s: 11, run: Despawn(tag: \"p\"))]".to_owned(),
                "script[0].from_s: this cue never runs",
            ),
            (
                "script: [Every(t_s: 12, run: Despawn(tag: \"p\"))]".to_owned(),
                "script[0].t_s: this cue never runs",
            ),
            (
                at(
                    "1",
                    "Teleport(tag: \"n\", count: 6, to: Share((0, 0), (1, 1)))",
                ),
                "script[0].run.count: expected at most 5 (all objects with the tag `n`), found 6",
            ),
            (
                at("1", "Logout(tag: \"n\")"),
                "script[0].run.tag: expected a crowd of players",
            ),
            (
                at("1", "Kick(tag: \"n\")"),
                "script[0].run.tag: expected a crowd of players",
            ),
            (
                at("1", "Spawn(kind: \"npc\", churn_per_s: 1)"),
                "script[0].run.churn_per_s: `churn_per_s` has no effect",
            ),
            (
                at("1", "SetNetwork(loss: 0.5)"),
                "script[0].run: expected a `share` above 0",
            ),
            (
                format!(
                    "{OWN}, script: [When(tag: \"n\", attribute: \"mana\", below: 5, run: Despawn(tag: \"n\"))]"
                ),
                "script[0].below: this cue never runs: `mana` is 5 to 9, found below 5",
            ),
            (
                format!(
                    "{OWN}, script: [When(tag: \"n\", attribute: \"mana\", at_least: 10, run: Despawn(tag: \"n\"))]"
                ),
                "script[0].at_least: this cue never runs: `mana` is 5 to 9, found at_least 10",
            ),
            (
                "network: (delay_ms: 5)".to_owned(),
                "network: expected a `share`",
            ),
            (
                "expect: [MatchesAtLeast(1)]".to_owned(),
                "expect[0]: nothing can exercise this expectation: there are no queues",
            ),
            (
                "expect: [MirrorsEqual]".to_owned(),
                "expect[0]: nothing can exercise this expectation: no crowd of players has",
            ),
            (
                "expect: [NoUnreachable]".to_owned(),
                "expect[0]: nothing can exercise this expectation: no object walks",
            ),
            (
                "expect: [NoScriptErrors]".to_owned(),
                "expect[0]: nothing can exercise this expectation: there is no script",
            ),
            (
                "expect: [Between(from_s: 10, until_s: 20, expect: ViewsWithinCap)]".to_owned(),
                "expect[0]: nothing can exercise this expectation: the scenario ends at 10 s",
            ),
        ] {
            let found = warnings_of(&fields);
            assert_eq!(found.len(), 1, "{fields}: {found:#?}");
            assert!(found[0].starts_with(warning), "{fields}: {found:#?}");
        }
    }

    #[test]
    fn used_entries_give_no_warning() {
        for fields in [
            "",
            "attributes: [Attribute(name: \"mana\", encoding: U8, range: (5, 9), start: 5)], script: [
                When(tag: \"n\", attribute: \"mana\", below: 6, run: Despawn(tag: \"n\")),
                When(tag: \"n\", attribute: \"mana\", at_least: 9, run: Despawn(tag: \"n\"))]",
            "network: (loss: 0.5, share: 0.1)",
            "script: [At(t_s: 9.9, run: Despawn(tag: \"p\", count: 10)), Every(t_s: 9, run: Logout(tag: \"p\"))]",
            "script: [Every(t_s: 1, run: Spawn(tag: \"n\")), At(t_s: 9, run: Despawn(tag: \"n\", count: 9))]",
            "script: [At(t_s: 1, run: Gather(tag: \"n\", at: Share((0, 0), (1, 1))))], expect: [PathsExact, NoUnreachable]",
            "queues: [Queue(parties: 3, match_scene: Scene(name: \"b\"))], expect: [MatchesAtLeast(1), PathsExact]",
            "expect: [ViewsStable, NoObjectOnBlockedTile, TicketsConserved, TickP99UnderMs(5), After(t_s: 9, expect: ViewsWithinCap)]",
        ] {
            assert_eq!(warnings_of(fields), Vec::<String>::new(), "{fields}");
        }
    }
}
