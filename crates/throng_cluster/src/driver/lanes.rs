//! The threads that execute requests, each with a store of its own, so that a heartbeat does not wait for a save.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use throng_core::clock::Stopwatch;

use crate::node::RequestId;
use crate::request::{ClusterReply, ClusterRequest, SceneRequest};
use crate::store::{ClusterStore, ClusterStoreError};

/// The sender of a request, which gets the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneCaller {
    Node(RequestId),
    /// The part of the node in matches.
    Matches(RequestId),
    /// The driver, for its list of nodes.
    Nodes,
    /// The messenger, with the number of its read.
    Messenger(u64),
    /// The groups of players, with the number of the request.
    Groups(u64),
    /// The tick, for records of players, with the number of its read.
    Records(u64),
}

/// A request for a lane.
struct LaneRequest {
    caller: LaneCaller,
    request: ClusterRequest,
    waits: Stopwatch,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) struct LaneReply {
    pub caller: LaneCaller,
    /// `None` if the outcome is unknown.
    pub reply: Option<ClusterReply>,
}

/// The lanes of a node.
pub(super) struct StoreLanes {
    lanes: [Sender<LaneRequest>; Lane::COUNT],
    replies: Receiver<LaneReply>,
}

#[derive(Clone, Copy)]
enum Lane {
    Heartbeats,
    Writes,
    Reads,
    /// Players that arrive wait for nothing else.
    Arrivals,
    Matches,
}

impl Lane {
    const COUNT: usize = 5;
    const NAMES: [&str; Self::COUNT] = [
        "cluster heartbeats",
        "cluster writes",
        "cluster reads",
        "cluster arrivals",
        "cluster matches",
    ];

    const fn of(request: &ClusterRequest) -> Self {
        match request {
            ClusterRequest::Heartbeat { .. } => Self::Heartbeats,
            ClusterRequest::Save { .. }
            | ClusterRequest::HandOff { .. }
            | ClusterRequest::Release { .. }
            | ClusterRequest::RaiseEpoch { .. }
            | ClusterRequest::TakeBack { .. }
            | ClusterRequest::LogIn { .. }
            | ClusterRequest::EndRun { .. } => Self::Writes,
            ClusterRequest::Scene(SceneRequest::Read) => Self::Reads,
            ClusterRequest::Scene(_) => Self::Writes,
            // Changes of groups wait for each other in the store, so they must not delay saves.
            ClusterRequest::Match(_) | ClusterRequest::Group(_) => Self::Matches,
            ClusterRequest::ReadArrivals { .. } | ClusterRequest::Adopt { .. } => Self::Arrivals,
            // Also reports for operators: they wait for no other node in the store.
            _ => Self::Reads,
        }
    }
}

impl StoreLanes {
    /// Starts the threads. When the lanes are dropped, they execute the requests that were sent before, and end.
    pub fn start(
        open: &mut dyn FnMut() -> Box<dyn ClusterStore>,
        timeout: Duration,
        waker: &Waker,
    ) -> std::io::Result<Self> {
        let (reply, replies) = channel();
        let mut senders = Vec::with_capacity(Lane::COUNT);
        for name in Lane::NAMES {
            let (sender, requests) = channel();
            senders.push(sender);
            let (store, reply, waker) = (open(), reply.clone(), waker.clone());
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(move || work(store, &requests, &reply, timeout, &waker))?;
        }
        let lanes = senders.try_into();
        let lanes = lanes.map_err(|_| std::io::Error::other("a lane is missing"))?;
        Ok(Self { lanes, replies })
    }

    pub fn send(&self, caller: LaneCaller, request: ClusterRequest) {
        let lane = &self.lanes[Lane::of(&request) as usize];
        let waits = Stopwatch::start();
        // If the thread has panicked, the request gets no reply and times out.
        let _ = lane.send(LaneRequest {
            caller,
            request,
            waits,
        });
    }

    pub fn next_reply(&self) -> Option<LaneReply> {
        self.replies.try_recv().ok()
    }
}

fn work(
    mut store: Box<dyn ClusterStore>,
    requests: &Receiver<LaneRequest>,
    replies: &Sender<LaneReply>,
    timeout: Duration,
    waker: &Waker,
) {
    let mut is_failing = false;
    for LaneRequest {
        caller,
        request,
        waits,
    } in requests
    {
        // A request that has waited for too long is not executed, except the last one of a node that stops.
        let is_last = matches!(request, ClusterRequest::EndRun { .. });
        let reply = if waits.elapsed() >= timeout && !is_last {
            Some(ClusterReply::Away)
        } else {
            let executed = store.execute(&request);
            if let Err(error) = &executed
                && !is_failing
            {
                tracing::warn!(%error, "cluster request failed; further failures until one succeeds are not logged");
            }
            is_failing = executed.is_err();
            match executed {
                Ok(reply) => Some(reply),
                Err(ClusterStoreError::NotExecuted(_)) => Some(ClusterReply::Away),
                Err(ClusterStoreError::Unknown(_)) => None,
            }
        };
        // Without a receiver, the node has stopped. The requests that it sent before, such as the end of its run, are still executed.
        let _ = replies.send(LaneReply { caller, reply });
        waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClusterNodeId, NodeRun};

    /// Reports each request, and waits for a permit before it replies.
    struct BlockingStore {
        requests: Sender<ClusterRequest>,
        permits: Receiver<()>,
    }

    impl ClusterStore for BlockingStore {
        fn execute(&mut self, request: &ClusterRequest) -> Result<ClusterReply, ClusterStoreError> {
            self.requests.send(request.clone()).unwrap();
            self.permits.recv().unwrap();
            Ok(ClusterReply::Done)
        }
    }

    /// Sends a request that is late at once, with this number of permits. Returns the executed requests, and the reply.
    fn work_late(
        request: ClusterRequest,
        permits_count: usize,
    ) -> (Vec<ClusterRequest>, Option<ClusterReply>) {
        let (executed_requests, executed) = channel();
        let (permit, permits) = channel();
        (0..permits_count).for_each(|_| permit.send(()).unwrap());
        let store = Box::new(BlockingStore {
            requests: executed_requests,
            permits,
        });
        let (sender, requests) = channel();
        let (reply, replies) = channel();
        let caller = LaneCaller::Messenger(5);
        let waits = Stopwatch::start();
        let late = LaneRequest {
            caller,
            request,
            waits,
        };
        sender.send(late).unwrap();
        drop(sender);
        work(store, &requests, &reply, Duration::ZERO, Waker::noop());
        let replied = replies.try_recv().unwrap();
        assert_eq!(replied.caller, caller);
        (executed.try_iter().collect(), replied.reply)
    }

    #[test]
    fn late_request_is_not_executed_and_gets_a_reply() {
        let worked = work_late(ClusterRequest::ReadNodes, 0);
        assert_eq!(worked, (Vec::new(), Some(ClusterReply::Away)));
    }

    #[test]
    fn end_of_a_run_is_executed_however_long_it_has_waited() {
        let node = ClusterNodeId(1);
        let end = ClusterRequest::EndRun {
            run: NodeRun { node, run: 1 },
        };
        let worked = work_late(end.clone(), 1);
        assert_eq!(worked, (vec![end], Some(ClusterReply::Done)));
    }

    #[test]
    fn end_of_a_run_is_executed_after_a_save_that_outlasts_the_node() {
        let (requests, executed) = channel();
        let mut permits = Vec::new();
        let mut open = || -> Box<dyn ClusterStore> {
            let (permit, permitted) = channel();
            permits.push(permit);
            let (requests, permits) = (requests.clone(), permitted);
            Box::new(BlockingStore { requests, permits })
        };
        let timeout = Duration::from_secs(600);
        let lanes = StoreLanes::start(&mut open, timeout, Waker::noop()).unwrap();
        let node = ClusterNodeId(1);
        let run = NodeRun { node, run: 1 };
        let saves = Vec::new();
        let [save, end] = [
            ClusterRequest::Save { run, saves },
            ClusterRequest::EndRun { run },
        ];
        lanes.send(LaneCaller::Nodes, save.clone());
        assert_eq!(executed.recv().unwrap(), save);
        lanes.send(LaneCaller::Nodes, end.clone());
        drop(lanes);
        for permit in &permits {
            let _ = permit.send(());
        }
        drop(requests);
        assert_eq!(executed.recv().ok(), Some(end));
        for permit in &permits {
            let _ = permit.send(());
        }
    }
}
