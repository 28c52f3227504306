//! Ours against hyper, which reads the same bytes: whatever we take, it must take too, and see the same in
//! it. Where we refuse, it may be more patient.

use super::body::Framing;
use super::inbound::Inbound;
use super::io::Io;
use super::{Broken, head};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// What was understood of a message: its first line and its body.
type Seen = Option<(String, Vec<u8>)>;

/// Fields that decide how a body ends, right and wrong, and one that does not.
const FIELDS: [&str; 14] = [
    "Content-Length: 5",
    "Content-Length: 0",
    "content-length: 11",
    "Content-Length: 5, 5",
    "Content-Length: +5",
    "Transfer-Encoding: chunked",
    "transfer-encoding: Chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding : chunked",
    "Connection: close",
    "Connection: keep-alive",
    "X: \t y ",
    "X: y\r\n z",
];

/// Pieces of bodies.
const PIECES: [&str; 16] = [
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "00005 \r\nhello\r\n",
    "1;a=b\r\nx\r\n",
    "A\r\n0123456789\r\n",
    "0\r\nTrailer: x\r\n\r\n",
    "hello",
    "\r\n",
    "\n",
    "5\nhello\n",
    "5",
    "ffffffffffffffff\r\n",
    "10000000000000000\r\n",
    "5 5\r\n",
    "\r",
    "x",
];

/// What may stand where a chunk has it, right and wrong.
const AFTER_SIZES: [&str; 12] = ["", "", "", " ", " \t ", ";a=b", " ; a", " 5", "\t5", " x", ";\n", "="];
const TRAILERS: [&str; 10] =
    ["", "", "", "X: y\r\n", "X:\r\nY: z\r\n", "X\r\n", ": y\r\n", "X : y\r\n", " X: y\r\n", "X: \u{1}\r\n"];

/// A head and any pieces: most are no message.
fn any_message() -> impl Strategy<Value = (Vec<&'static str>, String)> {
    let fields = prop::collection::vec(prop::sample::select(&FIELDS[..]), 0..3);
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..5);
    (fields, pieces).prop_map(|(fields, pieces)| (fields, pieces.concat()))
}

/// A body in chunks, with something odd here and there; most are well-formed.
fn chunked() -> impl Strategy<Value = (Vec<&'static str>, String)> {
    let chunk = ("[ -~\r\n]{1,40}", 0..4usize, any::<bool>(), odd_one_of(&AFTER_SIZES));
    let chunks = prop::collection::vec(chunk, 0..4);
    let end = (odd_one_of(&AFTER_SIZES), odd_one_of(&TRAILERS), prop::sample::select(vec!["", "", "x"]));
    (chunks, end).prop_map(|(chunks, (after, trailers, more))| {
        let chunks = chunks.into_iter().map(|(data, zeros, large, after)| {
            let size = if large { format!("{:X}", data.len()) } else { format!("{:x}", data.len()) };
            format!("{}{size}{after}\r\n{data}\r\n", "0".repeat(zeros))
        });
        let body: String = chunks.collect();
        (vec!["Transfer-Encoding: chunked"], format!("{body}0{after}\r\n{trailers}\r\n{more}"))
    })
}

/// One of these; mostly the first, which is right.
fn odd_one_of(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(texts[0]), 1 => prop::sample::select(texts)]
}

/// A body of a length that is nearly always the right one.
fn measured() -> impl Strategy<Value = (Vec<&'static str>, String)> {
    const LENGTHS: [&str; 5] =
        ["Content-Length: 5", "content-length: 11", "Content-Length: 0", "X: y", "Content-Length: 05"];
    (prop::sample::select(&LENGTHS[..]), prop::sample::select(vec!["hello", "hello world", "", "\r\n\r\n\r"]))
        .prop_map(|(field, body)| (vec![field], body.to_owned()))
}

fn messages(firsts: &'static [&'static str]) -> impl Strategy<Value = (String, Vec<usize>)> {
    let rest = prop_oneof![any_message(), chunked(), measured()];
    // The usual first line comes as often as all the others.
    let first = prop_oneof![Just(firsts[0]), prop::sample::select(firsts)];
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (first, rest, cuts).prop_map(|(first, (fields, body), cuts)| {
        let lines: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let text = format!("{first}\r\nHost: x\r\n{lines}\r\n{body}");
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.sort_unstable();
        (text, cuts)
    })
}

/// Writes a text in pieces and then closes.
async fn write(mut to: UnixStream, text: &str, cuts: &[usize]) -> UnixStream {
    let mut start = 0;
    for end in cuts.iter().copied().chain([text.len()]) {
        // Whoever has heard enough may have hung up.
        let _ = to.write_all(&text.as_bytes()[start..end]).await;
        tokio::task::yield_now().await;
        start = end;
    }
    let _ = to.shutdown().await;
    to
}

async fn ours<T>(
    io: UnixStream,
    parse: fn(&[u8]) -> head::Found<T>,
    show: fn(T) -> (String, Framing),
) -> Seen {
    let mut inbound = Inbound::new(Io::Local(io));
    let mut seen = 0;
    let read = async {
        let head = poll_fn(|cx| inbound.poll_head(cx, &mut seen, parse)).await?;
        let (first, framing) = show(head);
        inbound.begin_body(framing);
        let mut body = Vec::new();
        loop {
            match inbound.next().await? {
                [] => return Ok::<_, Broken>((first, body)),
                part => body.extend_from_slice(part),
            }
        }
    };
    read.await.ok()
}

async fn response_of_hyper(io: UnixStream) -> Seen {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io)).await.ok()?;
    let request = hyper::Request::new(Empty::<bytes::Bytes>::new());
    let read = async {
        let response = sender.send_request(request).await.ok()?;
        let first = response.status().as_str().to_owned();
        Some((first, response.into_body().collect().await.ok()?.to_bytes().to_vec()))
    };
    let (seen, _) = tokio::join!(read, connection);
    seen
}

async fn request_of_hyper(io: UnixStream) -> Seen {
    let seen = Arc::new(Mutex::new(None));
    let service = hyper::service::service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let seen = seen.clone();
        async move {
            let first = format!("{} {}", request.method(), request.uri());
            if let Ok(body) = request.into_body().collect().await {
                seen.lock().unwrap().get_or_insert((first, body.to_bytes().to_vec()));
            }
            Ok::<_, Infallible>(hyper::Response::new(Empty::<bytes::Bytes>::new()))
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(io), service);
    let _ = connection.await;
    seen.lock().unwrap().take()
}

fn both<A: Future<Output = Seen>, B: Future<Output = Seen>>(
    (text, cuts): &(String, Vec<usize>),
    ours: impl FnOnce(UnixStream) -> A,
    hypers: impl FnOnce(UnixStream) -> B,
) -> (Seen, Seen) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let ((here, there), (other, far)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let (mine, _kept) = tokio::join!(ours(here), write(there, text, cuts));
        let (hypers, _kept) = tokio::join!(hypers(other), write(far, text, cuts));
        (mine, hypers)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn responses_that_we_take_are_what_hyper_takes_them_for(
        message in messages(&["HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 204 No", "HTTP/1.1 404 ", "HTTP/2 200 OK"])
    ) {
        let show = |head: head::Response| (head.status.to_string(), head.framing);
        let (mine, hypers) = both(&message, |io| ours(io, head::response, show), response_of_hyper);
        prop_assert!(mine.is_none() || mine == hypers, "{:?}\nwe: {mine:?}\nhyper: {hypers:?}", message.0);
    }

    #[test]
    fn requests_that_we_take_are_what_hyper_takes_them_for(
        message in messages(&["POST /mcp HTTP/1.1", "POST /mcp HTTP/1.0", "GET / HTTP/1.1", "POST  /mcp HTTP/1.1", "P@ST / HTTP/3"])
    ) {
        let show = |head: head::Request| (format!("{} {}", head.method, head.target), head.framing);
        let (mine, hypers) = both(&message, |io| ours(io, head::request, show), request_of_hyper);
        prop_assert!(mine.is_none() || mine == hypers, "{:?}\nwe: {mine:?}\nhyper: {hypers:?}", message.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// The comparison must be able to see something: what is right in every way is taken by both.
    #[test]
    fn well_formed_bodies_are_taken_by_both(
        chunks in prop::collection::vec("[ -~\r\n]{1,40}", 0..5), space in "[ \t]{0,3}", cut in 1..60usize
    ) {
        let whole = chunks.concat();
        let body: String =
            chunks.iter().map(|data| format!("{:x}{space};x=y\r\n{data}\r\n", data.len())).collect();
        let head = "POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let message = (format!("{head}{body}0{space}\r\nX: y\r\n\r\n"), vec![cut]);
        let show = |head: head::Request| (format!("{} {}", head.method, head.target), head.framing);
        let (mine, hypers) = both(&message, |io| ours(io, head::request, show), request_of_hyper);
        prop_assert_eq!(&mine, &Some(("POST /mcp".to_owned(), whole.into_bytes())));
        prop_assert_eq!(mine, hypers);
    }
}

/// The same for one plain message of each kind.
#[test]
fn both_understand_a_plain_message() {
    let text = |text: &str| (text.to_owned(), vec![10]);
    let expected = |first: &str, body: &str| Some((first.to_owned(), body.as_bytes().to_vec()));
    let show = |head: head::Response| (head.status.to_string(), head.framing);
    let message = text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    let (mine, hypers) = both(&message, |io| ours(io, head::response, show), response_of_hyper);
    assert_eq!((&mine, &hypers), (&expected("200", "hello"), &mine));
    let show = |head: head::Request| (format!("{} {}", head.method, head.target), head.framing);
    let message = text("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    let (mine, hypers) = both(&message, |io| ours(io, head::request, show), request_of_hyper);
    assert_eq!((&mine, &hypers), (&expected("POST /mcp", "hello"), &mine));
}
