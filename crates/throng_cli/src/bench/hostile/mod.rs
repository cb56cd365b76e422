//! `throng bench hostile`: a server under attack. It measures how much memory connections can make the server use, and the delays of honest
//! clients while a host or a network floods it.
//!
//! ```text
//! throng serve, own process ◀── UDP ──┬── honest clients and newcomers (this thread)
//!                                     └── attacker (own thread): quiet, attack, quiet, …
//! ```
//! | file | holds |
//! |---|---|
//! | `server_process` | the server, its counters, memory and processor time |
//! | `memory_trial` | connections that make the server hold as much as the protocol allows |
//! | `phases` | the phases of the delay trial |
//! | `trial` | the delay trial |
//! | `honest` | honest clients |
//! | `attacker` | the attacker |
//! | `delays` | quantiles of the delays, compared with the quiet phases before and after |
//! | `report` | rows and tables |
//!
//! All sockets are on the loopback interface, which owns all addresses of 127.0.0.0/8. Each honest client pair and each hostile connection
//! has its own address, so the limits per address act as on the internet. An IPv6 network has to be routed to the interface first: see the
//! help text.

mod attacker;
mod delays;
mod honest;
mod memory_trial;
mod phases;
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
            settle_s: 2.0,
            quiet_s: 2.0,
            attack_s: 3.0,
        };
        (1_000, size)
    } else {
        let size = TrialSize {
            honest: 500,
            settle_s: 30.0,
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
