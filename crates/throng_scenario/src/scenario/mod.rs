//! Scenarios: reading, validation, play, report. The page of the crate says what they are.
//!
//! | file | holds |
//! |---|---|
//! | `matches.rs` | battles: matches whose players are moved to a scene and home again |
//! | `behaviours/` | the behaviours and cues that scenarios may name, and their parameters |
//! | `builtin.rs` | the scenarios that come with the program |
//! | `capture.rs` | every packet of a run, written down |
//! | `checks.rs` | the judging of expectations |
//! | `selection.rs` | whom a cue is about |
//! | `counters.rs` | the figures of a report by their names |
//! | `player_store.rs` | what became of players that persist |
//! | `events/` | the event log, a JSON object a line |
//! | `script_errors.rs` | cues that could not do what they say |
//! | `json_schema/` | the JSON Schema of scenarios |
//! | `leaks.rs` | whether a run gives back all that it took |
//! | `load.rs` | reading scenarios and the maps that they name, from the disk |
//! | `margin.rs` | by how much expectations hold |
//! | `memory.rs` | what a run takes of memory |
//! | `old_names.rs` | names that fields and variants had before |
//! | `read.rs` | reading the text of a scenario, within a limit |
//! | `record/` | a run tick by tick, kept within bounds |
//! | `report.rs` | the figures of a run |
//! | `runner.rs` | playing: set up, tick by tick, to rest, judged |
//! | `schema/` | the types of a scenario file, as they are written there |
//! | `script.rs` | cues, run when their time has come |
//! | `sources.rs` | the files of which a scenario is made, and the parameters in them |
//! | `scenario_world.rs` | scenes, crowds and queues, put on a server |
//! | `text/` | from text to values, and from a wrong value back to its words |
//! | `timed_cue.rs` | when cues run |
//! | `validate/` | whether a scenario makes sense |
//! | `tick_checks.rs` | what is watched during a run |

mod behaviours;
mod builtin;
mod capture;
mod checks;
mod counters;
mod events;
mod external_actions;
mod json_schema;
mod leaks;
mod load;
mod margin;
mod matches;
mod memory;
mod old_names;
mod player_store;
mod read;
pub mod record;
pub mod report;
mod runner;
mod scenario_world;
mod schema;
mod script;
mod script_errors;
mod selection;
mod sources;
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
pub use json_schema::json_schema;
pub use leaks::{LeakSummary, LeakedAllocations};
pub use load::{LoadedScenario, ScenarioReview, load, load_with, parse};
pub use margin::{Margin, MarginSide};
pub use matches::{ScenarioMatchStats, ScenarioMatches};
pub use memory::MemorySummary;
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
pub use text::{
    PathStep, ScenarioError, SourceError, ValidationError, ValuePath, closest, list_names,
};
pub use validate::{limits, validate, validate_all};
