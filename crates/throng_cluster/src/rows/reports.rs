//! The reports of nodes.

use std::collections::BTreeMap;

use super::ClusterRows;
use crate::ids::{ClusterNodeId, NodeRun};
use crate::request::{
    ClusterReply, NodeReport, REPORT_OLD_AFTER_MS, RefusedWrite, ReportEntry, ReportRequest,
    ReportTable,
};

#[derive(Clone, Debug)]
struct ReportRow {
    run: u64,
    reported_ms: u64,
    report: NodeReport,
}

/// The last report of each node.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportRows(BTreeMap<ClusterNodeId, ReportRow>);

impl ClusterRows {
    pub(super) fn execute_report(&mut self, request: ReportRequest, now_ms: u64) -> ClusterReply {
        let (run, report) = match request {
            ReportRequest::Write { run, report } => (run, report),
            ReportRequest::Read => return ClusterReply::Reports(self.reports(now_ms)),
        };
        if !self.is_alive(run, now_ms) {
            return ClusterReply::Refused(RefusedWrite::RunEnded);
        }
        let row = ReportRow {
            run: run.run,
            reported_ms: now_ms,
            report,
        };
        self.reports.0.insert(run.node, row);
        ClusterReply::Done
    }

    fn reports(&self, now_ms: u64) -> ReportTable {
        let entries = self.reports.0.iter().filter_map(|(&node, row)| {
            let run = NodeRun { node, run: row.run };
            let is_old = now_ms.saturating_sub(row.reported_ms) > REPORT_OLD_AFTER_MS;
            let known = self.nodes.get(&node)?;
            (!is_old && self.is_alive(run, now_ms)).then(|| ReportEntry {
                name: known.name.clone(),
                run,
                report: row.report.clone(),
            })
        });
        ReportTable {
            nodes: entries.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{ClusterRequest, NODE_LATE_AFTER_MS, ScenePlayers};

    fn started(rows: &mut ClusterRows, name: &str, now_ms: u64) -> NodeRun {
        let name = name.to_owned();
        match rows.execute(ClusterRequest::StartRun { name }, now_ms) {
            ClusterReply::Started(run) => run,
            other => panic!("{other:?}"),
        }
    }

    fn write(rows: &mut ClusterRows, run: NodeRun, players: u32, now_ms: u64) -> ClusterReply {
        let scene = "town".to_owned();
        let report = NodeReport {
            scenes: vec![ScenePlayers { scene, players }],
            gateways: Vec::new(),
        };
        let request = ReportRequest::Write { run, report };
        rows.execute(ClusterRequest::Report(request), now_ms)
    }

    /// The runs with a report, and the players that they report.
    fn reported(rows: &ClusterRows, now_ms: u64) -> Vec<(NodeRun, u32)> {
        let entries = rows.reports(now_ms).nodes.into_iter();
        let players = |report: &NodeReport| report.scenes.iter().map(|scene| scene.players).sum();
        entries
            .map(|entry| (entry.run, players(&entry.report)))
            .collect()
    }

    #[test]
    fn reports_of_dead_late_and_former_runs_are_left_out() {
        let mut rows = ClusterRows::default();
        let (one, two) = (started(&mut rows, "n1", 0), started(&mut rows, "n2", 0));
        for (run, players) in [(one, 5), (two, 6), (one, 7)] {
            assert_eq!(write(&mut rows, run, players, 100), ClusterReply::Done);
        }
        assert_eq!(reported(&rows, 200), [(one, 7), (two, 6)]);
        rows.execute(ClusterRequest::Heartbeat { run: two, load: 0 }, 1_000);
        let late_ms = NODE_LATE_AFTER_MS + 1;
        assert_eq!(reported(&rows, late_ms), [(two, 6)]);
        let refused = ClusterReply::Refused(RefusedWrite::RunEnded);
        assert_eq!(write(&mut rows, one, 8, late_ms), refused);
        // It comes back, and its last report counts again.
        rows.execute(ClusterRequest::Heartbeat { run: one, load: 0 }, 1_600);
        assert_eq!(reported(&rows, 1_600), [(one, 7), (two, 6)]);
        rows.execute(ClusterRequest::EndRun { run: one }, 1_700);
        assert_eq!(reported(&rows, 1_700), [(two, 6)]);
        let next = started(&mut rows, "n1", 1_800);
        assert_eq!(reported(&rows, 1_800), [(two, 6)]);
        assert_eq!(write(&mut rows, one, 9, 1_800), refused);
        assert_eq!(write(&mut rows, next, 1, 1_800), ClusterReply::Done);
        assert_eq!(reported(&rows, 1_800), [(next, 1), (two, 6)]);
    }

    #[test]
    fn report_that_is_not_renewed_is_left_out_after_5_s() {
        let mut rows = ClusterRows::default();
        let run = started(&mut rows, "n1", 0);
        write(&mut rows, run, 5, 100);
        for now_ms in (0..=6_000).step_by(1_000) {
            rows.execute(ClusterRequest::Heartbeat { run, load: 0 }, now_ms);
        }
        assert_eq!(reported(&rows, 5_100), [(run, 5)]);
        assert_eq!(reported(&rows, 5_101), []);
    }
}
