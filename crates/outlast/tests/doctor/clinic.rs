//! Examines servers, and writes them: a server here is a shell script of a few lines.

use std::time::Duration;

use outlast_testkit::peer::Peer;
use serde_json::{Value, from_str};

use crate::world::{OUTLAST, Tree, fake_server, outlast};

/// Longer than any examination takes.
const LONG: Duration = Duration::from_secs(60);

/// What the doctor said.
pub struct Verdict {
    pub status: i32,
    pub report: Value,
}

impl Verdict {
    /// The kinds of everything odd.
    pub fn odd(&self) -> Vec<&str> {
        let odd = self.report["odd"].as_array().expect("an array");
        odd.iter().map(|odd| odd["kind"].as_str().expect("text")).collect()
    }

    /// All that is said about one oddity.
    pub fn about(&self, kind: &str) -> String {
        let odd = self.report["odd"].as_array().expect("an array").iter().find(|odd| odd["kind"] == kind);
        let odd = odd.unwrap_or_else(|| panic!("`{kind}` is not odd: {}", self.report));
        format!("{} {}", odd["says"].as_str().expect("text"), odd["helps"].as_str().expect("text"))
    }

    /// Exactly these things are odd.
    pub fn is_odd_only_in(&self, kinds: &[&str]) {
        assert_eq!(self.odd(), kinds, "{:#}", self.report);
        assert_eq!(self.status, i32::from(!kinds.is_empty()));
    }
}

/// `outlast doctor --json FLAGS -- COMMAND`, to its end. Nothing may be left running.
pub fn examine(flags: &[&str], command: &[&str]) -> Verdict {
    let mut doctor = outlast();
    doctor.args(["doctor", "--json"]).args(flags).arg("--").args(command);
    let tree = Tree::mark(&mut doctor);
    let mut doctor = Peer::start(&mut doctor);
    let status = doctor.end_within(LONG).code().expect("a status");
    assert_eq!(tree.processes(), [] as [u32; 0], "nothing is left running");
    let lines = doctor.rest();
    assert_eq!(lines.len(), 1, "one object; stderr: {}", doctor.stderr());
    Verdict { status, report: from_str(&lines[0].text()).expect("JSON") }
}

/// The same for a shell script, which finds the demo's server as `$DEMO` and the fake one as `$FAKE`.
pub fn examine_script(flags: &[&str], script: &str) -> Verdict {
    let fake = fake_server();
    let fake = fake.to_str().expect("text");
    let script = format!("DEMO='{OUTLAST} demo-server'; FAKE={fake}\n{script}");
    examine(flags, &["sh", "-c", &script])
}

/// The same for a server that does this on these methods: `say RESULT`, `fail CODE`, or any shell.
/// Pings are answered, and what else there is fails as it should.
pub fn examine_server(flags: &[&str], cases: &[(&str, &str)]) -> Verdict {
    let cases: String =
        cases.iter().map(|(method, body)| format!("*'\"method\":\"{method}\"'*) {body};;\n")).collect();
    let script = format!(
        r#"
say() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
fail() {{ printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":%s,"message":"no"}}}}\n' "$id" "$1"; }}
while IFS= read -r line; do
id=${{line#*'"id":'}}; id=${{id%%,*}}
case $line in
{cases}
*'"method":"ping"'*) say '{{}}';;
*'"id":'*) fail -32601;;
esac
done"#
    );
    examine(flags, &["sh", "-c", &script])
}

/// What a server of the old way says with these capabilities.
pub fn initialized(capabilities: &str) -> String {
    format!(
        r#"say '{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}}}}'"#
    )
}

/// What a server of the new way says with these capabilities.
pub fn discovered(capabilities: &str) -> String {
    format!(
        r#"say '{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{capabilities},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"2"}}}}}}'"#
    )
}
