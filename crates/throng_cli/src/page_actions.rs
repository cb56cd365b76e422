//! Actions that pages request in a served scenario: cues, as in its script.

use ron::extensions::Extensions;

use throng_inspect::{ActionPreset, Inspector};
use throng_scenario::{LoadedScenario, Scenario, ScenarioRun};

/// Maximum number of presets of each kind.
const PRESETS_MAX: usize = 32;

/// Number of objects that a preset spawns.
const SPAWN_COUNT: u32 = 50;

/// Maximum length of a preset's label, in characters.
const NAME_MAX: usize = 60;

/// The presets of a page: the cues of the script, and crowds like those of the scenario.
pub(super) fn action_presets(loaded: &LoadedScenario) -> Vec<ActionPreset> {
    let Scenario { script, crowds, .. } = &loaded.scenario;
    // In the format of scenarios, without optional parentheses.
    let options = ron::Options::default()
        .with_default_extension(Extensions::UNWRAP_NEWTYPES)
        .with_default_extension(Extensions::UNWRAP_VARIANT_NEWTYPES)
        .with_default_extension(Extensions::IMPLICIT_SOME);
    let actions = script.iter().map(|cue| options.to_string(cue.action()));
    let actions = actions.filter_map(Result::ok).map(|text| ActionPreset {
        name: shortened(&text),
        text,
    });
    let crowds = crowds.iter().filter(|crowd| !crowd.tag.is_empty());
    let crowds = crowds.filter_map(|crowd| {
        let [tag, kind] = [&crowd.tag, &crowd.kind].map(ron::to_string);
        let behaviour = ron::to_string(&crowd.behaviour);
        let (tag, kind, behaviour) = (tag.ok()?, kind.ok()?, behaviour.ok()?);
        Some(ActionPreset {
            name: shortened(&format!("{SPAWN_COUNT} more {} where I click", crowd.tag)),
            text: format!(
                "Spawn(tag: {tag}, kind: {kind}, scene: {{scene}}, count: {SPAWN_COUNT}, \
                 at: Ring(center_m: ({{at}}), radius_m: 5, width_m: 10), behaviour: {behaviour})"
            ),
        })
    });
    let mut crowds: Vec<ActionPreset> = crowds.collect();
    crowds.dedup_by(|one, other| one.text == other.text);
    crowds.truncate(PRESETS_MAX);
    let mut all: Vec<ActionPreset> = actions.take(PRESETS_MAX).collect();
    all.dedup_by(|one, other| one.text == other.text);
    all.extend(crowds);
    all
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Passes the actions requested by pages to the scenario, and sends the outcomes of earlier ones to the pages. Runs between two ticks.
pub(super) fn run_page_actions(playing: &mut ScenarioRun) {
    let outcomes = playing.take_action_results();
    let tick = playing.tick();
    let mut requested = Vec::new();
    if let Some(mut inspector) = playing.server().world_mut().get_resource_mut::<Inspector>() {
        for outcome in outcomes {
            inspector.send_action_result(&outcome.text, outcome.tick, outcome.error.as_deref());
        }
        requested.extend(std::iter::from_fn(|| inspector.next_action()));
    }
    for text in requested {
        let refused = playing.enqueue_action(&text).err();
        if refused.is_some()
            && let Some(mut inspector) =
                playing.server().world_mut().get_resource_mut::<Inspector>()
        {
            inspector.send_action_result(&text, tick, refused.as_deref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::{self as scenario, Action, BUILT_IN};

    #[test]
    fn action_presets_parse_as_script_actions() {
        let mut spawns = 0;
        for built_in in BUILT_IN {
            let loaded = scenario::load(built_in.name).unwrap();
            for (nth, proposal) in action_presets(&loaded).iter().enumerate() {
                let text = proposal.text.replace("{at}", "1.5, 2.5");
                let text = text.replace("{scene}", "\"a\"");
                let text = format!("Scenario(name: \"a\", script: [At(t_s: 1, run: {text})])");
                let read = scenario::parse("proposal", &text);
                let read = read.unwrap_or_else(|error| panic!("{text}: {error}"));
                match read.script[0].action() {
                    Action::Spawn(_) => spawns += 1,
                    action if nth == 0 => assert_eq!(action, loaded.scenario.script[0].action()),
                    _ => {}
                }
            }
        }
        assert!(spawns > 5, "{spawns}");
    }
}
