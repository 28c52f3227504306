//! `outlast install` and `outlast uninstall`: the real program on files as clients write them.
//!
//! Map: `world` is a home and a project that exist only for one test; `snapshots` holds every client's
//! file against what is expected of it; `talk` is what a person sees and is asked; `refusals` is what is
//! left alone; `files` is how a file is replaced; `limits` is what install finds out about the client; `import` makes
//! a file of ours of each. `fixtures/CLIENT-SCOPE` has the file before, the file after, and what is shown.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes in real time")]

mod files;
mod import;
mod limits;
mod refusals;
mod snapshots;
mod talk;
mod world;
