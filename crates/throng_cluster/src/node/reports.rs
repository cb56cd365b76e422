//! What a node reports to operators: the players of its scenes, and the gateways that it knows.
//!
//! A report replaces the one before, and nothing depends on it. So one that is lost or late does no harm: the next one follows after
//! [`report_interval_ms`](super::NodeSettings::report_interval_ms).

use std::collections::BTreeMap;

use super::requests::{RequestKind, RequestWork};
use super::{ClusterNode, NodeOutput};
use crate::request::{
    ClusterRequest, GatewayClients, NodeReport, REPORTED_GATEWAYS_MAX, REPORTED_SCENES_MAX,
    ReportRequest, ScenePlayers,
};

/// What the next report contains.
#[derive(Clone, Debug)]
pub(super) struct ReportSource {
    /// The players of scenes, as the game has counted them last.
    scenes: BTreeMap<String, u32>,
    gateways: Vec<GatewayClients>,
    next_ms: u64,
}

impl ReportSource {
    pub const fn new() -> Self {
        Self {
            scenes: BTreeMap::new(),
            gateways: Vec::new(),
            next_ms: 0,
        }
    }
}

impl ClusterNode {
    /// Sets the number of players in each scene, by the name of the scene, for the next reports to operators. Scenes that this node does not run
    /// are left out of them.
    pub fn set_scene_players(&mut self, scenes: impl IntoIterator<Item = (String, u32)>) {
        self.reports.scenes = scenes.into_iter().collect();
    }

    /// Sets the gateways that this node knows, with their clients, for the next report to operators. A name with a zero byte is left out, as are
    /// gateways beyond [`REPORTED_GATEWAYS_MAX`].
    pub fn set_gateway_clients(&mut self, gateways: impl IntoIterator<Item = GatewayClients>) {
        let gateways = gateways.into_iter();
        // Postgres refuses such texts, and with them the whole report.
        let valid = gateways.filter(|counted| !counted.gateway.contains('\0'));
        self.reports.gateways = valid.take(REPORTED_GATEWAYS_MAX).collect();
    }

    /// Whether the next call of [`poll`](Self::poll) at this time sends a report. So the gateways need to be set only then.
    #[must_use]
    pub const fn is_report_due(&self, now_ms: u64) -> bool {
        self.is_valid(now_ms)
            && now_ms >= self.reports.next_ms
            && self.requests.is_free(RequestKind::Report, now_ms)
    }

    pub(super) fn send_report(&mut self, now_ms: u64, outputs: &mut Vec<NodeOutput>) {
        if !self.is_report_due(now_ms) {
            return;
        }
        self.reports.next_ms = now_ms + self.settings.report_interval_ms;
        let scenes = self.scenes(now_ms).filter_map(|entry| {
            let players = *self.reports.scenes.get(&entry.name)?;
            let scene = entry.name.clone();
            Some(ScenePlayers { scene, players })
        });
        let report = NodeReport {
            scenes: scenes.take(REPORTED_SCENES_MAX).collect(),
            gateways: self.reports.gateways.clone(),
        };
        let run = self.run;
        let request = ClusterRequest::Report(ReportRequest::Write { run, report });
        self.send(RequestWork::Report, request, now_ms, outputs);
    }
}

#[cfg(test)]
mod tests;
