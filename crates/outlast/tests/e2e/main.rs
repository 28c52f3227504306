//! The whole program: a real `outlast` between a client that the test drives and a fake server.
//!
//! Map: `world` and `http_world` start things; every other module is one promise to the people who use outlast,
//! each test named after what they can rely on. Tests wait for messages and for processes to end,
//! with a limit; only the fake server lets time pass.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes in real time")]
#![allow(clippy::print_stdout, reason = "a test of chance says its seed, and what it has seen")]

mod access_log;
mod batches;
mod bounds;
mod bytes;
mod callbacks;
mod cancel;
mod commands;
mod defaults;
mod durable;
mod endings;
mod errors;
mod faults;
mod flags;
mod gateway;
mod handoff;
mod holds;
mod http_chaos;
mod http_client;
mod http_dashboard;
mod http_disconnects;
mod http_events;
mod http_headers;
mod http_hostile;
mod http_lines;
mod http_questions;
mod http_recovery;
mod http_security;
mod http_serve;
mod http_server;
mod http_tls;
mod http_urls;
mod http_world;
mod import;
mod instant;
mod joining;
mod keep;
mod kills;
mod limits;
mod log;
mod many_tasks;
mod metrics;
mod own_tasks;
mod patience;
mod pressure;
mod printed;
mod process;
mod progress;
mod questions;
mod record;
mod rejoin;
mod reload;
mod replicas;
mod replicas_faults;
mod replicas_load;
mod restarts;
mod resume;
mod roaming;
mod secrets;
mod servers;
mod service_manager;
mod store_faults;
mod streams;
mod tasks_cli;
mod timeout_mcp;
mod top;
mod traces;
mod trees;
mod world;
