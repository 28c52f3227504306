//! `outlast completions SHELL`: made from the table of settings and the list of commands.

use super::help::{self, COMMANDS, Command};
use super::{Task, Wrong};
use crate::install::clients::CLIENTS;
use lexopt::prelude::*;
use outlast_engine::settings::{Kind, SETTINGS, Setting};
use std::fmt::Write;

/// The shells that there are completions for.
pub(super) const SHELLS: &[&str] = &["bash", "fish", "powershell", "zsh"];

/// Reads the name of a shell.
pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let shell = match parser.next()? {
        Some(Value(shell)) => shell.to_string_lossy().into_owned(),
        Some(Long("help") | Short('h')) => return Ok(Task::Print(help::of("completions"))),
        _ => return Err(Wrong(usage())),
    };
    let text = match shell.as_str() {
        "bash" => bash(),
        "fish" => fish(),
        "powershell" => powershell(),
        "zsh" => zsh(),
        _ => return Err(Wrong(format!("no completions for `{shell}`; {}", usage()))),
    };
    Ok(Task::Print(text))
}

fn usage() -> String {
    format!("write: outlast completions {}", SHELLS.join("|"))
}

/// Flags that are not settings.
const OTHERS: [(&str, &str); 3] = [
    (CONFIG, "a file that describes the servers"),
    ("help", "print the help"),
    ("version", "print the version"),
];

/// The one of them that a file follows.
const CONFIG: &str = "config";

/// The command that a file follows.
const CHECK: &str = "check";

/// Every long flag with what it does, in order.
fn flags() -> Vec<(&'static str, &'static str)> {
    let settings = SETTINGS.iter().map(|setting| (setting.name, setting.short));
    let mut flags: Vec<_> = settings.chain(OTHERS).collect();
    flags.sort_unstable();
    flags
}

/// What may follow a word, of what is known in advance.
fn after(word: &Command) -> Vec<&'static str> {
    if matches!(word.name, "install" | "uninstall") {
        return CLIENTS.iter().map(|client| client.name).collect();
    }
    word.then.to_vec()
}

/// The options that a command alone reads, as words of a shell.
fn own(word: &Command) -> String {
    let options = word.options.iter().map(|name| format!("--{name} "));
    options.collect::<String>() + "--help"
}

/// Commands that read options of their own instead of those of all.
fn with_own() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|word| !word.options.is_empty())
}

/// What may follow a flag, of what is known in advance.
fn values(setting: &Setting) -> &'static [&'static str] {
    match setting.kind {
        Kind::Choice(words) => words,
        Kind::Signs => &["call", "server", "call+server", "none"],
        _ => &[],
    }
}

/// Lines of `PATTERN) made from WORDS ;;`, for the two shells that have such a `case`.
fn cases(line: impl Fn(&str, &str) -> String) -> String {
    let mut cases = String::new();
    for word in COMMANDS {
        let next = after(word).join(" ");
        if !next.is_empty() {
            cases += &line(word.name, &next);
        }
    }
    for word in [CHECK, &format!("--{CONFIG}")] {
        cases += &line(word, "");
    }
    for setting in SETTINGS {
        match setting.kind {
            Kind::Path => cases += &line(&format!("--{}", setting.name), ""),
            _ if !values(setting).is_empty() => {
                cases += &line(&format!("--{}", setting.name), &values(setting).join(" "));
            }
            _ => {}
        }
    }
    cases
}

fn names(of: impl Iterator<Item = &'static str>) -> String {
    of.collect::<Vec<_>>().join(" ")
}

/// Behind `--` stands a command, which is completed as if it stood alone.
fn bash() -> String {
    let cases = cases(|before, next| match next {
        "" => format!("        {before}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"),
        _ => {
            format!("        {before}) COMPREPLY=($(compgen -W '{next}' -- \"$word\")); return ;;\n")
        }
    });
    let flags = flags().iter().map(|(name, _)| format!("--{name}")).collect::<Vec<_>>().join(" ");
    let words = names(COMMANDS.iter().map(|word| word.name));
    let own: String =
        with_own().map(|word| format!("        {}) flags='{}' ;;\n", word.name, own(word))).collect();
    format!(
        "# bash completions of outlast; made by: outlast completions bash
_outlast() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} flags='-- {flags}' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${{COMP_WORDS[i]}} == -- ]] || continue
        if declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif ((i + 1 == COMP_CWORD)); then
            COMPREPLY=($(compgen -c -- \"$word\"))
        else
            COMPREPLY=($(compgen -f -- \"$word\"))
        fi
        return
    done
    case ${{COMP_WORDS[COMP_CWORD - 1]}} in
{cases}    esac
    case ${{COMP_WORDS[1]}} in
{own}    esac
    case $word in
        -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;
        *) ((COMP_CWORD > 1)) || COMPREPLY=($(compgen -W '{words}' -- \"$word\")) ;;
    esac
}}
complete -F _outlast outlast
"
    )
}

fn zsh() -> String {
    let mut commands = String::new();
    for word in COMMANDS {
        let _ = writeln!(commands, "    {}", quoted(&format!("{}:{}", word.name, word.short)));
    }
    let mut options = String::new();
    for (name, about) in flags() {
        let _ = writeln!(options, "    {}", quoted(&format!("--{name}:{about}")));
    }
    let own: String =
        with_own().map(|word| format!("    {}) options=({}) ;;\n", word.name, own(word))).collect();
    let cases = cases(|before, next| match next {
        "" => format!("    {before}) _files; return ;;\n"),
        _ => format!("    {before}) compadd -- {next}; return ;;\n"),
    });
    format!(
        "#compdef outlast
# zsh completions of outlast; made by: outlast completions zsh
_outlast() {{
  local -a commands options
  local end=${{words[(i)--]}}
  if ((end < CURRENT)); then
    shift $end words
    ((CURRENT -= end))
    _normal
    return
  fi
  commands=(
{commands}  )
  options=(
{options}  )
  case ${{words[2]}} in
{own}  esac
  case ${{words[CURRENT - 1]}} in
{cases}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif ((CURRENT == 2)); then
    _describe command commands
  fi
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _outlast \"$@\"
else
  compdef _outlast outlast
fi
"
    )
}

fn fish() -> String {
    let mut text = "# fish completions of outlast; made by: outlast completions fish
complete -c outlast -f
complete -c outlast -n 'contains -- -- (commandline -opc)' -xa '(__fish_complete_subcommand --fcs-skip=2)'
"
    .to_owned();
    for word in COMMANDS {
        let (name, about) = (word.name, quoted(word.short));
        let _ = writeln!(text, "complete -c outlast -n __fish_use_subcommand -a {name} -d {about}");
        let next = after(word).join(" ");
        if !next.is_empty() {
            let _ = writeln!(text, "complete -c outlast -n '__fish_seen_subcommand_from {name}' -a '{next}'");
        }
    }
    let _ = writeln!(text, "complete -c outlast -n '__fish_seen_subcommand_from {CHECK}' -F");
    for word in with_own() {
        for option in word.options.iter().copied().chain(["help"]) {
            let name = word.name;
            let _ = writeln!(text, "complete -c outlast -n '__fish_seen_subcommand_from {name}' -l {option}");
        }
    }
    let others = format!("-n 'not __fish_seen_subcommand_from {}'", names(with_own().map(|word| word.name)));
    for setting in SETTINGS {
        let takes = match setting.kind {
            Kind::Switch => String::new(),
            Kind::Path => " -rF".to_owned(),
            _ => format!(" -xa '{}'", values(setting).join(" ")),
        };
        let about = quoted(setting.short);
        let _ = writeln!(text, "complete -c outlast {others} -l {}{takes} -d {about}", setting.name);
    }
    for (name, about) in OTHERS {
        let takes = if name == CONFIG { " -rF" } else { "" };
        let _ = writeln!(text, "complete -c outlast {others} -l {name}{takes} -d {}", quoted(about));
    }
    text
}

fn powershell() -> String {
    let flags = flags().iter().map(|(name, _)| format!("'--{name}'")).collect::<Vec<_>>().join(", ");
    let words = COMMANDS.iter().map(|word| format!("'{}'", word.name)).collect::<Vec<_>>().join(", ");
    let mut after = String::new();
    for word in COMMANDS {
        let next: Vec<String> = self::after(word).iter().map(|next| format!("'{next}'")).collect();
        if !next.is_empty() {
            let _ = writeln!(after, "        '{}' {{ @({}) }}", word.name, next.join(", "));
        }
    }
    let own: String = with_own()
        .map(|word| format!("        '{}' {{ @('{}') }}\n", word.name, own(word).replace(' ', "', '")))
        .collect();
    format!(
        "# PowerShell completions of outlast; made by: outlast completions powershell
Register-ArgumentCompleter -Native -CommandName outlast -ScriptBlock {{
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = @($commandAst.CommandElements | ForEach-Object {{ $_.ToString() }} | Where-Object {{ $_ -ne $wordToComplete }})
    if ($before -contains '--') {{ return }}
    $flags = switch ($before[1]) {{
{own}        default {{ @({flags}) }}
    }}
    $offered = switch ($before[-1]) {{
{after}        default {{ if ($wordToComplete -like '-*') {{ $flags }} elseif ($before.Count -eq 1) {{ @({words}) }} else {{ @() }} }}
    }}
    $offered | Where-Object {{ $_ -like \"$wordToComplete*\" }} | ForEach-Object {{
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }}
}}
"
    )
}

/// In single quotes, as bash, zsh and fish read them. Our own texts hold no backslash.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_every_command_and_its_options() {
        for (shell, text) in
            [("bash", bash()), ("fish", fish()), ("powershell", powershell()), ("zsh", zsh())]
        {
            for word in COMMANDS {
                assert!(text.contains(word.name), "{shell}: {}", word.name);
                let unknown = word.options.iter().find(|option| !text.contains(*option));
                assert_eq!(unknown, None, "{shell}: {}", word.name);
            }
        }
    }

    /// What a command's help shows at the beginning of a line, it reads, and the other way round.
    #[test]
    fn the_options_of_a_command_are_those_of_its_help() {
        for word in with_own() {
            let help = (word.text)();
            let unknown = word.options.iter().find(|option| !help.contains(&format!("--{option}")));
            assert_eq!(unknown, None, "{}", word.name);
            let lines = help.lines().filter_map(|line| {
                line.trim_start().split("--").nth(1).filter(|_| line.trim_start().starts_with('-'))
            });
            let names = lines.filter_map(|rest| rest.split([' ', '=']).next()).filter(|name| *name != "help");
            for name in names {
                // install and uninstall share a help.
                let known = word.options.contains(&name) || word.name == "install";
                assert!(known, "{}: --{name} is in its help alone", word.name);
            }
        }
    }
}
