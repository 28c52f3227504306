//! A default that can only be seen by waiting for it. Its name lets it begin early, so that the other
//! tests run meanwhile.

use std::time::{Duration, Instant};

use outlast_testkit::peer::Peer;
use serde_json::json;

use crate::world::{fake_server, outlast};

#[test]
fn timeout_mcp_without_a_number_means_thirty_seconds() {
    let mut client = Peer::start(outlast().arg("timeout-mcp").arg(fake_server()));
    client.handshake();
    let began = Instant::now();
    let id = client.begin("hang", &json!({}));
    let answer = client.line_within(Duration::from_secs(40), |line| line.json()["id"] == id).json();
    assert!(began.elapsed() >= Duration::from_secs(30));
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(answer["error"]["message"], "Method 'tools/call' timed out after 30s");
}
