//! `outlast`: see `outlast --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    outlast::cli::main()
}
