//! `outlast man`: the manual page, made from the table of settings and the list of commands.

use super::help::COMMANDS;
use outlast_engine::settings::{SETTINGS, Setting};
use std::fmt::Write;

/// The page in roff, for `man`. It has no date: the same program prints the same page.
pub(super) fn page() -> String {
    let mut page = format!(
        ".TH OUTLAST 1 \"\" \"outlast {}\" \"User Commands\"
.SH NAME
outlast \\- keeps MCP calls alive between a client and its server
.SH SYNOPSIS
.B outlast
[\\fIOPTIONS\\fR] \\fB\\-\\-\\fR \\fICOMMAND\\fR...
.br
.B outlast
[\\fIOPTIONS\\fR] \\fIURL\\fR
.br
.B outlast serve \\-\\-listen
\\fIADDR\\fR [\\fIOPTIONS\\fR] \\fIURL\\fR | \\fB\\-\\-\\fR \\fICOMMAND\\fR...
.SH DESCRIPTION
Put outlast in front of an MCP server, and no call is lost to a timeout, a dropped connection or a crash. The
client starts outlast where it started the server; everything after \\fB\\-\\-\\fR is the command of the server.
.SH COMMANDS
",
        env!("CARGO_PKG_VERSION")
    );
    for word in COMMANDS {
        let then = if word.then.is_empty() { String::new() } else { format!(" {}", word.then.join("|")) };
        let options: String = word.options.iter().map(|name| format!(" [--{name}]")).collect();
        let then = then + &options;
        let _ = write!(
            page,
            ".TP\n\\fBoutlast {}\\fR{}\n{}\n",
            escaped(word.name),
            escaped(&then),
            line(word.short)
        );
    }
    page += ".SH OPTIONS\nTimes need a unit: 500ms, 30s, 5m, 1h30m.\n";
    SETTINGS.iter().for_each(|setting| page += &item(setting));
    page += END;
    page
}

const END: &str = ".TP
\\fB\\-\\-config\\fR \\fIFILE\\fR
A file that describes the servers: with serve, explain, or alone in front of a stdio client.
.TP
\\fB\\-h\\fR, \\fB\\-\\-help\\fR
Print the help.
.TP
\\fB\\-V\\fR, \\fB\\-\\-version\\fR [\\fB\\-\\-json\\fR]
Print the version; with \\fB\\-\\-json\\fR also the commit and the features.
.SH ENVIRONMENT
Every option is also a variable: \\fBOUTLAST_KEEP_ALIVE=5s\\fR for \\fB\\-\\-keep\\-alive 5s\\fR. The flag wins.
.SH EXIT STATUS
In front of a command, that of the command. Otherwise 0 if all is well, 1 if something failed, 2 for a command
line that is not understood, 126 or 127 if a command cannot be started. \\fBoutlast help exit\\-codes\\fR says it for
each command.
";

fn item(setting: &Setting) -> String {
    let Setting { name, short, long, default, .. } = setting;
    let default = if default.is_empty() { String::new() } else { format!(" Default: {default}.") };
    let (name, placeholder) = (escaped(name), setting.placeholder());
    let text = line(&format!("{short}. {long}{default}"));
    format!(".TP\n\\fB\\-\\-{name}\\fR \\fI{placeholder}\\fR\n{text}\n")
}

/// Text that begins a line: roff takes a dot or a quote there for a command.
fn line(text: &str) -> String {
    let mut letters = text.chars();
    let capital: String =
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
    format!("\\&{}", escaped(&capital))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_setting_and_command() {
        let page = page();
        for setting in SETTINGS {
            assert!(page.contains(&format!("\n\\fB\\-\\-{}\\fR", escaped(setting.name))), "{}", setting.name);
        }
        for word in COMMANDS {
            assert!(page.contains(&format!("\\fBoutlast {}\\fR", escaped(word.name))), "{}", word.name);
        }
    }

    #[test]
    fn nothing_but_our_own_requests_begins_a_line_with_a_dot() {
        let requests = [".TH ", ".SH ", ".TP", ".B ", ".br"];
        for line in page().lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(requests.iter().any(|request| line.starts_with(request)), "{line}");
        }
    }
}
