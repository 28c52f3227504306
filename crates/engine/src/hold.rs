//! Calls that wait for a person's yes: what is stored of such a wait, and what a person's word is good for.
//!
//! A *hold* is one question to a person: may this call be sent? It is stored when a call begins to wait, so that any
//! outlast process of the user can show it and decide it, and so that the answer outlives the process that asked. The
//! first word counts. A yes is good for one call, or for a while ([`Scope`]); a yes for one call is used up by the
//! process whose call is sent, in one write, so that no call is sent twice on one yes.
//!
//! Stores differ in where they put a hold, never in what it allows: the methods of [`Hold`] decide for all of them.
//! Not here: which calls are held and what their clients hear (`engine/holding.rs`).

use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a yes for a session is good at most.
pub const SESSION: Duration = Duration::from_secs(24 * 3600);

/// How long a yes "for 10 minutes" is good.
pub const A_WHILE: Duration = Duration::from_secs(600);

/// What a yes is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// This call.
    Once,
    /// Every call of this tool in the session of the client that asked, for [`SESSION`] at most.
    Session,
    /// Every call of this tool by this principal, for [`A_WHILE`].
    Minutes,
}

impl Scope {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Scope); 3] =
        [("once", Scope::Once), ("session", Scope::Session), ("minutes", Scope::Minutes)];

    /// The scope that is called so: by its name, in words, or as the time that it is good for.
    pub fn named(name: &str) -> Option<Scope> {
        let fits = |known: &str, scope: Scope| {
            known == name || scope.words() == name || (scope == Scope::Minutes && name == "10m")
        };
        Scope::ALL.iter().find(|(known, scope)| fits(known, *scope)).map(|(_, scope)| *scope)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Scope::Once => "this call",
            Scope::Session => "this session",
            Scope::Minutes => "10 minutes",
        }
    }

    fn lasts(self) -> Duration {
        match self {
            Scope::Once => Duration::ZERO,
            Scope::Session => SESSION,
            Scope::Minutes => A_WHILE,
        }
    }
}

/// A call that is to wait for a yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewHold {
    /// The same for the same call: principal, server, tool, arguments.
    pub key: Box<str>,
    /// Whose call it is.
    pub principal: Box<str>,
    /// The server's identity.
    pub server: Box<str>,
    /// What people call the server.
    pub name: Box<str>,
    /// The tool.
    pub tool: Box<str>,
    /// The arguments as a person may see them: redacted and cut.
    pub arguments: Box<str>,
    /// What the client calls itself.
    pub client: Box<str>,
    /// The session of the client; empty if it has none.
    pub session: Box<str>,
    /// How long the question stays open.
    pub keep: Duration,
}

/// What a person says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The call may be sent.
    pub yes: bool,
    /// What that is good for.
    pub scope: Scope,
    /// Why, for whoever asked; may be empty.
    pub reason: Box<str>,
    /// Where it was said: `command line`, `top`, `dashboard`, `client`, `link`.
    pub place: Box<str>,
    /// By whom, as far as that is known.
    pub by: Box<str>,
}

/// A verdict, and when it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was said.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// When, on the store's clock.
    pub at: Wall,
}

/// One stored question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// For people and programs: `outlast holds approve 12`.
    pub number: u64,
    /// What it is about.
    pub about: NewHold,
    /// The process whose call waits; empty if nobody waits any more.
    pub owner: Box<str>,
    /// When it was asked.
    pub asked: Wall,
    /// When the question closes.
    pub until: Wall,
    /// What a person said.
    pub decision: Option<Decision>,
    /// The yes for one call has been used, or the no has been told.
    pub used: bool,
}

/// What becomes of a call that is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// A person has said yes already.
    Granted(u64),
    /// A person is asked, under this number.
    Asked(u64),
}

/// What becomes of a question whose call is about to stop waiting, if nobody has decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It goes on to wait.
    Waits,
    /// It stays open for so long, although nobody waits: the same call passes if somebody says yes.
    Open(Duration),
    /// It is gone.
    Gone,
}

impl Hold {
    /// A new question.
    pub fn new(number: u64, about: NewHold, owner: &str, now: Wall) -> Hold {
        let until = now.after(about.keep);
        Hold { number, about, owner: owner.into(), asked: now, until, decision: None, used: false }
    }

    fn is_about_the_tool_of(&self, new: &NewHold) -> bool {
        (&self.about.principal, &self.about.server, &self.about.tool)
            == (&new.principal, &new.server, &new.tool)
    }

    /// A yes that is good for more than one call, and has not run out.
    pub fn grants(&self, now: Wall) -> Option<Scope> {
        let decision = self.decision.as_ref().filter(|decision| decision.verdict.yes)?;
        let scope = decision.verdict.scope;
        (scope != Scope::Once && decision.at.after(scope.lasts()) > now).then_some(scope)
    }

    /// What this hold means for a call that is to be held now. `lives` says whether its owner still waits. A yes for
    /// one call is used up by this; a question that nobody waits for is asked on for the new call.
    pub fn meets(&mut self, new: &NewHold, owner: &str, now: Wall, lives: bool) -> Option<Standing> {
        if !self.is_about_the_tool_of(new) {
            return None;
        }
        let same_session = !new.session.is_empty() && self.about.session == new.session;
        if let Some(scope) = self.grants(now) {
            let granted = scope == Scope::Minutes || same_session;
            return granted.then_some(Standing::Granted(self.number));
        }
        let waited_for = !self.owner.is_empty() && lives;
        if self.about.key != new.key || waited_for || self.used || self.until <= now {
            return None;
        }
        match &self.decision {
            Some(decision) if decision.verdict.yes => {
                self.used = true;
                self.until = now;
                Some(Standing::Granted(self.number))
            }
            Some(_) => None,
            None => {
                self.owner = owner.into();
                self.until = self.until.max(now.after(new.keep));
                self.about.client.clone_from(&new.client);
                self.about.session.clone_from(&new.session);
                Some(Standing::Asked(self.number))
            }
        }
    }

    /// A person says something. Whether that is new: the first word stands, but a yes that is good for a while can be
    /// taken back.
    pub fn decide(&mut self, verdict: &Verdict, now: Wall) -> bool {
        let taken_back = self.grants(now).is_some() && !verdict.yes;
        if !taken_back && (self.decision.is_some() || self.until <= now) {
            return false;
        }
        self.decision = Some(Decision { verdict: verdict.clone(), at: now });
        true
    }

    /// The process whose call waits asks what was said. What was said is used by that; what is still open becomes
    /// what `leave` says. `None` if nothing was said, or if the call is somebody else's by now.
    pub fn ask_after(&mut self, owner: &str, leave: Leave, now: Wall) -> Option<Decision> {
        if *self.owner != *owner {
            return None;
        }
        if let Some(decision) = self.decision.clone().filter(|_| !self.used) {
            self.owner = "".into();
            self.used = true;
            self.until = now;
            return Some(decision);
        }
        match leave {
            Leave::Waits => {}
            Leave::Open(keep) => (self.owner, self.until) = ("".into(), now.after(keep)),
            Leave::Gone => (self.owner, self.until, self.used) = ("".into(), now, true),
        }
        None
    }

    /// Nobody needs it any more: it is neither open nor good for anything.
    pub fn is_over(&self, now: Wall) -> bool {
        self.until <= now && self.grants(now).is_none()
    }

    /// Whether a person is asked.
    pub fn is_open(&self, now: Wall) -> bool {
        self.decision.is_none() && !self.used && self.until > now
    }
}

/// One line of the audit log: who said what about which call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the hold.
    pub hold: u64,
    /// Whose call it was.
    pub principal: Box<str>,
    /// What people call the server.
    pub server: Box<str>,
    /// The tool.
    pub tool: Box<str>,
    /// The arguments as they were shown.
    pub arguments: Box<str>,
    /// What the client calls itself.
    pub client: Box<str>,
    /// What was said, where and by whom, and when.
    #[serde(flatten)]
    pub decision: Decision,
}

impl Entry {
    /// What is noted of a decision.
    pub fn of(hold: &Hold) -> Option<Entry> {
        let NewHold { principal, name, tool, arguments, client, .. } = hold.about.clone();
        let decision = hold.decision.clone()?;
        Some(Entry { hold: hold.number, principal, server: name, tool, arguments, client, decision })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: u64 = 60_000;

    fn new(key: &str, session: &str) -> NewHold {
        NewHold {
            key: key.into(),
            principal: "stdio".into(),
            server: "s".into(),
            name: "files".into(),
            tool: "delete".into(),
            arguments: "{}".into(),
            client: "c".into(),
            session: session.into(),
            keep: Duration::from_secs(120),
        }
    }

    fn hold() -> Hold {
        Hold::new(1, new("k", "a"), "me", Wall(0))
    }

    fn verdict(yes: bool, scope: Scope) -> Verdict {
        Verdict { yes, scope, reason: "".into(), place: "command line".into(), by: "ann".into() }
    }

    #[test]
    fn the_first_word_stands() {
        let mut hold = hold();
        assert!(hold.decide(&verdict(false, Scope::Once), Wall(1)));
        assert!(!hold.decide(&verdict(true, Scope::Once), Wall(2)));
        assert!(!hold.ask_after("me", Leave::Waits, Wall(3)).unwrap().verdict.yes);
    }

    #[test]
    fn a_yes_for_one_call_is_used_once_and_only_by_its_owner() {
        let mut hold = hold();
        hold.decide(&verdict(true, Scope::Once), Wall(1));
        assert_eq!(hold.ask_after("you", Leave::Waits, Wall(2)), None);
        assert_eq!(hold.meets(&new("k", "a"), "you", Wall(2), true), None, "its owner waits");
        assert!(hold.ask_after("me", Leave::Waits, Wall(2)).is_some());
        assert_eq!(hold.ask_after("me", Leave::Waits, Wall(3)), None);
        assert_eq!(hold.meets(&new("k", "a"), "me", Wall(3), false), None);
        assert!(hold.is_over(Wall(3)));
    }

    #[test]
    fn a_yes_after_the_client_left_lets_the_same_call_pass_once() {
        let mut hold = hold();
        assert_eq!(hold.ask_after("me", Leave::Open(Duration::from_secs(600)), Wall(50_000)), None);
        assert!(hold.is_open(Wall(9 * MIN)), "the question stays open");
        hold.decide(&verdict(true, Scope::Once), Wall(9 * MIN));
        assert_eq!(hold.meets(&new("other", "a"), "me", Wall(9 * MIN), false), None, "other arguments");
        let standing = hold.meets(&new("k", "b"), "me", Wall(9 * MIN), false);
        assert_eq!(standing, Some(Standing::Granted(1)));
        assert_eq!(hold.meets(&new("k", "b"), "me", Wall(9 * MIN), false), None);
    }

    #[test]
    fn a_question_of_a_process_that_ended_is_asked_on() {
        let mut hold = hold();
        assert_eq!(hold.meets(&new("k", "b"), "you", Wall(1), true), None);
        assert_eq!(hold.meets(&new("k", "b"), "you", Wall(1), false), Some(Standing::Asked(1)));
        assert_eq!((&*hold.owner, &*hold.about.session), ("you", "b"));
        assert_eq!(hold.meets(&new("k", "b"), "you", Wall(3 * MIN), false), None, "it has closed");
    }

    #[test]
    fn a_yes_for_a_session_or_a_while_is_good_for_other_arguments() {
        let mut hold = hold();
        hold.decide(&verdict(true, Scope::Session), Wall(1));
        hold.ask_after("me", Leave::Waits, Wall(2));
        assert_eq!(hold.meets(&new("x", "a"), "me", Wall(3), true), Some(Standing::Granted(1)));
        assert_eq!(hold.meets(&new("x", "b"), "me", Wall(3), true), None, "another session");
        assert_eq!(hold.meets(&new("x", ""), "me", Wall(3), true), None, "no session");
        let mut hold = self::hold();
        hold.decide(&verdict(true, Scope::Minutes), Wall(0));
        assert_eq!(hold.meets(&new("x", "b"), "me", Wall(10 * MIN - 1), true), Some(Standing::Granted(1)));
        assert!(!hold.is_over(Wall(10 * MIN - 1)) && hold.is_over(Wall(10 * MIN)));
    }

    #[test]
    fn a_yes_for_a_while_can_be_taken_back() {
        let mut hold = hold();
        hold.decide(&verdict(true, Scope::Minutes), Wall(0));
        hold.ask_after("me", Leave::Waits, Wall(1));
        assert!(hold.decide(&verdict(false, Scope::Once), Wall(2)));
        assert_eq!(hold.meets(&new("k", "a"), "me", Wall(3), true), None);
        assert!(hold.is_over(Wall(3)));
    }
}
