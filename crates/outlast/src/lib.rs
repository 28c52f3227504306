//! The edges of outlast: what turns bytes into events and actions into bytes.
//!
//! Map: `cli` and `config` read what people wrote; `wrap` and `serve` put the parts together;
//! `driver` joins them to the engine, `link` is what it holds of each server; `client` and `server`
//! are the two sides; `lines`, `outbox`, `pool` and
//! `http1` handle bytes; `identity` says which server is meant; `memory` keeps what an instant start
//! needs; `observe` is the log and the record; `clock` reads time, `random` randomness; `sys` is what
//! differs by system; `demo` shows it all in ten seconds;
//! `install` edits the files of clients; `dashboard` is the page for people; `doctor` examines servers and clients; `clients` shows what is known of clients; `explain` shows the limits of a tool, `servers` how servers are; `store` keeps what
//! outlives a connection, `tasks` shows it; `keep` is what `--keep` starts, and the way to it.

#![deny(clippy::print_stderr)] // `observe/stderr.rs` is the way to stderr

mod advise;
mod callbacks;
pub mod cli;
mod client;
mod clients;
mod clock;
pub mod config;
mod dashboard;
mod demo;
mod doctor;
mod driver;
mod explain;
mod holds;
mod http1;
mod identity;
mod import;
mod install;
mod keep;
mod lines;
mod link;
mod memory;
mod observe;
mod outbox;
mod pool;
mod program;
mod random;
mod reload;
mod replay;
mod serve;
mod server;
mod servers;
pub mod store;
mod sys;
mod tasks;
mod top;
mod wrap;
