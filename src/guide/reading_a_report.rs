//! Reading what `throng run` prints.
//!
//! | line | says | look at it when |
//! |---|---|---|
//! | `parameters` | the values that the scenario was played with, those of `--set` among them | it has any |
//! | `time` | ticks, and how many times faster than real time they went | it nears 1: a server in real time would be late |
//! | `sessions` | lost links, how many went on, why others ended, the longest line before the door | any befell them |
//! | `directory` | players saved, loaded and held, logins refused, what the store failed; with `--store` | any wait at the end, or the store failed |
//! | `paths` | found, unreachable, capped | many are capped: `npc_nodes_max` is too small for the ways that NPCs go |
//! | `builds` of maps | what was made of maps beside the ticks, how long was waited for it between them, how much came late | `late` is large: prepare the maps (`throng map prepare`) |
//! | `views` | links now, enters, evictions, the longest list | evictions are many times the enters: the cap is small for the crowd |
//! | `sync` | packets, bytes a client and second, by kind | bytes are near a line's width |
//! | `inbox` | messages in, refused, the longest wait | any is refused |
//! | `state hash` | the whole state in 16 digits | two runs should have been the same |
//! | the table of sets | where a tick's time goes | one set has most of it |
//! | `ok`, `BROKEN` | an expectation, and what was found | always |
//! | `not exercised` | an expectation that had nothing to judge | always: such a run has not passed |
//! | `not judged`, `slow here` | time, which only `--judge-time` judges | you know the machine |
//! | `script fault` | a cue that could not do what it says, with its line | always |
//!
//! The sets are those of [`SimSystems`](crate::sim::SimSystems), in the order of the tick. Of the columns, `p99` is the time
//! below which 99 of 100 ticks stay. Ticks of the start are shown apart: maps are prepared and everybody appears.
//!
//! A line that is longer than 80 columns goes on in the next one, set in.
//!
//! `--json` has every figure, under the names that `Counter` expectations use; `--events` every event a line; `--hashes` the
//! state after each tick, with which the first differing tick of two runs is found by `cmp`.
//!
//! # The page of a run
//!
//! `--report FILE.html` writes a page that needs nothing else. From the top: expectations with the room that they leave; everything over
//! simulated time, on one axis, with the cues of the script as dotted lines; ticks by their time; the slowest ticks and what
//! was unusual in each; where the crowd stood; what clients were sent; every figure, and the words that run it again. The first
//! second is shaded, and in no figure of time. A long run has many ticks a point: their mean by set, their median, and the
//! longest of them. `--csv FILE` has every tick in a line of its own.
//!
//! Look first at the slowest ticks. A set that took many times its median beside a count that is many times its mean names the
//! cause; where nothing that is counted was unusual, play it again: other work of the machine hits another tick then.
//!
//! Which system of the set it was, `--trace FILE.json` tells: what each took in each of the first 1,000 ticks, for
//! <https://ui.perfetto.dev>.
//!
//! `throng report A.json B.json` sets two runs side by side, the largest move first. With the same state hash what was
//! simulated is the same, and only times can differ.
//!
//! # What befell clients
//!
//! `--json` has it under `sessions`, and expectations by these names. Scripts make it happen.
//!
//! | figure | counts | the action that does it |
//! |---|---|---|
//! | `in_line`, `max_in_line`, `places_told` | players who wait for a place, now and at most; what they were told | `settings.session.players_max` |
//! | `max_admitted` | the most let in within a tick | `settings.session.admitted_per_tick_max` |
//! | `links_lost`, `link_dead`, `resumed`, `resumed_by_token` | lost lines, those that are down now, sessions that went on | `LoseLink` |
//! | `ended.disconnected` | lines that nobody came back over in time, and connections that ended before a login | `LoseLink` for longer than `keep_s` |
//! | `ended.replaced`, `ended.kicked`, `ended.banned` | sessions that another login or the game ended, and each connection turned away for a ban | `LoginAgain`, `Kick`, `Ban` |
//! | `ended.idle` | players who said nothing for too long | `messages_per_s: 0` and `settings.session.idle_s_max` |
//! | `ended.drained` | sessions that a drain ended, and who was turned away meanwhile | `Drain`, until `Reopen` |
//! | `possessing`, `watching` | players who control what is no player's own, or whose view goes with another's | `Possess`, `Spectate`, until `Release` |
//! | `ends_told` | clients with a mirror that were told why their session ended | all of them |
//! | `bad_messages`, `late_inputs` | messages that were refused; inputs that came late or twice | bad lines |
//!
//! The scenario `churn` plays all of it: `throng scenario show churn`.
//!
//! # What `throng bench` prints
//!
//! | figure | says |
//! |---|---|
//! | value, least, most | the median of repeats, and how far they lie apart: on a busy machine only the least says much |
//! | ratio | how many times as much the reference took in the same run: above 1, throng is better |
//! | `baseline:` | the figure of the run that `--baseline` names, and how much more or less it is now, at its best repeat, too |
//! | within the spread | a change no larger than the repeats of one of the two runs lie apart: measure again before you believe it |
//! | `growth of …` | the exponent by which a time grows over the sizes that were measured: 1 is in proportion, 2 with the square |
//! | `square …` | the same crowd all in one square of 100 m, where everybody could see everybody: no target is set for it |
//! | `ok`, `MISSED` | with `--judge`: a target of the machine that it was set on |
//!
//! In `--json` a row's `ratio`, `baseline_ratio` and `baseline_best_ratio` go the same way: above 1, throng is better, or is
//! better now than then. `interrupted` is `null` unless the run was stopped; then rows may be missing of the system that it
//! names, and none of them is judged.
