//! `throng bench hostile`: a server under attack. How much memory connections can make it hold, and how long honest clients wait while a
//! host or a network floods it.
//!
//! ```text
//! throng serve, own process ◀── UDP ──┬── honest clients and newcomers (this thread)
//!                                     └── attacker (own thread): quiet, attack, quiet, …
//! ```
//! | file | holds |
//! |---|---|
//! | `server_process` | the server, its counters, memory and processor time |
//! | `memory_trial` | connections that make the server hold as much as the protocol allows |
//! | `trial` | the parts of the trial of delays |
//! | `honest` | honest clients |
//! | `attacker` | the attacker |
//! | `delays` | quantiles of the delays, compared with the quiet parts before and after |
//! | `report` | rows and tables |
//!
//! All sockets are on the loopback interface, where a process has all addresses of 127.0.0.0/8. Each honest client and each hostile
//! connection has an address of its own, so that the limits per address hold as on the internet. A network of IPv6 has to be routed to the
//! interface first: see the help text.

mod attacker;
mod delays;
mod honest;
mod memory_trial;
mod report;
mod server_process;
mod trial;

use super::CliError;
use super::rows::BenchRow;
use trial::TrialSize;

const SYSTEM: &str = "hostile";

pub(super) fn measure(quick: bool, shows_tables: bool) -> Result<Vec<BenchRow>, CliError> {
    let (connections, size) = if quick {
        let size = TrialSize {
            honest: 100,
            quiet_s: 2.0,
            attack_s: 3.0,
        };
        (1_000, size)
    } else {
        let size = TrialSize {
            honest: 500,
            quiet_s: 6.0,
            attack_s: 10.0,
        };
        (10_000, size)
    };
    let mut rows = Vec::new();
    let memory = memory_trial::run(connections)?;
    if shows_tables {
        report::print_memory(&memory)?;
    }
    rows.extend(report::memory_rows(&memory));
    if crate::is_interrupted() {
        return Ok(rows);
    }
    let result = trial::run(size)?;
    let delays = delays::compare(&result);
    if shows_tables {
        report::print_delays(&result, &delays)?;
    }
    rows.extend(report::delay_rows(&result, &delays));
    if shows_tables {
        report::print_verdicts(&rows)?;
    }
    Ok(rows)
}
