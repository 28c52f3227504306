//! Tasks that carry one post after another: to start a new one for each costs as much as the post.

use super::gate::{Gate, Opener};
use super::session::Inner;
use super::talk;
use outlast_engine::http::Post;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Poll, Waker};
use tokio::task::AbortHandle;

/// Couriers that rest. One more goes home.
const RESTING: usize = 32;

/// What a courier carries.
pub(super) struct Job {
    pub inner: Arc<Inner>,
    pub post: Box<Post>,
    pub gate: Option<Gate>,
    pub opener: Option<Opener>,
    /// Its name among the session's tasks.
    pub task: u64,
}

/// The couriers of one server that have nothing to do.
#[derive(Default)]
pub struct Couriers {
    resting: Mutex<Vec<Arc<Courier>>>,
}

struct Courier {
    hands: Mutex<Hands>,
    task: OnceLock<AbortHandle>,
}

#[derive(Default)]
struct Hands {
    job: Option<Job>,
    waker: Option<Waker>,
}

impl Couriers {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Courier>>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a job done; how to stop it before its end.
    pub(super) fn send(self: &Arc<Couriers>, job: Job) -> AbortHandle {
        let rested = self.lock().pop();
        if let Some(courier) = rested
            && let Some(task) = courier.task.get()
        {
            let mut hands = courier.hands();
            hands.job = Some(job);
            if let Some(waker) = hands.waker.take() {
                waker.wake();
            }
            return task.clone();
        }
        let hands = Mutex::new(Hands { job: Some(job), waker: None });
        let courier = Arc::new(Courier { hands, task: OnceLock::new() });
        let task = tokio::spawn(run(courier.clone(), Arc::downgrade(self))).abort_handle();
        courier.task.get_or_init(|| task).clone()
    }

    /// Whether a courier may rest here.
    fn takes(&self, courier: &Arc<Courier>) -> bool {
        let mut resting = self.lock();
        let room = resting.len() < RESTING;
        if room {
            resting.push(courier.clone());
        }
        room
    }
}

impl Drop for Couriers {
    fn drop(&mut self) {
        for courier in self.lock().drain(..) {
            if let Some(task) = courier.task.get() {
                task.abort();
            }
        }
    }
}

impl Courier {
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

/// A courier's life. Stopped in the middle of a job, it ends with it.
async fn run(courier: Arc<Courier>, home: Weak<Couriers>) {
    loop {
        let Job { inner, post, gate, opener, task } = courier.next().await;
        let ending = inner.ending(task);
        talk::post(inner, post, gate, opener).await;
        if !ending.finish() || !home.upgrade().is_some_and(|home| home.takes(&courier)) {
            return;
        }
    }
}
