//! Whether the worlds find what is wrong: a fault is planted in the engine, and some seed must fail for it.
//!
//! A seed that fails without the fault too proves nothing, so every find is played once more without it.

use super::subject::recorded;
use super::{crash, gateway, held, pipes, service};
use outlast_engine::Config;
pub use outlast_engine::planted::Planted;
use std::cell::Cell;
use std::panic::catch_unwind;

/// Seeds in which a fault must be found.
pub const SEEDS: u64 = 200;

/// Calls of one world; few are enough.
const CALLS: usize = 200;

thread_local! {
    /// The fault that is planted in the worlds of this thread.
    static FAULT: Cell<Option<Planted>> = const { Cell::new(None) };
}

pub(super) fn plant(config: &mut Config) {
    config.planted = FAULT.get();
}

fn run(world: &str, seed: u64) {
    match world {
        "pipes" => pipes::run(seed, CALLS),
        "service" => service::run(seed, CALLS),
        "gateway" => gateway::run(seed, CALLS),
        "held" => held::run(seed),
        _ => crash::run(seed),
    };
}

/// Why a world fails with this fault, or without any.
fn fails(world: &str, seed: u64, fault: Option<Planted>) -> Option<String> {
    FAULT.set(fault);
    let failed = catch_unwind(|| run(world, seed));
    FAULT.set(None);
    failed.err().map(|why| {
        let text = why.downcast_ref::<String>().cloned();
        text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// Whether an engine without the fault decides otherwise when it plays what one with the fault lived through.
pub fn is_told_by_replay(world: &str, seed: u64, fault: Planted) -> bool {
    FAULT.set(Some(fault));
    let (_, recordings) = recorded(|| run(world, seed));
    FAULT.set(None);
    recordings.iter().any(|recording| recording.replay().is_err())
}

/// Where a fault is found: the world, the first seed, and what its judge says.
pub fn find(fault: Planted) -> Option<(&'static str, u64, String)> {
    let worlds = ["pipes", "service", "gateway", "held", "crash"];
    let tries = (1..=SEEDS).flat_map(|seed| worlds.map(|world| (world, seed)));
    tries.into_iter().find_map(|(world, seed)| {
        let why = fails(world, seed, Some(fault))?;
        fails(world, seed, None).is_none().then_some((world, seed, why))
    })
}
