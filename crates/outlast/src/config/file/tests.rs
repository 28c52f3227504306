//! What files mean, and what is said of wrong ones.

use super::*;
use outlast_engine::method::Method;
use outlast_engine::settings::Key;
use proptest::prelude::*;

fn says(text: &str) -> Vec<String> {
    let mistakes = examine(text).map_or_else(|mistakes| mistakes, |gateway| gateway.warnings);
    mistakes.iter().map(Mistake::line).collect()
}

fn first(text: &str) -> String {
    says(text).into_iter().next().unwrap_or_default()
}

fn loaded(text: &str) -> Gateway {
    let known = |name: &str| (name == "TOKEN").then(|| "t0k".to_owned());
    examine_as(text, &known).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

#[test]
fn a_file_describes_servers_and_their_limits() {
    let gateway = loaded(
        r#"
[defaults]
timeout = "30s"
restart = "never"
drain = "5s"
[defaults.tools."{run_build,run_tests}"]
timeout = "5m"
[servers.ci]
command = "npx"
args = ["-y", "ci"]
env = { KEY = "${TOKEN}" }
trust = true
start = "eager"
expose = "plain-names"
tools.allow = ["run_*"]
[servers.ci.tools."run_*"]
max = "1h"
signs = ["call", "server"]
[servers.far]
url = "https://host/mcp"
headers = { Authorization = "Bearer ${env:TOKEN}" }
connect = "3s"
[listen]
listen = "127.0.0.1:7600"
allow-host = ["a", "b"]
[clients."claude*"]
client-cap = "60s"
servers = ["ci"]
[clients."my-agent*"]
profile = "cap:60s,progress:yes"
"#,
    );
    let [ci, far] = &gateway.servers[..] else { panic!() };
    let argv = ["npx", "-y", "ci"].map(OsString::from).to_vec();
    let env = vec![("KEY".into(), "t0k".into())];
    assert_eq!(ci.target, TargetSpec::Command { argv, env, cwd: None });
    assert_eq!((ci.eager, ci.expose, ci.config.trust), (true, Some(Expose::PlainNames), true));
    assert_eq!(ci.config.restart, outlast_engine::Restart::Never);
    let written = ci.config.rules.written(Key::Timeout, &Method::ToolsCall, Some("run_build"));
    let sources: Vec<&str> = written.iter().map(|written| written.source).collect();
    let default = "[defaults.tools.\"{run_build,run_tests}\"] in outlast.toml:7";
    assert_eq!(sources, [default, "[defaults] in outlast.toml:3"]);
    assert!(matches!(&far.target, TargetSpec::Remote { headers, .. } if headers[0].1 == "Bearer t0k"));
    assert_eq!(far.remote.connect, std::time::Duration::from_secs(3));
    assert_eq!(gateway.settings.service.hosts, ["a", "b"]);
    assert_eq!(gateway.settings.engine.drain, std::time::Duration::from_secs(5));
    assert!(matches!(gateway.settings.engine.clients[0].cap, Some(outlast_engine::ClientCap::After(_))));
    let row = &gateway.settings.engine.profiles.written[0];
    assert_eq!((&*row.glob.to_string(), row.progress), ("my-agent*", Some(true)));
    assert_eq!((gateway.separator.as_str(), gateway.warnings.len()), ("__", 0));
}

#[test]
fn a_clients_own_file_is_taken_as_it_is() {
    let gateway = loaded(
        r#"{ // comments and trailing commas
            "mcpServers": {
              "My Server": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${env:TOKEN}"}, "autoApprove": []},
              "far": {"type": "http", "url": "https://host/mcp", "headers": {"A": "b"},},
              "off": {"command": "x", "disabled": true},
            },
            "numStartups": 4,
        }"#,
    );
    let names: Vec<&str> = gateway.servers.iter().map(|server| &*server.config.name).collect();
    assert_eq!(names, ["My-Server", "far", "off"]);
    assert!(gateway.servers[2].disabled);
    let warned: Vec<&str> = gateway.warnings.iter().map(|mistake| mistake.what.as_str()).collect();
    let expected = [
        "outlast does not use `autoApprove` of a client's file",
        "server `My Server` is called `My-Server` here",
    ];
    assert_eq!(warned, expected);
}

#[test]
fn every_mistake_has_its_place_and_says_what_helps() {
    let server = "[servers.x]\ncommand = \"x\"\n";
    for (text, said) in [
        (
            "[defaults]\ntimout = \"5s\"",
            "outlast.toml:2:1: unknown key `timout` in [defaults]; did you mean `timeout`?",
        ),
        ("[defaults]\ntimeout = 30", "outlast.toml:2:11: timeout: `30` has no unit; write `30s` or `30ms`"),
        (
            "[defaults]\nlisten = \"x\"",
            "outlast.toml:2:1: unknown key `listen` in [defaults]; `listen` stands in [listen]",
        ),
        ("[defaults]\ntrust = [1]", "outlast.toml:2:9: `trust` must be true or false, and is a list"),
        ("[server.x]", "outlast.toml:1:2: unknown key `server` in the file; did you mean `servers`?"),
        (
            "[servers.x]\n",
            "outlast.toml:1:10: server `x` has neither a command nor a url; write `command = \"npx\"` or `url = \"https://host/mcp\"`",
        ),
        (
            "[servers.x]\nurl = \"https://a:b@host/\"",
            "outlast.toml:2:7: a URL must not hold credentials; write headers = { Authorization = \"Bearer ${TOKEN}\" }",
        ),
        (
            "[servers.x]\nurl = \"host\"",
            "outlast.toml:2:7: this is not the URL of an MCP server; write https://host/mcp",
        ),
        (
            "[servers.x]\ncommand = \"${NOPE}\"",
            "outlast.toml:2:11: the variable NOPE is not set; set it before outlast starts, or write ${NOPE:-otherwise}",
        ),
        ("include = [\"other.toml\"]", "outlast.toml:1:12: cannot read `other.toml`: there is no such file"),
        (
            "include = [\"outlast.toml\"]",
            "outlast.toml:1:12: `outlast.toml` includes itself; a file that includes itself has no end; leave one of the two out",
        ),
    ] {
        let text = if text.contains("include") { text.to_owned() } else { text.to_owned() + "\n" };
        assert_eq!(first(&text), said, "{text}");
    }
    assert!(first("[servers.a__b]\ncommand = \"x\"").contains("holds the separator"));
    assert!(first("[servers.\"a b\"]\ncommand = \"x\"").contains("cannot be the name of a server"));
    assert!(first(&format!("{server}url = \"https://h/\"")).contains("both a command and a url"));
    assert!(first("[tokens.a]\nservers = []").contains("has no hash"));
    let row = "[clients.x]\nprofile = 'cap:soon,progress:no'";
    assert!(first(row).starts_with("outlast.toml:2:") && first(row).contains("soon"), "{}", first(row));
    assert!(first("a = ").starts_with("outlast.toml:1:"));
    assert_eq!(says("[defaults]\na = 1\nb = 2\n[log]\nc = 3").len(), 3);
}

#[test]
fn what_is_odd_is_a_warning() {
    let warned = |text: &str| first(text);
    assert!(warned("[defaults]\ntimeout='30s'\nmax='30s'\nhandshake='30s'").contains("are all 30s"));
    assert!(warned("[defaults.methods.'tool/*']\ntimeout='3s'").contains("matches no method of MCP"));
    let twins = "[servers.a]\ncommand='x'\n[servers.b]\ncommand='x'";
    assert!(warned(twins).contains("`a` and `b` are the same command"));
    let twice = "[defaults.tools.a]\nmax='1s'\n[defaults.tools.'{a,b}']\nmax='2s'";
    assert!(warned(twice).contains("never counts"));
    assert!(warned("[clients.x]\nservers=['nope']").contains("matches no server"));
    let denied = "[servers.a]\ncommand='x'\ntools.deny=['rm']\n[servers.a.tools.rm]\nmax='2s'";
    assert!(warned(denied).contains("`tools.allow` and `tools.deny` leave"));
}

#[test]
fn what_is_written_for_the_merged_door_of_one_server_is_a_warning() {
    let one = "[servers.a]\ncommand='x'\nexpose='on-demand'\naliases={ run='go' }\n";
    let warned = says(one);
    assert!(
        warned[0].starts_with(
            "outlast.toml:3:1: `expose` is for stdio clients alone while `a` is the only server"
        )
    );
    assert!(warned[1].starts_with("outlast.toml:4:1: `aliases` is for stdio clients alone"), "{warned:?}");
    let off = format!("{one}[servers.b]\ncommand='y'\ndisabled=true\n");
    assert_eq!(says(&off).len(), 2);
    assert!(says(&off.replace("disabled=true\n", "")).is_empty());
}

#[test]
fn tools_of_no_server_in_a_token_are_a_warning() {
    let servers = "[servers.ci]\ncommand='x'\n[servers.files]\ncommand='y'\n";
    let of =
        |tools: &str| first(&format!("{servers}[tokens.t]\nhash='{}'\ntools=['{tools}']\n", "0".repeat(64)));
    let mistyped = "outlast.toml:7:8: `cii__*` names tools of `cii`, and no server of this file is called so; did you mean `ci__*`?";
    assert_eq!(of("cii__*"), mistyped);
    for fine in ["ci__*", "c*__run", "{ci,files}__*", "run_*", "*"] {
        assert_eq!(of(fine), "", "{fine}");
    }
}

/// The shape of dynamic-mcp's examples: its keys are understood or named.
#[test]
fn a_file_of_dynamic_mcp_is_taken() {
    let text = r#"{
      "$schema": "https://example.com/config-schema.json",
      "mcpServers": {
        "files": {"description": "Use it to read files.", "command": "npx", "args": ["-y", "files", "/tmp"]},
        "docs": {"type": "http", "description": "x", "url": "https://h.example/mcp", "headers": {"K": "v"},
                 "features": {"tools": false, "resources": true, "prompts": false}},
        "off": {"description": "x", "command": "echo", "args": ["hello"], "enabled": false, "timeout": "30s"},
        "sso": {"description": "x", "url": "https://s.example/mcp", "oauth_client_id": "me", "timeout": 30}
      }
    }"#;
    let gateway = examine(text).unwrap();
    assert_eq!(gateway.servers.len(), 4);
    assert!(gateway.servers[2].disabled && !gateway.servers[2].config.rules.is_empty());
    assert!(gateway.servers[1].deny[0].matches("anything"));
    let warned: String = gateway.warnings.iter().map(|warning| warning.line() + "\n").collect();
    for named in ["features.prompts", "oauth_client_id", "`timeout` has no unit"] {
        assert!(warned.contains(named), "{named}: {warned}");
    }
    assert_eq!(gateway.warnings.len(), 3, "{warned}");
}

#[test]
fn secrets_are_not_shown() {
    let shown = |text| examine(text).unwrap_err().iter().map(Mistake::to_string).collect::<String>();
    for text in [
        "[servers.x]\ncommand='x'\nenv = { K = ['s3cret'] }",
        "[servers.x]\nurl = 'https://me:s3cret@host/'",
        "[servers.x.headers]\nA = 's3cret",
    ] {
        assert!(!shown(text).contains("s3cret"), "{}", shown(text));
    }
}

#[test]
fn a_directory_and_a_large_file_and_other_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("outlast.toml");
    let said = |path: &Path| load(path).unwrap_err().iter().map(Mistake::line).collect::<String>();
    assert!(said(folder.path()).contains("it is a directory"));
    assert!(said(&file).contains("cannot read"));
    std::fs::write(&file, vec![b'#'; 2 << 20]).unwrap();
    assert!(said(&file).contains("it has 2 MiB; a file may have 1 MiB"));
    std::fs::write(&file, b"# x\n# \xff").unwrap();
    assert!(said(&file).contains("line 2: it is not UTF-8"));
    std::fs::write(&file, "include = ['mcp.json']\n[defaults]\nmax='1h'").unwrap();
    std::fs::write(folder.path().join("mcp.json"), r#"{"servers": {"a": {"command": "x"}}}"#).unwrap();
    let gateway = load(&file).unwrap();
    assert_eq!((gateway.servers.len(), gateway.files.len()), (1, 2));
}

/// A text that looks like one of our files.
fn like_a_file() -> impl Strategy<Value = String> {
    let pieces = [
        "[defaults]\n",
        "[servers.a]\n",
        "[servers.a.tools.\"x*\"]\n",
        "[defaults.methods.\"{a,b}\"]\n",
        "[listen]\n",
        "[clients.\"*\"]\n",
        "[tokens.t]\n",
        "timeout = \"5s\"\n",
        "timeout = 5\n",
        "command = \"x\"\n",
        "url = \"http://h/\"\n",
        "env = { A = \"${B}\" }\n",
        "tools.allow = [\"x\"]\n",
        "hash = \"00\"\n",
        "include = [\"outlast.toml\"]\n",
        "signs = []\n",
        "{\"mcpServers\": {",
        "\"a\": {\"command\": \"x\"},",
        "}}",
        "\u{feff}",
        "ä = 'ö'\n",
        "[[servers]]\n",
        "= ",
        "\"",
        "${",
        "{",
        "}",
        "\n",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..30)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    /// No text makes the reader panic, and every mistake can be shown.
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![like_a_file(), ".{0,200}"]) {
        if let Err(mistakes) = examine(&text) {
            prop_assert!(!mistakes.is_empty());
            prop_assert!(mistakes.iter().all(|mistake| !mistake.to_string().is_empty() && mistake.spot.is_some()));
        }
    }
}

/// CPU time of this thread: what others do on the machine does not count.
#[cfg(target_os = "linux")]
fn cpu() -> std::time::Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    std::time::Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
}

/// As long as a file may be; a program that is not optimised gets a part of that.
#[cfg(target_os = "linux")]
const LONG: usize = gather::LARGEST as usize >> if cfg!(debug_assertions) { 2 } else { 0 };

/// A long file: a piece again and again, with a number in place of each `#`.
#[cfg(target_os = "linux")]
fn long(head: &str, piece: &str, tail: &str) -> String {
    let mut text = head.to_owned();
    for number in 0.. {
        if text.len() + piece.len() + tail.len() + 8 > LONG {
            break;
        }
        text += &piece.replace('#', &number.to_string());
    }
    text + tail
}

/// Reading takes 100 ms per MB at most, whatever is in the file; a program that is not optimised needs many times more.
#[cfg(target_os = "linux")]
#[test]
fn no_file_takes_long_to_read() {
    let most = std::time::Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 100 });
    let server = "[servers.a]\ncommand = 'x'\n";
    let allowed = format!("{server}tools.allow = [");
    let many = format!("{server}tools.deny = ['{{a,b,c,d}}{{a,b,c,d}}{{a,b,c,d}}*x*y*z', ");
    let shapes = [
        ("", "\n", ""),
        ("", "a# = 1\n", ""),
        ("[defaults]\n", "timeout# = '5s'\n", ""),
        ("", "[servers.s#]\ncommand = 'x'\n", ""),
        ("", "[servers.s#]\ncommand = 'x#'\n[servers.s#.tools.'t#*']\nmax = '#s'\n", ""),
        (server, "[servers.a.tools.'{t#,u#,v#}']\nmax = '1h'\n", ""),
        (&allowed, "'t#*', ", "]\n"),
        (&many, "'{a,b,c,d}{a,b,c,d}{a,b,c,d}*x*y#*z', ", "]\n"),
        ("[clients.x]\nservers = [", "'s#*', ", "]\n"),
        ("", "[clients.'c#*']\nservers = ['s#']\n", ""),
        ("", "[tokens.t#]\nhash = '00'\n", ""),
        ("[servers.a]\ncommand = 'x'\nargs = [", "'${A#:-b}', ", "]\n"),
        ("[servers.a]\ncommand = '", "${A:-b}$${", "'\n"),
        ("[servers.a]\ncommand = 'x'\nenv = { ", "A# = '${NOPE}', ", "B = '' }\n"),
        ("a = ", "[", ""),
        ("a", ".b#", " = 1\n"),
        ("[a", ".b", "]\n"),
        ("{\"mcpServers\": {", "\"s #\": {\"command\": \"x\", \"odd\": []}, ", "}}"),
        ("{\"mcpServers\": ", "[", ""),
        ("{", "/* # */ // x\n", "}"),
        ("include = [", "'f#', ", "]\n"),
    ];
    for (head, piece, tail) in shapes {
        let text = long(head, piece, tail);
        let before = cpu();
        let read = examine(&text);
        let took = cpu() - before;
        assert!(took < most, "{piece:?} took {took:?} for {} KiB", text.len() >> 10);
        if let Err(mistakes) = read {
            assert!(
                mistakes.len() <= 100 && mistakes.iter().all(|mistake| mistake.to_string().len() < 10_000)
            );
        }
    }
}

const CALLBACK: &str = "[servers.ci]\ncommand = \"ci\"\n[callbacks.ops]\n";
const SECRET: &str = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiBvdXRsYXN0ISE=";

#[test]
fn a_callback_is_read_with_a_secret_from_the_environment() {
    let text = format!(
        "{CALLBACK}url = \"https://hooks.example/x\"\nsecret = \"${{HOOK}}\"\nwhen = \"always\"\n\
         allow = [\"10.0.0.0/8\", \"::1\"]\n[clients.\"ci*\"]\ncallback = \"ops\"\n"
    );
    let known = |name: &str| (name == "HOOK").then(|| SECRET.to_owned());
    let gateway = examine_as(&text, &known).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    assert_eq!(gateway.callbacks[0].when, outlast_engine::callback::When::Always);
    assert_eq!(gateway.settings.engine.clients[0].callback.as_deref(), Some("ops"));
    let shown = format!("{:?}", gateway.callbacks);
    assert!(!shown.contains("c2Vj") && !shown.contains("hooks.example"), "{shown}");
}

#[test]
fn what_is_wrong_with_a_callback_is_told_and_nothing_secret_with_it() {
    let of = |more: &str| first(&format!("{CALLBACK}{more}"));
    let secret = format!("secret = \"{SECRET}\"\n");
    for (more, expected) in [
        (secret.clone(), "callback `ops` has no url"),
        ("url = \"https://x/\"\n".into(), "callback `ops` has no secret"),
        (format!("url = \"ftp://x/\"\n{secret}"), "`url` is not the URL of a callback"),
        (format!("url = \"https://ann:p@x/\"\n{secret}"), "`url` is not the URL of a callback"),
        (format!("url = \"http://x/\"\n{secret}"), "http:// is only for addresses that `allow` lists"),
        (format!("url = \"https://x/\"\n{secret}allow = [\"x\"]\n"), "`x` is not an address or a network"),
        (
            format!("url = \"https://x/\"\n{secret}when = \"never\"\n"),
            "`when`: `never` is not one of disconnected, always",
        ),
        (format!("url = \"https://x/\"\n{secret}uri = \"y\"\n"), "unknown key `uri` in [callbacks.ops]"),
        (
            format!("url = \"https://x/\"\n{secret}links = \"https://x/y\"\n"),
            "`links`: `https://x/y` is not where",
        ),
        ("url = \"https://x/\"\nsecret = \"hunter2\"\n".into(), "the secret is not `whsec_` and base64"),
        ("url = \"https://x/\"\nsecret = \"${HOOK}\"\n".into(), "the variable HOOK is not set"),
    ] {
        let said = of(&more);
        assert!(said.contains(expected), "{more}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("c2Vj"), "{said}");
    }
    let named = first("[servers.ci]\ncommand = \"ci\"\n[clients.x]\ncallback = \"ops\"\n");
    assert!(named.contains("there is no callback `ops`"), "{named}");
    let name = first(&format!(
        "[servers.ci]\ncommand = \"ci\"\n[callbacks.\"a b\"]\nurl = \"https://x/\"\n{secret}"
    ));
    assert!(name.contains("`a b` cannot be the name of a callback"), "{name}");
}
