//! Tasks that carry one post after another: to start a new one for each costs as much as the post.

use super::gate::{Gate, Opener};
use super::session::Inner;
use super::talk;
use outlast_engine::http::Post;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Poll, Waker};
use tokio::task::AbortHandle;

/// Senders of one server that wait for the next post. One more ends.
const RESTING: usize = 32;

/// What a sender carries.
pub(super) struct Job {
    pub inner: Arc<Inner>,
    pub post: Box<Post>,
    pub gate: Option<Gate>,
    pub opener: Option<Opener>,
    /// Its name among the session's tasks.
    pub task: u64,
}

/// The senders of one server that have nothing to do.
#[derive(Default)]
pub struct SenderPool {
    resting: Mutex<Vec<Arc<PostSender>>>,
}

struct PostSender {
    hands: Mutex<Hands>,
    task: OnceLock<AbortHandle>,
}

#[derive(Default)]
struct Hands {
    job: Option<Job>,
    waker: Option<Waker>,
}

impl SenderPool {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<PostSender>>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a job done; how to stop it before its end.
    pub(super) fn send(self: &Arc<SenderPool>, job: Job) -> AbortHandle {
        let rested = self.lock().pop();
        if let Some(sender) = rested
            && let Some(task) = sender.task.get()
        {
            let mut hands = sender.hands();
            hands.job = Some(job);
            if let Some(waker) = hands.waker.take() {
                waker.wake();
            }
            return task.clone();
        }
        let hands = Mutex::new(Hands { job: Some(job), waker: None });
        let sender = Arc::new(PostSender { hands, task: OnceLock::new() });
        let task = tokio::spawn(run(sender.clone(), Arc::downgrade(self))).abort_handle();
        sender.task.get_or_init(|| task).clone()
    }

    /// Whether a sender may rest here.
    fn takes(&self, sender: &Arc<PostSender>) -> bool {
        let mut resting = self.lock();
        let room = resting.len() < RESTING;
        if room {
            resting.push(sender.clone());
        }
        room
    }
}

impl Drop for SenderPool {
    fn drop(&mut self) {
        for sender in self.lock().drain(..) {
            if let Some(task) = sender.task.get() {
                task.abort();
            }
        }
    }
}

impl PostSender {
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Job {
        poll_fn(|cx| {
            let mut hands = self.hands();
            match hands.job.take() {
                Some(job) => Poll::Ready(job),
                None => {
                    hands.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// A sender's life. Stopped in the middle of a job, it ends with it.
async fn run(sender: Arc<PostSender>, home: Weak<SenderPool>) {
    loop {
        let Job { inner, post, gate, opener, task } = sender.next().await;
        let ending = inner.ending(task);
        talk::post(inner, post, gate, opener).await;
        if !ending.finish() || !home.upgrade().is_some_and(|home| home.takes(&sender)) {
            return;
        }
    }
}
