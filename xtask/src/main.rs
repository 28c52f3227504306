//! The project's own commands; `cargo xtask help` lists them.

#![allow(clippy::disallowed_methods)] // tools of the project, not the product

mod amount;
mod bench;
mod clients;
mod conformance;
mod coverage;
mod dist;
mod fuzz;
mod interop;
mod needs;
#[path = "../../crates/testkit/src/postgres.rs"]
#[allow(
    dead_code,
    clippy::disallowed_types,
    reason = "the tests use more of it, and it is a process of its own"
)]
mod postgres;
mod profiles;
mod schema;
mod shell;
mod sizes;
mod test;
mod ui;

use amount::Amount;
use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "cargo xtask test [unit|fuzz|sim|e2e|...]              everything, or a part
cargo xtask needs                                      the tools that the tests need, and which are missing
cargo xtask bench [stdio|http|replicas] [--quick]       the benchmark, against the direct server and the floor
cargo xtask bench --against PATH                       this build and another outlast, measured in turns
cargo xtask order                                      what every start runs, for the linker to lay together
cargo xtask interop [CLIENT [SERVER [WAY]]]            real SDKs, direct and through outlast
cargo xtask conformance [REVISION [SCENARIO]]          the MCP conformance suite, direct and through outlast
cargo xtask clients [NAME...]                          real MCP clients, measured and put through outlast
cargo xtask profiles                                   the table of clients, from what was measured
cargo xtask schema [--counts]                          what outlast sends, against the schemas of the protocol
cargo xtask ui [--shots] [--figures] [NAME...]         the dashboard in a real browser
cargo xtask fuzz [TARGET] [SECONDS]                    the fuzzers
cargo xtask sizes                                      how long the functions of the product are
cargo xtask dist [build|pack|twice|check|try]          everything that people install, packed and tried
cargo xtask coverage                                   lines of the engine that the tests reach
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    match command.as_str() {
        "test" => test::run(&rest),
        "bench" => bench::run(&rest),
        "order" => bench::order::run(),
        "needs" => needs::run(),
        "conformance" => conformance::run(&rest, &mut Amount::default()),
        "clients" => clients::run(&rest),
        "profiles" => profiles::run(),
        "interop" => interop::run(&rest, &mut Amount::default()),
        "schema" => schema::run(&rest, &mut Amount::default()),
        "ui" => ui::run(&rest, &mut Amount::default()),
        "sizes" => sizes::run(&mut Amount::default()),
        "fuzz" => fuzz::run(&rest),
        "coverage" => coverage::run(),
        "dist" => dist::run(&rest),
        "help" | "" => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!("unknown command `{other}`\n{HELP}"),
    }
}
