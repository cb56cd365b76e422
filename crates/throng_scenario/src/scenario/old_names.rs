//! Old names of fields and variants of scenarios. They are still accepted, with a warning.
//!
//! In a file an old name is replaced by the new one before the file is parsed. Each row of [`RENAMED`], except those of types,
//! also belongs to a `#[serde(alias = "…")]`, for scenarios in JSON and for single actions. Serde lists old names among the
//! expected ones; errors and the JSON Schema use this table to omit them.

use super::text::{Outline, TextSpan};

/// An old name in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OldName {
    /// Its place.
    pub span: TextSpan,
    /// The current name.
    pub new_name: &'static str,
    /// A warning that contains both.
    pub message: String,
}

/// A type with renamed fields or variants, or with a new name of its own.
struct RenamedType {
    /// Its name in serde.
    name: &'static str,
    /// The word in warnings for a field or variant of the type.
    noun: &'static str,
    /// The enclosing fields in a scenario by their current names, innermost last; none for the fields of the scenario itself.
    within: &'static [&'static str],
    /// Old names and new ones.
    names: &'static [(&'static str, &'static str)],
}

/// The noun of a renamed type.
const TYPE: &str = "type";

const RENAMED: &[RenamedType] = &[
    RenamedType {
        name: "Scenario",
        noun: "field",
        within: &[],
        names: &[("cast", "crowds"), ("line", "network")],
    },
    RenamedType {
        name: "Scene",
        noun: "field",
        within: &["scenes"],
        names: SCENE_NAMES,
    },
    RenamedType {
        name: "Scene",
        noun: "field",
        within: &["match_scene"],
        names: SCENE_NAMES,
    },
    RenamedType {
        name: "Scene",
        noun: "field",
        within: &["run"],
        names: SCENE_NAMES,
    },
    RenamedType {
        name: "Crowd",
        noun: "field",
        within: &["crowds"],
        names: CROWD_NAMES,
    },
    RenamedType {
        name: "Crowd",
        noun: "field",
        within: &["run"],
        names: CROWD_NAMES,
    },
    RenamedType {
        name: "Queue",
        noun: "field",
        within: &["queues"],
        names: &[
            ("rules", "settings"),
            ("crowd", "crowd_tag"),
            ("battle_scene", "match_scene"),
            ("battle_s", "match_duration_s"),
            ("return_share", "requeue_share"),
            ("rest_s", "requeue_delay_s"),
        ],
    },
    RenamedType {
        name: "NetworkConditions",
        noun: TYPE,
        within: &["network"],
        names: &[("LineSpec", "NetworkConditions")],
    },
    RenamedType {
        name: "AoiSettings",
        noun: "field",
        within: &["settings", "view"],
        names: &[
            ("looks_per_tick_max", "scans_per_tick_max"),
            ("sweeps_per_tick_max", "full_scans_per_tick_max"),
            ("sight", "view_link_mode"),
        ],
    },
    RenamedType {
        name: "NavSettings",
        noun: "field",
        within: &["settings", "nav"],
        names: &[
            ("npc_nodes_max", "short_nodes_max"),
            ("travel_nodes_max", "long_nodes_max"),
            ("travels_at_once_max", "long_searches_max"),
            (
                "travel_expansions_per_tick",
                "long_search_expansions_per_tick",
            ),
            ("travel_slice_expansions", "long_search_slice_expansions"),
        ],
    },
    RenamedType {
        name: "InboxSettings",
        noun: "field",
        within: &["settings", "inbox"],
        names: &[
            ("newcomer_backlog_max", "unauthenticated_client_backlog_max"),
            ("newcomers_backlog_max", "unauthenticated_backlog_max"),
            ("is_timed", "use_clock"),
        ],
    },
    RenamedType {
        name: "ClientQuota",
        noun: "field",
        within: &["settings", "inbox", "quota"],
        names: &[("offences_max", "violations_max")],
    },
    RenamedType {
        name: "BudgetRule",
        noun: "field",
        within: &["settings", "inbox", "budget"],
        names: &[
            ("least", "min"),
            ("most", "max"),
            ("busy", "grow_above"),
            ("all", "drain_all_above"),
            ("hard", "hard_limit"),
        ],
    },
    RenamedType {
        name: "SyncSettings",
        noun: "field",
        within: &["settings", "sync"],
        names: &[
            ("near_m", "full_rate_distance_m"),
            ("enters_per_tick", "enters_per_tick_max"),
            ("kept_bytes_max", "resume_buffer_bytes_max"),
            ("orphans_max", "deferred_saves_max"),
        ],
    },
    RenamedType {
        name: "ModeSettings",
        noun: "field",
        within: &["settings", "matchmaking", "modes"],
        names: MODE_NAMES,
    },
    RenamedType {
        name: "RoomSettings",
        noun: "field",
        within: &["settings", "matchmaking", "modes"],
        names: MODE_NAMES,
    },
    RenamedType {
        name: "OverloadSettings",
        noun: "field",
        within: &["settings", "overload"],
        names: &[
            ("rise_at", "enter_at"),
            ("fall_at", "leave_at"),
            ("rise_s", "enter_after_s"),
            ("fall_s", "leave_after_s"),
            ("deferred_share", "deferred_budget_share"),
        ],
    },
    RenamedType {
        name: "WorkCosts",
        noun: "field",
        within: &["settings", "overload", "costs"],
        names: &[("look_ns", "scan_ns")],
    },
    RenamedType {
        name: "SessionSettings",
        noun: "field",
        within: &["settings", "session"],
        names: &[
            ("places_kept", "reserved_slots"),
            ("opened_per_tick_max", "sessions_opened_per_tick_max"),
            ("questions_max", "pending_logins_max"),
            (
                "newcomers_per_address_max",
                "unauthenticated_per_address_max",
            ),
            ("login_s_max", "login_timeout_s"),
            ("authentication_s_max", "authentication_timeout_s"),
            ("loading_s_max", "loading_timeout_s"),
            ("keep_s", "reconnect_grace_s"),
            ("idle_s_max", "idle_timeout_s"),
            ("place_every_s", "queue_position_interval_s"),
        ],
    },
    RenamedType {
        name: "AdmissionClass",
        noun: "admission class",
        within: &["admission_class"],
        names: &[("Anybody", "Standard")],
    },
    RenamedType {
        name: "Action",
        noun: "action",
        within: &["run"],
        names: &[
            ("LoseLink", "Disconnect"),
            ("LoginAgain", "DuplicateLogin"),
            ("SetLine", "SetNetwork"),
        ],
    },
    RenamedType {
        name: "Expectation",
        noun: "expectation",
        within: &["expect"],
        names: &[
            ("NobodyOnBlocked", "NoObjectOnBlockedTile"),
            ("Conserved", "TicketsConserved"),
            ("NoScriptFaults", "NoScriptErrors"),
            ("ScriptFaultsAllowed", "AllowScriptErrors"),
            ("NoIdleCues", "NoCuesWithoutEffect"),
        ],
    },
];

const SCENE_NAMES: &[(&str, &str)] = &[("sight", "view_link_mode")];

const CROWD_NAMES: &[(&str, &str)] = &[
    ("clients", "client_share"),
    ("inputs", "sends_inputs"),
    ("admission", "admission_class"),
];

const MODE_NAMES: &[(&str, &str)] = &[
    ("open_after_s", "limits_off_after_s"),
    ("first_after_s", "priority_after_s"),
    ("accept_within_s", "accept_timeout_s"),
    ("bar_after_decline_s", "decline_penalty_s"),
    ("rematch_after_s", "rematch_cooldown_s"),
    ("looks_per_heartbeat_max", "candidates_per_heartbeat_max"),
];

/// Whether a field or variant of a type is only the old name of another one.
pub(super) fn is_old_name(type_name: &str, name: &str) -> bool {
    let types = RENAMED.iter().filter(|renamed| renamed.name == type_name);
    types
        .flat_map(|renamed| renamed.names)
        .any(|(old, _)| *old == name)
}

/// The old names in a text, in its order.
pub(super) fn old_names(outline: &Outline<'_>) -> Vec<OldName> {
    let is_old = |name: &str| {
        let mut names = RENAMED.iter().flat_map(|renamed| renamed.names);
        names.any(|(old, _)| *old == name)
    };
    let names = outline.names(is_old).into_iter();
    let found = names.filter_map(|(span, fields)| {
        let name = outline.text_at(&span);
        let (noun, new_name) = current_name(name, &current_fields(&fields))?;
        Some(OldName {
            span,
            new_name,
            message: format!("{noun} `{name}` is now `{new_name}`"),
        })
    });
    found.collect()
}

/// The noun and the current name of an old name within these fields.
fn current_name(name: &str, fields: &[&str]) -> Option<(&'static str, &'static str)> {
    RENAMED.iter().find_map(|renamed| {
        let is_there = if renamed.within.is_empty() {
            fields.is_empty()
        } else {
            fields.ends_with(renamed.within)
        };
        let mut names = renamed.names.iter().filter(|_| is_there);
        let (_, new_name) = names.find(|(old, _)| *old == name)?;
        Some((renamed.noun, *new_name))
    })
}

/// Enclosing fields by their current names.
fn current_fields<'a>(fields: &[&'a str]) -> Vec<&'a str> {
    let mut current = Vec::with_capacity(fields.len());
    for field in fields {
        current.push(current_name(field, &current).map_or(*field, |(_, new_name)| new_name));
    }
    current
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::scenario::json_schema;
    use crate::scenario::text::parse;
    use crate::scenario::{BUILT_IN, Behaviours, LoadedScenario};

    /// Type, old name and new name.
    type Rename = (String, String, String);

    /// The renames that a source file declares to serde, by the type's serde name.
    fn aliases(source: &str) -> Vec<Rename> {
        let mut found = Vec::new();
        let (mut renamed, mut owner, mut old) = (None, String::new(), Vec::new());
        let quoted = |line: &str, key: &str| {
            let (_, rest) = line.split_once(key)?;
            Some(rest.split('"').next()?.to_owned())
        };
        for line in source.lines().map(str::trim) {
            if line.starts_with("#[") {
                old.extend(quoted(line, "alias = \""));
                renamed = quoted(line, "rename = \"").or(renamed);
                continue;
            }
            if line.starts_with("//") {
                continue;
            }
            let words = line.trim_start_matches("pub ");
            let name = |text: &str| {
                let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
                text.split(|letter| !is_part(letter))
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            if let Some(rest) = words
                .strip_prefix("struct ")
                .or_else(|| words.strip_prefix("enum "))
            {
                owner = renamed.take().unwrap_or_else(|| name(rest));
            }
            renamed = None;
            found.extend(old.drain(..).map(|old| (owner.clone(), old, name(words))));
        }
        assert_eq!(
            found.len(),
            source
                .lines()
                .filter(|line| !line.trim().starts_with("//"))
                .map(|line| line.matches("alias = \"").count())
                .sum::<usize>(),
            "expected each alias on a line of its own"
        );
        found
    }

    fn collect(folder: &Path, found: &mut BTreeSet<Rename>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.extend(aliases(&fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn table_has_every_alias_of_the_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = BTreeSet::new();
        collect(&root.join("src"), &mut found);
        for entry in fs::read_dir(root.join("crates")).unwrap() {
            let source = entry.unwrap().path().join("src");
            collect(&source, &mut found);
        }
        // Types that no scenario contains are not in the table.
        let schema = json_schema();
        found.retain(|(owner, ..)| schema["$defs"].get(owner).is_some());
        let fields = RENAMED.iter().filter(|renamed| renamed.noun != TYPE);
        let rows = fields.flat_map(|renamed| {
            let row = |(old, new): &(&str, &str)| {
                (
                    renamed.name.to_owned(),
                    (*old).to_owned(),
                    (*new).to_owned(),
                )
            };
            renamed.names.iter().map(row)
        });
        assert_eq!(rows.collect::<BTreeSet<_>>(), found);
    }

    fn warnings(text: &str) -> Vec<String> {
        let loaded = LoadedScenario::from_text("t.ron", text).unwrap();
        let review = loaded.review(&[], &Behaviours::default());
        let shown = review.warnings.iter().map(|it| {
            let span = it.span.offset()..it.span.offset() + it.span.len();
            let (file, line, words) = (it.file(), it.line, &it.text.inner()[span]);
            format!("{file}:{line}: {words}: {}", it.message)
        });
        shown.filter(|it| it.contains("is now")).collect()
    }

    #[test]
    fn old_names_are_read_with_a_warning_at_their_place() {
        let text = r#"// idle_s_max: LoseLink
Scenario(name: "idle_s_max: LoseLink",
    settings: Settings(session: (idle_s_max: 5, login_s_max: 3),
        view: AoiSettings(sight: Mutual), inbox: (quota: (
            offences_max: 7)),
        matchmaking: (modes: [Groups(name: "a", open_after_s: 9), Rooms(rematch_after_s: 1)])),
    scenes: [Scene(name: "a", sight: Directed)],
    cast: [Crowd(tag: "Conserved", kind: "player", admission: Anybody)],
    script: [At(t_s: 1, run: LoseLink(tag: "Conserved")), At(t_s: 1, run: Spawn(kind: "player", clients: 1)), At(t_s: 2, run: SetLine(loss: 0.1, share: 1))], line: LineSpec(share: 0),
    expect: [Conserved, After(t_s: 2, expect: NobodyOnBlocked), ViewsWithinCap],
)"#;
        let expected = [
            "t.ron:3: idle_s_max: field `idle_s_max` is now `idle_timeout_s`",
            "t.ron:3: login_s_max: field `login_s_max` is now `login_timeout_s`",
            "t.ron:4: sight: field `sight` is now `view_link_mode`",
            "t.ron:5: offences_max: field `offences_max` is now `violations_max`",
            "t.ron:6: open_after_s: field `open_after_s` is now `limits_off_after_s`",
            "t.ron:6: rematch_after_s: field `rematch_after_s` is now `rematch_cooldown_s`",
            "t.ron:7: sight: field `sight` is now `view_link_mode`",
            "t.ron:8: cast: field `cast` is now `crowds`",
            "t.ron:8: admission: field `admission` is now `admission_class`",
            "t.ron:8: Anybody: admission class `Anybody` is now `Standard`",
            "t.ron:9: LoseLink: action `LoseLink` is now `Disconnect`",
            "t.ron:9: clients: field `clients` is now `client_share`",
            "t.ron:9: SetLine: action `SetLine` is now `SetNetwork`",
            "t.ron:9: line: field `line` is now `network`",
            "t.ron:9: LineSpec: type `LineSpec` is now `NetworkConditions`",
            "t.ron:10: Conserved: expectation `Conserved` is now `TicketsConserved`",
            "t.ron:10: NobodyOnBlocked: expectation `NobodyOnBlocked` is now `NoObjectOnBlockedTile`",
        ];
        assert_eq!(warnings(text), expected);
    }

    #[test]
    fn value_under_an_old_name_is_read_and_an_error_points_at_it() {
        let text = r#"Scenario(name: "t", parameters: {"line": 0.25}, scenes: [Scene(name: "a")],
    cast: [Crowd(kind: "player", clients: line), Crowd(kind: "player", clients: 1.5)])"#;
        let loaded = LoadedScenario::from_text("t.ron", text).unwrap();
        assert_eq!(loaded.scenario.crowds[0].client_share, 0.25);
        let error = loaded.check(&[], &Behaviours::default()).unwrap_err();
        let error = error.source_error().unwrap();
        let span = error.span.offset()..error.span.offset() + error.span.len();
        assert_eq!((error.line, &error.text.inner()[span]), (2, "1.5"));
    }

    #[test]
    fn content_of_a_game_action_is_left_as_it_is() {
        let text = r#"(script: [(run: Game(SetLine(clients: 3)))], behaviour: Idle(cast: 1))"#;
        assert_eq!(old_names(&Outline::new(text)), []);
    }

    #[test]
    fn every_row_of_the_table_gives_a_warning() {
        for renamed in RENAMED {
            for (old, new) in renamed.names {
                let is_field = renamed.noun == "field";
                let mut text = if is_field {
                    format!("({old}: 1)")
                } else {
                    (*old).to_owned()
                };
                for field in renamed.within.iter().rev() {
                    text = format!("({field}: [{text}])");
                }
                let found = old_names(&Outline::new(&text));
                let message = format!("{} `{old}` is now `{new}`", renamed.noun);
                assert_eq!(found.len(), 1, "{text}");
                assert_eq!((&found[0].message, found[0].new_name), (&message, *new));
            }
        }
    }

    #[test]
    fn former_counter_names_are_read_with_a_warning() {
        let text = |counter: &str| {
            let expect =
                format!("After(t_s: 1, expect: Counter(name: \"{counter}\", at_least: 1))");
            format!("Scenario(name: \"hall\", scenes: [Scene(name: \"hall\")], expect: [{expect}])")
        };
        let warnings = |counter| {
            let loaded = LoadedScenario::from_text("hall.ron", &text(counter)).unwrap();
            let review = loaded.review(&[], &Behaviours::default());
            assert!(review.errors.is_empty(), "{:?}", review.errors);
            let texts = review.warnings.iter().map(ToString::to_string);
            texts
                .filter(|text| text.contains("is now"))
                .collect::<Vec<_>>()
        };
        let found = warnings("sessions.ended.behind");
        assert!(found.len() == 1, "{found:?}");
        assert!(
            found[0].contains("`sessions.ended.behind` is now `sessions.ended.slow_consumer`"),
            "{found:?}"
        );
        assert_eq!(warnings("sessions.ended.slow_consumer"), [""; 0]);
    }

    #[test]
    fn errors_and_schema_leave_old_names_out() {
        let text = "Scenario(settings: (session: (colour: 1)))";
        let error = parse("t.ron", text).unwrap_err();
        let help = error.source_error().unwrap().help.clone().unwrap();
        assert!(help.contains("`idle_timeout_s`"), "{help}");
        assert!(!help.contains("`idle_s_max`"), "{help}");
        let text = "Scenario(settings: (session: (idle_s_ma: 1)))";
        let error = parse("t.ron", text).unwrap_err();
        assert!(!error.to_string().contains("`idle_s_max`"), "{error}");
        let schema = json_schema();
        let session = &schema["$defs"]["SessionSettings"]["properties"];
        assert!(session.get("idle_timeout_s").is_some());
        assert!(session.get("idle_s_max").is_none());
    }

    #[test]
    fn built_in_scenarios_have_no_old_names() {
        for built_in in BUILT_IN {
            let found = old_names(&Outline::new(built_in.text));
            assert_eq!(found, [], "{}", built_in.name);
        }
    }
}
