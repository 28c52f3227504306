//! One response on its way: what the engine wants written, until the connection takes it.

use super::held::Tab;
use bytes::Bytes;
use outlast_engine::http::Response;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes that may wait for a client that does not read. More: it loses its stream, and a legacy client
/// can take it up again.
const MOST: usize = 8 << 20;

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
    /// Where what waits is counted, while the client does not read.
    tab: Option<Arc<Tab>>,
}

/// What comes next on a stream.
#[derive(Debug)]
pub enum Next {
    /// What there is to write, and how long it is.
    Bytes(VecDeque<Bytes>, usize),
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
            if let Some(tab) = &state.tab {
                tab.more(bytes.len());
            }
            state.waiting.push_back(bytes);
        }
        state.wake();
        !state.broken
    }

    /// From now on what waits is counted, or not any more.
    pub fn count_on(&self, tab: Option<Arc<Tab>>) {
        let mut state = self.lock();
        if let Some(tab) = tab.as_ref().filter(|_| state.bytes > 0) {
            tab.more(state.bytes);
        }
        state.tab = tab;
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
        if !state.waiting.is_empty() {
            let bytes = std::mem::take(&mut state.bytes);
            return Poll::Ready(Next::Bytes(std::mem::take(&mut state.waiting), bytes));
        }
        if state.finished { Poll::Ready(Next::End) } else { state.wait(context) }
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
        assert!(matches!(next(&flow), Poll::Ready(Next::Bytes(parts, 2)) if parts == ["a", "b"]));
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
