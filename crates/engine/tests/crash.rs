//! The process ends at every point between a call and its answer; and what seeds of that world have found.

use outlast_testkit::sim::crash::{Scene, at_every_point};

#[test]
fn no_ticket_is_lost_at_any_point() {
    let played: u64 = Scene::all().iter().map(at_every_point).sum();
    assert!(played > 5_000, "only {played} points");
}
