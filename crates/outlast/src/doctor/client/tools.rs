//! What the probes are called and how they are described. An agent that is told "run the outlast
//! probes" has nothing else to go by.

use super::record::Probe;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a probe may be asked to take.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// How long the silence is if nobody says: longer than the 60 seconds that most clients wait.
pub const SILENCE: Duration = Duration::from_secs(90);

/// How long progress is sent if no limit of the client is known yet.
pub const PROGRESS: Duration = Duration::from_secs(20);

/// How long a person may take to answer.
pub const PERSON: Duration = Duration::from_secs(120);

/// For the handshake.
pub const INSTRUCTIONS: &str = "\
    This server measures how this client treats slow tools. When the user says \"run the outlast \
    probes\", call these tools one after the other, never two at once: 1. probe_silence, 2. \
    probe_progress, 3. probe_elicitation, 4. probe_report. A timeout or an error of probe_silence or \
    probe_progress is a measurement and not a failure: do not repeat the call, go on with the next \
    tool at once. Each answer holds a receipt; give all receipts that you got to probe_report, and show its \
    text to the user unchanged.";

fn description(probe: Probe) -> &'static str {
    match probe {
        Probe::Silence => {
            "Step 1 of 4 when the user says \"run the outlast probes\". Says nothing for some seconds (90 \
             unless given) and then answers, to find out after how long this client gives up. If the call \
             ends in a timeout, that is the measurement: do not repeat it, call probe_progress next. If it \
             answers, note the receipt. Never run two probes at once."
        }
        Probe::Progress => {
            "Step 2 of 4 when the user says \"run the outlast probes\". Like probe_silence, but sends \
             progress every second, to find out whether progress makes this client wait longer. Leave \
             `seconds` out: it is chosen by what probe_silence showed. A timeout is a measurement: do not \
             repeat it, call probe_elicitation next."
        }
        Probe::Elicitation => {
            "Step 3 of 4 when the user says \"run the outlast probes\". Asks the user one harmless question \
             through the client, if the client can do that, and answers with what came back."
        }
        Probe::Report => {
            "Step 4 of 4 when the user says \"run the outlast probes\". Answers with the profile of this \
             client: what was measured, what is unknown, and which setting of outlast helps. Pass the \
             receipts of the earlier answers. Show the text to the user unchanged."
        }
    }
}

fn arguments(probe: Probe) -> Value {
    match probe {
        Probe::Silence | Probe::Progress => {
            json!({"seconds": {"type": "number", "minimum": 0.1, "maximum": LONGEST.as_secs()}})
        }
        Probe::Elicitation => json!({}),
        Probe::Report => json!({"receipts": {"type": "array", "items": {"type": "string"}}}),
    }
}

/// What `tools/list` shows.
pub fn list() -> Value {
    let tool = |probe: Probe| {
        json!({
            "name": probe.name(),
            "description": description(probe),
            "inputSchema": {"type": "object", "properties": arguments(probe)},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        })
    };
    json!({"tools": Probe::ALL.map(tool)})
}

/// The question to the person.
pub fn question() -> Value {
    json!({
        "message": "outlast doctor asks: can you see this question? Any answer will do.",
        "requestedSchema": {
            "type": "object",
            "properties": {"seen": {"type": "boolean", "title": "I can see this"}},
        },
    })
}
