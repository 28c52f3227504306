//! The threads of a store: one that writes, others that read.
//!
//! Not here: what is written, and where.

use super::Reply;
use outlast_engine::store::{Loaded, Query, Stored, Trouble, Write};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Submissions that are written in one transaction. More wait for the next.
const GROUP: usize = 512;

/// Things that wait for a thread. One more is refused.
const WAITING: usize = 100_000;

/// Who can look things up.
pub trait Reader: Send {
    /// Looks something up.
    fn find(&mut self, query: &Query) -> Loaded;
}

/// Where things are put.
pub trait Ledger: Reader {
    /// Writes submissions, each wholly or not at all; one outcome for each. When it returns, what it
    /// calls written would outlive the process.
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored>;

    /// Nothing more will be written: whatever of ours is open may be taken over at once.
    fn leave(&mut self) {}

    /// Those who can look things up beside the writer. None: the writer does it.
    fn readers(&self) -> Vec<Box<dyn Reader>>;
}

enum Job {
    Write(Vec<Write>, Reply<Stored>),
    Refuse(Reply<Stored>),
    Read(Query, Reply<Loaded>),
}

type Ask = (Query, Reply<Loaded>);

/// The threads, and the way to them.
#[derive(Debug)]
pub struct Desk {
    jobs: Sender<Job>,
    /// The way to the readers, once there are any.
    asks: Arc<OnceLock<Sender<Ask>>>,
    waiting: Arc<AtomicUsize>,
    writer: JoinHandle<()>,
}

impl Desk {
    /// Starts the writer, which opens the ledger when the first thing comes.
    pub fn start(open: impl FnOnce() -> Box<dyn Ledger> + Send + 'static) -> io::Result<Desk> {
        let (jobs, queue) = channel();
        let (asks, waiting) = (Arc::new(OnceLock::new()), Arc::new(AtomicUsize::new(0)));
        let (way, count) = (asks.clone(), waiting.clone());
        let writer = Builder::new().name("store".into()).spawn(move || {
            let Ok(first) = queue.recv() else { return };
            let ledger = open();
            let readers = start_readers(ledger.readers(), &way, &count);
            write(ledger, first, &queue, &count);
            // Without the way to them the readers end.
            drop(way);
            for reader in readers {
                // A reader that panicked has nothing left to say.
                let _ = reader.join();
            }
        })?;
        Ok(Desk { jobs, asks, waiting, writer })
    }

    pub fn submit(&self, writes: Vec<Write>, reply: Reply<Stored>) {
        let job = match self.waiting.fetch_add(1, Ordering::Relaxed) {
            0..WAITING => Job::Write(writes, reply),
            _ => Job::Refuse(reply),
        };
        // The writer lives as long as we do.
        let _ = self.jobs.send(job);
    }

    pub fn load(&self, query: Query, reply: Reply<Loaded>) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        match self.asks.get() {
            Some(asks) => drop(asks.send((query, reply))),
            None => drop(self.jobs.send(Job::Read(query, reply))),
        }
    }

    pub fn close(self) {
        drop(self.jobs);
        drop(self.asks);
        // A writer that panicked has nothing left to say.
        let _ = self.writer.join();
    }
}

/// The writer's life.
fn write(mut ledger: Box<dyn Ledger>, first: Job, queue: &Receiver<Job>, waiting: &AtomicUsize) {
    let mut next = Some(first);
    while let Some(job) = next.take().or_else(|| queue.recv().ok()) {
        waiting.fetch_sub(1, Ordering::Relaxed);
        match job {
            Job::Read(query, reply) => reply(ledger.find(&query)),
            Job::Refuse(reply) => reply(Err(overloaded())),
            Job::Write(writes, reply) => {
                let (mut group, mut replies) = (vec![writes], vec![reply]);
                next = gather(queue, &mut group, &mut replies);
                waiting.fetch_sub(group.len() - 1, Ordering::Relaxed);
                for (reply, stored) in replies.into_iter().zip(ledger.commit(&group)) {
                    reply(stored);
                }
            }
        }
    }
    ledger.leave();
}

/// Takes what waits to be written; what is no write comes after them.
fn gather(
    queue: &Receiver<Job>,
    group: &mut Vec<Vec<Write>>,
    replies: &mut Vec<Reply<Stored>>,
) -> Option<Job> {
    while group.len() < GROUP {
        match queue.try_recv().ok()? {
            Job::Write(writes, reply) => {
                group.push(writes);
                replies.push(reply);
            }
            other => return Some(other),
        }
    }
    None
}

fn overloaded() -> Trouble {
    Trouble::Failed(format!("{WAITING} writes wait for the store; its disk is too slow for them"))
}

fn start_readers(
    readers: Vec<Box<dyn Reader>>,
    way: &OnceLock<Sender<Ask>>,
    waiting: &Arc<AtomicUsize>,
) -> Vec<JoinHandle<()>> {
    if readers.is_empty() {
        return Vec::new();
    }
    let (asks, queue) = channel::<Ask>();
    let queue = Arc::new(Mutex::new(queue));
    let start = |mut reader: Box<dyn Reader>| {
        let (queue, waiting) = (queue.clone(), waiting.clone());
        let life = move || {
            while let Some((query, reply)) = next_ask(&queue) {
                waiting.fetch_sub(1, Ordering::Relaxed);
                reply(reader.find(&query));
            }
        };
        Builder::new().name("store-reader".into()).spawn(life).ok()
    };
    let threads: Vec<_> = readers.into_iter().filter_map(start).collect();
    if !threads.is_empty() {
        // Nobody else sets it.
        let _ = way.set(asks);
    }
    threads
}

fn next_ask(queue: &Mutex<Receiver<Ask>>) -> Option<Ask> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::Wall;
    use outlast_engine::store::{Committed, Found};

    /// A ledger that says how much it is given, and begins to write it when it is told to.
    struct Slow {
        begins: Sender<usize>,
        may: Receiver<()>,
    }

    impl Reader for Slow {
        fn find(&mut self, _: &Query) -> Loaded {
            Ok(Found::Mail(false))
        }
    }

    impl Ledger for Slow {
        fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
            self.begins.send(group.len()).unwrap();
            self.may.recv().unwrap();
            vec![Ok(Committed { at: Wall(0), done: Vec::new() }); group.len()]
        }

        fn readers(&self) -> Vec<Box<dyn Reader>> {
            Vec::new()
        }
    }

    fn slow_desk() -> (Desk, Receiver<usize>, Sender<()>) {
        let (begins, begun) = channel();
        let (go, may) = channel();
        (Desk::start(move || Box::new(Slow { begins, may })).unwrap(), begun, go)
    }

    /// However many come at once: while one commit is under way they gather, and all of them are in the
    /// next. So nobody waits for more than the commit that is under way and its own.
    #[test]
    fn all_that_wait_are_in_the_next_commit() {
        let (desk, begun, go) = slow_desk();
        let (stored, replies) = channel();
        let submit = |number: usize| {
            let stored = stored.clone();
            desk.submit(vec![Write::Renew], Box::new(move |_| stored.send(number).unwrap()));
        };
        submit(0);
        assert_eq!(begun.recv(), Ok(1), "one that is alone waits for nobody");
        (1..=400).for_each(submit);
        assert!(replies.try_recv().is_err(), "nothing is stored before its commit");
        go.send(()).unwrap();
        assert_eq!(begun.recv(), Ok(400));
        assert_eq!(replies.try_iter().collect::<Vec<_>>(), [0], "the first did not wait for the others");
        go.send(()).unwrap();
        assert_eq!(replies.iter().take(400).collect::<Vec<_>>(), (1..=400).collect::<Vec<_>>());
        desk.close();
    }

    /// A commit has a bound, so that its first does not wait for thousands of others.
    #[test]
    fn a_commit_has_a_bound() {
        let (desk, begun, go) = slow_desk();
        (0..=2 * GROUP).for_each(|_| desk.submit(vec![Write::Renew], Box::new(drop)));
        (0..4).for_each(|_| go.send(()).unwrap());
        desk.close();
        let sizes: Vec<usize> = begun.iter().collect();
        assert_eq!(sizes.iter().sum::<usize>(), 2 * GROUP + 1);
        assert!(sizes.iter().all(|size| *size <= GROUP) && sizes.len() <= 4, "{sizes:?}");
    }
}
