use super::*;
use futures_util::{FutureExt, StreamExt};
use http_body_util::Full;
use proptest::prelude::*;

const MAX: usize = 64 << 20;

/// What comes out of these chunks.
fn parse<'a>(max: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Parsed> {
    let mut parser = Parser::new(max);
    let mut parsed = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, &mut |one| parsed.push(one));
    }
    parsed
}

/// Whole, cut in two at every byte, and byte for byte: always the same.
fn parse_every_split(max: usize, input: &[u8]) -> Vec<Parsed> {
    let whole = parse(max, [input]);
    for at in 0..=input.len() {
        assert_eq!(parse(max, [&input[..at], &input[at..]]), whole, "cut at {at} of {input:?}");
    }
    assert_eq!(parse(max, input.chunks(1)), whole, "byte for byte: {input:?}");
    whole
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn data(text: &str) -> Parsed {
    Parsed::Event { data: bytes(text), id: None, name: None }
}

fn with_id(id: &str, text: &str) -> Parsed {
    Parsed::Event { data: bytes(text), id: Some(bytes(id)), name: None }
}

fn named(name: &str, text: &str) -> Parsed {
    Parsed::Event { data: bytes(text), id: None, name: Some(bytes(name)) }
}

fn id(text: &str) -> Parsed {
    Parsed::Id(bytes(text))
}

fn retry(millis: u64) -> Parsed {
    Parsed::Retry(Duration::from_millis(millis))
}

fn too_long(message: Oversized, id: Option<&str>) -> Parsed {
    Parsed::Oversized { message, id: id.map(bytes) }
}

#[test]
fn a_stream_is_read_the_same_however_it_is_cut() {
    let table: &[(&[u8], &[Parsed])] = &[
        (b"", &[]),
        (b"\n\n\r\r\r\n", &[]),
        // The ends of lines.
        (b"data: a\n\n", &[data("a")]),
        (b"data: a\r\rdata: b\r\r", &[data("a"), data("b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", &[data("a"), data("b")]),
        (b"data: a\r\n\ndata: b\n\r\n", &[data("a"), data("b")]),
        (b"data: a\n\r\r\ndata: b\n\n", &[data("a"), data("b")]),
        // A BOM, only at the start of the stream.
        (b"\xef\xbb\xbfdata: a\n\n", &[data("a")]),
        (b"\xef\xbb\xbf\ndata: a\n\n", &[data("a")]),
        (b"\xef\xbb\xbf: hello\ndata: a\n\n", &[data("a")]),
        (b"\n\xef\xbb\xbfdata: a\n\n", &[]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", &[]),
        (b"data: a\n\xef\xbb\xbf\n\n", &[data("a")]),
        // Values.
        (b"data:a\n\ndata:  b \n\n", &[data("a"), data(" b ")]),
        (b"data: a\ndata: b\ndata:\ndata:c\n\n", &[data("a\nb\n\nc")]),
        (b"data\ndata\n\n", &[data("\n")]),
        (b"data: a:b: c\n\n", &[data("a:b: c")]),
        (
            b"data: \xe2\x80\xa8\xc3\xa9\xff\n\n",
            &[Parsed::Event { data: Bytes::from_static(b"\xe2\x80\xa8\xc3\xa9\xff"), id: None, name: None }],
        ),
        // No data, nothing to deliver; an id counts all the same.
        (b"data\n\n", &[]),
        (b"data:\n\n", &[]),
        (b"event: message\n\ndata: a\n\n", &[data("a")]),
        (b"id: 1\ndata:\n\n", &[id("1")]),
        (b"id: 1\n\n", &[id("1")]),
        (b"id\n\n", &[id("")]),
        (b"id:1\nevent:x\n\n", &[id("1")]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", &[with_id("1", "a"), data("b")]),
        (b"id: 1\nid: 2\ndata: a\n\n", &[with_id("2", "a")]),
        (b"id: 1\nid: x\0y\ndata: a\n\n", &[with_id("1", "a")]),
        (b"id: \0\n\n", &[]),
        // Names.
        (b"event: message\ndata: a\n\n", &[named("message", "a")]),
        (b"event: x\nevent: y\ndata: a\n\ndata: b\n\n", &[named("y", "a"), data("b")]),
        // Times.
        (b"retry: 1500\n\n", &[retry(1500)]),
        (b"retry:0\nid: 1\ndata:\n\n", &[retry(0), id("1")]),
        (b"retry: 1\nretry: 2", &[retry(1)]),
        (
            b"retry: 1s\nretry: -1\nretry: +1\nretry:\nretry:  1\nretry: 1 \nretry: 99999999999999999999\n\n",
            &[],
        ),
        // What is none of these.
        (b": comment\n:\n\ndata: a\n: in between\n\n", &[data("a")]),
        (b"Data: a\ndata : b\n data: c\ndataa: d\nidentity\n\n", &[]),
        (b"a line without a colon\ndata: a\n\n", &[data("a")]),
        // What is not whole.
        (b"data: a\n", &[]),
        (b"data: a\n\ndata: b\nid: 2\n", &[data("a")]),
        (b"data: a\n\ndata: b", &[data("a")]),
    ];
    for (input, expected) in table {
        assert_eq!(parse_every_split(MAX, input), *expected, "{}", input.escape_ascii());
    }
}

#[test]
fn an_event_beyond_the_bound_is_skipped_and_named() {
    let known = |id: &str| Oversized { id: Some(bytes(id)), answer: true };
    let long = "x".repeat(30);
    let first = format!("id: 5\ndata: {{\"id\":7,\"result\":\"{long}\"}}\n\ndata: ok\n\n");
    assert_eq!(parse_every_split(20, first.as_bytes()), [too_long(known("7"), Some("5")), data("ok")]);
    let lines = format!("data: {{\ndata: \"result\":\"{long}\",\ndata: \"id\":8\ndata: }}\n\ndata: ok\n\n");
    assert_eq!(parse_every_split(20, lines.as_bytes()), [too_long(known("8"), None), data("ok")]);
    let exact = format!("data: {}\n\ndata: {}\n\n", "y".repeat(20), "z".repeat(21));
    assert_eq!(
        parse_every_split(20, exact.as_bytes()),
        [data(&"y".repeat(20)), too_long(Oversized::default(), None)]
    );
    // The end of a line between two counts.
    assert_eq!(parse_every_split(3, b"data: a\ndata: bc\n\n"), [too_long(Oversized::default(), None)]);
}

#[test]
fn an_id_is_found_at_either_end_of_a_very_long_event() {
    let long = "x".repeat(300_000);
    let input = format!(
        "data: {{\"id\":7,\"result\":\"{long}\"}}\n\ndata: {{\"result\":\"{long}\",\"id\":\"8\"}}\n\ndata: ok\n\n"
    );
    for chunk in [1000, 65_536, 1_000_000] {
        let known = |id: &str| too_long(Oversized { id: Some(bytes(id)), answer: true }, None);
        let parsed = parse(100_000, input.as_bytes().chunks(chunk));
        assert_eq!(parsed, [known("7"), known("\"8\""), data("ok")], "{chunk}");
    }
}

#[test]
fn memory_is_bounded_whatever_is_long() {
    for start in ["data: ", "id: ", "event: ", "retry: ", ": ", "", "unknown: "] {
        let mut parser = Parser::new(100_000);
        parser.feed(start.as_bytes(), &mut |_| {});
        for _ in 0..100 {
            parser.feed(&[b'7'; 10_000], &mut |_| panic!("nothing has ended"));
        }
        let Parser { start, value, event, .. } = parser;
        let tail = event.data.tail.map_or(0, |tail| tail.capacity());
        let held = start.capacity() + value.capacity() + event.data.bytes.capacity() + tail;
        assert!(held <= 16 * KEPT, "{held}");
    }
}

#[test]
fn a_field_that_is_too_long_is_ignored() {
    let long = "7".repeat(FIELD + 1);
    let input = format!("id: 1\nid: {long}\nevent: {long}\nretry: {long}\ndata: a\n\n");
    assert_eq!(parse(MAX, [input.as_bytes()]), [with_id("1", "a")]);
    let longest = "7".repeat(FIELD);
    assert_eq!(parse(MAX, [format!("id: {longest}\n\n").as_bytes()]), [id(&longest)]);
}

/// What `sse-stream` makes of a whole stream.
fn other_parser(input: &[u8]) -> Vec<Parsed> {
    let events = sse_stream::SseStream::new(Full::new(Bytes::copy_from_slice(input)));
    let events = events.collect::<Vec<_>>().now_or_never().expect("all of it is there");
    let mut parsed = Vec::new();
    for event in events {
        let event = event.expect("the stream is valid");
        parsed.extend(event.retry.map(retry));
        let id = event.id.map(Bytes::from);
        match event.data.filter(|data| !data.is_empty()) {
            Some(data) => {
                let name = event.event.map(Bytes::from);
                parsed.push(Parsed::Event { data: data.into(), id, name });
            }
            None => parsed.extend(id.map(Parsed::Id)),
        }
    }
    parsed
}

/// A stream that both parsers take: `sse-stream` refuses unknown fields and repeated ones.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let value = "( |  |)(\\PC|:|\u{2028}|\t){0,12}";
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    let comment = value.prop_map(|value| format!(":{value}"));
    let data = prop_oneof![
        4 => value.prop_map(|value| format!("data:{value}")),
        1 => Just("data:".to_owned()),
        1 => comment,
    ];
    let id = value.prop_map(|value| format!("id:{value}"));
    let name = value.prop_map(|value| format!("event:{value}"));
    let wait = (0..100_000u32).prop_map(|millis| format!("retry: {millis}"));
    let lines = (
        proptest::option::of(id),
        proptest::option::of(name),
        proptest::option::of(wait),
        proptest::collection::vec(data, 0..4),
    )
        .prop_map(|(id, name, wait, data)| [id, name, wait].into_iter().flatten().chain(data).collect())
        .prop_shuffle();
    // Two different ends could be one: CR and LF.
    let event = (lines, end).prop_map(|(lines, end): (Vec<String>, _)| {
        lines.iter().map(|line| format!("{line}{end}")).collect::<String>() + end
    });
    let events = proptest::collection::vec(event, 0..5);
    let bom = prop_oneof![Just(""), Just("\u{feff}")];
    let rest = prop_oneof![Just(""), Just("data: half"), Just("id: 9\ndata: half\n")];
    (bom, events, rest).prop_map(|(bom, events, rest)| format!("{bom}{}{rest}", events.concat()).into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_agrees_with_another_parser_on_every_split(input in streams()) {
        prop_assert_eq!(parse_every_split(MAX, &input), other_parser(&input));
    }
}
