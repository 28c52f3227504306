//! `docs/transports.md`: what can be connected with what, and the runs that prove it.
//!
//! Made from the same list that the runs are made from, so it cannot promise more than they show.

use anyhow::Result;

use super::matrix::{CLIENTS, Client, Era, Pair, SERVERS, Server, Way, usual_pairs};
use crate::shell::root;

const PATH: &str = "docs/transports.md";

const HEAD: &str = "\
# Which clients and servers can be connected?

Any transport with any transport, within an era: *legacy* is every revision up to 2025-11-25, which opens with `initialize`; *modern* is 2026-07-28. A server that speaks both meets every client. To translate between the eras is not supported yet.

| | client | server |
|---|---|---|
| `outlast -- COMMAND` | stdio | stdio |
| `outlast serve --listen ADDR -- COMMAND` | HTTP | stdio |
| `outlast URL` | stdio | HTTP |
| `outlast serve --listen ADDR URL` | HTTP | HTTP |

HTTP is Streamable HTTP; the older HTTP+SSE of 2024-11-05 is not supported.

## Eras and transports
A number says how many pairs of a client and a server on the official SDKs prove it in every run of `cargo xtask test`: each sees the same, word for word, with and without outlast.

";

const MIDDLE: &str = "
An *asking* client sends `server/discover` first and speaks what the server speaks. A modern client cannot talk to a legacy server without outlast either.

## The pairs
`cargo xtask interop CLIENT SERVER WAY` runs one of them, for example `cargo xtask interop ts1 rust http-stdio`. ✓ runs every time, + with `cargo xtask interop --all`, – cannot be. What is checked, and on which SDKs, is in [tests/interop](../tests/interop/README.md).
";

const TAIL: &str = "
This page is made by `cargo xtask interop --table`.
";

/// The eras of a client and of a server, in words, and which pairs have them.
type Row = (&'static str, &'static str, fn(&Pair) -> bool);

const SUPPORTED: [Row; 5] = [
    ("legacy", "legacy", |pair| pair.client.era == Era::Legacy && !pair.server.modern),
    ("legacy", "both", |pair| pair.client.era == Era::Legacy && pair.server.modern),
    ("modern", "both", |pair| pair.client.era == Era::Modern && pair.server.modern),
    ("asking", "legacy", |pair| pair.client.era == Era::Auto && !pair.server.modern),
    ("asking", "both", |pair| pair.client.era == Era::Auto && pair.server.modern),
];
const NOT_YET: [(&str, &str); 2] = [("modern", "legacy"), ("legacy", "modern")];

/// Writes the page.
pub fn write() -> Result<()> {
    Ok(std::fs::write(root().join(PATH), page())?)
}

fn page() -> String {
    let ways = Way::ALL.map(|way| format!("\n### {}\n{}", title(way), pairs(way))).concat();
    [HEAD, &eras(), MIDDLE, &ways, TAIL].concat()
}

fn title(way: Way) -> String {
    let (client, server) = match way {
        Way::Stdio => ("stdio", "stdio"),
        Way::HttpToStdio => ("HTTP", "stdio"),
        Way::StdioToHttp => ("stdio", "HTTP"),
        Way::Http => ("HTTP", "HTTP"),
    };
    format!("{client} client, {server} server (`{}`)", way.word())
}

fn eras() -> String {
    let mut lines = vec![
        "| client | server | stdio → stdio | HTTP → stdio | stdio → HTTP | HTTP → HTTP |".to_owned(),
        "|---|---|--:|--:|--:|--:|".to_owned(),
    ];
    for (client, server, has) in SUPPORTED {
        let counts = Way::ALL.map(|way| usual_pairs(way).iter().filter(|pair| has(pair)).count());
        lines.push(row(&[client, server], counts.map(|count| count.to_string())));
    }
    for (client, server) in NOT_YET {
        lines.push(row(&[client, server], ["not yet"; 4].map(str::to_owned)));
    }
    lines.join("\n") + "\n"
}

fn pairs(way: Way) -> String {
    let names = SERVERS.each_ref().map(|server| server.name.to_owned());
    let mut lines = vec![row(&["client \\ server"], names), format!("|---|{}", ":-:|".repeat(SERVERS.len()))];
    for client in &CLIENTS {
        lines
            .push(row(&[client.name], SERVERS.each_ref().map(|server| mark(client, server, way).to_owned())));
    }
    lines.join("\n") + "\n"
}

fn mark(client: &Client, server: &Server, way: Way) -> &'static str {
    let is_usual = |pair: &Pair| pair.client.name == client.name && pair.server.name == server.name;
    match usual_pairs(way).iter().any(is_usual) {
        true => "✓",
        false if client.understands(server) => "+",
        false => "–",
    }
}

fn row<const N: usize>(first: &[&str], rest: [String; N]) -> String {
    format!("| {} | {} |", first.join(" | "), rest.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_up_to_date() {
        let written = std::fs::read_to_string(root().join(PATH)).unwrap_or_default();
        assert!(written == page(), "{PATH} is old: cargo xtask interop --table");
    }
}
