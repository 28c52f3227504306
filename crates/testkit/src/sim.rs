//! Seeded worlds: peers with faults on both sides, and the engine between them.
//!
//! - [`pipes`]: one stdio client in front of one process;
//! - [`service`]: HTTP clients of several principals in front of processes or remote servers;
//! - [`gateway`]: HTTP clients of several principals in front of many servers, whose file changes;
//! - [`held`]: HTTP clients whose calls wait for persons, while everything else fails;
//! - [`crash`]: clients with tickets, in front of a process that ends at any point.
//!
//! Time is a number, so a day passes in microseconds. Every message takes a random while to arrive. A
//! judge watches both ends and panics as soon as the engine breaks an invariant of ARCHITECTURE.md; the
//! seed then replays the very same world.

mod agenda;
mod blame;
pub mod bounds;
pub mod crash;
pub mod gateway;
pub mod held;
mod holds;
pub mod pipes;
#[cfg(feature = "planted")]
pub mod plant;
mod process;
mod rng;
pub mod service;
mod steps;
pub mod subject;

pub use steps::record;

use outlast_engine::http::Post;
use outlast_engine::id::ServerId;
use outlast_engine::life::Sample;
use outlast_engine::settings::{Key, setting};
use outlast_engine::wire::Outgoing;
use outlast_engine::{Action, Config, Engine, Event, Now};
use rng::Rng;
use std::ops::AddAssign;
use std::time::Duration;
use subject::Subject;

/// Events between two full sweeps of the engine's own invariants.
const SWEEP: u64 = 1_000;

/// What a run did, for the summary and to compare two runs of one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests of the clients.
    pub calls: u64,
    /// Events fed to the engine.
    pub events: u64,
    /// Calls that ended with an error of ours.
    pub failed: u64,
    /// Calls that a client cancelled.
    pub cancelled: u64,
    /// Progress notifications that reached a client.
    pub progress: u64,
    /// Runs of servers.
    pub runs: u64,
    /// Streams that were taken up again.
    pub resumed: u64,
    /// Processes of ours that ended.
    pub crashes: u64,
    /// How often a bound that a person sets was reached: calls and sessions of a principal, the longest message.
    pub bounds: [u64; 3],
    /// A number made of every action in order.
    pub fingerprint: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.calls += other.calls;
        self.events += other.events;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.progress += other.progress;
        self.runs += other.runs;
        self.resumed += other.resumed;
        self.crashes += other.crashes;
        self.bounds.iter_mut().zip(other.bounds).for_each(|(sum, count)| *sum += count);
        self.fingerprint ^= other.fingerprint;
    }
}

/// Panics if the engine's own invariants do not hold.
fn sweep(engine: &Engine) {
    if let Err(broken) = engine.check_invariants() {
        panic!("{broken}");
    }
}

fn fingerprint(so_far: u64, action: &Action) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    match action {
        Action::ToClient(_, message) => message.to_vec().iter().fold(so_far ^ 1, mix),
        Action::ToServer(_, message) if steps::are_left_out() => {
            steps::without_place(message.to_vec()).iter().fold(so_far ^ 2, mix)
        }
        Action::Post(_, post) if steps::are_left_out() => {
            let message = steps::without_place(post.message.to_vec());
            let headers = post.headers.iter().filter(|(name, _)| !name.starts_with("trace"));
            format!("{message:?}{:?}", headers.collect::<Vec<_>>()).as_bytes().iter().fold(so_far ^ 5, mix)
        }
        Action::Step(_) if steps::are_left_out() => so_far,
        Action::ToServer(_, message) => message.to_vec().iter().fold(so_far ^ 2, mix),
        Action::Write(exchange, bytes) => bytes.iter().fold(so_far ^ 4 ^ exchange.0, mix),
        // Whether bytes were changed or came like that makes no difference.
        Action::Post(server, post) => {
            let message = Outgoing::plain(post.message.to_vec());
            let post = Post { message, ..(**post).clone() };
            format!("{server:?}{post:?}").as_bytes().iter().fold(so_far ^ 5, mix)
        }
        other => format!("{other:?}").as_bytes().iter().fold(so_far ^ 3, mix),
    }
}

/// The engine of a world, with the fault that is looked for.
fn engine(mut config: Config) -> Subject {
    #[cfg(feature = "planted")]
    plant::plant(&mut config);
    steps::look_on(&mut config);
    Subject::new(config)
}

/// Limits that every world draws in the same way.
fn limits(config: &mut Config, rng: &mut Rng) {
    let millis = |time: u64| format!("{time}ms");
    let mut bare = |key: Key, text: String| {
        let value = setting(key).parse(&text).expect("a value");
        config.rules_mut().bare(key, value, setting(key).name);
    };
    bare(Key::Timeout, millis(rng.between(200, 20_000)));
    bare(Key::Max, millis(rng.between(5_000, 60_000)));
    bare(Key::KeepAlive, millis(rng.between(50, 2_000)));
    bare(Key::Handshake, millis(rng.between(5_000, 60_000)));
    if rng.chance(30) {
        bare(Key::Signs, ["none", "server", "call+server"][rng.below(3)].into());
    }
    config.rules_mut().add(Key::Method, "*/list=timeout:700ms", "--method").expect("a rule");
    config.rules_mut().add(Key::Tool, "t1*=timeout:300ms,max:900ms", "--tool").expect("a rule");
    config.rules_mut().add(Key::Tool, "t2*=timeout:off,max:20s", "--tool").expect("a rule");
    config.rules_mut().add(Key::Tool, "t3*=repeatable:true,retries:3", "--tool").expect("a rule");
    config.server_mut().restart_intensity = rng.between(1, 50) as u32;
    config.server_mut().restart_backoff = Duration::from_millis(rng.between(1, 500));
    config.server_mut().connect_backoff = Duration::from_millis(rng.between(1, 500));
    config.server_mut().reconnect_every = Duration::from_millis(rng.between(100, 5_000));
    config.server_mut().trust = rng.chance(50);
    config.seed = rng.between(0, u64::MAX - 1);
    config.server_mut().cancel_grace = Duration::from_millis(rng.between(10, 3_000));
    config.drain = Duration::from_millis(rng.between(100, 30_000));
}

/// The sample that was asked for: signs of life as often as not, and now and then none at all.
fn sampled(rng: &mut Rng, work: &mut u64, now: Now, server: ServerId) -> Event {
    *work += u64::from(rng.chance(50));
    let sample =
        Sample { at: now.mono, cpu: Duration::ZERO, bytes: *work, switches: 0, stderr: 0, processes: 0 };
    Event::Sampled(server, Some(sample).filter(|_| rng.chance(95)))
}
