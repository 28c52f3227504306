//! The machine of the merged door: what is known of each server's lists, and which requests wait for more.
//!
//! | a server's list is | event | becomes |
//! |---|---|---|
//! | unknown, stale | a client needs it | wanted |
//! | wanted | its server is there | asked |
//! | asked | a page that is not the last | asked |
//! | asked | the last page, or the server has no such list | fresh |
//! | asked | its process ends | wanted |
//! | asked | an error, silence, an answer that is lost | failed |
//! | failed | `connect-backoff` is over, later `reconnect-every` | wanted |
//! | failed | its server comes back | wanted |
//! | failed | the server says that it changed | stale |
//! | asked | the server says that it changed | asked, and stale after the last page |
//! | fresh | the server says that it changed, is started again, or has said that it keeps no longer | stale |
//!
//! What was known stays until something newer is there, and is shown meanwhile. A server that has let somebody wait
//! in vain is *late*: nobody waits for it again until it has answered.
//!
//! Not here: what is sent and told (`engine/merged.rs`), names (`catalog.rs`).

use crate::catalog::{Kind, Listing, Page, View};
use crate::clients::Way;
use crate::config::{Expose, Exposure};
use crate::id::{AttemptId, ClientId, DefinitionId, GatherNo, JsonId, ServerId};
use crate::method::Method;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use crate::wire::Message;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

/// Requests that wait for what servers list. One more: answered at once with what is known.
const GATHERED: usize = 10_000;

/// Merged lists that are kept ready. One more: the oldest is made again when it is needed.
const VIEWS: usize = 64;

/// Bytes of pages of merged lists that are kept ready. More: the oldest are made again when they are needed.
const PAGES: usize = 16 << 20;

/// How far a server's list is known.
#[derive(Debug, Default)]
enum Progress {
    /// Nobody has asked for it, or it has changed.
    #[default]
    Stale,
    /// It is asked for as soon as its server is there.
    Wanted,
    /// Under this number; what has come so far, and when nobody waits for more.
    Asked(AttemptId, Box<Listing>, Option<Mono>),
    /// It could not be had, and is asked for again at this time.
    Failed(Mono),
    /// Until this time, if its server does not tell of changes.
    Fresh(Option<Mono>),
}

/// One list of one server.
#[derive(Debug, Default)]
struct List {
    progress: Progress,
    known: Option<Known>,
    /// Somebody was told something else, or nothing, meanwhile.
    owed: bool,
    /// It has changed since it was asked for.
    outdated: bool,
    /// Everybody knows that it has changed, and nobody has looked since.
    told: bool,
    /// How often in a row it could not be had.
    failures: u32,
}

impl List {
    /// When it is to be looked at, whatever happens.
    fn due(&self) -> Option<Mono> {
        match self.progress {
            Progress::Asked(_, _, until) => until,
            Progress::Failed(at) => Some(at),
            Progress::Stale | Progress::Wanted | Progress::Fresh(_) => None,
        }
    }
}

/// A list that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListDue {
    /// It is to be asked for again.
    Again(Kind),
    /// It was asked for under this number, and was not answered.
    Unanswered(Kind, AttemptId),
}

/// A list, and what it looks like as a number.
#[derive(Clone, Debug)]
struct Known {
    listing: Arc<Listing>,
    digest: u64,
}

/// What is known of one server.
#[derive(Debug, Default)]
struct Lists {
    each: BTreeMap<Kind, List>,
    late: bool,
    /// What modern requests of ours carry: what the client said that they are made for.
    meta: Option<Box<[u8]>>,
    /// It was asked what it can do.
    discovers: bool,
    /// It does not speak the era that it was asked in.
    foreign: bool,
    /// When the first of its lists is due.
    armed: Option<Mono>,
}

/// A request that waits for what servers say.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) client: ClientId,
    pub(crate) way: Way,
    pub(crate) id: JsonId,
    pub(crate) method: Method,
    pub(crate) message: Message,
    pub(crate) needs: Needs,
    armed: Option<Mono>,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// What every server answers to its handshake.
    Handshakes,
    /// What every server lists.
    Lists(&'static [Kind]),
    /// Who has a resource: what every server lists, and who answers for what nobody does.
    Resource,
    /// The tools of those whose tools are listed.
    Shown,
    /// The tools of those whose tools are found.
    Hidden,
}

impl Needs {
    /// Whether what a server answers to its handshake is part of it.
    pub(crate) fn handshakes(self) -> bool {
        matches!(self, Needs::Handshakes | Needs::Resource)
    }

    /// The lists that this is about.
    pub(crate) fn kinds(self) -> &'static [Kind] {
        match self {
            Needs::Handshakes => &[],
            Needs::Lists(kinds) => kinds,
            Needs::Resource => &[Kind::Resources, Kind::Templates],
            Needs::Shown | Needs::Hidden => &[Kind::Tools],
        }
    }
}

/// What a view is made of.
#[derive(Debug, PartialEq)]
pub(crate) struct ViewKey {
    pub(crate) kind: Kind,
    /// Names that are ours.
    pub(crate) reserved: Vec<String>,
    pub(crate) parts: Vec<PartKey>,
}

/// What one server adds to it: the list that looks like this number, shown like this.
#[derive(Debug, PartialEq)]
pub(crate) struct PartKey {
    pub(crate) definition: DefinitionId,
    pub(crate) digest: u64,
    pub(crate) expose: Expose,
    pub(crate) exposure: Arc<Exposure>,
}

/// A page of a merged list that is kept ready.
#[derive(Debug)]
struct Ready {
    view: Weak<View>,
    from: usize,
    /// Who sees it, if not everybody who sees the list does.
    reader: Option<Box<str>>,
    page: Page,
}

#[derive(Debug, Default)]
pub(crate) struct Merged {
    servers: BTreeMap<ServerId, Lists>,
    gathered: BTreeMap<GatherNo, Gathered>,
    last: u64,
    views: VecDeque<(ViewKey, Arc<View>)>,
    pages: VecDeque<Ready>,
    /// How often something has changed that merged lists are made of.
    changes: u64,
}

// What is known of lists.
impl Merged {
    fn list(&mut self, server: ServerId, kind: Kind) -> &mut List {
        self.servers.entry(server).or_default().each.entry(kind).or_default()
    }

    /// Somebody needs a list. Whether its server is to be asked, if it is there.
    pub(crate) fn wants(&mut self, now: Mono, server: ServerId, kind: Kind) -> bool {
        let list = self.list(server, kind);
        list.told = false;
        let old = matches!(list.progress, Progress::Fresh(Some(until)) if until <= now);
        if old || matches!(list.progress, Progress::Stale) {
            (list.progress, list.outdated) = (Progress::Wanted, false);
        }
        matches!(list.progress, Progress::Wanted)
    }

    /// The lists that a server is to be asked for now that it is there. If it has forgotten what it said before,
    /// that too.
    pub(crate) fn wanted(&mut self, server: ServerId, anew: bool) -> Vec<Kind> {
        let Some(lists) = self.servers.get_mut(&server) else { return Vec::new() };
        for list in lists.each.values_mut() {
            let again = matches!(list.progress, Progress::Failed(_))
                || anew && matches!(list.progress, Progress::Fresh(_));
            if again {
                (list.progress, list.owed, list.outdated) = (Progress::Wanted, true, false);
            }
        }
        let wanted =
            |(kind, list): (&Kind, &List)| matches!(list.progress, Progress::Wanted).then_some(*kind);
        lists.each.iter().filter_map(wanted).collect()
    }

    /// A server is asked for a list, or for the next page of it.
    pub(crate) fn asks(
        &mut self,
        timers: &mut Timers,
        (server, kind): (ServerId, Kind),
        attempt: AttemptId,
        so_far: Box<Listing>,
        until: Option<Mono>,
    ) {
        self.list(server, kind).progress = Progress::Asked(attempt, so_far, until);
        self.arm_lists(timers, server);
    }

    /// Sets the timer of a server's lists to the first that is due.
    fn arm_lists(&mut self, timers: &mut Timers, server: ServerId) {
        let Some(lists) = self.servers.get_mut(&server) else { return };
        let first = lists.each.values().filter_map(List::due).min();
        timers.set(Owner::Lists(server), &mut lists.armed, first);
    }

    pub(crate) fn lists_armed(&self, server: ServerId) -> Option<Mono> {
        self.servers.get(&server)?.armed
    }

    /// The timer of a server's lists rings: those that are due.
    pub(crate) fn lists_ring(&mut self, timers: &mut Timers, now: Mono, server: ServerId) -> Vec<ListDue> {
        let Some(lists) = self.servers.get_mut(&server) else { return Vec::new() };
        lists.armed = None;
        let mut due = Vec::new();
        for (kind, list) in lists.each.iter_mut().filter(|(_, list)| list.due().is_some_and(|at| at <= now)) {
            if let Progress::Asked(attempt, ..) = list.progress {
                due.push(ListDue::Unanswered(*kind, attempt));
            } else {
                list.progress = Progress::Wanted;
                due.push(ListDue::Again(*kind));
            }
        }
        self.arm_lists(timers, server);
        due
    }

    /// A list could not be had. How often that has happened in a row; `fails` says when it is asked for again.
    pub(crate) fn failures(&mut self, server: ServerId, kind: Kind) -> u32 {
        let list = self.list(server, kind);
        list.failures = list.failures.saturating_add(1);
        list.failures
    }

    /// A list is asked for again at this time. Until then what was known of it is shown.
    pub(crate) fn fails(&mut self, timers: &mut Timers, (server, kind): (ServerId, Kind), again: Mono) {
        let list = self.list(server, kind);
        (list.progress, list.outdated) = (Progress::Failed(again), false);
        self.arm_lists(timers, server);
    }

    /// Whether a list could not be had of late, although its server is there.
    pub(crate) fn has_failed(&self, server: ServerId, kind: Kind) -> bool {
        let list = self.servers.get(&server).and_then(|lists| lists.each.get(&kind));
        list.is_some_and(|list| list.failures > 0)
    }

    /// What has come of a list that was asked for under this number. It is stale until `is_listed`, or asked again.
    pub(crate) fn take_asked(
        &mut self,
        server: ServerId,
        kind: Kind,
        attempt: AttemptId,
    ) -> Option<Box<Listing>> {
        let list = self.servers.get_mut(&server)?.each.get_mut(&kind)?;
        match std::mem::take(&mut list.progress) {
            Progress::Asked(asked, so_far, _) if asked == attempt => Some(so_far),
            other => {
                list.progress = other;
                None
            }
        }
    }

    /// A list is whole. Whether somebody is to be told that it looks different.
    pub(crate) fn is_listed(
        &mut self,
        timers: &mut Timers,
        (server, kind): (ServerId, Kind),
        listing: Listing,
        until: Option<Mono>,
    ) -> bool {
        if let Some(lists) = self.servers.get_mut(&server) {
            lists.late = false;
        }
        let list = self.list(server, kind);
        let digest = listing.digest();
        let before = list.known.as_ref().map(|known| known.digest);
        let differs = before.map_or(!listing.entries.is_empty(), |before| before != digest);
        list.known = Some(Known { listing: Arc::new(listing), digest });
        let outdated = std::mem::take(&mut list.outdated);
        list.progress = if outdated { Progress::Stale } else { Progress::Fresh(until) };
        list.failures = 0;
        let news = std::mem::take(&mut list.owed) && differs;
        self.changes += u64::from(before != Some(digest));
        self.arm_lists(timers, server);
        news
    }

    /// A server has no such list.
    pub(crate) fn refuses(&mut self, timers: &mut Timers, server: ServerId, kind: Kind) -> bool {
        self.is_listed(timers, (server, kind), Listing::default(), None)
    }

    /// What was asked for will not come from a server that is away: it is asked for again when that is back.
    pub(crate) fn is_interrupted(&mut self, timers: &mut Timers, server: ServerId, kind: Kind) {
        let list = self.list(server, kind);
        (list.progress, list.outdated) = (Progress::Wanted, false);
        self.arm_lists(timers, server);
    }

    /// A server says that a list of its has changed. What it is about to answer may be older than that.
    pub(crate) fn is_stale(&mut self, timers: &mut Timers, server: ServerId, kind: Kind) {
        let list = self.servers.get_mut(&server).and_then(|lists| lists.each.get_mut(&kind));
        let Some(list) = list else { return };
        match list.progress {
            Progress::Asked(..) => list.outdated = true,
            Progress::Fresh(_) | Progress::Failed(_) => list.progress = Progress::Stale,
            Progress::Stale | Progress::Wanted => {}
        }
        self.arm_lists(timers, server);
    }

    /// Whether anybody is to be told that a list has changed. A server may say so all the time, and has many clients.
    pub(crate) fn is_news(&mut self, server: ServerId, kind: Kind) -> bool {
        let list = self.servers.get_mut(&server).and_then(|lists| lists.each.get_mut(&kind));
        list.is_none_or(|list| !std::mem::replace(&mut list.told, true))
    }

    /// Somebody is there who has not been told what others know.
    pub(crate) fn has_new_listener(&mut self, server: ServerId) {
        if let Some(lists) = self.servers.get_mut(&server) {
            lists.each.values_mut().for_each(|list| list.told = false);
        }
    }

    /// Whether a list is on its way, and its server has not let anybody wait in vain.
    pub(crate) fn is_expected(&self, server: ServerId, kind: Kind) -> bool {
        let Some(lists) = self.servers.get(&server).filter(|lists| !lists.late) else { return false };
        let list = lists.each.get(&kind);
        list.is_some_and(|list| matches!(list.progress, Progress::Wanted | Progress::Asked(..)))
    }

    /// A server is asked in the modern era, in the name of a client that said this of itself.
    pub(crate) fn speaks(&mut self, server: ServerId, meta: Box<[u8]>) {
        self.servers.entry(server).or_default().meta.get_or_insert(meta);
    }

    /// What modern requests to a server carry.
    pub(crate) fn meta(&self, server: ServerId) -> Option<&[u8]> {
        self.servers.get(&server)?.meta.as_deref()
    }

    /// Whether a server has given any of its lists: then it speaks the era that it was asked in, and an error says no
    /// more than that it has nothing else.
    pub(crate) fn has_listed(&self, server: ServerId) -> bool {
        self.servers.get(&server).is_some_and(|lists| lists.each.values().any(|list| list.known.is_some()))
    }

    /// Whether a server is to be asked now what it can do.
    pub(crate) fn discovers(&mut self, server: ServerId) -> bool {
        self.servers.get_mut(&server).is_some_and(|lists| !std::mem::replace(&mut lists.discovers, true))
    }

    /// What a server was asked about itself was lost with its process.
    pub(crate) fn discovers_again(&mut self, server: ServerId) {
        if let Some(lists) = self.servers.get_mut(&server) {
            lists.discovers = false;
        }
    }

    /// Whether what a server can do is on its way.
    pub(crate) fn is_discovering(&self, server: ServerId) -> bool {
        self.servers.get(&server).is_some_and(|lists| lists.discovers && !lists.foreign && !lists.late)
    }

    /// A server does not speak the era that it was asked in. Whether that is news.
    pub(crate) fn is_foreign(&mut self, server: ServerId) -> bool {
        let Some(lists) = self.servers.get_mut(&server) else { return false };
        !std::mem::replace(&mut lists.foreign, true)
    }

    /// Whether a server is known not to speak the era that it was asked in.
    pub(crate) fn does_not_speak(&self, server: ServerId) -> bool {
        self.servers.get(&server).is_some_and(|lists| lists.foreign)
    }

    /// Somebody has waited long enough for a server.
    pub(crate) fn is_late(&mut self, server: ServerId) {
        if let Some(lists) = self.servers.get_mut(&server) {
            lists.late = true;
        }
    }

    /// What is known of a list is shown to somebody; newer is told later.
    pub(crate) fn is_shown(&mut self, server: ServerId, kind: Kind) {
        let list = self.list(server, kind);
        list.told = false;
        list.owed |= !matches!(list.progress, Progress::Fresh(_));
    }

    /// What a list looked like when it was last given.
    pub(crate) fn known(&self, server: ServerId, kind: Kind) -> Option<(Arc<Listing>, u64)> {
        let known = self.servers.get(&server)?.each.get(&kind)?.known.clone()?;
        Some((known.listing, known.digest))
    }

    /// Another program takes a server's place: what it refused, or was too slow for, may be otherwise now.
    pub(crate) fn is_another(&mut self, server: ServerId) {
        if let Some(lists) = self.servers.get_mut(&server) {
            (lists.late, lists.discovers, lists.foreign) = (false, false, false);
            lists.each.values_mut().for_each(|list| list.failures = 0);
        }
    }

    /// A server is let go of.
    pub(crate) fn forget(&mut self, timers: &mut Timers, server: ServerId) {
        if let Some(mut lists) = self.servers.remove(&server) {
            timers.set(Owner::Lists(server), &mut lists.armed, None);
        }
        self.changes += 1;
    }

    /// Whatever is due has its timer.
    pub(crate) fn check(&self) -> Result<(), String> {
        let first = |lists: &Lists| lists.each.values().filter_map(List::due).min();
        match self.servers.iter().find(|(_, lists)| lists.armed != first(lists)) {
            Some((server, lists)) => {
                Err(format!("the lists of {server:?} are due at {:?}: {lists:?}", first(lists)))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn servers(&self) -> usize {
        self.servers.len()
    }
}

// Views.
impl Merged {
    /// A merged list that is ready.
    pub(crate) fn view(&self, key: &ViewKey) -> Option<Arc<View>> {
        self.views.iter().rev().find(|(known, _)| known == key).map(|(_, view)| view.clone())
    }

    pub(crate) fn keep_view(&mut self, key: ViewKey, view: Arc<View>) {
        if self.views.len() == VIEWS {
            self.views.pop_front();
        }
        self.views.push_back((key, view));
    }

    /// Names have changed: every merged list is made again.
    pub(crate) fn forget_views(&mut self) {
        self.views.clear();
        self.pages.clear();
        self.changes += 1;
    }

    /// A page that is ready: of this list, from this place on, for this reader.
    pub(crate) fn page(&self, view: &Arc<View>, from: usize, reader: &Option<Box<str>>) -> Option<Page> {
        let wanted = |ready: &&Ready| {
            // Nothing else comes to where a list was as long as somebody remembers the place.
            ready.view.as_ptr() == Arc::as_ptr(view) && ready.from == from && ready.reader == *reader
        };
        self.pages.iter().rev().find(wanted).map(|ready| ready.page.clone())
    }

    pub(crate) fn keep_page(&mut self, view: &Arc<View>, from: usize, reader: Option<Box<str>>, page: &Page) {
        self.pages.retain(|ready| ready.view.strong_count() > 0);
        self.pages.push_back(Ready { view: Arc::downgrade(view), from, reader, page: page.clone() });
        let bytes = |pages: &VecDeque<Ready>| pages.iter().map(|ready| ready.page.len()).sum::<usize>();
        while bytes(&self.pages) > PAGES {
            self.pages.pop_front();
        }
    }

    /// What a client was found to see while this stays the same, it sees still.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// What servers there are for clients has changed.
    pub(crate) fn has_changed(&mut self) {
        self.changes += 1;
    }
}

// Requests that wait.
impl Merged {
    pub(crate) fn has_room(&self) -> bool {
        self.gathered.len() < GATHERED
    }

    pub(crate) fn waiting(&self) -> usize {
        self.gathered.len()
    }

    pub(crate) fn is_waited_for(&self, no: GatherNo) -> bool {
        self.gathered.contains_key(&no)
    }

    pub(crate) fn gather(&mut self, timers: &mut Timers, gathered: Gathered, until: Mono) -> GatherNo {
        self.last += 1;
        let no = GatherNo(self.last);
        let entry = self.gathered.entry(no).or_insert(gathered);
        timers.set(Owner::Gather(no), &mut entry.armed, Some(until));
        no
    }

    pub(crate) fn armed(&self, no: GatherNo) -> Option<Mono> {
        self.gathered.get(&no)?.armed
    }

    /// It waits no longer.
    pub(crate) fn take(&mut self, timers: &mut Timers, no: GatherNo) -> Option<Gathered> {
        let mut gathered = self.gathered.remove(&no)?;
        timers.set(Owner::Gather(no), &mut gathered.armed, None);
        Some(gathered)
    }

    /// Whether a client waits for a list of this kind.
    pub(crate) fn awaits_list(&self, client: ClientId, kind: Kind) -> bool {
        let waits =
            |gathered: &Gathered| gathered.client == client && Kind::of(&gathered.method) == Some(kind);
        self.gathered.values().any(waits)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (GatherNo, &Gathered)> {
        self.gathered.iter().map(|(no, gathered)| (*no, gathered))
    }
}

impl Gathered {
    pub(crate) fn new(
        client: ClientId,
        way: Way,
        id: JsonId,
        method: Method,
        message: Message,
        needs: Needs,
    ) -> Self {
        Gathered { client, way, id, method, message, needs, armed: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::scan_message;

    #[test]
    fn only_so_many_requests_wait_for_lists() {
        let (mut merged, mut timers) = (Merged::default(), Timers::default());
        let message = scan_message(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#[..].into()).unwrap();
        let waits = |number: usize| {
            let id = JsonId::Int(number as i64);
            let needs = Needs::Lists(&[Kind::Tools]);
            Gathered::new(ClientId(1), Way::Line, id, Method::ToolsList, message.clone(), needs)
        };
        for number in 0..GATHERED {
            assert!(merged.has_room());
            merged.gather(&mut timers, waits(number), Mono::default());
        }
        assert!(!merged.has_room());
        merged.take(&mut timers, GatherNo(1)).unwrap();
        assert!(merged.has_room());
    }

    #[test]
    fn the_oldest_of_too_many_merged_lists_is_made_again() {
        let (mut merged, mut made) = (Merged::default(), Vec::new());
        let mut see = |number: u64| {
            let (exposure, expose) = (Arc::default(), Default::default());
            let part = PartKey { definition: DefinitionId(0), digest: number, expose, exposure };
            let key = ViewKey { kind: Kind::Tools, reserved: Vec::new(), parts: vec![part] };
            if merged.view(&key).is_none() {
                made.push(number);
                merged.keep_view(key, Arc::new(View::new(Kind::Tools, "__", &[], &[])));
            }
        };
        (0..=VIEWS as u64).for_each(&mut see);
        (1..=VIEWS as u64).for_each(&mut see);
        see(0);
        let each = (0..=VIEWS as u64).chain([0]);
        assert_eq!(made, each.collect::<Vec<_>>());
    }
}
