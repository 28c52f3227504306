//! Who clients are: what is known of each by what it says of itself, and what its cancels add to that.
//!
//! A line or a session introduces itself once, a client of the modern era in every request, so what is known is kept
//! by a fingerprint of the introduction. Clients that do not say who they are share one entry, of which nothing is
//! known.

use super::{Clients, Door};
use crate::calls::handoff;
use crate::config::ClientRule;
use crate::hash::IdMap;
use crate::id::ClientId;
use crate::limits;
use crate::profile::{Effect, Introduction, Profile, Verdict, verdict};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What an introduction is known by, and whose token it came with: what one principal's clients do must not change
/// what is done for another's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct IdentityNo {
    pub(crate) principal: u64,
    pub(crate) introduction: u64,
}

/// What is known of clients that say the same of themselves.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) introduction: Introduction,
    /// The rows that count for it.
    pub(crate) rows: Vec<Profile>,
    gave_up: GaveUp,
    /// What was learned since it came: it has not seen our tools before it lists them again.
    pub(crate) learned_now: bool,
    /// What is known, or that nothing is, was noted.
    noted: bool,
}

/// What a client's cancels say about its patience.
#[derive(Clone, Copy, Debug)]
enum GaveUp {
    Never,
    After(Duration),
    /// It was noted, which is enough.
    Noted,
}

/// Who clients are.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    all: IdMap<IdentityNo, Identity>,
    /// The longest known first.
    order: VecDeque<IdentityNo>,
    /// Of some client something was known that counts for its calls.
    acts: bool,
}

impl Identity {
    pub(crate) fn new(introduction: Introduction, rows: Vec<Profile>, gave_up: Option<Duration>) -> Identity {
        let gave_up = gave_up.map_or(GaveUp::Never, GaveUp::After);
        Identity { introduction, rows, gave_up, learned_now: false, noted: false }
    }

    /// What is done for a call with or without a progress token.
    pub(crate) fn effect(&self, has_token: bool) -> Effect {
        match verdict(&self.rows, Some(has_token)) {
            Verdict::Does(effect) => effect,
            Verdict::Unknown | Verdict::Unclear => Effect::default(),
        }
    }

    /// When a call is given up whatever progress is seen: the shortest that any of its calls may have.
    pub(crate) fn shortest_cap(&self) -> Option<Duration> {
        [false, true].into_iter().filter_map(|token| self.effect(token).cap).min()
    }

    /// Whether rows fit that differ.
    pub(crate) fn is_unclear(&self) -> bool {
        [false, true].into_iter().any(|token| verdict(&self.rows, Some(token)) == Verdict::Unclear)
    }
}

impl Identities {
    pub(crate) fn get(&self, no: IdentityNo) -> Option<&Identity> {
        self.all.get(&no)
    }

    fn add(&mut self, no: IdentityNo, identity: Identity) {
        if reached!(IDENTITIES, self.order.len() == limits::IDENTITIES)
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
        self.order.push_back(no);
        self.acts |= !identity.rows.is_empty();
        self.all.insert(no, identity);
    }
}

impl Clients {
    /// Who a client is; `None` if it has not said so, or so long ago that it was forgotten.
    pub(crate) fn identity_of(&self, id: ClientId) -> Option<&Identity> {
        self.identities.get(self.get(&id)?.identity?)
    }

    /// The same as far as it counts for its calls. Mostly nothing is known of anybody, and no call looks for it then.
    #[inline]
    pub(crate) fn limits_of(&self, id: ClientId) -> Option<&Identity> {
        if self.identities.acts { self.identity_of(id) } else { None }
    }

    pub(crate) fn knows(&self, no: IdentityNo) -> bool {
        self.identities.get(no).is_some()
    }

    pub(crate) fn learn_identity(&mut self, no: IdentityNo, identity: Identity) {
        self.identities.add(no, identity);
    }

    /// A client says who it is.
    pub(crate) fn has_identity(&mut self, id: ClientId, no: Option<IdentityNo>) {
        if let Some(client) = self.at(id) {
            client.identity = no;
        }
    }

    /// What a person wrote for it.
    pub(crate) fn has_rule(&mut self, id: ClientId, rule: Option<Arc<ClientRule>>) {
        if let Some(client) = self.at(id) {
            client.has_rule(rule);
        }
    }

    /// Whether it is the first time that something is to be noted of a client.
    pub(crate) fn is_noted_first(&mut self, id: ClientId) -> bool {
        let Some(no) = self.get(&id).and_then(|client| client.identity) else { return false };
        let known = self.identities.all.get_mut(&no);
        known.is_some_and(|identity| !std::mem::replace(&mut identity.noted, true))
    }

    /// It gave a silent call up at this age. Its likely cap, if it was stated, or the second time shows one. `None` if
    /// enough is known.
    pub(crate) fn gives_up(
        &mut self,
        id: ClientId,
        age: Duration,
        stated: Option<Duration>,
    ) -> Option<Option<Duration>> {
        let no = self.get(&id)?.identity.unwrap_or_default();
        if !self.knows(no) {
            self.identities.add(no, Identity::new(Introduction::default(), Vec::new(), None));
        }
        let gave_up = &mut self.identities.all.get_mut(&no)?.gave_up;
        let cap = match *gave_up {
            GaveUp::Noted => return None,
            GaveUp::Never => stated,
            GaveUp::After(before) => stated.or_else(|| handoff::likely_cap(before, age)),
        };
        *gave_up = cap.map_or(GaveUp::After(age), |_| GaveUp::Noted);
        Some(cap)
    }

    /// What is known of a client is this, from now on.
    pub(crate) fn has_rows(&mut self, id: ClientId, rows: Vec<Profile>) {
        let Some(no) = self.get(&id).and_then(|client| client.identity) else { return };
        self.identities.acts |= !rows.is_empty();
        if let Some(identity) = self.identities.all.get_mut(&no) {
            identity.learned_now = !rows.is_empty();
            identity.rows = rows;
        }
    }

    /// A client was given a list with our tools in it.
    pub(crate) fn shows_our_tools(&mut self, id: ClientId) {
        if let Some(client) = self.at(id) {
            client.shows_our_tools = true;
        }
    }

    /// Whether a model behind this client can call our tools, as far as we know.
    pub(crate) fn can_fetch(&self, id: ClientId) -> bool {
        let Some(client) = self.get(&id) else { return false };
        let waits = self.identity_of(id).is_some_and(|identity| identity.learned_now);
        // A modern client over HTTP is another one with every request.
        !waits || client.shows_our_tools || matches!(client.door, Door::Exchange(_))
    }
}
