//! Which world reaches which bound of `limits.rs`.
//!
//! `sim WORLD --bounds` fails if one of them was not reached. What no world reaches has a scenario in
//! `crates/engine/tests`, or a test of the store; `crates/engine/tests/bounds.rs` sees that nothing is left out.

use outlast_engine::reached::Bound;

/// The bounds that a world must reach in the usual number of seeds.
pub fn of(world: &str) -> &'static [Bound] {
    match world {
        "pipes" => PIPES,
        "service" => SERVICE,
        "crash" => CRASH,
        _ => &[],
    }
}

const PIPES: &[Bound] = &[];
const SERVICE: &[Bound] = &[];
const CRASH: &[Bound] = &[];
