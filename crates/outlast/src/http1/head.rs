//! The first lines of a message.

use super::body::Framing;
use super::fields::{self, Fields, Known};
use super::{Fault, HEAD_BYTES};
use http::Method;
use httparse::{ParserConfig, Status};

/// A head and how long it is, once it is all there.
pub type Found<T> = Result<Option<(T, usize)>, Fault>;

/// The head of a response.
pub struct Response {
    /// From 100 to 999.
    pub status: u16,
    /// Its fields.
    pub fields: Fields,
    /// How its body ends.
    pub framing: Framing,
    /// Another request may follow on the same connection.
    pub keeps: bool,
}

/// Reads the head of a response and how long it is; `None` if it is not all there.
pub fn response(bytes: &[u8]) -> Found<Response> {
    let mut room = fields::room();
    let mut read = httparse::Response::new(&mut []);
    let length = whole(
        ParserConfig::default().parse_response_with_uninit_headers(&mut read, bytes, &mut room),
        bytes.len(),
    )?;
    let (Some(length), Some(status)) = (length, read.code) else { return Ok(None) };
    let fields = Fields::of(read.headers);
    let old = read.version == Some(0);
    let (framing, certain) = framing_of_response(status, old, &fields)?;
    let keeps = keeps(old, &fields) && certain && framing != Framing::ToTheEnd;
    Ok(Some((Response { status, fields, framing, keeps }, length)))
}

/// The head of a request.
pub struct Request {
    /// What is asked for.
    pub method: Method,
    /// Of what, as it was written.
    pub target: Box<str>,
    /// It is HTTP/1.0.
    pub old: bool,
    /// Its fields.
    pub fields: Fields,
    /// How its body ends.
    pub framing: Framing,
    /// Another request may follow on the same connection.
    pub keeps: bool,
}

/// Reads the head of a request and how long it is; `None` if it is not all there.
pub fn request(bytes: &[u8]) -> Found<Request> {
    let mut room = fields::room();
    let mut read = httparse::Request::new(&mut []);
    let length = whole(
        ParserConfig::default().parse_request_with_uninit_headers(&mut read, bytes, &mut room),
        bytes.len(),
    )?;
    let (Some(length), Some(method), Some(target)) = (length, read.method, read.path) else {
        return Ok(None);
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Fault::Malformed("invalid method"))?;
    let fields = Fields::of(read.headers);
    let old = read.version == Some(0);
    let framing = framing_of_request(old, &fields)?;
    let keeps = keeps(old, &fields);
    Ok(Some((Request { method, target: target.into(), old, fields, framing, keeps }, length)))
}

fn keeps(old: bool, fields: &Fields) -> bool {
    if old {
        fields.lists(Known::Connection, "keep-alive")
    } else {
        !fields.lists(Known::Connection, "close")
    }
}

fn whole(parsed: httparse::Result<usize>, present: usize) -> Result<Option<usize>, Fault> {
    match parsed {
        Ok(Status::Complete(length)) if length <= HEAD_BYTES => Ok(Some(length)),
        Ok(Status::Partial) if present < HEAD_BYTES => Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Err(Fault::TooLarge),
        Err(error) => Err(Fault::Malformed(words(error))),
    }
}

fn words(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "invalid header name",
        httparse::Error::HeaderValue => "invalid header value",
        httparse::Error::NewLine => "invalid line end",
        httparse::Error::Status => "invalid status",
        httparse::Error::Token => "invalid token",
        httparse::Error::TooManyHeaders => "too many headers",
        httparse::Error::Version => "invalid HTTP version",
    }
}

/// Whether a body is said to be chunked. Anything else that is done to it on the way we do not know.
fn is_chunked(old: bool, fields: &Fields) -> Result<bool, Fault> {
    let mut encodings = fields.all(Known::TransferEncoding);
    let Some(encoding) = encodings.next() else { return Ok(false) };
    if old || !encoding.eq_ignore_ascii_case(b"chunked") || encodings.next().is_some() {
        return Err(Fault::Malformed("unexpected transfer-encoding"));
    }
    Ok(true)
}

/// How the body of a response ends, and whether nobody could think otherwise.
fn framing_of_response(status: u16, old: bool, fields: &Fields) -> Result<(Framing, bool), Fault> {
    let length = fields.length()?;
    if matches!(status, 100..=199 | 204 | 304) {
        return Ok((Framing::Length(0), true));
    }
    match is_chunked(old, fields)? {
        true => Ok((Framing::Chunked, length.is_none())),
        false => Ok((length.map_or(Framing::ToTheEnd, Framing::Length), true)),
    }
}

/// How the body of a request ends. One that says it twice is refused: somebody between us and the client
/// may have believed the other.
fn framing_of_request(old: bool, fields: &Fields) -> Result<Framing, Fault> {
    let length = fields.length()?;
    match is_chunked(old, fields)? {
        true if length.is_some() => Err(Fault::Malformed("content-length beside transfer-encoding")),
        true => Ok(Framing::Chunked),
        false => Ok(Framing::Length(length.unwrap_or(0))),
    }
}

/// Whether the end of a head stands in the bytes from `from` on.
pub fn ends_in(bytes: &[u8], from: usize) -> bool {
    let new = &bytes[from.saturating_sub(3)..];
    memchr::memchr_iter(b'\n', new).any(|at| matches!(new[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<(u16, Framing, bool), String> {
        let head = head.replace('\n', "\r\n") + "\r\n";
        for end in 0..head.len() {
            assert!(matches!(response(&head.as_bytes()[..end]), Ok(None) | Err(_)), "{head} at {end}");
            assert!(!ends_in(&head.as_bytes()[..end], 0), "{head} at {end}");
        }
        for from in 0..head.len() {
            assert!(ends_in(head.as_bytes(), from), "{head} from {from}");
        }
        let followed = head.clone() + "xyz";
        let read = response(followed.as_bytes()).map_err(|fault| fault.to_string())?;
        let (response, length) = read.expect("it is all there");
        assert_eq!(length, head.len());
        Ok((response.status, response.framing, response.keeps))
    }

    #[test]
    fn a_body_ends_as_the_head_says() {
        let ok = "HTTP/1.1 200 OK\n";
        let cases = [
            ("Content-Length: 5\n", Ok((200, Framing::Length(5), true))),
            ("Content-Length: 5\nContent-Length: 5\n", Ok((200, Framing::Length(5), true))),
            ("Content-Length: 5\nContent-Length: 6\n", Err("invalid content-length")),
            ("Content-Length: five\n", Err("invalid content-length")),
            ("Transfer-Encoding: chunked\n", Ok((200, Framing::Chunked, true))),
            ("transfer-encoding: Chunked\nConnection: x, Close\n", Ok((200, Framing::Chunked, false))),
            ("Transfer-Encoding: chunked\nContent-Length: 5\n", Ok((200, Framing::Chunked, false))),
            ("Transfer-Encoding: gzip, chunked\n", Err("unexpected transfer-encoding")),
            ("Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n", Err("unexpected transfer-encoding")),
            ("", Ok((200, Framing::ToTheEnd, false))),
        ];
        for (fields, expected) in cases {
            assert_eq!(read(&format!("{ok}{fields}")), expected.map_err(str::to_owned), "{fields}");
        }
    }

    fn asked(fields: &str) -> Result<Framing, String> {
        let head = format!("POST /mcp HTTP/1.1\nHost: x\n{fields}\n").replace('\n', "\r\n");
        let read = request((head.clone() + "xyz").as_bytes()).map_err(|fault| fault.to_string())?;
        let (request, length) = read.expect("it is all there");
        assert_eq!((request.method, &*request.target, length), (Method::POST, "/mcp", head.len()));
        Ok(request.framing)
    }

    #[test]
    fn a_request_says_once_how_it_ends() {
        assert_eq!(asked(""), Ok(Framing::Length(0)));
        assert_eq!(asked("Content-Length: 5\n"), Ok(Framing::Length(5)));
        assert_eq!(asked("Transfer-Encoding: chunked\n"), Ok(Framing::Chunked));
        for odd in [
            "Content-Length: 5\nTransfer-Encoding: chunked\n",
            "Transfer-Encoding: chunked, chunked\n",
            "Transfer-Encoding: identity\n",
            "Transfer-Encoding: chunked\nTransfer-Encoding: identity\n",
            "Transfer-Encoding: \u{b}chunked\n",
            "Transfer-Encoding : chunked\n",
            "Content-Length: 5\nContent-Length: 6\n",
            "Content-Length: 5, 5\n",
            "Content-Length: +5\n",
            "X: a\n b\n",
        ] {
            assert!(asked(odd).is_err(), "{odd}");
        }
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(request(old.as_bytes()).is_err());
    }

    #[test]
    fn a_client_says_whether_it_comes_back() {
        let keeps = |head: &str| request(head.replace('\n', "\r\n").as_bytes()).unwrap().unwrap().0.keeps;
        assert!(keeps("GET / HTTP/1.1\n\n"));
        assert!(!keeps("GET / HTTP/1.1\nConnection: close\n\n"));
        assert!(!keeps("GET / HTTP/1.0\n\n"));
        assert!(keeps("GET / HTTP/1.0\nConnection: Keep-Alive\n\n"));
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        for status in [100, 103, 204, 304] {
            let head = format!("HTTP/1.1 {status} X\nContent-Length: 5\n");
            assert_eq!(read(&head), Ok((status, Framing::Length(0), true)));
        }
    }

    #[test]
    fn an_old_server_closes_unless_it_says_otherwise() {
        assert_eq!(read("HTTP/1.0 200 OK\nContent-Length: 5\n"), Ok((200, Framing::Length(5), false)));
        let keeps = "HTTP/1.0 200 OK\nContent-Length: 5\nConnection: keep-alive\n";
        assert_eq!(read(keeps), Ok((200, Framing::Length(5), true)));
        assert!(read("HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n").is_err());
    }

    #[test]
    fn a_head_has_bounds() {
        let many = format!("HTTP/1.1 200 OK\n{}", "a: b\n".repeat(super::super::HEADERS));
        assert!(read(&many).is_ok());
        assert_eq!(
            response((many.replace('\n', "\r\n") + "a: b\r\n").as_bytes()).err(),
            Some(Fault::TooLarge)
        );
        let long = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(HEAD_BYTES));
        assert_eq!(response(long.as_bytes()).err(), Some(Fault::TooLarge));
        assert_eq!(response((long + "\r\n\r\n").as_bytes()).err(), Some(Fault::TooLarge));
    }

    #[test]
    fn what_is_not_http_is_refused_at_once() {
        for odd in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/2.0 200 OK\r\n",
            "HTTP/1.1 2000 OK\r\n",
            "HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        ] {
            assert!(response(odd.as_bytes()).is_err(), "{odd}");
        }
    }
}
