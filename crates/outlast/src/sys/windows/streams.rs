//! Standard streams and pipes to servers. A thread stands at each, because such pipes can only block.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::windows::io::{AsHandle, OwnedHandle};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// One end of a pipe.
pub type End = OwnedHandle;

/// Bytes that are read at once.
const PART: usize = 64 << 10;

/// Parts that were read and not taken. More: the thread waits, and with it whoever writes.
const PARTS: usize = 4;

/// Bytes that were taken to be written. More: whoever writes waits.
const WAITING: usize = 1 << 20;

/// Something to read from without blocking.
#[derive(Debug)]
pub struct Source {
    parts: Receiver<Vec<u8>>,
    /// What did not fit when it was read.
    rest: VecDeque<u8>,
}

impl Source {
    /// The reading end of a pipe.
    pub fn pipe(end: End) -> io::Result<Source> {
        let (to, parts) = channel(PARTS);
        Builder::new().name("reader".into()).spawn(move || read_all(File::from(end), &to))?;
        Ok(Source { parts, rest: VecDeque::new() })
    }

    /// Reads what is there into the room that is left; 0 at the end.
    pub async fn read(&mut self, space: &mut Vec<u8>) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.parts.recv().await.unwrap_or_default().into();
        }
        if space.capacity() == space.len() {
            space.reserve(PART);
        }
        let count = self.rest.len().min(space.capacity() - space.len());
        space.extend(self.rest.drain(..count));
        Ok(count)
    }

    /// Nothing has to be prepared for large messages.
    pub fn widen(&mut self) {}
}

fn read_all(mut from: File, to: &Sender<Vec<u8>>) {
    let mut part = vec![0; PART];
    while let Ok(count @ 1..) = from.read(&mut part) {
        if to.blocking_send(part[..count].to_vec()).is_err() {
            return;
        }
    }
}

/// Something to write to without blocking. What was taken is written also after this is dropped.
#[derive(Debug)]
pub struct Sink(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// For the thread.
    changed: Condvar,
    /// There is room, or nobody reads any more.
    room: Notify,
    broken: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Nothing more will come.
    closed: bool,
    /// Nobody reads there any more.
    broken: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life.
    fn write_all(&self, mut to: File) {
        loop {
            let mut state = self.lock();
            while state.waiting.is_empty() && !state.closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let part = std::mem::take(&mut state.waiting);
            drop(state);
            if part.is_empty() {
                return;
            }
            self.room.notify_waiters();
            if to.write_all(&part).is_err() {
                self.lock().broken = true;
                self.room.notify_waiters();
                self.broken.notify_waiters();
                return;
            }
        }
    }
}

impl Sink {
    /// The writing end of a pipe.
    pub fn pipe(end: End) -> io::Result<Sink> {
        Sink::to(end).map(|(sink, _)| sink)
    }

    fn to(end: End) -> io::Result<(Sink, JoinHandle<()>)> {
        let (shared, to) = (Arc::new(Shared::default()), File::from(end));
        let theirs = shared.clone();
        let thread = Builder::new().name("writer".into()).spawn(move || theirs.write_all(to))?;
        Ok((Sink(shared), thread))
    }

    /// Takes what fits at once.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if state.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(WAITING.saturating_sub(state.waiting.len()));
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.waiting.extend_from_slice(&bytes[..count]);
        self.0.changed.notify_one();
        Ok(count)
    }

    /// The same of several parts.
    pub fn try_write_parts(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut taken = 0;
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            match self.try_write(slice) {
                Ok(count) => taken += count,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(taken)
    }

    pub fn widen(&self) {}

    /// Waits until something fits.
    pub async fn writable(&self) -> io::Result<()> {
        loop {
            let room = self.0.room.notified();
            {
                let state = self.0.lock();
                if state.broken || state.waiting.len() < WAITING {
                    return Ok(());
                }
            }
            room.await;
        }
    }

    /// Waits until nobody reads any more, which only a write shows.
    pub async fn closed(&self) {
        loop {
            let broken = self.0.broken.notified();
            if self.0.lock().broken {
                return;
            }
            broken.await;
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_one();
    }
}

/// Our standard input.
pub fn stdin_source() -> io::Result<Source> {
    Source::pipe(io::stdin().as_handle().try_clone_to_owned()?)
}

/// Our standard output, and the thread that writes it; that thread ends when the sink is dropped and all is written.
pub fn stdout_sink() -> io::Result<(Sink, Option<JoinHandle<()>>)> {
    let (sink, thread) = Sink::to(io::stdout().as_handle().try_clone_to_owned()?)?;
    Ok((sink, Some(thread)))
}
