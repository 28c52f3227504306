//! What there is to see, and how two states differ.

use super::Dashboard;
use super::sight::{Everything, Sight};
use crate::observe::feed;
use crate::observe::state::{State, Tool};
use crate::tasks::shelf::{Owners, short_names};
use crate::{clock, holds, tasks};
use outlast_engine::Wall;
use outlast_engine::durations::Durations;
use outlast_engine::hold::Hold;
use outlast_engine::record::Head;
use outlast_engine::store::{Found, Query};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of one text that are shown. More: cut, and a sign says so.
const TEXT: usize = 4200;

/// Tasks that are shown: the newest.
const TASKS: usize = 500;

/// Tools that are shown: those with the most calls.
const TOOLS: usize = 1000;

/// The principal of clients on standard streams.
const STDIO: &str = "stdio";

/// How the principal begins of a client that has no token.
const SESSION: &str = "session:";

/// How much of it is shown.
const SHORT_SESSION: usize = SESSION.len() + 8;

/// Rows by their keys.
type Rows = BTreeMap<Box<str>, Value>;

/// All that there is to see, for somebody who sees everything.
#[derive(Debug, Default, PartialEq)]
pub struct View {
    now: u64,
    calls: Rows,
    tools: Rows,
    ended: Rows,
    servers: Vec<Value>,
    holds: Vec<Value>,
    tasks: Vec<Value>,
    /// Calls that are not shown.
    more: u64,
    /// What a person should know, such as a store that cannot be read.
    notes: Vec<String>,
}

impl Dashboard {
    /// Looks at everything.
    pub(super) async fn gather(&self) -> View {
        let now = clock::wall();
        let mut view = View { now: now.0, ..View::default() };
        match self.calls().await {
            Ok(state) => view.take(&state),
            Err(why) => view.notes.push(why),
        }
        match self.holds().await {
            Ok(holds) => view.holds = holds.iter().map(|hold| hold_row(hold, now)).collect(),
            Err(why) => view.notes.push(why),
        }
        match self.heads().await {
            Ok(heads) => view.tasks = task_rows(&heads, now),
            Err(why) => view.notes.push(why),
        }
        view.notes.dedup();
        view
    }

    /// Calls, servers and tools: those of this process, or what all processes of this user show.
    pub(super) async fn calls(&self) -> Result<State, String> {
        if self.everything == Everything::Served {
            return Ok(self.driver.snapshot().unwrap_or_default());
        }
        let now = clock::wall().0;
        let mut state = match self.driver.look_up(Query::Shown).await.map_err(|why| why.to_string())? {
            Found::Shown(all) => State::together(now, &all),
            _ => State::default(),
        };
        if let Found::Measured(all) =
            self.driver.look_up(Query::Measured).await.map_err(|why| why.to_string())?
        {
            let mut durations = Durations::default();
            all.iter().for_each(|one| durations.join(&one.server, &one.tool, &one.tally));
            state.tools = feed::tools(&durations, |server, tool| state.limits_of(server, tool));
        }
        Ok(state)
    }

    /// Questions that are open, and approvals that are still in force.
    pub(super) async fn holds(&self) -> Result<Vec<Hold>, String> {
        match self.driver.look_up(Query::Holds).await.map_err(|why| why.to_string())? {
            Found::Holds(mut holds) => {
                holds.retain(|hold| self.is_ours(&hold.about.server, &hold.about.principal));
                Ok(holds)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The newest tasks.
    pub(super) async fn heads(&self) -> Result<Vec<Head>, String> {
        let query = Query::Heads { principal: None, server: None, before: None, limit: TASKS };
        match self.driver.look_up(query).await.map_err(|why| why.to_string())? {
            Found::Heads(mut heads) => {
                heads.retain(|head| self.is_ours(&head.origin.server, &head.origin.principal));
                heads.sort_by_key(|head| (!head.state.is_open(), std::cmp::Reverse(head.number)));
                Ok(heads)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The store is this user's; whoever comes to `serve` sees of it what came to `serve`.
    fn is_ours(&self, server: &str, principal: &str) -> bool {
        match self.everything {
            Everything::OfThisUser => true,
            Everything::Served => principal != STDIO && self.driver.serves(server),
        }
    }
}

/// What is shown does not change as time passes: the page counts itself.
fn hold_row(hold: &Hold, now: Wall) -> Value {
    let mut row = holds::as_json(hold, now);
    without(&mut row, "waitedMs");
    tidy(&mut row);
    row
}

fn task_rows(heads: &[Head], now: Wall) -> Vec<Value> {
    let owners = Owners::default();
    let row = |(head, name): (&Head, String)| {
        let mut row = tasks::as_json(head, &owners.of(head), now);
        without(&mut row, "ageMs");
        // Whoever knows a whole ticket can fetch its answer; to tell two tasks apart, less is enough.
        row["ticket"] = name.into();
        tidy(&mut row);
        row
    };
    heads.iter().zip(short_names(heads)).map(row).collect()
}

/// A row as it is shown.
fn row(one: &impl Serialize) -> Value {
    let mut row = serde_json::to_value(one).unwrap_or_default();
    tidy(&mut row);
    row
}

fn without(row: &mut Value, name: &str) {
    if let Some(members) = row.as_object_mut() {
        members.remove(name);
    }
}

/// Cuts what is long, and what would be good for more than to tell one from the other: whoever knows the id of a
/// session can speak in it.
fn tidy(row: &mut Value) {
    cut(row);
    let named =
        row["principal"].as_str().filter(|name| name.starts_with(SESSION) && name.len() > SHORT_SESSION);
    if let Some(name) = named {
        row["principal"] = format!("{}…", &name[..name.floor_char_boundary(SHORT_SESSION)]).into();
    }
}

/// The same for what is not in a list.
pub fn shown(mut value: Value) -> Value {
    cut(&mut value);
    value
}

/// Cuts every text.
fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT => {
            text.truncate(text.floor_char_boundary(TEXT));
            text.push('…');
        }
        Value::Array(all) => all.iter_mut().for_each(cut),
        Value::Object(all) => all.values_mut().for_each(cut),
        _ => {}
    }
}

impl View {
    fn take(&mut self, state: &State) {
        self.more = state.more;
        self.calls = state.calls.iter().map(|call| (call.id.as_str().into(), row(call))).collect();
        self.ended = state.ended.iter().map(|call| (call.id.as_str().into(), row(call))).collect();
        let tool_key = |server: &str, tool: &str| [server, "\n", tool].concat().into();
        let mut tools: Vec<&Tool> = state.tools.iter().collect();
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
        tools.truncate(TOOLS);
        self.tools = tools.into_iter().map(|tool| (tool_key(&tool.server, &tool.tool), row(tool))).collect();
        self.servers = state.servers.iter().map(row).collect();
    }

    /// All of it, as this visitor sees it.
    pub fn whole(&self, sight: &Sight) -> Value {
        json!({
            "version": 1,
            "now": self.now,
            "more": if sight.sees_all() { self.more } else { 0 },
            "notes": self.notes,
            "rights": sight.shown(),
            "views": views(sight),
            "calls": of(sight, self.calls.values()),
            "ended": of(sight, self.ended.values()),
            "holds": of(sight, &self.holds),
            "tasks": of(sight, &self.tasks),
            "servers": self.servers_for(sight),
            "tools": if sight.sees_all() { self.tools.values().collect() } else { Vec::new() },
        })
    }

    /// What is another than in `before`; `None` if nothing is.
    pub fn change(&self, before: &View, sight: &Sight) -> Option<Value> {
        let mut change = Map::new();
        let mut put = |name: &str, rows: Vec<&Value>| {
            if !rows.is_empty() {
                change.insert(name.into(), rows.into_iter().cloned().collect());
            }
        };
        put("calls", of(sight, news(&before.calls, &self.calls)));
        put("ended", of(sight, news(&before.ended, &self.ended)));
        if sight.sees_all() {
            put("tools", news(&before.tools, &self.tools).collect());
        }
        let gone: Vec<&str> = before
            .calls
            .iter()
            .filter(|(id, row)| sight.sees(&row["principal"]) && !self.calls.contains_key(*id))
            .map(|(id, _)| &**id)
            .collect();
        let mut list = |name: &str, now: Value, then: Value| {
            if now != then {
                change.insert(name.into(), now);
            }
        };
        list("gone", json!(gone), json!([]));
        list("holds", json!(of(sight, &self.holds)), json!(of(sight, &before.holds)));
        list("tasks", json!(of(sight, &self.tasks)), json!(of(sight, &before.tasks)));
        list("servers", json!(self.servers_for(sight)), json!(before.servers_for(sight)));
        list("notes", json!(self.notes), json!(before.notes));
        if sight.sees_all() {
            list("more", json!(self.more), json!(before.more));
        }
        if change.is_empty() {
            return None;
        }
        change.insert("now".into(), self.now.into());
        Some(change.into())
    }

    /// A server belongs to nobody, and what it wrote to stderr may be about anybody.
    fn servers_for(&self, sight: &Sight) -> &[Value] {
        if sight.sees_all() { &self.servers } else { &[] }
    }
}

/// What belongs to nobody is for those who see everything.
fn views(sight: &Sight) -> &'static [&'static str] {
    let all = &["now", "waiting", "tasks", "servers", "tools"];
    if sight.sees_all() { all } else { &all[..3] }
}

/// The rows that a visitor sees.
fn of<'a>(sight: &Sight, rows: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
    rows.into_iter().filter(|row| sight.sees(&row["principal"])).collect()
}

/// Rows that are new, or others than before. How much is left of a limit is no change: the page counts itself.
fn news<'a>(before: &'a Rows, now: &'a Rows) -> impl Iterator<Item = &'a Value> {
    let same = |one: &Value, other: &Value| match (one.as_object(), other.as_object()) {
        (Some(one), Some(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| name == "timeoutLeftMs" || other.get(name) == Some(value))
        }
        _ => one == other,
    };
    now.iter().filter(move |(id, row)| !before.get(*id).is_some_and(|old| same(old, row))).map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::super::sight::Reach;
    use super::*;

    fn sight(name: Option<&str>) -> Sight {
        let reach = if name.is_some() { Reach::Own } else { Reach::All };
        Sight { principal: name.map(Box::from), reach }
    }

    fn call(id: &str, principal: &str, state: &str, left: u64) -> (Box<str>, Value) {
        (id.into(), json!({"id": id, "principal": principal, "state": state, "timeoutLeftMs": left}))
    }

    fn view(now: u64, calls: impl IntoIterator<Item = (Box<str>, Value)>) -> View {
        View { now, calls: calls.into_iter().collect(), ..View::default() }
    }

    #[test]
    fn only_what_changed_is_told() {
        let before = view(1, [call("p.1", "ana", "running", 9), call("p.2", "bob", "running", 9)]);
        let now = view(2, [call("p.1", "ana", "held", 9), call("p.3", "bob", "running", 9)]);
        let change = now.change(&before, &sight(None)).unwrap();
        let ids =
            |rows: &Value| rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&change["calls"]), ["p.1", "p.3"]);
        assert_eq!((&change["gone"], &change["now"]), (&json!(["p.2"]), &json!(2)));
        assert_eq!(change.get("holds"), None);
    }

    #[test]
    fn nobody_hears_of_the_calls_of_others() {
        let before = view(1, [call("p.1", "ana", "running", 9), call("p.2", "bob", "running", 9)]);
        let now = view(2, [call("p.1", "ana", "running", 9)]);
        assert_eq!(now.change(&before, &sight(Some("ana"))), None);
        let whole = before.whole(&sight(Some("ana")));
        assert_eq!(whole["calls"].as_array().unwrap().len(), 1);
        assert_eq!(whole["rights"]["sees"], "own");
    }

    #[test]
    fn time_that_passes_is_no_change() {
        let before = view(1, [call("p.1", "ana", "running", 9000)]);
        assert_eq!(view(2, [call("p.1", "ana", "running", 8000)]).change(&before, &sight(None)), None);
        assert!(view(2, [call("p.1", "ana", "queued", 9000)]).change(&before, &sight(None)).is_some());
    }

    #[test]
    fn nobody_can_speak_in_a_session_that_is_shown() {
        let mut row = json!({"principal": "session:baffea47ecab6458cb42df13e27bc502"});
        tidy(&mut row);
        assert_eq!(row["principal"], "session:baffea47…");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut row = json!({"tool": "é".repeat(50_000), "args": [{"text": "short"}]});
        cut(&mut row);
        let tool = row["tool"].as_str().unwrap();
        assert!(tool.len() <= TEXT + 3 && tool.ends_with("é…"));
        assert_eq!(row["args"][0]["text"], "short");
    }
}
