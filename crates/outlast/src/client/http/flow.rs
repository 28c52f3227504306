//! One response on its way: what the engine wants written, until the connection takes it.

use bytes::Bytes;
use outlast_engine::http::Response;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes that may wait for a client that does not read. More: it loses its stream, and a legacy client
/// can take it up again.
const MOST: usize = 8 << 20;

/// Bytes that are copied together.
const COPIED: usize = 16 << 10;

/// A response, from both ends.
#[derive(Debug, Default)]
pub struct Flow {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    response: Option<Response>,
    waiting: VecDeque<Bytes>,
    bytes: usize,
    finished: bool,
    broken: bool,
    waker: Option<Waker>,
}

/// What comes next on a stream.
#[derive(Debug)]
pub enum Next {
    /// Bytes to write.
    Bytes(Bytes),
    /// Nothing more.
    End,
    /// The client did not read; it is cut off.
    Broken,
}

impl Flow {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the response.
    pub fn respond(&self, response: Response) {
        let mut state = self.lock();
        state.response = Some(response);
        state.wake();
    }

    /// Adds events. False if too much waits already.
    pub fn write(&self, bytes: Bytes) -> bool {
        let mut state = self.lock();
        if state.bytes > MOST {
            state.broken = true;
            state.waiting.clear();
        } else {
            state.bytes += bytes.len();
            state.waiting.push_back(bytes);
        }
        state.wake();
        !state.broken
    }

    /// Nothing more comes.
    pub fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        state.wake();
    }

    /// Waits for the response to begin.
    pub fn poll_response(&self, context: &mut Context<'_>) -> Poll<Response> {
        let mut state = self.lock();
        match state.response.take() {
            Some(response) => Poll::Ready(response),
            None => state.wait(context),
        }
    }

    /// Waits for what comes next on a stream.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Next> {
        let mut state = self.lock();
        if state.broken {
            return Poll::Ready(Next::Broken);
        }
        match state.waiting.len() {
            0 if state.finished => Poll::Ready(Next::End),
            0 => state.wait(context),
            // A chunk of its own costs less than a copy.
            count if count == 1 || state.bytes > COPIED => {
                let next = state.waiting.pop_front();
                state.bytes -= next.as_ref().map_or(0, Bytes::len);
                Poll::Ready(next.map_or(Next::End, Next::Bytes))
            }
            // What is there leaves together: one chunk, one write.
            _ => {
                let whole = state.waiting.iter().fold(Vec::with_capacity(state.bytes), |mut whole, part| {
                    whole.extend_from_slice(part);
                    whole
                });
                state.bytes = 0;
                state.waiting.clear();
                Poll::Ready(Next::Bytes(whole.into()))
            }
        }
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(flow: &Flow) -> Poll<Next> {
        flow.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_is_ready_leaves_together_and_then_it_ends() {
        let flow = Flow::default();
        assert!(next(&flow).is_pending());
        assert!(flow.write("a".into()) && flow.write("b".into()));
        flow.finish();
        assert!(matches!(next(&flow), Poll::Ready(Next::Bytes(bytes)) if bytes == "ab"));
        assert!(matches!(next(&flow), Poll::Ready(Next::End)));
    }

    #[test]
    fn a_client_that_does_not_read_loses_its_stream() {
        let flow = Flow::default();
        let large = Bytes::from(vec![0; MOST + 1]);
        assert!(flow.write(large), "one message may be as long as it is");
        assert!(!flow.write("more".into()));
        assert!(matches!(next(&flow), Poll::Ready(Next::Broken)));
    }
}
