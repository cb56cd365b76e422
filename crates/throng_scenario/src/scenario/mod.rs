//! Scenarios: parsing, validation, runs, reports. The docs of the crate give an overview.
//!
//! | file | holds |
//! |---|---|
//! | `matches.rs` | match scenes: players are moved to a scene and back home |
//! | `behaviours/` | the registered behaviours and cues, and their parameters |
//! | `builtin.rs` | the built-in scenarios |
//! | `capture.rs` | capture of every packet of a run |
//! | `checks.rs` | expectations, judged at the end of a run |
//! | `selection.rs` | the objects that a cue acts on |
//! | `counters.rs` | the figures of a report by name |
//! | `plausible.rs` | values outside the usual range of their field |
//! | `player_store.rs` | statistics of players that persist |
//! | `events/` | the event log, a JSON object per line |
//! | `external_actions.rs` | actions that an operator starts during a run |
//! | `script_errors.rs` | cues that could not do their action |
//! | `help/` | a reference of everything that a scenario may contain |
//! | `json_schema/` | the JSON Schema of scenarios |
//! | `leaks.rs` | the leak check of a run |
//! | `load.rs` | loading scenarios and their maps from disk |
//! | `margin.rs` | the margin by which expectations hold |
//! | `memory.rs` | the memory of a run |
//! | `movement_summary.rs` | statistics of movement in a run |
//! | `old_names.rs` | old names of fields and variants |
//! | `read.rs` | reading the text of a scenario, within a limit |
//! | `record/` | the record of a run tick by tick, in bounded memory |
//! | `report.rs` | the figures of a run |
//! | `rest.rs` | running until nothing is left to do |
//! | `runner.rs` | running: set up, ticks, rest, judgement |
//! | `schema/` | the types of a scenario file |
//! | `script.rs` | cues, run at their time |
//! | `sources.rs` | the files of a scenario, and their parameters |
//! | `stored_report.rs` | former keys of stored reports |
//! | `scenario_world.rs` | setting up scenes, crowds and queues on a server |
//! | `text/` | parsing, and the location of a value in the text |
//! | `timed_cue.rs` | when cues run |
//! | `validate/` | validation of a scenario |
//! | `tick_checks.rs` | checks in every tick of a run |

mod behaviours;
mod builtin;
mod capture;
mod checks;
mod counters;
mod events;
mod external_actions;
mod help;
mod json_schema;
mod leaks;
mod load;
mod margin;
mod matches;
mod memory;
mod movement_summary;
mod old_names;
mod plausible;
mod player_store;
mod read;
pub mod record;
pub mod report;
mod rest;
mod runner;
mod scenario_world;
mod schema;
mod script;
mod script_errors;
mod selection;
mod sources;
mod stored_report;
mod text;
mod tick_checks;
mod timed_cue;
mod validate;

pub use behaviours::{
    BehaviourAppExt, BehaviourParameters, BehaviourSite, Behaviours, CueParameters,
};
pub use builtin::{BUILT_IN, BuiltIn, TEMPLATE, built_in};
pub use checks::TimingChecks;
pub use counters::is_wall_time;
pub use events::EventLog;
pub use external_actions::{EXTERNAL_ACTION_BYTES_MAX, EXTERNAL_ACTIONS_MAX, ExternalActionResult};
pub use help::{HelpEntry, HelpField, HelpGroup, help_entries};
pub use json_schema::json_schema;
pub use leaks::{LeakSummary, LeakedAllocations};
pub use load::{LoadedScenario, ScenarioReview, load, load_with, load_with_errors, parse};
pub use margin::{Margin, MarginSide};
pub use matches::{ScenarioMatchStats, ScenarioMatches};
pub use memory::MemorySummary;
pub use movement_summary::MovementSummary;
pub use player_store::PlayerStoreSummary;
pub use read::SCENARIO_BYTES_MAX;
pub use record::RunRecord;
pub use report::{BuildSummary, ExpectationResult, PathSummary, Report, SessionSummary, Verdict};
pub use runner::{RunOptions, ScenarioRun};
pub use schema::{
    Action, AudienceName, BehaviourSpec, Class, Cue, CueSpec, Expectation, MapSource,
    ObjectCondition, ParameterValue, Scenario, ScenarioAnnouncementScope, ScenarioArea,
    ScenarioAttribute, ScenarioCrowd, ScenarioMatchMode, ScenarioOutboxSettings, ScenarioScene,
    ScenarioSettings, SelectionOrder, TickLimit, ViewLinkMode,
};
pub use script::ScenarioScript;
pub use script_errors::ScriptError;
pub use sources::{Parameter, Sources};
pub use stored_report::rename_former_keys;
pub use text::{
    PathStep, ScenarioError, SourceError, ValidationError, ValuePath, closest, list_names,
};
pub use validate::{limits, validate, validate_all};
