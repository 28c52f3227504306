//! One probe that runs, on a thread of its own: the main thread goes on reading, so that a cancel is
//! seen while the probe waits. It waits on the record and never sleeps.

use super::desk::Desk;
use super::record::{Elicited, Fate, Probe, Record};
use super::speech::Era;
use super::tools;
use serde_json::{Value, json};
use std::time::Duration;

/// Between two reports of progress.
const EVERY: Duration = Duration::from_secs(1);

/// A call that runs: its place in the record, and how to answer it.
pub struct Run<'a> {
    pub desk: &'a Desk,
    pub place: usize,
    pub era: Era,
}

impl Run<'_> {
    /// Runs the call to its end.
    pub fn go(&self) {
        let probe = self.desk.look(|record| record.calls[self.place].probe);
        match probe {
            Probe::Silence => self.be_silent(),
            Probe::Progress => self.report(),
            Probe::Elicitation => self.elicit(),
            Probe::Report => {}
        }
    }

    fn be_silent(&self) {
        let planned = self.desk.look(|record| record.calls[self.place].planned);
        if self.wait(planned, |_| true) {
            self.answer("The client waited all that time in silence.");
        }
    }

    fn report(&self) {
        let (planned, token) = self.desk.look(|record| {
            let call = &record.calls[self.place];
            (call.planned, call.token.clone())
        });
        // Progress for a call that was given up costs some clients their connection.
        let wanted = |record: &Record| record.calls[self.place].overtaken.is_none();
        for number in 1.. {
            let at = EVERY * number;
            if !self.wait(at.min(planned), wanted) {
                return;
            }
            if at >= planned {
                break;
            }
            if let Some(token) = &token {
                self.desk.send(&progress(token, number, planned));
                self.desk.change(|record, _| record.calls[self.place].reports += 1);
            }
        }
        self.answer(match token {
            Some(_) => "The client waited all that time, with progress every second.",
            None => "The client waited all that time; it sent no progress token, so it got no progress.",
        });
    }

    fn elicit(&self) {
        if !self.desk.look(Record::takes_forms) {
            self.desk.change(|record, _| record.elicited = Elicited::NotDeclared);
            return self.answer("The client did not declare elicitation by forms, so nobody was asked.");
        }
        let id = format!("outlast-doctor-{}", self.place);
        self.desk.change(|record, now| record.elicited = Elicited::Asked(now));
        self.desk.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": tools::question()}),
        );
        let asked = |record: &Record| matches!(record.elicited, Elicited::Asked(_));
        if self.wait(tools::PERSON, asked) {
            self.desk.change(|record, _| record.elicited = Elicited::Silence(tools::PERSON));
        }
        self.answer("The client was asked; probe_report says how that went.");
    }

    /// Waits until this long after the call's beginning, as long as the call runs and `still` holds;
    /// whether both did to the end.
    fn wait(&self, time: Duration, still: impl Fn(&Record) -> bool) -> bool {
        self.desk
            .wait(self.place, time, |record| record.calls[self.place].fate == Fate::Running && still(record))
    }

    fn answer(&self, text: &str) {
        let place = self.place;
        let call = self.desk.change(|record, now| {
            record
                .answer(place, now)
                .then(|| (record.calls[place].id.clone(), record.calls[place].receipt.clone()))
        });
        // Taken back: then no answer is wanted.
        let Some((id, receipt)) = call else { return };
        let text = format!("{text} Receipt: {receipt}");
        self.desk.send(&self.era.answer(&id, super::speech::text(&text)));
    }
}

fn progress(token: &Value, number: u32, planned: Duration) -> Value {
    let total = planned.as_secs_f64();
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": token, "progress": number, "total": total,
        "message": format!("probe_progress: {number} of {total:.0} s"),
    }})
}
