//! `outlast doctor` with real processes: servers of a few lines of shell, each with one bad habit,
//! and clients that the test drives, each with its own patience.
//!
//! Map: `clinic` starts things; `server` is `doctor -- COMMAND`, `client` is `doctor client`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes in real time")]

mod client;
mod clinic;
mod server;
#[path = "../e2e/world.rs"]
#[allow(dead_code, reason = "the tests of wrap mode need more of it")]
mod world;
