//! What the tests of outlast stand on.
//!
//! - [`script`]: scenarios as text, for one decision at a time;
//! - [`sim`]: a seeded world with faults on both sides, for all of them at once;
//! - [`oracle`]: what `serde_json` says, to hold our scanner against;
//! - [`http`]: a server and a client whose every byte a test can say;
//! - [`bounds`]: scenarios that reach a bound of `limits.rs`;
//! - [`ledger`]: a store that outlives the engines of a test;
//! - [`table`]: the tables in the headers of the engine, played row by row;
//! - [`tape`]: what was said in a world, for the check against the protocol's schemas;
//! - [`chaos`]: any bytes as a story, for the fuzzer;
//! - [`postgres`]: a database server that ends with its tests;
//! - the fake peers and the benchmark's programs, under `bin/`.

pub mod bounds;
pub mod chaos;
mod exchange;
pub mod http;
pub mod ledger;
pub mod oracle;
pub mod peer;
#[cfg(unix)]
pub mod postgres;
pub mod script;
pub mod sim;
pub mod table;
pub mod tape;
