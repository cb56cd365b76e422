//! Text that does nothing: allowed, and probably not meant.

use super::kinds_of;
use super::names::Names;
use crate::crowd::LineSpec;
use crate::scenario::behaviours::Behaviours;
use crate::scenario::schema::{Action, BehaviourSpec, Crowd, Cue, Expectation, Scenario};
use crate::scenario::text::{Problem, ValuePath};
use crate::world::KindClass;

/// What in a scenario does nothing: cues past its end, clients among NPCs, lines that nobody has, more objects than there
/// can be, expectations that nothing can exercise. For one that has passed validation.
pub(in crate::scenario) fn dead_text(scenario: &Scenario, behaviours: &Behaviours) -> Vec<Problem> {
    let kinds = kinds_of(scenario);
    let names = Names::of(scenario, &kinds, &[], behaviours);
    let root = ValuePath::root();
    let mut problems = Vec::new();
    let is_player = |crowd: &Crowd| {
        let kind = kinds.find(&crowd.kind).and_then(|id| kinds.get(id));
        kind.is_some_and(|kind| kind.class == KindClass::Player)
    };
    for (place, crowd) in crowds(scenario) {
        if !is_player(crowd) {
            problems.extend(of_players_alone(&place, crowd));
        }
    }
    if has_no_share(&scenario.line) {
        let message = "expected a `share` above 0, found 0: no client has this line";
        problems.push(Problem::new(root.field("line"), message));
    }
    for (index, cue) in scenario.script.iter().enumerate() {
        let place = root.field("script").item(index);
        problems.extend(past_the_end(&place, cue, scenario));
        problems.extend(beyond_the_crowd(&place.field("run"), cue, scenario, &names));
        if let Action::SetLine(line) = cue.action()
            && has_no_share(line)
        {
            let message = "expected a `share` above 0, found 0: no client has this line";
            problems.push(Problem::new(place.field("run"), message));
        }
    }
    let has = What::of(scenario, is_player);
    for (index, expectation) in scenario.expect.iter().enumerate() {
        let place = root.field("expect").item(index);
        if let Some(why) = has.nothing_for(expectation, scenario) {
            let message = format!("nothing can exercise this expectation: {why}");
            problems.push(Problem::new(place, message));
        }
    }
    problems
}

/// All crowds, those that cues spawn included, with their places.
fn crowds(scenario: &Scenario) -> Vec<(ValuePath, &Crowd)> {
    let root = ValuePath::root();
    let cast = scenario.cast.iter().enumerate();
    let cast = cast.map(|(index, crowd)| (root.field("cast").item(index), crowd));
    let spawned = scenario.script.iter().enumerate();
    let spawned = spawned.filter_map(|(index, cue)| match cue.action() {
        Action::Spawn(crowd) => Some((root.field("script").item(index).field("run"), crowd)),
        _ => None,
    });
    cast.chain(spawned).collect()
}

/// What only players have, said of others.
fn of_players_alone(place: &ValuePath, crowd: &Crowd) -> Vec<Problem> {
    let kind = &crowd.kind;
    let said = [
        ("clients", crowd.clients > 0.0),
        ("churn_per_s", crowd.churn_per_s > 0.0),
        ("party_size", crowd.party_size > 1),
    ];
    let said = said.into_iter().filter(|(_, is_said)| *is_said);
    said.map(|(field, _)| {
        let message = format!("`{field}` does nothing here: a `{kind}` is no player");
        Problem::new(place.field(field), message)
    })
    .collect()
}

fn has_no_share(line: &LineSpec) -> bool {
    line.share == 0.0 && *line != LineSpec::default()
}

/// A cue whose time does not come.
fn past_the_end(place: &ValuePath, cue: &Cue, scenario: &Scenario) -> Option<Problem> {
    let end_s = scenario.duration_s;
    let (field, first_s) = match cue {
        Cue::At { t_s, .. } => ("t_s", *t_s),
        Cue::Every { t_s, from_s, .. } if *from_s == 0.0 => ("t_s", *t_s),
        Cue::Every { from_s, .. } => ("from_s", *from_s),
    };
    (first_s >= end_s).then(|| {
        let message =
            format!("this cue never runs: the scenario ends at {end_s} s, found {first_s}");
        Problem::new(place.field(field), message)
    })
}

/// A cue about more objects than there can be.
fn beyond_the_crowd(
    place: &ValuePath,
    cue: &Cue,
    scenario: &Scenario,
    names: &Names,
) -> Option<Problem> {
    let tag = cue.action().tag()?;
    if matches!(cue.action(), Action::Login { .. } | Action::Logout { .. })
        && !names.player_tags.contains(tag)
    {
        let message = format!("expected a crowd of players, found `{tag}`, which is none");
        return Some(Problem::new(place.field("tag"), message));
    }
    let spawned = scenario
        .script
        .iter()
        .filter(|cue| matches!(cue.action(), Action::Spawn(crowd) if crowd.tag == tag));
    if spawned.clone().any(|cue| matches!(cue, Cue::Every { .. })) {
        return None;
    }
    let of_tag = crowds(scenario).into_iter().map(|(_, crowd)| crowd);
    let of_tag = of_tag.filter(|crowd| crowd.tag == tag);
    let total: u64 = of_tag.map(|crowd| u64::from(crowd.count)).sum();
    let wanted = cue.action().count().map_or(1, u64::from);
    (wanted > total).then(|| match total {
        0 => Problem::new(
            place.field("tag"),
            format!("nobody ever bears the tag `{tag}`"),
        ),
        _ => {
            let message = format!("expected at most the {total} that bear `{tag}`, found {wanted}");
            Problem::new(place.field("count"), message)
        }
    })
}

/// What there is in a scenario, as far as its text tells.
struct What {
    objects: bool,
    players: bool,
    clients: bool,
    walkers: bool,
    queues: bool,
}

impl What {
    fn of(scenario: &Scenario, is_player: impl Fn(&Crowd) -> bool) -> Self {
        let crowds: Vec<&Crowd> = crowds(scenario)
            .into_iter()
            .map(|(_, crowd)| crowd)
            .filter(|crowd| crowd.count > 0)
            .collect();
        let stands = |behaviour: &BehaviourSpec| *behaviour == BehaviourSpec::default();
        let mut actions = scenario.script.iter().map(Cue::action);
        let is_sent = actions.any(|action| match action {
            Action::Gather { .. } => true,
            Action::SetBehaviour { behaviour, .. } => !stands(behaviour),
            _ => false,
        });
        let queues = &scenario.queues;
        let battles = queues.iter().any(|queue| queue.battle_scene.is_some());
        let walks = |crowd: &&Crowd| !stands(&crowd.behaviour);
        Self {
            objects: !crowds.is_empty() || battles,
            players: crowds.iter().any(|crowd| is_player(crowd)) || battles,
            clients: crowds
                .iter()
                .any(|crowd| is_player(crowd) && crowd.clients > 0.0),
            walkers: battles || !crowds.is_empty() && (is_sent || crowds.iter().any(walks)),
            queues: !queues.is_empty() || !scenario.settings.matchmaking.modes.is_empty(),
        }
    }

    /// Why nothing can exercise an expectation; `None` when something can.
    fn nothing_for(&self, expectation: &Expectation, scenario: &Scenario) -> Option<String> {
        let (plain, window) = expectation.in_window();
        if let Some((from_s, _)) = window
            && from_s >= scenario.duration_s
        {
            let end_s = scenario.duration_s;
            return Some(format!(
                "the scenario ends at {end_s} s, before it is looked at"
            ));
        }
        let (is_there, why) = match plain {
            Expectation::ViewsWithinCap | Expectation::ViewsStable => {
                (self.players, "no crowd has players")
            }
            Expectation::MirrorsEqual | Expectation::BytesPerClientUnder(_) => {
                (self.clients, "no crowd of players has `clients`")
            }
            Expectation::PathsExact { .. } | Expectation::NoUnreachable => {
                (self.walkers, "nobody walks")
            }
            Expectation::NobodyOnBlocked => (self.objects, "nobody is there"),
            Expectation::MatchesAtLeast(_) | Expectation::WaitUnderS(_) => {
                (self.queues, "there are no queues")
            }
            Expectation::Conserved => (
                self.players || self.queues || self.walkers,
                "nobody is there",
            ),
            Expectation::NoScriptFaults => (!scenario.script.is_empty(), "there is no script"),
            Expectation::TickP99UnderMs(_)
            | Expectation::SetP99UnderMs(..)
            | Expectation::TicksUnderMs { .. } => {
                let warm_up_s = plain.tick_limit().map_or(0.0, |limit| limit.warm_up_s);
                let is_long = warm_up_s < scenario.duration_s;
                (is_long, "the scenario ends within the warm-up")
            }
            Expectation::ScriptFaultsAllowed
            | Expectation::HashIs(_)
            | Expectation::Counter { .. }
            | Expectation::After { .. }
            | Expectation::Between { .. } => (true, ""),
        };
        (!is_there).then(|| why.to_owned())
    }
}
