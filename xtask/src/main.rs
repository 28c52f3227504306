//! The project's own commands; `cargo xtask help` lists them.

mod bench;
mod interop;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    match command.as_str() {
        "bench" => bench::run(&rest),
        "interop" => interop::run(&rest),
        other => bail!("unknown command `{other}`; known: bench, interop"),
    }
}
