//! Which limits apply to a call: layers of rules, resolved once when the call starts.
//!
//! Nearest wins: built-in < what the server declares (may only lengthen) < the file's defaults < what
//! the file says of the server < the environment and the command line < the request's own wish (may
//! only shorten). Within each of them: what holds for all calls < a rule for the method < a rule for
//! the tool. `adaptive` stands above what is written: it moves `timeout` by what was measured, between bounds that a
//! person wrote. Each value remembers where it came from, because an error must name the setting that
//! governs it.

use crate::durations::{Tally, propose};
use crate::limits;
use crate::method::Method;
use crate::settings::{BadValue, Closeness, Glob, Key, SETTINGS, Scope, Setting, Signs, Value, nearest};
use crate::tickets::TaskRule;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Built-in: a tool call that we keep alive, without any sign of life.
const KEPT_ALIVE: Duration = Duration::from_secs(30 * 60);
/// Built-in: any other known request.
const KNOWN: Duration = Duration::from_secs(5 * 60);
/// Built-in: the first exchange. A slow first `npx` is not killed for it.
const HANDSHAKE: Duration = Duration::from_secs(5 * 60);
/// The same of a service, moved by signs of the server up to that.
const SERVICE_HANDSHAKE: Duration = Duration::from_secs(60);
/// Built-in: the hard cap of every call.
const MAX: Duration = Duration::from_secs(24 * 3600);
/// `max:off`. Every call has a cap, so that nothing is kept for ever; nobody lives to see this one.
const NO_MAX: Duration = Duration::from_secs(3650 * 24 * 3600);
/// Built-in: how often a call is tried again, where that is safe.
const RETRIES: u32 = 2;
/// Built-in: how often a waiting client hears from us.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Built-in: requests of a server that need a person, a model, or neither.
const ELICITATION: Duration = Duration::from_secs(600);
const SAMPLING: Duration = Duration::from_secs(240);
const OTHER_ASK: Duration = Duration::from_secs(60);
/// Built-in: how long a call waits for a person's yes.
const HOLD: Duration = Duration::from_secs(120);
/// A server that declares more than this is not believed.
const DECLARED_MAX: f64 = 86_400.0;

/// Where RFC #1492 has the limit of a method: `capabilities.tools.timeouts.list`.
pub(crate) const TIMEOUTS: [(&str, &str, Method); 8] = [
    ("tools", "list", Method::ToolsList),
    ("tools", "call", Method::ToolsCall),
    ("prompts", "list", Method::PromptsList),
    ("prompts", "get", Method::PromptsGet),
    ("resources", "list", Method::ResourcesList),
    ("resources", "read", Method::ResourcesRead),
    ("resources", "subscribe", Method::ResourcesSubscribe),
    ("resources", "unsubscribe", Method::ResourcesUnsubscribe),
];

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Nobody wrote it.
    BuiltIn,
    /// The server declared it.
    Server,
    /// A rule, by its place in [`Rules`].
    Rule(u16),
    /// What was measured, between bounds that a person wrote.
    Measured,
    /// The request's `_meta`.
    Request,
}

/// A duration and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How long.
    pub time: Duration,
    /// Who says so.
    pub layer: Layer,
}

impl Limit {
    /// A limit that nobody wrote.
    pub const fn built_in(time: Duration) -> Limit {
        Limit { time, layer: Layer::BuiltIn }
    }
}

/// All limits and choices for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Moved by signs of life.
    pub timeout: Option<Limit>,
    /// Moved by nothing.
    pub max: Limit,
    /// Which signs move `timeout`.
    pub signs: Signs,
    /// How often a silent call is reported as alive.
    pub keep_alive: Option<Duration>,
    /// How often it is tried again, where that is safe.
    pub retries: u32,
    /// A person says whether running it twice does harm.
    pub repeatable: Option<bool>,
    /// Whether it may be a task.
    pub task: TaskRule,
    /// Its answer is kept under its idempotency key.
    pub keep_answers: bool,
    /// Its server runs a call only once under one idempotency key.
    pub honours_keys: bool,
}

/// Which calls of a tool wait for a person's yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldRule {
    /// None.
    Never,
    /// All.
    Always,
    /// All, unless the server says that the tool destroys nothing.
    Destructive,
}

/// What a rule is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selector {
    /// Every call; of `timeout` and `max` only `tools/call`.
    All,
    /// Calls of these methods.
    Methods(Glob),
    /// Calls of these tools.
    Tools(Glob),
}

/// Who wrote a rule; the later one wins, whatever the rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Standing {
    /// The file, for all servers.
    Defaults,
    /// The file, for this server.
    Server,
    /// The environment or the command line.
    Process,
}

/// How near a rule is to a call.
type Nearness = (Standing, u8, Closeness);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rule {
    standing: Standing,
    selector: Selector,
    key: Key,
    value: Value,
    source: Box<str>,
}

/// Two rules that say the same are the same, wherever they are written.
impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        let Rule { standing, selector, key, value, source: _ } = self;
        (standing, selector, key, value) == (&other.standing, &other.selector, &other.key, &other.value)
    }
}

impl Rule {
    /// `None` if it does not hold for the call.
    fn nearness(&self, method: &Method, tool: Option<&str>) -> Option<Nearness> {
        let is_tool = *method == Method::ToolsCall;
        let (rank, closeness) = match &self.selector {
            Selector::All => {
                let holds = is_tool || !matches!(self.key, Key::Timeout | Key::Max);
                (0, holds.then(Closeness::default)?)
            }
            Selector::Methods(glob) => (1, glob.closeness(method.as_str())?),
            Selector::Tools(glob) => (2, tool.filter(|_| is_tool).and_then(|tool| glob.closeness(tool))?),
        };
        Some((self.standing, rank, closeness))
    }

    fn shown(&self) -> Written<'_> {
        let Rule { value, source, standing, selector, .. } = self;
        Written { value, source, standing: *standing, selector }
    }
}

/// A value that somebody wrote for a call, whether or not it is the nearest.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The value.
    pub value: &'a Value,
    /// Where it was written.
    pub source: &'a str,
    /// Who wrote it.
    pub standing: Standing,
    /// For which calls.
    pub selector: &'a Selector,
}

/// The setting that a rule names, in the whole rule `text`.
fn setting_of_call(name: &str, text: &str) -> Result<&'static Setting, BadValue> {
    let of_call = || SETTINGS.iter().filter(|item| item.scope == Scope::Call);
    match Setting::named(name) {
        Some(item) if item.scope == Scope::Call => Ok(item),
        Some(_) => {
            Err(BadValue(format!("`{text}`: `{name}` is for the whole process; write --{name} instead")))
        }
        None => {
            let meant = nearest(name, of_call().map(|item| item.name));
            let hint = meant.map(|meant| format!("did you mean '{}'?", text.replacen(name, meant, 1)));
            let known = || of_call().map(|item| item.name).collect::<Vec<_>>().join(", ");
            let hint = hint.unwrap_or_else(|| format!("known here are {}", known()));
            Err(BadValue(format!("`{text}`: unknown setting `{name}`; {hint}")))
        }
    }
}

/// Limits that a server declared in its capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared(Vec<(Method, Duration)>);

/// Everything that people wrote, in the order of its sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Adds one value for every call.
    pub fn bare(&mut self, key: Key, value: Value, source: &str) {
        self.write(Standing::Process, Selector::All, key, value, source);
    }

    /// Adds one value.
    pub fn write(&mut self, standing: Standing, selector: Selector, key: Key, value: Value, source: &str) {
        self.0.push(Rule { standing, selector, key, value, source: source.into() });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that was written for a call, the nearest first.
    pub fn written(&self, key: Key, method: &Method, tool: Option<&str>) -> Vec<Written<'_>> {
        let of_key = self.0.iter().filter(|rule| rule.key == key);
        let mut found: Vec<_> =
            of_key.filter_map(|rule| Some((rule.nearness(method, tool)?, rule))).collect();
        found.sort_by_key(|(nearness, _)| *nearness);
        found.reverse();
        found.into_iter().map(|(_, rule)| rule.shown()).collect()
    }

    /// Adds `GLOB=KEY:VALUE,…` for tools or methods.
    pub fn add(&mut self, of: Key, text: &str, source: &str) -> Result<(), BadValue> {
        let form = if of == Key::Tool { "run_*=timeout:5m,max:2h" } else { "resources/*=timeout:10s" };
        let wrong = |what: &str| BadValue(format!("`{text}`: {what}; write '{form}'"));
        let (glob, values) = text.split_once('=').ok_or_else(|| wrong("`=` is missing"))?;
        let glob = Glob::new(glob.trim())?;
        let source = format!("{source} '{glob}'");
        for pair in values.split(',') {
            let (name, value) =
                pair.split_once(':').ok_or_else(|| wrong(&format!("`{pair}` is not KEY:VALUE")))?;
            let item = setting_of_call(name.trim(), text)?;
            let selector = match of {
                Key::Tool => Selector::Tools(glob.clone()),
                _ => Selector::Methods(glob.clone()),
            };
            self.write(Standing::Process, selector, item.key, item.parse(value)?, &source);
        }
        Ok(())
    }

    /// The value nearest to a call, and its layer.
    #[inline]
    fn nearest(&self, key: Key, method: &Method, tool: Option<&str>) -> Option<(&Value, Layer)> {
        // Most people write no rules, and every call asks for each of its values.
        if self.0.is_empty() { None } else { self.nearest_rule(key, method, tool) }
    }

    fn nearest_rule(&self, key: Key, method: &Method, tool: Option<&str>) -> Option<(&Value, Layer)> {
        let of_key = self.0.iter().enumerate().filter(|(_, rule)| rule.key == key);
        let found = of_key.filter_map(|(index, rule)| Some((rule.nearness(method, tool)?, index, rule)));
        // `max_by_key` gives the last of equals: the later rule wins.
        let (_, index, rule) = found.max_by_key(|(nearness, ..)| *nearness)?;
        Some((&rule.value, Layer::Rule(index as u16)))
    }

    /// The name of the setting that a layer stands for, as a person would write it.
    pub fn source(&self, layer: Layer) -> &str {
        match layer {
            Layer::BuiltIn => "built-in",
            Layer::Server => "declared by the server",
            Layer::Measured => "adaptive",
            Layer::Request => "_meta[\"dev.outlast/timeoutMs\"]",
            Layer::Rule(index) => self.0.get(usize::from(index)).map_or("", |rule| &rule.source),
        }
    }

    /// The policy of a client's request.
    pub fn for_call(&self, facts: CallFacts<'_>) -> Policy {
        let CallFacts { method, tool, has_token, cap, silence, wish, declared } = facts;
        reached!(KEEP_ALIVE_MIN if cap.is_some_and(|cap| cap / 3 < limits::KEEP_ALIVE_MIN));
        let keep_alive = match self.nearest(Key::KeepAlive, method, tool) {
            Some((Value::Time(time), _)) => *time,
            _ => Some(silence.or(cap).map_or(KEEP_ALIVE, third_of)),
        };
        let patient = (has_token && keep_alive.is_some()) || cap.is_some();
        let built_in = match method {
            method if method.is_handshake() => Some(self.handshake()),
            Method::ToolsCall => patient.then_some(Limit::built_in(KEPT_ALIVE)),
            Method::TasksResult
            | Method::RequestsResume
            | Method::RequestsStatusAll
            | Method::RequestsResumeAll
            | Method::Listen
            | Method::Other(_) => None,
            _ => Some(Limit::built_in(KNOWN)),
        };
        let mut policy = self.resolve(method, tool, built_in.map(|limit| declared.lengthen(method, limit)));
        policy.keep_alive = keep_alive;
        if method.is_handshake() {
            // Starting is work: a server shows signs of it until the very end, and for ever if it hangs.
            policy.signs = Signs::NONE;
        }
        if let Some(wish) = wish {
            policy.shorten(wish);
        }
        policy
    }

    /// How long a request of this method may take, whatever its tool: who waits as long does not give up before us.
    /// Progress lets a tool call take until `max`; of other methods there is seldom any, so that each attempt ends with
    /// `timeout`. `None` if nothing ends it.
    pub(crate) fn longest(&self, method: &Method, declared: &Declared) -> Option<Duration> {
        let tools = self.0.iter().filter_map(|rule| match &rule.selector {
            // A pattern stands for itself.
            Selector::Tools(glob) if *method == Method::ToolsCall => Some(glob.patterns()),
            _ => None,
        });
        let tools = std::iter::once(None).chain(tools.flatten().map(Some));
        tools.map(|tool| self.longest_of(method, tool, declared)).max().filter(|time| *time < NO_MAX)
    }

    fn longest_of(&self, method: &Method, tool: Option<&str>, declared: &Declared) -> Duration {
        let (cap, silence, wish) = (None, None, None);
        let policy = self.for_call(CallFacts { method, tool, has_token: true, cap, silence, wish, declared });
        match policy.timeout {
            Some(limit) if *method != Method::ToolsCall || policy.signs == Signs::NONE => {
                (limit.time * (1 + policy.retries)).min(policy.max.time)
            }
            _ => policy.max.time,
        }
    }

    /// Whether calls of a tool may be tasks.
    pub fn task_of(&self, tool: &str) -> TaskRule {
        self.task(&Method::ToolsCall, Some(tool))
    }

    fn task(&self, method: &Method, tool: Option<&str>) -> TaskRule {
        match self.nearest(Key::Task, method, tool) {
            Some((Value::Text(word), _)) if word == "forbidden" => TaskRule::Forbidden,
            Some((Value::Text(word), _)) if word == "required" => TaskRule::Required,
            _ => TaskRule::Optional,
        }
    }

    /// Whether a server runs a call only once under one idempotency key.
    pub fn honours_keys(&self, method: &Method, tool: Option<&str>) -> bool {
        let rule = self.nearest(Key::Idempotency, method, tool);
        matches!(rule, Some((Value::Text(word), _)) if word == "honoured")
    }

    /// How long a client may take to make a call again that then counts as the same.
    pub fn join_repeats(&self, method: &Method, tool: Option<&str>) -> Option<Duration> {
        match self.nearest(Key::JoinRepeats, method, tool) {
            Some((Value::Time(time), _)) => *time,
            _ => None,
        }
    }

    /// Whether a person must say yes to calls of a tool before they are sent.
    pub fn hold(&self, tool: Option<&str>) -> HoldRule {
        match self.nearest(Key::Hold, &Method::ToolsCall, tool) {
            Some((Value::Text(word), _)) if word == "true" => HoldRule::Always,
            Some((Value::Text(word), _)) if word == "destructive" => HoldRule::Destructive,
            _ => HoldRule::Never,
        }
    }

    /// Whether it matters which tools destroy nothing.
    pub fn holds_the_destructive(&self) -> bool {
        let destructive = |rule: &Rule| matches!(&rule.value, Value::Text(word) if word == "destructive");
        self.0.iter().any(|rule| rule.key == Key::Hold && destructive(rule))
    }

    /// Whether the client's own user may say it.
    pub fn hold_asks_client(&self, tool: Option<&str>) -> bool {
        matches!(self.nearest(Key::HoldAskClient, &Method::ToolsCall, tool), Some((Value::Switch(true), _)))
    }

    /// How long calls of a tool wait for that.
    pub fn hold_timeout(&self, tool: Option<&str>) -> Limit {
        match self.nearest(Key::HoldTimeout, &Method::ToolsCall, tool) {
            Some((Value::Time(Some(time)), layer)) => Limit { time: *time, layer },
            _ => Limit::built_in(HOLD),
        }
    }

    /// Whether any limit follows what is measured.
    pub fn adapts(&self) -> bool {
        self.0.iter().any(|rule| rule.key == Key::Adaptive && rule.value == Value::Switch(true))
    }

    /// Between which bounds the timeout of a tool follows what is measured, if it does.
    pub fn adaptive_bounds(&self, tool: Option<&str>) -> Option<(Duration, Duration)> {
        let of = |key| match self.nearest(key, &Method::ToolsCall, tool) {
            Some((Value::Time(time), _)) => *time,
            _ => None,
        };
        let on =
            matches!(self.nearest(Key::Adaptive, &Method::ToolsCall, tool), Some((Value::Switch(true), _)));
        let (least, most) = (of(Key::AdaptiveMin)?, of(Key::AdaptiveMax)?);
        on.then_some((least, most.max(least)))
    }

    /// The timeout of a tool that follows from how long its calls took. `None` if it follows nothing, or too little is
    /// known.
    pub fn adapted(&self, tool: Option<&str>, tally: &Tally) -> Option<Limit> {
        let (least, most) = self.adaptive_bounds(tool)?;
        let proposed = propose(tally).ok()?;
        Some(Limit { time: proposed.timeout.clamp(least, most), layer: Layer::Measured })
    }

    /// Whether the answers of anything are kept.
    pub fn any_keeps_answers(&self) -> bool {
        self.0.iter().any(|rule| rule.key == Key::KeepAnswers && rule.value == Value::Switch(true))
    }

    fn keeps_answers(&self, method: &Method, tool: Option<&str>) -> bool {
        matches!(self.nearest(Key::KeepAnswers, method, tool), Some((Value::Switch(true), _)))
    }

    fn handshake(&self) -> Limit {
        match self.nearest(Key::Handshake, &Method::Initialize, None) {
            Some((Value::Time(Some(time)), layer)) => Limit { time: *time, layer },
            _ => Limit::built_in(HANDSHAKE),
        }
    }

    /// The policy of a server's request to the client.
    pub fn for_ask(&self, method: &Method) -> Policy {
        let built_in = match method {
            Method::ElicitationCreate => ELICITATION,
            Method::SamplingCreateMessage => SAMPLING,
            _ => OTHER_ASK,
        };
        self.resolve(method, None, Some(Limit::built_in(built_in)))
    }

    fn resolve(&self, method: &Method, tool: Option<&str>, built_in: Option<Limit>) -> Policy {
        let timeout = match self.nearest(Key::Timeout, method, tool) {
            Some((Value::Time(time), layer)) => time.map(|time| Limit { time, layer }),
            _ => built_in,
        };
        let max = match self.nearest(Key::Max, method, tool) {
            Some((Value::Time(time), layer)) => Limit { time: time.unwrap_or(NO_MAX), layer },
            _ => Limit::built_in(MAX),
        };
        let signs = match self.nearest(Key::Signs, method, tool) {
            Some((Value::Signs(signs), _)) => *signs,
            // What a person wrote means what every SDK user expects; what nobody wrote is patient.
            _ if timeout.is_some_and(|limit| matches!(limit.layer, Layer::Rule(_))) => Signs::CALL,
            _ => Signs::BOTH,
        };
        let retries = match self.nearest(Key::Retries, method, tool) {
            Some((Value::Count(retries), _)) => *retries,
            _ => RETRIES,
        };
        let repeatable = match self.nearest(Key::Repeatable, method, tool) {
            Some((Value::Switch(repeatable), _)) => Some(*repeatable),
            _ => None,
        };
        let task = self.task(method, tool);
        let keep_answers = self.keeps_answers(method, tool);
        let honours_keys = self.honours_keys(method, tool);
        Policy {
            timeout,
            max,
            signs,
            keep_alive: None,
            retries,
            repeatable,
            task,
            keep_answers,
            honours_keys,
        }
    }
}

impl Policy {
    /// A service does not wait five minutes for a server that shows no sign of starting.
    pub(crate) fn for_handshake_of_service(&mut self) {
        if self.timeout.is_some_and(|limit| limit.layer == Layer::BuiltIn) {
            self.timeout = Some(Limit::built_in(SERVICE_HANDSHAKE));
            self.max = Limit::built_in(HANDSHAKE);
            self.signs = Signs { call: false, server: true };
        }
    }

    /// The timeout follows what was measured, unless the request itself wants a shorter one.
    pub(crate) fn adapt(&mut self, limit: Limit) {
        match self.timeout {
            Some(Limit { time, layer: Layer::Request }) if time < limit.time => {}
            _ => {
                self.timeout = Some(limit);
                self.signs = Signs::CALL;
            }
        }
    }

    fn shorten(&mut self, wish: Duration) {
        if self.timeout.is_none_or(|limit| wish < limit.time) {
            self.timeout = Some(Limit { time: wish, layer: Layer::Request });
            self.signs.server = false;
        }
    }
}

/// How often a client hears from us that gives up after this time: three times, and at least as often as any other. In
/// whole seconds from one on, as people write it.
pub(crate) fn third_of(limit: Duration) -> Duration {
    let third = limit / 3;
    let whole = Duration::from_secs(third.as_secs());
    let third = if whole.is_zero() { third } else { whole };
    third.clamp(limits::KEEP_ALIVE_MIN, KEEP_ALIVE)
}

/// What a call's policy depends on.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its tool, for `tools/call`.
    pub tool: Option<&'a str>,
    /// Whether the client gave a progress token.
    pub has_token: bool,
    /// When the client gives up whatever progress it sees; the call is handed off before.
    pub cap: Option<Duration>,
    /// After how much silence the client gives up, if progress resets that.
    pub silence: Option<Duration>,
    /// The request's own `dev.outlast/timeoutMs`.
    pub wish: Option<Duration>,
    /// What the server declared.
    pub declared: &'a Declared,
}

impl Declared {
    /// Reads `capabilities.*.timeouts` (seconds, in the shape of RFC #1492). Also returns whether
    /// some value made no sense and was ignored.
    pub fn read(capabilities: &serde_json::Value) -> (Declared, bool) {
        let mut declared = Declared::default();
        let mut nonsense = false;
        for (group, name, method) in TIMEOUTS {
            let Some(value) = capabilities.get(group).and_then(|g| g.get("timeouts")?.get(name)) else {
                continue;
            };
            match value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= DECLARED_MAX) {
                Some(seconds) => declared.0.push((method, Duration::from_secs_f64(seconds))),
                None => nonsense = true,
            }
        }
        (declared, nonsense)
    }

    fn lengthen(&self, method: &Method, built_in: Limit) -> Limit {
        let declared = self.0.iter().find(|(declared, _)| declared == method);
        match declared {
            Some((_, time)) if *time > built_in.time => Limit { time: *time, layer: Layer::Server },
            _ => built_in,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::setting;
    use serde_json::json;

    const MIN: Duration = Duration::from_secs(60);

    fn rules(text: &[(Key, &str)]) -> Rules {
        let mut rules = Rules::default();
        for (key, text) in text {
            match key {
                Key::Tool | Key::Method => rules.add(*key, text, setting(*key).name).unwrap(),
                _ => rules.bare(*key, setting(*key).parse(text).unwrap(), setting(*key).name),
            }
        }
        rules
    }

    fn policy(rules: &Rules, method: &str, tool: Option<&str>, has_token: bool) -> Policy {
        rules.for_call(CallFacts {
            method: &Method::new(method),
            tool,
            has_token,
            cap: None,
            silence: None,
            wish: None,
            declared: &Declared::default(),
        })
    }

    fn timeout(rules: &Rules, method: &str, tool: Option<&str>) -> Option<Duration> {
        policy(rules, method, tool, false).timeout.map(|limit| limit.time)
    }

    #[test]
    fn without_rules_a_tool_call_is_limited_only_while_we_keep_its_client_patient() {
        let rules = Rules::default();
        assert_eq!(policy(&rules, "tools/call", Some("x"), false).timeout, None);
        let kept = policy(&rules, "tools/call", Some("x"), true);
        assert_eq!(kept.timeout, Some(Limit::built_in(30 * MIN)));
        assert_eq!((kept.signs, kept.max.time), (Signs::BOTH, 24 * 60 * MIN));
        assert_eq!(kept.keep_alive, Some(Duration::from_secs(10)));
        assert_eq!(timeout(&rules, "resources/read", None), Some(5 * MIN));
        assert_eq!(timeout(&rules, "initialize", None), Some(5 * MIN));
        assert_eq!(timeout(&rules, "tasks/result", None), None);
        assert_eq!(timeout(&rules, "vendor/thing", None), None);
    }

    #[test]
    fn without_keep_alive_the_client_governs_again() {
        let rules = rules(&[(Key::KeepAlive, "off")]);
        assert_eq!(policy(&rules, "tools/call", Some("x"), true).timeout, None);
    }

    #[test]
    fn a_bare_timeout_means_tool_calls() {
        let rules = rules(&[(Key::Timeout, "30s")]);
        assert_eq!(timeout(&rules, "tools/call", Some("x")), Some(MIN / 2));
        assert_eq!(timeout(&rules, "tools/list", None), Some(5 * MIN));
        assert_eq!(policy(&rules, "tools/call", None, true).signs, Signs::CALL);
    }

    #[test]
    fn the_nearest_rule_wins_and_is_named() {
        let rules = rules(&[
            (Key::Tool, "run_*=timeout:5m,max:2h"),
            (Key::Tool, "run_build=timeout:off"),
            (Key::Tool, "*=timeout:9m"),
            (Key::Method, "tools/*=timeout:2m,signs:none"),
            (Key::Timeout, "1m"),
        ]);
        assert_eq!(timeout(&rules, "tools/call", Some("run_test")), Some(5 * MIN));
        assert_eq!(timeout(&rules, "tools/call", Some("run_build")), None);
        assert_eq!(timeout(&rules, "tools/call", Some("other")), Some(9 * MIN));
        assert_eq!(timeout(&rules, "tools/list", None), Some(2 * MIN));
        let test = policy(&rules, "tools/call", Some("run_test"), false);
        assert_eq!((test.max.time, test.signs), (120 * MIN, Signs::NONE));
        assert_eq!(rules.source(test.max.layer), "tool 'run_*'");
    }

    #[test]
    fn of_equal_rules_the_later_wins() {
        let rules = rules(&[(Key::Timeout, "1m"), (Key::Timeout, "2m")]);
        assert_eq!(timeout(&rules, "tools/call", None), Some(2 * MIN));
    }

    /// The order of the layers, whatever the order of writing.
    #[test]
    fn what_is_written_for_a_server_wins_over_every_default() {
        let glob = |text| Glob::new(text).unwrap();
        let tools = |text| Selector::Tools(glob(text));
        let mut rules = Rules::default();
        let mut say = |standing, selector, minutes: u32, source: &str| {
            rules.write(standing, selector, Key::Timeout, Value::Time(Some(minutes * MIN)), source);
        };
        say(Standing::Server, tools("run_*"), 6, "server's tool");
        say(Standing::Server, Selector::Methods(glob("tools/*")), 5, "server's method");
        say(Standing::Server, Selector::All, 4, "server");
        say(Standing::Defaults, tools("{other,run_build}"), 3, "default of a tool");
        say(Standing::Defaults, Selector::Methods(glob("tools/call")), 2, "default of a method");
        say(Standing::Defaults, Selector::All, 1, "default");
        let written = rules.written(Key::Timeout, &Method::ToolsCall, Some("run_build"));
        let sources: Vec<&str> = written.iter().map(|written| written.source).collect();
        let nearest_first = [
            "server's tool",
            "server's method",
            "server",
            "default of a tool",
            "default of a method",
            "default",
        ];
        assert_eq!(sources, nearest_first);
        assert_eq!(timeout(&rules, "tools/call", Some("run_build")), Some(6 * MIN));
        assert_eq!(timeout(&rules, "tools/call", Some("x")), Some(5 * MIN));
        rules.bare(Key::Timeout, Value::Time(None), "--timeout");
        assert_eq!(timeout(&rules, "tools/call", Some("run_build")), None);
    }

    #[test]
    fn an_exact_name_wins_over_a_longer_glob_and_of_two_the_later() {
        let rules = rules(&[
            (Key::Tool, "{run_build,run_x}=timeout:1m"),
            (Key::Tool, "run_build*=timeout:2m"),
            (Key::Tool, "{a,b}=timeout:3m"),
            (Key::Tool, "b=timeout:4m"),
        ]);
        assert_eq!(timeout(&rules, "tools/call", Some("run_build")), Some(MIN));
        assert_eq!(timeout(&rules, "tools/call", Some("run_builder")), Some(2 * MIN));
        assert_eq!(timeout(&rules, "tools/call", Some("b")), Some(4 * MIN));
    }

    #[test]
    fn a_server_may_only_lengthen_a_built_in_limit() {
        let (declared, nonsense) = Declared::read(&json!({
            "tools": {"timeouts": {"call": 3600, "list": 1}},
            "resources": {"timeouts": {"read": 1e12, "list": -4, "subscribe": "soon"}},
        }));
        assert!(nonsense);
        let rules = Rules::default();
        let resolve = |rules: &Rules, method: &str| {
            let method = Method::new(method);
            let facts = CallFacts {
                method: &method,
                tool: None,
                has_token: true,
                cap: None,
                silence: None,
                wish: None,
                declared: &declared,
            };
            rules.for_call(facts).timeout
        };
        let call = resolve(&rules, "tools/call");
        assert_eq!(call, Some(Limit { time: 60 * MIN, layer: Layer::Server }));
        assert_eq!(resolve(&rules, "tools/list"), Some(Limit::built_in(5 * MIN)));
        assert_eq!(resolve(&rules, "resources/read"), Some(Limit::built_in(5 * MIN)));
        let written = self::rules(&[(Key::Timeout, "1m")]);
        assert_eq!(resolve(&written, "tools/call").map(|limit| limit.time), Some(MIN));
    }

    #[test]
    fn a_request_may_only_shorten() {
        let rules = rules(&[(Key::Timeout, "1m")]);
        let with = |wish| {
            let facts = CallFacts {
                method: &Method::ToolsCall,
                tool: None,
                has_token: false,
                cap: None,
                silence: None,
                wish: Some(wish),
                declared: &Declared::default(),
            };
            rules.for_call(facts).timeout.unwrap()
        };
        assert_eq!(with(MIN / 2), Limit { time: MIN / 2, layer: Layer::Request });
        assert_eq!(with(2 * MIN).time, MIN);
        assert_eq!(Rules::default().source(Layer::Request), "_meta[\"dev.outlast/timeoutMs\"]");
    }

    #[test]
    fn a_limit_that_adapts_stays_between_the_bounds_that_a_person_wrote() {
        let rules = rules(&[(Key::Tool, "build=adaptive:true,adaptive-min:20s,adaptive-max:1m,timeout:5s")]);
        let after = |ms: u64, calls: u64| {
            let mut tally = Tally::default();
            (0..calls).for_each(|_| tally.add(Duration::from_millis(ms), crate::step::Outcome::Answered));
            rules.adapted(Some("build"), &tally).map(|limit| limit.time.as_secs())
        };
        assert_eq!(after(10, 29), None, "too little is known");
        assert_eq!([after(10, 30), after(12_000, 30), after(600_000, 30)], [Some(20), Some(30), Some(60)]);
        assert!(rules.adapts());
        assert_eq!(rules.adaptive_bounds(Some("other")), None);
        let unbound = self::rules(&[(Key::Tool, "build=adaptive:true,adaptive-max:1m")]);
        assert_eq!(unbound.adaptive_bounds(Some("build")), None, "a person writes both bounds");
    }

    #[test]
    fn a_request_may_still_shorten_a_limit_that_adapts() {
        let limit = |time, layer| Limit { time, layer };
        let mut policy = policy(&Rules::default(), "tools/call", Some("x"), true);
        policy.shorten(MIN);
        policy.adapt(limit(2 * MIN, Layer::Measured));
        assert_eq!(policy.timeout, Some(limit(MIN, Layer::Request)));
        policy.adapt(limit(MIN / 2, Layer::Measured));
        assert_eq!(policy.timeout, Some(limit(MIN / 2, Layer::Measured)));
    }

    #[test]
    fn off_switches_the_hard_cap_off() {
        let rules = rules(&[(Key::Tool, "build=max:off")]);
        let max = |tool| rules.resolve(&Method::ToolsCall, Some(tool), None).max.time;
        assert_eq!(max("other"), MAX);
        assert!(max("build") > 1000 * MAX);
    }

    #[test]
    fn questions_of_a_server_have_limits_of_their_own() {
        let rules = rules(&[(Key::Method, "sampling/*=timeout:1m")]);
        let ask = |method: &str| rules.for_ask(&Method::new(method)).timeout.unwrap().time;
        assert_eq!(ask("elicitation/create"), 10 * MIN);
        assert_eq!(ask("sampling/createMessage"), MIN);
        assert_eq!(ask("roots/list"), MIN);
    }

    #[test]
    fn a_bad_rule_says_what_is_wrong_and_shows_the_right_form() {
        let says = |text| Rules::default().add(Key::Tool, text, "--tool").unwrap_err().to_string();
        let form = "write 'run_*=timeout:5m,max:2h'";
        assert_eq!(says("x"), format!("`x`: `=` is missing; {form}"));
        assert_eq!(says("x=5m"), format!("`x=5m`: `5m` is not KEY:VALUE; {form}"));
        assert_eq!(
            says("x=drain:5m"),
            "`x=drain:5m`: `drain` is for the whole process; write --drain instead"
        );
        assert_eq!(
            says("x=max:1h,timout:5m"),
            "`x=max:1h,timout:5m`: unknown setting `timout`; did you mean 'x=max:1h,timeout:5m'?"
        );
        assert!(says("x=colour:red").contains("known here are timeout, max, keep-alive"));
        assert_eq!(says("x=timeout:5"), "timeout: `5` has no unit; write `5s` or `5ms`");
        assert!(says("=timeout:5s").starts_with("the glob before `=` is missing"));
    }
}
