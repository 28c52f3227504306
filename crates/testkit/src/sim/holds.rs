//! Calls that wait for a person, and the persons, who say yes, no, for a while, late or never, at the command line or in
//! the client. Beside the other calls of a world; whatever befalls those befalls these.
//!
//! The judge sees what the client, the server and the store see, and nothing of the engine:
//!
//! - no call is sent before its yes, none after its no, none twice, none that its client has given up;
//! - a yes for one call is used once, and a yes for a while not longer;
//! - a call that was decided in time does not fail for want of a word, and no other fails earlier than it may;
//! - no question stays whose call is over.

use super::process::member;
use super::rng::Rng;
use crate::ledger::Ledger;
use bytes::Bytes;
use outlast_engine::Config;
use outlast_engine::hold::{A_WHILE, Decision, NewHold, SESSION, Scope, Standing, Verdict};
use outlast_engine::settings::{Key, setting, show_duration};
use outlast_engine::store::{Done, Stored, Write};
use outlast_engine::wire::{Field, Message, Scanned, Shape, scan};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the store, the look at it and the last word take together.
const SLACK: Duration = Duration::from_secs(4);

/// When a client that nothing keeps patient is assumed to give up.
const IMPATIENT: Duration = Duration::from_secs(50);

/// What persons and their client do.
#[derive(Debug)]
pub(super) enum Deed {
    Calls,
    Cancels(String),
    /// Somebody decides a hold: the first time, or again.
    Decides(u64, bool),
    /// The client answers what it was asked.
    Answers(String),
}

#[derive(Debug, Default)]
struct Call {
    arguments: String,
    began: Duration,
    patience: Duration,
    sent: bool,
    /// Its client was away for a while, and hears late what was said meanwhile.
    lost: bool,
    over: Option<Duration>,
}

#[derive(Debug)]
struct Question {
    about: NewHold,
    said: Option<Decision>,
    /// When that was, as the world counts.
    at: Duration,
    used: bool,
}

#[derive(Debug)]
pub(super) struct Persons {
    rng: Rng,
    left: usize,
    next: usize,
    limit: Duration,
    /// They answer in the client.
    elicits: bool,
    /// What is to be stored may be lost, and with it that a call is over.
    pub(super) store_fails: bool,
    calls: BTreeMap<String, Call>,
    questions: BTreeMap<u64, Question>,
    /// How often a person's word lets a call with these arguments be sent.
    words: BTreeMap<String, u32>,
    pub(super) plans: Vec<(Duration, Deed)>,
}

impl Persons {
    /// Drawn apart, so that the worlds without them stay what they were.
    pub(super) fn new(config: &mut Config, seed: u64) -> Persons {
        let mut rng = Rng::new(seed ^ 0x0048_01d5);
        let limit = rng.millis(500, 70_000);
        let rule = format!("hold*=hold:true,hold-timeout:{},max:10m", show_duration(limit));
        config.rules_mut().add(Key::Tool, &rule, "--tool").expect("a rule");
        let elicits = rng.chance(50);
        let asks =
            setting(Key::HoldAskClient).parse(if elicits { "true" } else { "false" }).expect("a value");
        config.rules_mut().bare(Key::HoldAskClient, asks, "--hold-ask-client");
        Persons {
            left: rng.between(1, 20) as usize,
            rng,
            next: 0,
            limit,
            elicits,
            store_fails: false,
            calls: BTreeMap::new(),
            questions: BTreeMap::new(),
            words: BTreeMap::new(),
            plans: vec![(Duration::from_millis(10), Deed::Calls)],
        }
    }

    pub(super) fn elicits(&self) -> bool {
        self.elicits
    }

    // The client.

    /// The next call, as the client writes it; now and then the same as one before.
    pub(super) fn call(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let pause = self.rng.millis(0, 9_000);
        self.plans.push((pause, Deed::Calls));
        let (number, mark) = (self.next, format!("held{}", self.next));
        self.next += 1;
        let same = if self.rng.chance(30) { self.rng.below(number + 1) } else { number };
        let token = self.rng.chance(70);
        let meta = if token { format!(r#""_meta":{{"progressToken":"{mark}"}},"#) } else { String::new() };
        let arguments = format!(r#"{{"of":"{same}"}}"#);
        let patience = if token { self.limit } else { self.limit.min(IMPATIENT) };
        let call = Call { arguments: arguments.clone(), patience, ..Call::default() };
        self.calls.insert(mark.clone(), call);
        if self.rng.chance(15) {
            let after = self.rng.millis(0, 20_000);
            self.plans.push((after, Deed::Cancels(mark.clone())));
        }
        let tool = self.rng.below(2);
        Some(format!(
            r#"{{"jsonrpc":"2.0","id":"{mark}","method":"tools/call","params":{{{meta}"name":"hold{tool}","arguments":{arguments},"held":"{mark}"}}}}"#
        ))
    }

    pub(super) fn cancel(mark: &str) -> String {
        format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":"{mark}"}}}}"#)
    }

    /// The stream of a call is lost; its client will come back.
    pub(super) fn loses(&mut self, mark: &str) {
        if let Some(call) = self.calls.get_mut(mark) {
            call.lost = true;
        }
    }

    /// A line of the client arrives.
    pub(super) fn client_sends(&mut self, now: Duration, line: &str) {
        if let Some(call) = self.calls.get_mut(&member(line.as_bytes(), "held")) {
            call.began = now;
        }
        if let Some(call) = self.calls.get_mut(&member(line.as_bytes(), "requestId")) {
            call.over.get_or_insert(now);
        }
    }

    /// The client reads something. False if it is not about a held call.
    pub(super) fn hears(&mut self, now: Duration, line: &Bytes) -> bool {
        let Ok(Scanned::Message(message)) = scan(line.clone()) else { return false };
        let text = |field| message.text(field).unwrap_or_default().into_owned();
        match message.shape {
            Shape::Notification => self.calls.contains_key(&text(Field::ParamsProgressToken)),
            Shape::Request if memchr::memmem::find(line, b"`hold").is_some() => {
                self.client_is_asked(&message);
                true
            }
            Shape::Request => false,
            Shape::Answer => self.is_answered(now, &text(Field::Id), line),
        }
    }

    fn client_is_asked(&mut self, message: &Message) {
        let id = message.raw(Field::Id).map(String::from_utf8_lossy).unwrap_or_default();
        let word = match self.rng.below(6) {
            0 | 1 => r#"{"action":"accept","content":{"for":"this call"}}"#,
            2 => r#"{"action":"accept","content":{"for":"10 minutes","reason":"fine"}}"#,
            3 => r#"{"action":"decline"}"#,
            4 => r#"{"action":"cancel"}"#,
            _ => return,
        };
        let after = self.rng.millis(0, 30_000);
        self.plans.push((after, Deed::Answers(format!(r#"{{"id":{id},"result":{word}}}"#))));
    }

    fn is_answered(&mut self, now: Duration, id: &str, line: &Bytes) -> bool {
        let Some(call) = self.calls.get_mut(id) else { return false };
        assert!(call.over.is_none(), "{id} was answered after its end");
        call.over = Some(now);
        let call = &self.calls[id];
        let says = |words: &str| memchr::memmem::find(line, words.as_bytes()).is_some();
        let decided = |yes: bool| {
            let about = |question: &&Question| *question.about.key == *call.arguments;
            self.questions
                .values()
                .filter(about)
                .filter_map(|question| question.said.as_ref())
                .any(|said| said.verdict.yes == yes)
        };
        if says("was not run") {
            assert!(!call.sent && decided(false), "{id} was declined by nobody");
        } else if says(r#""kind":"hold-timeout""#) {
            self.may_time_out(now, id, call);
        } else if !says(r#""error""#) {
            assert!(call.sent, "{id} was answered by nobody");
        }
        true
    }

    fn may_time_out(&self, now: Duration, id: &str, call: &Call) {
        let waited = now - call.began;
        assert!(
            waited >= call.patience && (call.lost || waited <= call.patience + SLACK),
            "{id} was given up after {waited:?}"
        );
        let newest = self.questions.values().rev().find(|question| *question.about.key == *call.arguments);
        // Its number is shared with other calls only where the arguments are.
        let alone = self.calls.values().filter(|other| other.arguments == call.arguments).count() == 1;
        let decided = newest
            .filter(|_| alone && !call.lost)
            .is_some_and(|question| question.said.is_some() && question.at + SLACK < now);
        assert!(!decided, "{id} was decided, and failed for want of a word");
    }

    // The server.

    /// A request leaves for the server.
    pub(super) fn sent(&mut self, line: &[u8]) {
        let mark = member(line, "held");
        let Some(call) = self.calls.get_mut(&mark) else { return };
        assert!(!call.sent, "{mark} was sent twice");
        assert!(call.over.is_none(), "{mark} was sent after its end");
        call.sent = true;
        let words = self.words.entry(call.arguments.clone()).or_default();
        assert!(*words > 0, "{mark} was sent without a yes");
        *words -= 1;
    }

    // The store.

    pub(super) fn committed(&mut self, now: Duration, writes: &[Write], stored: &Stored) {
        let Ok(committed) = stored else { return };
        for (write, done) in writes.iter().zip(&committed.done) {
            match (write, done) {
                (Write::Hold(new), Done::Held(Standing::Asked(number))) => self.is_asked(now, *number, new),
                (Write::Hold(new), Done::Held(Standing::Granted(number))) => {
                    self.is_granted(now, *number, new)
                }
                (Write::Decide { hold, .. }, Done::Decided(Some(stands))) => self.decided(now, *hold, stands),
                (Write::AskAfter { hold, .. }, Done::Decided(Some(word))) => self.is_fetched(*hold, word),
                _ => {}
            }
        }
    }

    fn is_asked(&mut self, now: Duration, number: u64, new: &NewHold) {
        let question = Question { about: new.clone(), said: None, at: now, used: false };
        self.questions.entry(number).or_insert(question);
        if self.rng.chance(75) {
            let after = self.rng.millis(0, self.limit.as_millis() as u64 * 5 / 4);
            self.plans.push((after, Deed::Decides(number, false)));
        }
    }

    /// The first word stands; only a yes for a while can be taken back.
    fn decided(&mut self, now: Duration, number: u64, stands: &Decision) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        let lasts = |said: &Decision| said.verdict.yes && said.verdict.scope != Scope::Once;
        let first = question.said.as_ref().filter(|said| !lasts(said));
        assert!(first.is_none_or(|said| said == stands), "the first word about {number} did not count");
        if question.said.as_ref() != Some(stands) {
            (question.said, question.at) = (Some(stands.clone()), now);
        }
    }

    fn is_fetched(&mut self, number: u64, word: &Decision) {
        let question = self.questions.get_mut(&number).expect("a question");
        assert_eq!(question.said.as_ref(), Some(word), "nobody has said that about {number}");
        assert!(!std::mem::replace(&mut question.used, true), "the word about {number} was used twice");
        *self.words.entry(question.about.key.to_string()).or_default() += u32::from(word.verdict.yes);
    }

    fn is_granted(&mut self, now: Duration, number: u64, new: &NewHold) {
        let question = self.questions.get_mut(&number).expect("a question");
        let said = question.said.as_ref().expect("a word");
        let fits = match said.verdict.scope {
            Scope::Once => question.about.key == new.key && !question.used,
            Scope::Session => question.about.session == new.session && now < question.at + SESSION,
            Scope::Minutes => now < question.at + A_WHILE + SLACK,
        };
        assert!(said.verdict.yes && question.about.tool == new.tool && fits, "{number} allows no {new:?}");
        // A yes for a while can be used by another call before the call that was asked about has heard of it.
        question.used |= said.verdict.scope == Scope::Once;
        *self.words.entry(new.key.to_string()).or_default() += 1;
    }

    /// What somebody says of a hold, if he is still asked.
    pub(super) fn decides(
        &mut self,
        now: Duration,
        ledger: &Ledger,
        number: u64,
        again: bool,
    ) -> Option<Write> {
        let hold = ledger.hold(number)?;
        self.is_still_needed(now, number, hold.decision.is_none() && !hold.used && !hold.owner.is_empty());
        let yes = !again && self.rng.chance(70);
        let (_, scope) = Scope::ALL[if self.rng.chance(70) { 0 } else { self.rng.below(3) }];
        if yes && scope != Scope::Once && self.rng.chance(50) {
            let after = self.rng.millis(0, 30_000);
            self.plans.push((after, Deed::Decides(number, true)));
        }
        let verdict =
            Verdict { yes, scope, reason: "".into(), place: "command line".into(), by: "ann".into() };
        Some(Write::Decide { hold: number, verdict: verdict.into() })
    }

    /// Nobody is asked about a call that is over.
    fn is_still_needed(&self, now: Duration, number: u64, asked: bool) {
        let Some(question) = self.questions.get(&number).filter(|_| asked) else { return };
        let waits = |call: &Call| {
            *call.arguments == *question.about.key && call.over.is_none_or(|over| now < over + SLACK)
        };
        assert!(
            self.store_fails || self.calls.values().any(waits),
            "{number} is still asked, and its call is over"
        );
    }

    /// The world is at its end, and everything is stored.
    pub(super) fn is_over(&self, known: &[u64], ledger: &Ledger, left: bool) {
        for hold in known.iter().filter_map(|number| ledger.hold(*number)) {
            let asked = hold.decision.is_none() && !hold.used && !hold.owner.is_empty();
            assert!(!asked, "a question stayed although its client has left: {hold:?}");
        }
        let open = self.calls.iter().find(|(_, call)| call.over.is_none() && !call.began.is_zero());
        assert!(left || open.is_none(), "{open:?} was never answered");
    }
}
