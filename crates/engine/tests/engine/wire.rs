//! The scanner and the edits: by example, and against `serde_json` on whatever comes.

use bytes::Bytes;
use outlast_engine::wire::{
    Edit, Fault, Field, Message, Outgoing, Patch, Scanned, Shape, scan, scan_tolerant,
};
use outlast_testkit::oracle::compare;
use proptest::prelude::*;

fn message(text: &str) -> Message {
    match scan(Bytes::copy_from_slice(text.as_bytes())) {
        Ok(Scanned::Message(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

fn fault(text: &str) -> Fault {
    compare(text.as_bytes());
    scan(Bytes::copy_from_slice(text.as_bytes())).expect_err(text).fault
}

fn raw(text: &str, field: Field) -> Option<String> {
    compare(text.as_bytes());
    message(text).raw(field).map(|raw| String::from_utf8(raw.to_vec()).unwrap())
}

#[test]
fn ids_of_every_kind_are_found_exactly() {
    for id in
        ["1", "-5", "1.0", "9007199254740993", "18446744073709551617", "\"\"", "\"a\\\"b\"", "\"ü\"", "null"]
    {
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#),
            format!(r#" {{ "method" : "x" , "id" : {id} }} "#),
            format!(r#"{{"result":{{"id":"no"}},"id":{id}}}"#),
        ] {
            assert_eq!(raw(&text, Field::Id).as_deref(), Some(id));
        }
    }
}

#[test]
fn escapes_in_keys_are_keys() {
    assert_eq!(raw(r#"{"\u0069d":7,"m\u0065thod":"x"}"#, Field::Id).as_deref(), Some("7"));
    assert_eq!(fault(r#"{"id":1,"\u0069d":2,"method":"x"}"#), Fault::Duplicate);
    // Half a surrogate pair is JSON, and no key of ours.
    assert_eq!(raw(r#"{"\ud800":1,"id":2,"method":"x"}"#, Field::Id).as_deref(), Some("2"));
}

#[test]
fn nested_objects_named_like_the_envelope_are_not_the_envelope() {
    let text = r#"{"params":{"id":1,"method":"no","params":{"_meta":{"progressToken":9}},"_meta":{"progressToken":5,"_meta":{"progressToken":6}}},"method":"yes","id":2}"#;
    assert_eq!(raw(text, Field::Id).as_deref(), Some("2"));
    assert_eq!(raw(text, Field::Method).as_deref(), Some("\"yes\""));
    assert_eq!(raw(text, Field::MetaProgressToken).as_deref(), Some("5"));
    assert_eq!(
        raw(r#"{"method":"x","params":[{"_meta":{"progressToken":5}}]}"#, Field::MetaProgressToken),
        None
    );
}

#[test]
fn duplicates_are_refused_where_we_act_and_nowhere_else() {
    for text in [
        r#"{"id":1,"id":1,"method":"x"}"#,
        r#"{"id":1,"method":"x","method":"y"}"#,
        r#"{"id":1,"result":1,"result":2}"#,
        r#"{"method":"x","params":{"name":"a","name":"b"}}"#,
        r#"{"method":"x","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
    ] {
        assert_eq!(fault(text), Fault::Duplicate, "{text}");
    }
    message(r#"{"x":1,"x":2,"method":"m","params":{"arguments":{"id":1,"id":2}}}"#);
}

/// Of an answer every usual reader takes the last of two results; so do we, if somebody waits for it.
#[test]
fn the_tolerant_scanner_takes_the_last_of_two_results_and_never_the_last_of_two_ids() {
    let text = r#"{"id":7,"result":{"resultType":"a","_meta":{}},"result":{"x":1}}"#;
    let message = scan_tolerant(&Bytes::from(text)).expect("tolerated");
    assert_eq!(message.raw(Field::Result), Some(&br#"{"x":1}"#[..]));
    assert_eq!((message.raw(Field::ResultType), message.raw(Field::ResultMeta)), (None, None));
    for text in [r#"{"id":7,"id":8,"result":1}"#, r#"{"method":"x","method":"y"}"#] {
        assert!(scan_tolerant(&Bytes::from(text)).is_none(), "{text}");
    }
}

#[test]
fn null_beside_a_result_is_no_error_and_beside_an_error_no_result() {
    let message = message(r#"{"id":7,"error":null,"result":{}}"#);
    assert!(message.has(Field::Result) && !message.has(Field::Error));
    let other = self::message(r#"{"id":7,"result":null,"error":{"code":1}}"#);
    assert!(other.has(Field::Error) && !other.has(Field::Result));
    assert!(self::message(r#"{"id":7,"result":null}"#).has(Field::Result));
    assert!(self::message(r#"{"id":7,"error":null}"#).has(Field::Error));
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "hello",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "[1,]",
        "[1 2]",
        "{\"a\":1 \"b\":2}",
        "nul",
        "tru",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "-",
        "--1",
        "0x1",
        "NaN",
        "Infinity",
        "\"a",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"a\tb\"",
        "{\"a\":1}}",
        "{} {}",
        "'a'",
        "{a:1}",
        "[1]]",
        "{\"a\":[}",
        "{\"a\":{]",
        "\u{feff}{}",
        "// {}",
    ] {
        assert!(matches!(fault(text), Fault::NotJson(_)), "{text}");
    }
    let long = format!("\"{}\u{1}\"", "x".repeat(100));
    assert!(matches!(fault(&long), Fault::NotJson(_)), "a control character deep in a long string");
    compare(b"{\"method\":\"\xe9\"}");
}

#[test]
fn json_that_is_no_message_is_refused() {
    for text in ["1", "null", "\"x\"", "{}", "{\"id\":1}", r#"{"method":7}"#, r#"{"method":"x","result":1}"#]
    {
        assert_eq!(fault(text), Fault::NotAMessage, "{text}");
    }
    assert_eq!(fault("[]"), Fault::EmptyBatch);
    assert_eq!(fault(&format!("[{}]", vec!["1"; 1001].join(","))), Fault::LongBatch);
}

#[test]
fn shapes_are_told_apart() {
    let shape = |text| message(text).shape;
    assert_eq!(shape(r#"{"id":null,"method":"x"}"#), Shape::Request);
    assert_eq!(shape(r#"{"method":"x"}"#), Shape::Notification);
    assert_eq!(shape(r#"{"id":1,"result":null}"#), Shape::Answer);
    assert_eq!(shape(r#"{"error":{"code":1}}"#), Shape::Answer);
}

#[test]
fn deep_nesting_and_long_lines_are_no_trouble() {
    let deep = |open: &str, close: &str| {
        format!(r#"{{"id":1,"method":"x","params":{}1{}}}"#, open.repeat(100_000), close.repeat(100_000))
    };
    assert_eq!(raw(&deep("[", "]"), Field::Id).as_deref(), Some("1"));
    assert_eq!(raw(&deep("{\"a\":", "}"), Field::Method).as_deref(), Some("\"x\""));
    assert_eq!(raw(&deep("[{\"params\":", "}]"), Field::Id).as_deref(), Some("1"));
    assert!(matches!(fault(&"[".repeat(100_000)), Fault::NotJson(_)));
    let long = format!(r#"{{"id":1,"result":"{}"}}"#, "text \\n ".repeat(1_250_000));
    assert_eq!(message(&long).raw(Field::Id), Some(&b"1"[..]));
}

/// Strings are looked at in words and blocks: every byte that matters, at every place in them.
#[test]
fn a_byte_that_matters_is_seen_wherever_it_stands() {
    for length in (0..20).chain([55, 63, 64, 65, 71, 72, 73, 130]) {
        for at in 0..=length {
            for byte in [
                &b""[..],
                b"\"",
                b"\\",
                b"\\n",
                b"\\\"",
                b"\x00",
                b"\x1f",
                b" ",
                b"!",
                b"#",
                b"\x7f",
                b"\x80",
                b"\xc3\xa4",
            ] {
                let text = [&b"x".repeat(at), byte, &b"y".repeat(length - at)].concat();
                compare(&[b"{\"id\":1,\"result\":\"", &text[..], b"\"}"].concat());
                compare(&[b"{\"id\":1,\"result\":{\"", &text[..], b"\":1}}"].concat());
                compare(&[b"{\"id\":1,\"result\":\"", &text[..]].concat());
                let careless = Bytes::from([b"{\"result\":\"", &text[..], b"\",\"id\":7}"].concat());
                let ends = byte == b"\"" || byte == b"\\" && at == length;
                let id =
                    scan_tolerant(&careless).and_then(|message| message.raw(Field::Id).map(<[u8]>::to_vec));
                assert_eq!(id.is_some(), !ends, "{careless:?}");
            }
        }
    }
}

#[test]
fn the_tolerant_scanner_finds_the_id_in_careless_json() {
    for text in [
        &b"{\"id\":7,\"result\":{\"x\":NaN,\"y\":-Infinity}}"[..],
        b"{\"result\":\"caf\xe9\",\"id\":7}",
        b"{\"result\":\"a\tb \\x\",\"id\":7}",
    ] {
        assert!(scan(Bytes::copy_from_slice(text)).is_err());
        let message = scan_tolerant(&Bytes::copy_from_slice(text)).expect("tolerated");
        assert_eq!(message.raw(Field::Id), Some(&b"7"[..]));
    }
    for text in [
        "",
        "{",
        "{\"id\":7,\"result\":}",
        "{\"id\":7 \"result\":1}",
        "[1]",
        "{\"id\":7,\"id\":8,\"result\":1}",
    ] {
        assert!(scan_tolerant(&Bytes::copy_from_slice(text.as_bytes())).is_none(), "{text}");
    }
}

#[test]
fn edits_change_what_they_name_and_nothing_else() {
    let text = r#"{"id": 1.0 ,"method":"x","params":{"total":5 , "progress":1.50}}"#;
    let scanned = message(text);
    let span = |field| scanned.envelope.get(field).unwrap();
    let edited = |edits| String::from_utf8(Outgoing::edited(scanned.bytes.clone(), edits).to_vec()).unwrap();
    let id = Edit::replace(
        span(Field::Id),
        Patch::of(&[b"\"a rather long id that does not fit inline, whatever it is\""]),
    );
    let total = Edit::remove_member(&scanned.bytes, span(Field::ParamsTotal));
    assert_eq!(
        edited(vec![total, id]),
        r#"{"id": "a rather long id that does not fit inline, whatever it is" ,"method":"x","params":{ "progress":1.50}}"#
    );
    let last = Edit::remove_member(&scanned.bytes, span(Field::ParamsProgress));
    assert_eq!(edited(vec![last]), r#"{"id": 1.0 ,"method":"x","params":{"total":5 }}"#);
    let alone = message(r#"{"method":"x","params":{ "total" : 5 }}"#);
    let only = Edit::remove_member(&alone.bytes, alone.envelope.get(Field::ParamsTotal).unwrap());
    let outgoing = Outgoing::edited(alone.bytes.clone(), vec![only]);
    assert_eq!(outgoing.to_vec(), br#"{"method":"x","params":{  }}"#);
    assert_eq!(outgoing.len(), outgoing.to_vec().len());
    assert!(!outgoing.is_empty());
}

/// JSON text with odd spacing, escapes, and the keys that matter in every place.
fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("1e400".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\"\\/\"".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    scalar.prop_recursive(6, 60, 6, |inner| {
        let members = prop::collection::vec((key(), inner.clone(), space()), 0..6).prop_map(|members| {
            let members: Vec<String> = members
                .into_iter()
                .map(|(key, value, space)| format!("{space}{key}{space}:{value}{space}"))
                .collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![
            members,
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(" , ")))
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "\"id\"",
            "\"method\"",
            "\"params\"",
            "\"result\"",
            "\"error\"",
            "\"_meta\"",
            "\"progressToken\"",
            "\"name\"",
            "\"\\u0069d\"",
            "\"meth\\u006fd\"",
            "\"code\"",
            "\"task\"",
            "\"jsonrpc\"",
            "\"progress\"",
            "\"resultType\"",
            "\"io.modelcontextprotocol/subscriptionId\"",
            "\"io.modelcontextprotocol\\/protocolVersion\"",
            "\"x\"",
        ])
        .prop_map(str::to_owned),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ]
}

fn space() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", " ", "\t", "\r\n"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn we_agree_with_serde_json_on_json(text in json()) {
        compare(text.as_bytes());
    }

    /// One byte changed, removed or doubled: mostly not JSON any more, and both must see it.
    #[test]
    fn we_agree_with_serde_json_on_damaged_json(text in json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), how in 0..3) {
        let mut bytes = text.into_bytes();
        let index = at.index(bytes.len());
        match how {
            0 => bytes[index] = byte,
            1 => drop(bytes.remove(index)),
            _ => bytes.insert(index, bytes[index]),
        }
        compare(&bytes);
    }

    #[test]
    fn we_agree_with_serde_json_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        compare(&bytes);
    }

    /// Whatever is replaced, the rest stays, byte for byte.
    #[test]
    fn an_edited_message_is_still_json(text in json(), number in any::<u64>()) {
        let Ok(Scanned::Message(message)) = scan(Bytes::from(text)) else { return Ok(()) };
        let Some(span) = message.envelope.get(Field::Id) else { return Ok(()) };
        let outgoing = Outgoing::edited(message.bytes.clone(), vec![Edit::replace(span, Patch::of(&[number.to_string().as_bytes()]))]);
        let changed = outgoing.to_vec();
        prop_assert_eq!(outgoing.len(), changed.len());
        compare(&changed);
        prop_assert_eq!(&changed[..span.start()], &message.bytes[..span.start()]);
        prop_assert!(changed.ends_with(&message.bytes[span.end()..]));
    }

    /// Another string in the place of a field leaves everything else where reading again would find it.
    #[test]
    fn a_message_with_another_string_is_what_reading_it_again_gives(text in json(), name in "[a-z\"]{0,30}") {
        let Ok(Scanned::Message(message)) = scan(Bytes::from(text)) else { return Ok(()) };
        let json = serde_json::to_vec(&name).unwrap();
        for field in [Field::ParamsName, Field::ParamsUri] {
            let Some(span) = message.envelope.get(field).filter(|_| message.text(field).is_some()) else { continue };
            let other = message.with_string(field, &json).unwrap();
            let read = message.edited(Edit::replace(span, Patch::of(&[&json]))).unwrap();
            prop_assert_eq!(&other.bytes, &read.bytes);
            prop_assert_eq!((other.shape, other.envelope), (read.shape, read.envelope));
            prop_assert_eq!(other.text(field), Some(name.as_str().into()));
        }
    }
}
