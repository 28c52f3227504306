//! What the clients of one principal make us hold: requests that are not answered, and responses that their
//! clients do not read.
//!
//! Bound: `max-bytes` for each principal, both together. At it a request is refused (429), and a client that
//! has taken nothing of its response for a while ([`IDLE`](super::slow::IDLE)) is cut off, whoever has taken
//! nothing for longest first. A response that leaves as fast as it comes counts for nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The accounts of all principals.
#[derive(Debug)]
pub struct Held {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Nobody who holds nothing.
    accounts: Vec<Account>,
}

#[derive(Debug)]
struct Account {
    principal: Option<Box<str>>,
    bytes: usize,
    /// Clients that do not read.
    slow: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    tab: u64,
    bytes: usize,
    /// Since when it has taken nothing, as a number that grows.
    idle: Option<u64>,
    /// Dropped: it is cut off.
    _cut: oneshot::Sender<()>,
}

impl Held {
    /// At most so many bytes for each principal.
    pub fn new(most: usize) -> Arc<Held> {
        Arc::new(Held { most, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes of a request. False if that is too much.
    pub fn hold(&self, principal: &Option<Box<str>>, bytes: usize) -> bool {
        let mut state = self.lock();
        let account = state.account(principal);
        let fits = account.bytes + bytes <= self.most;
        if fits {
            account.bytes += bytes;
        }
        state.tidy(principal);
        fits
    }

    /// A request is answered.
    pub fn release(&self, principal: &Option<Box<str>>, bytes: usize) {
        let mut state = self.lock();
        let account = state.account(principal);
        account.bytes = account.bytes.saturating_sub(bytes);
        state.tidy(principal);
    }

    /// A client does not read its response, of which so many bytes wait. What comes with the tab ends when the
    /// client is to be cut off.
    pub fn slow(
        self: &Arc<Held>,
        principal: &Option<Box<str>>,
        bytes: usize,
    ) -> (Arc<Tab>, oneshot::Receiver<()>) {
        let (cut, is_cut) = oneshot::channel();
        let mut state = self.lock();
        state.next += 1;
        let tab = Tab { held: self.clone(), principal: principal.clone(), id: state.next };
        let account = state.account(principal);
        account.bytes += bytes;
        account.slow.push(Entry { tab: tab.id, bytes, idle: None, _cut: cut });
        account.cut_idle(self.most);
        (Arc::new(tab), is_cut)
    }
}

impl State {
    fn account(&mut self, principal: &Option<Box<str>>) -> &mut Account {
        let at = self.accounts.iter().position(|account| account.principal == *principal);
        let at = at.unwrap_or_else(|| {
            self.accounts.push(Account { principal: principal.clone(), bytes: 0, slow: Vec::new() });
            self.accounts.len() - 1
        });
        &mut self.accounts[at]
    }

    /// Forgets an account that holds nothing.
    fn tidy(&mut self, principal: &Option<Box<str>>) {
        let empty = |account: &Account| account.bytes == 0 && account.slow.is_empty();
        self.accounts.retain(|account| account.principal != *principal || !empty(account));
    }
}

impl Account {
    /// Cuts off clients that read nothing, as long as there is too much and there are any.
    fn cut_idle(&mut self, most: usize) {
        while self.bytes > most {
            let idle = self.slow.iter().enumerate().filter_map(|(at, entry)| Some((entry.idle?, at)));
            let Some((_, at)) = idle.min() else { return };
            let entry = self.slow.swap_remove(at);
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }

    fn entry(&mut self, tab: u64) -> Option<&mut Entry> {
        self.slow.iter_mut().find(|entry| entry.tab == tab)
    }
}

/// What one client that does not read makes us hold, for as long as it does not.
#[derive(Debug)]
pub struct Tab {
    held: Arc<Held>,
    principal: Option<Box<str>>,
    id: u64,
}

impl Tab {
    /// More waits for it.
    pub fn more(&self, bytes: usize) {
        let mut state = self.held.lock();
        let account = state.account(&self.principal);
        // One that was cut off holds nothing any more.
        if let Some(entry) = account.entry(self.id) {
            entry.bytes += bytes;
            account.bytes += bytes;
            account.cut_idle(self.held.most);
        }
        state.tidy(&self.principal);
    }

    /// It has taken nothing for a while: it may be cut off, now or later.
    pub fn idles(&self) {
        self.set_idle(true);
    }

    /// It has taken something.
    pub fn takes(&self) {
        self.set_idle(false);
    }

    fn set_idle(&self, idle: bool) {
        let mut state = self.held.lock();
        state.next += 1;
        let since = state.next;
        let account = state.account(&self.principal);
        if let Some(entry) = account.entry(self.id) {
            entry.idle = idle.then_some(since);
            account.cut_idle(self.held.most);
        }
        state.tidy(&self.principal);
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let mut state = self.held.lock();
        let account = state.account(&self.principal);
        if let Some(at) = account.slow.iter().position(|entry| entry.tab == self.id) {
            let entry = account.slow.swap_remove(at);
            account.bytes = account.bytes.saturating_sub(entry.bytes);
        }
        state.tidy(&self.principal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Option<Box<str>> {
        Some("alice".into())
    }

    #[test]
    fn what_is_not_read_counts_with_what_is_not_answered() {
        let held = Held::new(100);
        let (tab, _cut) = held.slow(&alice(), 60);
        assert!(!held.hold(&alice(), 41) && held.hold(&alice(), 40), "one sum for both");
        assert!(held.hold(&None, 100), "each principal for itself");
        tab.more(1000);
        held.release(&alice(), 40);
        assert!(!held.hold(&alice(), 1));
        drop(tab);
        assert!(held.hold(&alice(), 100));
        held.release(&alice(), 100);
        held.release(&None, 100);
        assert!(held.lock().accounts.is_empty());
    }

    #[test]
    fn at_the_bound_whoever_has_taken_nothing_for_longest_is_cut_off() {
        let held = Held::new(100);
        let slow = |bytes| held.slow(&alice(), bytes);
        let ((first, mut first_cut), (second, mut second_cut), (third, mut third_cut)) =
            (slow(40), slow(30), slow(20));
        [&second, &first].into_iter().for_each(|tab| tab.idles());
        third.more(40);
        assert!(second_cut.try_recv() == Err(oneshot::error::TryRecvError::Closed), "it was idle first");
        assert_eq!(first_cut.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        first.takes();
        third.more(100);
        assert_eq!(first_cut.try_recv(), Err(oneshot::error::TryRecvError::Empty), "it reads again");
        assert_eq!(third_cut.try_recv(), Err(oneshot::error::TryRecvError::Empty), "it may only be busy");
        third.idles();
        assert_eq!(third_cut.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        third.more(100);
        assert!(held.hold(&alice(), 60), "what was cut off counts no more");
    }
}
