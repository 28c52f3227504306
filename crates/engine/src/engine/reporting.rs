//! How the servers are, for whoever asks. Nothing is changed here.

use super::Engine;
use crate::error::cut;
use crate::id::{DefinitionId, ServerId};
use crate::json;
use crate::limits;
use crate::report::{Condition, Report};
use crate::servers::{Life, Server};
use crate::wire::Field;
use std::collections::BTreeMap;

impl Engine {
    /// How every server of the file is, in its order.
    pub fn report(&self) -> Vec<Report> {
        self.report_on(self.config.definitions().map(|(id, _)| id).collect())
    }

    /// The same of those that a principal may use.
    pub fn report_to(&self, principal: Option<&str>) -> Vec<Report> {
        self.report_on(self.definitions_for(principal))
    }

    fn report_on(&self, definitions: Vec<DefinitionId>) -> Vec<Report> {
        let named = |id| Some((id, Report::new(&self.config.definition(id)?.name)));
        let mut reports: BTreeMap<DefinitionId, Report> = definitions.into_iter().filter_map(named).collect();
        let mut in_flight: BTreeMap<ServerId, usize> = BTreeMap::new();
        for (_, call) in self.calls.iter().filter(|(_, call)| call.attempt().is_some()) {
            *in_flight.entry(call.request.server).or_default() += 1;
        }
        for (id, server) in self.servers.iter() {
            if let Some(report) = reports.get_mut(&server.definition) {
                report.in_flight += in_flight.get(id).copied().unwrap_or_default();
                report.left_out |= self.merged.does_not_speak(*id);
                add(report, server);
            }
        }
        reports.into_values().collect()
    }

    /// Whether requests are taken, and some server may answer them.
    pub fn is_ready(&self) -> bool {
        let failed = match self.config.others.is_empty() {
            true => self.servers.is_given_up(),
            // The others serve.
            false => self.report().iter().all(|report| report.condition == Condition::Failed),
        };
        self.ending.is_none() && self.leaving.is_none() && !self.ended && !failed
    }
}

/// One process or session of a server.
fn add(report: &mut Report, server: &Server) {
    if server.life == Life::Leaving {
        return;
    }
    report.condition = report.condition.max(condition(server));
    report.running += usize::from(matches!(server.life, Life::Starting | Life::Up | Life::Reviving(_)));
    report.restarts += server.restarted;
    report.legacy |= server.eras.speaks(crate::era::Era::Legacy);
    report.modern |= server.eras.speaks(crate::era::Era::Modern);
    report.calls_itself = calls_itself(server).or(report.calls_itself.take());
    report.error = server.last_error.clone().or(report.error.take());
}

fn condition(server: &Server) -> Condition {
    match server.life {
        Life::Starting => Condition::Starting,
        Life::Up if server.came_up => Condition::Ready,
        Life::Up => Condition::Starting,
        Life::Stopping if server.falls_asleep => Condition::Asleep,
        // The first time it is only starting.
        Life::Restarting | Life::Reviving(_) if server.run.0 == 0 => Condition::Starting,
        Life::Stopping | Life::Resting | Life::Restarting | Life::Reviving(_) => Condition::Restarting,
        Life::Asleep | Life::Leaving => Condition::Asleep,
        Life::Down | Life::Ended(_) | Life::Failed(_) => Condition::Failed,
    }
}

/// `serverInfo`, wherever it stands in this era.
fn calls_itself(server: &Server) -> Option<Box<str>> {
    let result = server.welcome.as_ref()?.raw(Field::Result)?;
    let modern = || json::member(json::member(result, "_meta")?, "io.modelcontextprotocol/serverInfo");
    let info = json::member(result, "serverInfo").or_else(modern)?;
    let text = |name| -> Option<String> { serde_json::from_slice(json::member(info, name)?).ok() };
    let whole = format!("{} {}", text("name")?, text("version").unwrap_or_default());
    Some(cut(whole.trim(), limits::NAME).into())
}
