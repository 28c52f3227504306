//! One connection of a client: its requests one after another.

use super::access::Asked;
use super::answer::{Answer, Dates, Manner, Out};
use super::body::{Events, Visit};
use super::flow::Next;
use super::held::Held;
use super::intake::Intake;
use super::presence::Presence;
use super::slow::{Load, Slow};
use crate::clock;
use crate::driver::Entry;
use crate::http1::body::Decoder;
use crate::http1::fields::Known;
use crate::http1::head::{self, Request};
use crate::http1::inbound::Inbound;
use crate::http1::io::Io;
use crate::http1::{Broken, Fault, HEAD_BYTES};
use bytes::Bytes;
use http::StatusCode;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Sleep;

/// A connection without a request is closed after this long; we keep ours to servers for a shorter time, so
/// that another outlast does not meet one that is just being closed.
const IDLE_TIME: Duration = Duration::from_secs(120);

/// One whose client has not said who it is must have sent a whole head after this long, and every other one
/// that has begun a head.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a connection without a request is kept when clients are to go to other replicas: longer than balancers
/// keep theirs (`packaging/replicas/nginx.conf`), so that no request meets one that is just being closed.
const LAST_REQUEST: Duration = Duration::from_secs(5);

/// Bytes that are copied together so that they leave in one write.
const COPIED: usize = 16 << 10;

/// Bytes that are written at once. Whoever takes more lets others have their turn in between.
const AT_ONCE: usize = 256 << 10;

/// How long a connection is silent after our last word on it before it is closed, and how much is read from
/// it until then: closed at once, the system may take back what the client has not read yet.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 20;

/// The longest time for all of that.
const LINGER_MOST: Duration = Duration::from_secs(30);

/// What came next.
pub enum Came {
    /// A request whose body may follow.
    Request(Box<Request>),
    /// Something else, to be answered with this.
    Unreadable(StatusCode),
    /// Nothing more.
    Nothing,
    /// Nothing in time, from somebody who has not said who it is.
    Late,
}

/// What is written to a client that writes no more, to see whether it is there: before its response, which
/// may be long in coming, and inside one.
const WELCOME: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const COMMENT: &[u8] = b":\n\n";
const COMMENT_IN_CHUNK: &[u8] = b"3\r\n:\n\n\r\n";

/// A client's connection.
pub struct Connection {
    inbound: Inbound,
    held: Arc<Held>,
    /// Its client has said who it is.
    known: bool,
    /// The client writes no more.
    half_closed: Option<Presence>,
    /// What can be written just now without harm; nothing to a client that knows no interim responses.
    probe: &'static [u8],
    /// The client wants to hear that its body is welcome.
    expects: bool,
    patience: Pin<Box<Sleep>>,
    /// For the access log: what was written since the last request, and what that asks for.
    written: u64,
    asked: Option<Box<Asked>>,
}

impl Connection {
    /// On a stream that has just come.
    pub fn new(io: Io, held: Arc<Held>) -> Connection {
        let patience = Box::pin(tokio::time::sleep_until(clock::in_future(HEAD_TIME).into()));
        Connection {
            inbound: Inbound::new(io),
            held,
            known: false,
            half_closed: None,
            probe: WELCOME,
            expects: false,
            patience,
            written: 0,
            asked: None,
        }
    }

    /// Its client has said who it is.
    pub fn is_known(&mut self) {
        self.known = true;
    }

    /// What its request asks for, for the access log.
    #[cold]
    pub fn asks(&mut self, asked: Asked) {
        self.asked = Some(Box::new(asked));
    }

    /// How much was written since this was asked last, and what the request asked for.
    pub fn what_was_asked(&mut self) -> (u64, Option<Asked>) {
        (std::mem::take(&mut self.written), self.asked.take().map(|asked| *asked))
    }

    /// Waits for the next request; not for one that has not begun when we stop, and not long if we are about to.
    pub async fn request(&mut self, entry: &mut watch::Receiver<Entry>) -> Came {
        let (known, idle) = (self.known, if self.known { IDLE_TIME } else { HEAD_TIME });
        self.patience.as_mut().reset(clock::in_future(idle).into());
        let (mut seen, mut begun) = (0, false);
        let mut stopped = pin!(is_over(entry));
        let came = poll_fn(|cx| {
            if let Poll::Ready(came) = self.inbound.poll_head(cx, &mut seen, head::request) {
                return Poll::Ready(Ok(came));
            }
            // Whoever is not known has one time for all of it.
            if seen > 0 && !std::mem::replace(&mut begun, true) && known {
                self.patience.as_mut().reset(clock::in_future(HEAD_TIME).into());
            }
            match self.patience.as_mut().poll(cx) {
                Poll::Ready(()) if known => Poll::Ready(Err(Came::Nothing)),
                Poll::Ready(()) => Poll::Ready(Err(Came::Late)),
                Poll::Pending if begun => Poll::Pending,
                Poll::Pending => stopped.as_mut().poll(cx).map(|()| Err(Came::Nothing)),
            }
        });
        let came = match came.await {
            Ok(came) => came,
            Err(came) => return came,
        };
        match came {
            Ok(request) => {
                self.probe = if request.old { b"" } else { WELCOME };
                self.inbound.begin_body(request.framing);
                self.expects = !request.old && request.fields.lists(Known::Expect, "100-continue");
                Came::Request(Box::new(request))
            }
            Err(Broken::NotHttp(Fault::TooLarge)) => {
                Came::Unreadable(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
            }
            Err(Broken::NotHttp(_)) => Came::Unreadable(StatusCode::BAD_REQUEST),
            Err(Broken::Io(_) | Broken::Closed) => Came::Nothing,
        }
    }

    /// How the body stands.
    pub fn body(&self) -> &Decoder {
        self.inbound.body()
    }

    /// All of the body, if it has come with the head.
    pub fn body_at_hand(&mut self) -> Option<Bytes> {
        self.inbound.body_at_hand()
    }

    /// Reads more of a body; how much, and nothing at its end.
    pub async fn read(&mut self, intake: &Arc<Intake>, body: &mut Vec<u8>) -> Result<usize, Broken> {
        if std::mem::take(&mut self.expects) && self.inbound.unused() == 0 {
            self.inbound.io.write_all(WELCOME).await.map_err(Broken::Io)?;
        }
        let missing = usize::try_from(self.body().missing()).unwrap_or(usize::MAX);
        if self.body().has_length() && self.inbound.unused() == 0 {
            intake.make_room(body, 1, missing);
            return self.inbound.read_into(body).await;
        }
        let part = self.inbound.next().await?;
        intake.add(body, part, missing);
        Ok(part.len())
    }

    /// Waits for something, but not longer than the client is there.
    pub async fn unless_gone<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|cx| match poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if self.is_gone(cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Whether the client has hung up. To know it one must read, and what is read is its next request; of
    /// that no more is taken than a head may be long.
    fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(presence) = &self.half_closed {
            return presence.poll_gone(cx).is_ready();
        }
        while self.inbound.unused() < HEAD_BYTES {
            match self.inbound.poll_read(cx) {
                Poll::Ready(Ok(0)) => return self.has_left(cx),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return true,
                Poll::Pending => return false,
            }
        }
        false
    }

    /// Whether a client that writes no more has hung up. It may have said all that it has to say, and wait for
    /// its response; so something is written to it.
    #[cold]
    fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        let Ok(presence) = Presence::of(&self.inbound.io) else { return true };
        if !self.probe.is_empty() {
            match Pin::new(&mut self.inbound.io).poll_write(cx, self.probe) {
                Poll::Ready(Ok(written)) if written == self.probe.len() => {}
                // What waits to be written to it does as well.
                Poll::Pending => {}
                Poll::Ready(_) => return true,
            }
        }
        let gone = presence.poll_gone(cx).is_ready();
        self.half_closed = Some(presence);
        gone
    }

    /// Writes a response. An error if the client is gone, or does not read.
    pub async fn respond(&mut self, answer: Answer, dates: &Dates, manner: Manner) -> io::Result<()> {
        let mut out = Vec::with_capacity(512);
        answer.write_head(&mut out, dates, manner);
        let body = match answer.body {
            _ if manner.head_only => Bytes::new(),
            Out::Empty => Bytes::new(),
            Out::Whole(bytes) => bytes,
            Out::Events(events) => return self.stream(out, events, !manner.old).await,
        };
        let load = Load {
            principal: answer.visit.as_ref().map_or(&None, Visit::principal),
            bytes: out.len() + body.len(),
            flow: None,
        };
        if body.len() <= COPIED {
            out.extend_from_slice(&body);
            return self.write(&out, &load).await;
        }
        self.write(&out, &load).await?;
        self.write(&body, &load).await
    }

    /// Writes a stream to its end. What is there leaves together.
    async fn stream(&mut self, mut out: Vec<u8>, mut events: Box<Events>, chunks: bool) -> io::Result<()> {
        self.probe = if chunks { COMMENT_IN_CHUNK } else { COMMENT };
        loop {
            let unwritten = !out.is_empty();
            let next = self.unless_gone(|cx| match events.poll(cx) {
                Poll::Ready(next) => Poll::Ready(Some(next)),
                Poll::Pending if unwritten => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            let Some(next) = next.await else { return Err(io::ErrorKind::ConnectionAborted.into()) };
            match next {
                Some(Next::Bytes(parts, length)) => {
                    if chunks {
                        write_size(&mut out, length);
                    }
                    let load = events.load(length);
                    for part in parts {
                        if part.len() > COPIED {
                            self.write(&out, &load).await?;
                            self.write(&part, &load).await?;
                            out.clear();
                        } else {
                            out.extend_from_slice(&part);
                        }
                    }
                    if chunks {
                        out.extend_from_slice(b"\r\n");
                    }
                    if out.len() <= COPIED {
                        continue;
                    }
                }
                Some(Next::End) => {
                    if chunks {
                        out.extend_from_slice(b"0\r\n\r\n");
                    }
                    return self.write(&out, &events.load(out.len())).await;
                }
                Some(Next::Broken) => return Err(io::Error::other("the client does not read")),
                None => {}
            }
            self.write(&out, &events.load(out.len())).await?;
            // A quiet stream holds no memory for the next event.
            out = Vec::new();
        }
    }

    /// Writes all of it, as long as the client takes some.
    async fn write(&mut self, mut bytes: &[u8], load: &Load<'_>) -> io::Result<()> {
        let mut slow: Option<Slow> = None;
        while !bytes.is_empty() {
            let some = &bytes[..bytes.len().min(AT_ONCE)];
            let written = poll_fn(|cx| {
                let written = Pin::new(&mut self.inbound.io).poll_write(cx, some);
                if written.is_ready() {
                    return written;
                }
                let slow = slow.get_or_insert_with(|| Slow::new(&self.held, load));
                slow.poll_end(&mut self.patience, cx).map(Err)
            });
            match written.await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => {
                    self.written += length as u64;
                    bytes = &bytes[length..];
                }
            }
            if let Some(slow) = &mut slow {
                slow.takes();
            }
            if !bytes.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.inbound.io.flush().await
    }

    /// Ends the connection so that the client can read our last word on it.
    pub async fn close(mut self) {
        let goodbye = async {
            self.inbound.io.shutdown().await?;
            let (mut left, mut scratch) = (LINGER_BYTES, vec![0; 16 << 10]);
            while left > 0 {
                match tokio::time::timeout(LINGER, self.inbound.io.read(&mut scratch)).await?? {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            io::Result::Ok(())
        };
        let _ = tokio::time::timeout(LINGER_MOST, goodbye).await;
    }
}

/// Waits until nobody is waited for any more. A balancer that kept the connection may be about to use it when we leave,
/// so it has some time for that, or to close it.
async fn is_over(entry: &mut watch::Receiver<Entry>) {
    if entry.wait_for(|entry| *entry > Entry::Open).await.is_ok_and(|entry| *entry == Entry::Leaving) {
        let closed = entry.wait_for(|entry| *entry == Entry::Closed);
        let _ = tokio::time::timeout(LAST_REQUEST, closed).await;
    }
}

/// The line before a chunk.
fn write_size(to: &mut Vec<u8>, size: usize) {
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    let digit = |place: u32| b"0123456789abcdef"[size >> (4 * place) & 0xf];
    to.extend((0..digits).rev().map(digit));
    to.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // it is the paused clock that is read here

    use super::*;

    #[test]
    fn sizes_are_written_in_hexadecimal() {
        for size in [0, 1, 9, 10, 15, 16, 255, 256, 0xabcdef, usize::MAX] {
            let mut line = Vec::new();
            write_size(&mut line, size);
            assert_eq!(line, format!("{size:x}\r\n").into_bytes());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_let_go_of_at_last() {
        let (ours, _theirs) = tokio::net::UnixStream::pair().unwrap();
        let mut connection = Connection::new(Io::Local(ours), Held::new(64 << 20));
        let answer = Answer::json(StatusCode::OK, vec![b' '; 8 << 20].into());
        let written = connection.respond(answer, &Dates::default(), Manner::LAST).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    fn large() -> Answer {
        Answer::json(StatusCode::OK, vec![b' '; 8 << 20].into())
    }

    /// Two whole responses are more than may be held: of the clients that do not read, the one that stopped
    /// first is cut off as soon as it has taken nothing for a while, and the other may go on.
    #[tokio::test(start_paused = true)]
    async fn at_max_bytes_who_reads_nothing_is_cut_off_soon() {
        let held = Held::new(12 << 20);
        let (ours, _theirs) = tokio::net::UnixStream::pair().unwrap();
        let (others, mut reader) = tokio::net::UnixStream::pair().unwrap();
        let (mut first, mut second) = (
            Connection::new(Io::Local(ours), held.clone()),
            Connection::new(Io::Local(others), held.clone()),
        );
        let dates = Dates::default();
        let began = tokio::time::Instant::now();
        let mut late = Box::pin(second.respond(large(), &dates, Manner::LAST));
        let written = tokio::select! {
            biased;
            written = first.respond(large(), &dates, Manner::LAST) => written,
            _ = &mut late => panic!("it is the other's turn"),
        };
        assert!(written.unwrap_err().to_string().contains("max-bytes"));
        assert_eq!(began.elapsed().as_secs(), crate::client::http::slow::IDLE.as_secs());
        assert!(!held.hold(&None, 5 << 20), "the other one still counts");
        let (mut read, mut all) = (vec![0; 1 << 20], 0);
        let reads = async {
            while all < 8 << 20 {
                all += reader.read(&mut read).await.unwrap()
            }
        };
        let (written, ()) = tokio::join!(late, reads);
        written.unwrap();
        assert!(held.hold(&None, 12 << 20), "nothing is left on the account");
    }

    async fn came(connection: &mut Connection) -> Came {
        let (_entry, mut open) = watch::channel(Entry::Open);
        connection.request(&mut open).await
    }

    /// How long a client is waited for that is not known and sends a few drops of a head.
    async fn patience_with(drops: usize) -> u64 {
        let (ours, mut theirs) = tokio::net::UnixStream::pair().unwrap();
        let mut connection = Connection::new(Io::Local(ours), Held::new(1));
        let began = tokio::time::Instant::now();
        let drip = async {
            let mut often = tokio::time::interval(Duration::from_secs(9));
            for drop in ["GET / HT", "TP/1.1\r\n", "X: y"].iter().take(drops) {
                theirs.write_all(drop.as_bytes()).await.unwrap();
                often.tick().await;
            }
            std::future::pending::<()>().await
        };
        let late = tokio::select! { came = came(&mut connection) => came, () = drip => unreachable!() };
        assert!(matches!(late, Came::Late));
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_not_known_has_half_a_minute_for_its_head() {
        assert_eq!(patience_with(0).await, HEAD_TIME.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn drops_of_a_head_do_not_lengthen_that() {
        assert_eq!(patience_with(3).await, HEAD_TIME.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_known_may_rest_between_requests() {
        let (ours, _theirs) = tokio::net::UnixStream::pair().unwrap();
        let mut connection = Connection::new(Io::Local(ours), Held::new(1));
        connection.is_known();
        let began = tokio::time::Instant::now();
        assert!(matches!(came(&mut connection).await, Came::Nothing));
        assert_eq!(began.elapsed().as_secs(), IDLE_TIME.as_secs());
    }
}
