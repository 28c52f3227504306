//! The pure core of outlast: events in, actions out, time as an argument.
//!
//! The contract is [`Engine`]: `handle` an event, `poll` actions until there are none, and come
//! back with `Event::Tick` at `next_deadline`. It never fails, blocks or panics on any input. The
//! same events at the same times always give the same actions.
//!
//! Map of this crate:
//! - [`event`] and [`action`]: everything that can happen, everything we can want done;
//! - [`config`]: how outlast behaves, and what each server is;
//! - [`engine`]: the router, which passes an event to the machines that it concerns: [`calls`], `servers`, `clients`,
//!   [`tickets`], `keys`, each with private state, and the ledger of what was asked of the store;
//! - [`planted`]: faults that the simulation must find; [`reached`]: which bounds it has seen;
//! - [`policy`] and [`settings`]: which limits apply, and the table of settings; [`profile`]: what clients are
//!   known to do;
//! - [`wire`]: messages as bytes; [`trace`]: W3C trace context; [`error`]: what a client is told;
//! - [`report`]: how the servers are, for people who ask;
//! - [`record`] and [`store`]: what is stored of a call with a ticket, and what a store is asked; [`hold`]: calls that
//!   wait for a person;
//! - [`recording`]: a run as a file, which can be played again;
//! - [`life`]: signs of life; [`limits`]: every bound; [`time`], [`id`], [`method`], [`hex`]: words.
//!
//! Deliberately absent: a runtime, a clock, files, logging, randomness, models of MCP's methods.

#![forbid(unsafe_code)]

#[macro_use]
pub mod planted;
#[macro_use]
pub mod reached;

pub mod action;
pub mod base64;
pub mod callback;
mod callbacks;
pub mod calls;
mod catalog;
mod chance;
mod clients;
pub mod config;
mod definitions;
pub mod durations;
pub mod engine;
mod era;
pub mod error;
pub mod event;
pub mod hash;
pub mod hex;
pub mod hold;
mod holds;
pub mod http;
pub mod id;
pub mod idempotency;
mod in_order;
mod json;
mod keys;
pub mod life;
pub mod limits;
pub mod memory;
mod merged;
pub mod method;
pub mod mirror;
pub mod policy;
pub mod profile;
pub mod record;
pub mod recording;
pub mod redact;
mod relays;
pub mod report;
mod servers;
pub mod settings;
mod small_map;
pub mod snapshot;
pub mod step;
pub mod store;
mod throttles;
pub mod tickets;
pub mod time;
mod timers;
pub mod trace;
pub mod wire;

pub use action::{Action, Level, Note};
pub use config::{
    Bounds, ClientCap, ClientRule, Config, Expose, Exposure, Manner, Rate, Restart, Rights, ServerConfig,
    Share, Transport,
};
pub use definitions::Reload;
pub use engine::Engine;
pub use event::Event;
pub use snapshot::Snapshot;
pub use step::{Observed, Step};
pub use time::{Mono, Now, Wall};
