//! HTTP/1.1 reads the same whether it comes whole or in pieces, never beyond its end, and what we write is
//! read as it was meant.

#![no_main]

#[allow(dead_code)] // not all of it is read here
#[path = "../../crates/outlast/src/http1"]
mod http1 {
    pub mod body;
    pub mod fault;
    pub mod fields;
    pub mod head;
    pub use fault::{Fault, HEAD_BYTES, HEADERS};
}

use http1::body::{Decoder, Framing};
use http1::fields::{self, Fields};
use http1::head::{self, Found};

// The first byte says whether it is a request or a response, and how long the pieces of its body are.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((how, message)) = bytes.split_first() else { return };
    let pieces = usize::from(how >> 1).max(1);
    if how & 1 == 0 {
        check(message, pieces, head::request, |request| (&request.fields, request.framing));
    } else {
        check(message, pieces, head::response, |response| (&response.fields, response.framing));
    }
});

fn check<T>(
    message: &[u8],
    pieces: usize,
    parse: impl Fn(&[u8]) -> Found<T>,
    parts: impl Fn(&T) -> (&Fields, Framing),
) {
    let Ok(Some((head, length))) = parse(message) else { return };
    let (fields, framing) = parts(&head);
    assert!(head::ends_in(&message[..length], length - 1));
    assert!(!matches!(parse(&message[..length - 1]), Ok(Some(_))), "a head ends once");
    let alone = parse(&message[..length]).ok().flatten().expect("what follows does not matter");
    assert_eq!(show(fields), show(parts(&alone.0).0));
    check_written(fields);
    let body = &message[length..];
    assert_eq!(decode(framing, body.chunks(pieces)), decode(framing, std::iter::once(body)));
}

fn show(fields: &Fields) -> Vec<(&str, &[u8], &[u8])> {
    fields.iter().map(|field| (field.name.as_str(), field.rest, field.value)).collect()
}

/// Written by us, the fields are what they were.
fn check_written(fields: &Fields) {
    let mut written = b"GET / HTTP/1.1\r\n".to_vec();
    for (name, rest, value) in show(fields) {
        // How its body ends a message may say in one way only, and this one has none.
        if !matches!(name, "content-length" | "transfer-encoding") {
            let rest = std::str::from_utf8(rest).expect("names are ASCII");
            fields::write_any(&mut written, &format!("{name}{rest}"), value);
        }
    }
    written.extend_from_slice(b"\r\n");
    let (request, length) = head::request(&written).expect("we write HTTP").expect("all of it");
    assert_eq!(length, written.len());
    let kept: Vec<_> = show(fields);
    let kept = kept.into_iter().filter(|(name, ..)| !matches!(*name, "content-length" | "transfer-encoding"));
    assert!(kept.eq(show(&request.fields)));
}

/// The data, and whether it has ended; `None` if it is no body.
fn decode<'a>(framing: Framing, pieces: impl Iterator<Item = &'a [u8]>) -> Option<(Vec<u8>, bool)> {
    let (mut decoder, mut data) = (Decoder::new(framing), Vec::new());
    for mut piece in pieces {
        while !piece.is_empty() && !decoder.is_done() {
            let found = decoder.next(piece).ok()?;
            data.extend_from_slice(&piece[found.clone()]);
            piece = &piece[found.end..];
        }
    }
    Some((data, decoder.is_done()))
}
