//! Drives a node with a real store and a real bus.
//!
//! ```text
//!  tick ── NodeDriver::with_node ──▶ ClusterNode ◀── thread of the node ──▶ MessageBus
//!          (a short lock)                             │      ▲
//!                                                     ▼      │ replies
//!                      five lanes: heartbeats · writes · reads · arrivals · matches, each a thread with a store of its own
//! ```
//!
//! The thread of the node sleeps until a reply or a message arrives, for 10 ms at most. Its clock decides when requests are sent, and when the
//! node pauses; everything else is decided by the rows. A request that waits for a lane for longer than its timeout is dropped. The tick never
//! waits for a store or the bus.
//!
//! | file | contains |
//! |---|---|
//! | `start` | the start of a node: its run, its settings, errors |
//! | `node_driver` | the handle for the tick |
//! | `node_thread` | the thread of the node |
//! | `lanes` | the threads of the store |
//! | `groups` | drives the groups of the players of the node, and sends the attributes of their members |
//! | `matches` | drives the node's part in matches |
//! | `record_reads` | reads of the records of players on other nodes |

mod groups;
mod lanes;
mod matches;
mod node_driver;
mod node_thread;
mod record_reads;
mod start;

pub use node_driver::NodeDriver;
pub use node_thread::DriverStats;
pub use start::{DriverSettings, DriverStartError};
