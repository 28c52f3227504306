//! Calls as parts of traces: what their servers are told, and what those who look on learn.

use outlast_engine::http::{Head, TraceFields};
use outlast_engine::id::{ClientId, ExchangeId, Run, ServerId};
use outlast_engine::reached::Bound;
use outlast_engine::step::{Attempt, Step, Traced, What};
use outlast_engine::trace::Context;
use outlast_engine::{Action, Config, Engine, Event, Manner, Mono, Now, Wall, limits, wire};
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;
use outlast_testkit::sim;
use std::time::Duration;

const KNOWN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn now() -> Now {
    Now { mono: Mono::after_start(Duration::ZERO), wall: Wall(1_000) }
}

/// What came of one request.
#[derive(Debug, Default)]
struct Seen {
    /// What its server got.
    bytes: String,
    began: Option<Traced>,
    sent: Option<Attempt>,
}

impl Seen {
    fn of(engine: &mut Engine) -> Seen {
        let mut seen = Seen::default();
        while let Some(action) = engine.poll() {
            match action {
                Action::ToServer(_, message) => seen.bytes = String::from_utf8(message.to_vec()).unwrap(),
                Action::Step(Step::Call(_, What::Began(began))) => {
                    seen.began = began.trace.map(|trace| *trace)
                }
                Action::Step(Step::Call(_, What::Sent { traced, .. })) => seen.sent = traced,
                _ => {}
            }
        }
        seen
    }

    /// `traceparent` as the server of the attempt should know it.
    fn told(&self) -> String {
        let (began, sent) = (self.began.as_ref().expect("a trace"), self.sent.expect("an attempt"));
        Context { span: sent.span, ..began.context }.to_string()
    }
}

/// One stdio client and its server; calls are recorded.
fn recording() -> Engine {
    let mut engine = Engine::new(Config { traces: true, seed: 7, ..Config::default() });
    engine.handle(now(), Event::Opened(ClientId(0), ServerId(0)));
    engine.handle(now(), Event::Started(ServerId(0), Run(0)));
    engine
}

fn says(engine: &mut Engine, line: &str) -> Seen {
    engine.handle(now(), Event::FromClient(ClientId(0), wire::scan(line.to_owned().into())));
    Seen::of(engine)
}

/// A request with these parameters, and what its server got of them.
fn params(text: &str) -> (Seen, String) {
    let seen = says(
        &mut recording(),
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{text}}}"#),
    );
    let got = seen.bytes.split_once(r#""params":"#).expect("parameters").1.to_owned();
    let got = got.strip_suffix('}').expect("an object").to_owned();
    (seen, got)
}

#[test]
fn a_call_without_a_trace_begins_one_and_its_server_is_told() {
    for (asked, got) in [
        (r#"{}"#, r#"{"_meta":{"traceparent":"…","progressToken":1}}"#),
        (r#"{"name":"a"}"#, r#"{"_meta":{"traceparent":"…","progressToken":1},"name":"a"}"#),
        (r#"{"_meta":{}}"#, r#"{"_meta":{"traceparent":"…","progressToken":1}}"#),
        (r#"{"_meta":{ "x":1.0 }}"#, r#"{"_meta":{"traceparent":"…","progressToken":1, "x":1.0 }}"#),
        (r#"{"_meta":{"progressToken":"p"}}"#, r#"{"_meta":{"traceparent":"…","progressToken":1}}"#),
        (
            r#"{"_meta":{"tracestate":"a=1"}}"#,
            r#"{"_meta":{"traceparent":"…","progressToken":1,"tracestate":"a=1"}}"#,
        ),
    ] {
        let (seen, found) = params(asked);
        assert_eq!(found, got.replace('…', &seen.told()), "{asked}");
        let began = seen.began.as_ref().expect("a trace");
        assert_eq!((began.parent, &*began.state, &*began.id), (None, "", "1"));
        assert!(began.context.is_sampled() && Some(began.context.span) != seen.sent.map(|sent| sent.span));
    }
}

#[test]
fn where_nothing_can_be_put_in_nothing_is() {
    let mut engine = recording();
    let seen = says(&mut engine, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(seen.bytes, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(seen.began.is_some() && seen.sent.is_some(), "it is recorded all the same");
    for odd in [r#"{"_meta":7,"x":1}"#, "[1]"] {
        assert_eq!(params(odd).1, odd);
    }
}

/// Also of a method that takes no progress.
#[test]
fn every_request_is_told_its_place() {
    let asked = r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":{}}"#;
    let seen = says(&mut recording(), asked);
    let got = asked.replace("{}", &format!(r#"{{"_meta":{{"traceparent":"{}"}}}}"#, seen.told()));
    assert_eq!(seen.bytes, got.replace(r#""id":5"#, r#""id":1"#));
}

#[test]
fn a_call_stands_below_its_clients_span() {
    let asked =
        format!(r#"{{"name":"a","_meta":{{"tracestate":"a=1,b=2", "traceparent" : "{KNOWN}","y":2}}}}"#);
    let (seen, got) = params(&asked);
    let told = asked.replace(KNOWN, &seen.told()).replace(r#""_meta":{"#, r#""_meta":{"progressToken":1,"#);
    assert_eq!(got, told);
    let (began, parent) = (seen.began.unwrap(), Context::parse(KNOWN).unwrap());
    assert_eq!(
        (began.parent, began.context.trace, &*began.state),
        (Some(parent.span), parent.trace, "a=1,b=2")
    );
    assert_ne!(began.context.span, parent.span);
}

#[test]
fn a_trace_that_cannot_be_read_passes_and_a_new_one_begins() {
    let long = format!("\"{}\"", "0".repeat(limits::TRACE));
    let _bounds = reaches(&[Bound::TRACE]);
    for odd in [r#""00-ab-cd-01""#, "7", "null", r#""""#, &long] {
        let (seen, got) = params(&format!(r#"{{"_meta":{{"traceparent":{odd},"tracestate":"a=1"}}}}"#));
        assert_eq!(
            got,
            format!(r#"{{"_meta":{{"progressToken":1,"traceparent":{odd},"tracestate":"a=1"}}}}"#)
        );
        let began = seen.began.expect("a trace of our own");
        assert_eq!((began.parent, &*began.state), (None, ""));
    }
}

/// Who begins a trace decides whether it is recorded, by all of its parts or by none.
#[test]
fn a_trace_that_is_not_recorded_is_left_alone() {
    let (seen, got) = params(&format!(r#"{{"_meta":{{"traceparent":"{UNSAMPLED}"}}}}"#));
    assert_eq!(got, format!(r#"{{"_meta":{{"progressToken":1,"traceparent":"{UNSAMPLED}"}}}}"#));
    assert_eq!((seen.began, seen.sent), (None, None));
}

#[test]
fn without_recording_every_byte_stays() {
    check(&format!(
        r#"
        set observed
        > {{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"traceparent":"{KNOWN}"}}}}}}
        %% 1 began ping …
        >> {{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"traceparent":"{KNOWN}"}}}}}}
        %% 1 sent…
        > {{"jsonrpc":"2.0","id":2,"method":"ping","params":{{}}}}
        %% 2 began ping …
        >> {{"jsonrpc":"2.0","id":2,"method":"ping","params":{{}}}}
        %% 2 sent…
        "#
    ));
}

#[test]
fn each_attempt_is_a_span_of_its_own_below_the_same_call() {
    let mut engine = recording();
    let first = says(&mut engine, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#);
    let second = says(&mut engine, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#);
    let spans = [&first, &second].map(|seen| (seen.began.as_ref().unwrap().context, seen.sent.unwrap().span));
    let [(one, at_one), (two, at_two)] = spans;
    assert_ne!(one.trace, two.trace);
    let mut all = vec![one.span, at_one, two.span, at_two];
    all.sort_by_key(|span| span.0);
    all.dedup();
    assert_eq!(all.len(), 4);
}

/// The attempt that is made again says another span, in the same trace.
#[test]
fn a_repeated_call_goes_on_in_its_trace() {
    let mut engine = Engine::new(Config { traces: true, ..Config::default() });
    engine.handle(now(), Event::Opened(ClientId(0), ServerId(0)));
    engine.handle(now(), Event::Started(ServerId(0), Run(0)));
    let asked = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"traceparent":"{KNOWN}"}}}}}}"#
    );
    // A handshake first, so that the server is started again.
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    says(&mut engine, initialize);
    let from_server = |engine: &mut Engine, run: u32, line: &str| {
        engine.handle(now(), Event::FromServer(ServerId(0), Run(run), wire::scan(line.to_owned().into())));
        Seen::of(engine)
    };
    let welcome = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        )
    };
    from_server(&mut engine, 0, &welcome(1));
    says(&mut engine, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let first = says(&mut engine, &asked);
    assert!(first.bytes.contains(&first.told()), "{}", first.bytes);
    engine.handle(now(), Event::Exited(ServerId(0), Run(0), outlast_engine::event::Exit::Code(1)));
    engine.handle(now(), Event::OutputClosed(ServerId(0), Run(0)));
    let later = Now { mono: Mono::after_start(Duration::from_secs(2)), wall: Wall(3_000) };
    engine.handle(later, Event::Tick);
    engine.handle(later, Event::Started(ServerId(0), Run(1)));
    Seen::of(&mut engine);
    let again = from_server(&mut engine, 1, &welcome(3));
    let second = again.sent.expect("it is sent again");
    let told = Context { span: second.span, ..first.began.as_ref().unwrap().context }.to_string();
    assert!(again.bytes.contains(&told) && told != first.told(), "{}", again.bytes);
}

/// Recorded or not, a world of peers with faults sees the same, but for what servers are told of their place.
#[test]
fn recording_changes_nothing_but_what_servers_are_told() {
    for seed in 1..=40 {
        let [on, off] = [true, false].map(|traces| {
            sim::record(Some(traces));
            let worlds = [sim::pipes::run(seed, 100), sim::service::run(seed, 100)];
            sim::record(None);
            worlds
        });
        assert_eq!(on, off, "seed {seed}");
    }
}

// Over HTTP.

/// A service whose server is reached over HTTP: the header of a request goes on, recorded or not.
#[test]
fn a_header_is_passed_to_an_http_server_as_it_was_written() {
    let pass = |more: &str, head: &str| {
        check(&format!(
            r#"
            set serve
            set http
            post 1 {head} version=2026-07-28 method=tools/list {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}
            .. 1: start 0
            >> 1: post [mcp-protocol-version: 2026-07-28, mcp-method: tools/list{more}] …
            "#
        ));
    };
    pass("", "");
    pass(", traceparent: odd", "traceparent=odd");
    pass(&format!(", traceparent: {KNOWN}, tracestate: a=1"), &format!("traceparent={KNOWN} tracestate=a=1"));
}

/// A request of a modern client over HTTP to a process, and what became of its trace.
fn posted(head: TraceFields, meta: &str) -> Seen {
    let manner = Manner::Serve;
    let mut engine = Engine::new(Config { traces: true, manner, ..Config::default() });
    engine.handle(now(), Event::Entropy([7; 32]));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{{"_meta":{{{meta}"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    let head = Head {
        version: Some("2026-07-28".into()),
        method: Some("tools/list".into()),
        trace: Some(head.into()),
        takes_json: true,
        takes_events: true,
        ..Head::default()
    };
    engine.handle(now(), Event::Posted(ExchangeId(1), Box::new(head), wire::scan(body.into())));
    engine.handle(now(), Event::Started(ServerId(0), Run(0)));
    Seen::of(&mut engine)
}

#[test]
fn the_header_of_a_client_counts_where_its_message_says_nothing() {
    let head = TraceFields { parent: KNOWN.into(), state: r#"a="1""#.into() };
    let seen = posted(head.clone(), "");
    let began = seen.began.clone().expect("a trace");
    assert_eq!(began.parent, Context::parse(KNOWN).map(|parent| parent.span));
    assert!(
        (began.client_over_http, began.server_over_http) == (true, false) && *began.version == *"2026-07-28"
    );
    let told = format!(r#""_meta":{{"traceparent":"{}","tracestate":"a=\"1\"","#, seen.told());
    assert!(seen.bytes.contains(&told), "{}", seen.bytes);
    let own = KNOWN.replace("4bf92f", "aaaaaa");
    let seen = posted(head, &format!(r#""traceparent":"{own}","#));
    assert_eq!(
        seen.began.as_ref().map(|began| began.context.trace),
        Context::parse(&own).map(|own| own.trace)
    );
    assert!(seen.bytes.contains(&seen.told()) && !seen.bytes.contains("tracestate"), "{}", seen.bytes);
}

/// So that a server that is recorded by its HTTP library stands in the same trace.
#[test]
fn an_http_server_is_told_in_its_header_too() {
    check(
        r#"
        set http
        set traces
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        %% 1 began ping …
        >> post [traceparent: 00-…-01] {"jsonrpc":"2.0","id":1,"method":"ping"}
        %% 1 sent…
        "#,
    );
}
