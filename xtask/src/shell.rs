//! Running programs, and saying so.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}

/// A program in the repository.
pub fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a program to its end; its failure is ours.
pub fn run(mut command: Command) -> Result<()> {
    let shown = announce(&command);
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    succeeded(status, &shown)
}

/// Runs a program to its end; gives what it wrote, which is shown as well, and whether it succeeded.
pub fn run_and_keep(mut command: Command) -> Result<(String, Result<()>)> {
    let shown = announce(&command);
    let cannot = || format!("cannot run {shown}");
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn().with_context(cannot)?;
    // The command holds our copies of the pipe's other end: with them it would never end.
    drop(command);
    let (mut said, mut chunk) = (Vec::new(), [0; 4096]);
    while let length @ 1.. = reader.read(&mut chunk).with_context(cannot)? {
        let mut ours = std::io::stdout();
        ours.write_all(&chunk[..length]).and_then(|()| ours.flush()).context("cannot write to stdout")?;
        said.extend_from_slice(&chunk[..length]);
    }
    let status = child.wait().with_context(cannot)?;
    Ok((String::from_utf8_lossy(&said).into_owned(), succeeded(status, &shown)))
}

fn announce(command: &Command) -> String {
    let shown = format!("{command:?}").replace('"', "");
    println!("$ {shown}");
    shown
}

fn succeeded(status: std::process::ExitStatus, shown: &str) -> Result<()> {
    if !status.success() {
        bail!("failed ({status}): {shown}");
    }
    Ok(())
}

/// cargo with the versions of the lock file: a stranger tests what we tested.
pub fn cargo_command(arguments: &[&str]) -> Command {
    let (command, rest) = arguments.split_first().unwrap_or((&"", &[]));
    // Formatting looks at no dependency and does not know the flag.
    let locked: &[&str] = if *command == "fmt" { &[] } else { &["--locked"] };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    program(&cargo, &[&[*command], locked, rest].concat())
}

/// Runs cargo.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    run(cargo_command(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_keeps_to_the_lock_file() {
        let words = |command: Command| command.get_args().map(|word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            words(cargo_command(&["test", "-p", "x", "--", "y"])),
            ["test", "--locked", "-p", "x", "--", "y"]
        );
        assert_eq!(words(cargo_command(&["fmt", "--check"])), ["fmt", "--check"]);
    }

    #[test]
    fn what_a_program_said_is_kept_also_when_it_fails() {
        let (said, result) =
            run_and_keep(program("sh", &["-c", "echo kept; echo this >&2; exit 3"])).unwrap();
        assert_eq!(said, "kept\nthis\n");
        assert!(result.unwrap_err().to_string().contains("exit status: 3"));
    }
}
