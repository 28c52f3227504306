//! What is settled before the first event: how outlast behaves, and what each server is.
//!
//! A *definition* ([`ServerConfig`]) says what a server is; a server is a running process or session of one, and holds
//! the definition that it was started with. A call holds the rules that were in force when it began.

use crate::callback::When;
use crate::error::Wording;
use crate::id::DefinitionId;
use crate::idempotency::KeyPlace;
use crate::limits;
use crate::policy::Rules;
use crate::profile::{Learn, Profiles};
pub use crate::settings::Rate;
use crate::settings::{Glob, Key, Value};
use crate::step::Observed;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Whose habits we have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manner {
    /// Our own, around one server: we end when it ends.
    Wrap,
    /// Those of `timeout-mcp`: we stay until the client goes, and end with status 0.
    TimeoutMcp,
    /// Those of a service: clients come and go, servers are started as they are needed.
    Serve,
    /// Our own, around several servers: we stay until the client goes.
    Gateway,
}

/// How servers are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// A process behind pipes.
    Process,
    /// Streamable HTTP.
    Http,
}

impl Manner {
    pub(crate) fn outlives_its_server(self) -> bool {
        self != Manner::Wrap
    }

    /// Whether there may be several servers.
    pub fn has_several(self) -> bool {
        matches!(self, Manner::Serve | Manner::Gateway)
    }

    pub(crate) fn serves(self) -> bool {
        self == Manner::Serve
    }

    pub(crate) fn wording(self) -> Wording {
        match self {
            Manner::Wrap | Manner::Serve | Manner::Gateway => Wording::Own,
            Manner::TimeoutMcp => Wording::TimeoutMcp,
        }
    }
}

/// When a server is started again; each also for the reasons before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Restart {
    /// Not at all.
    Never,
    /// When it ended.
    OnCrash,
    /// When it hangs.
    OnHang,
    /// When a limit that a person wrote has fired.
    OnTimeout,
}

/// When clients give a tool up, whatever progress they see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientCap {
    /// As far as it is known of the client.
    #[default]
    Known,
    /// Never, whatever is known.
    Off,
    /// After this time, whoever it is.
    After(Duration),
}

/// Who shares a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Share {
    /// Nobody.
    Session,
    /// The sessions of one principal.
    Principal,
    /// All.
    All,
}

/// How the tools of a server are shown at the merged door.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expose {
    /// As `SERVER__NAME`.
    #[default]
    Names,
    /// Under their own names, where no other server has the same.
    PlainNames,
    /// Not in the list: they are found by `find_tools`.
    OnDemand,
}

/// What is seen of a server at the merged door.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// How its tools are shown.
    pub expose: Expose,
    /// Only these tools are there; all of them if there is none here.
    pub allow: Vec<Glob>,
    /// These are not.
    pub deny: Vec<Glob>,
    /// Names that a person chose: the server's own, and the public one.
    pub aliases: Vec<(Box<str>, Box<str>)>,
}

impl Exposure {
    /// Whether a tool is there.
    pub fn shows(&self, tool: &str) -> bool {
        let named = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool));
        (self.allow.is_empty() || named(&self.allow)) && !named(&self.deny)
    }

    /// Whether any tool may be missing.
    pub(crate) fn leaves_tools_out(&self) -> bool {
        !(self.allow.is_empty() && self.deny.is_empty())
    }

    /// The name that a person chose for it.
    pub fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.iter().find(|(own, _)| **own == *name).map(|(_, alias)| &**alias)
    }
}

/// What somebody who comes in with a token may use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rights {
    /// These servers; all of them, without.
    pub servers: Option<Vec<Glob>>,
    /// These tools, by the server's own name for them or as `SERVER__TOOL`; all of them, without.
    pub tools: Option<Vec<Glob>>,
    /// How much of it at once.
    pub bounds: Bounds,
    /// Where that is written.
    pub source: Box<str>,
}

/// How many calls of a server, or of a principal, there may be at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// Calls in flight.
    pub max_in_flight: u32,
    /// Calls that wait for one of these to end.
    pub queue: u32,
    /// How long they wait.
    pub queue_wait: Duration,
    /// How many may begin in a time; as many as they want, without.
    pub rate: Option<Rate>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        let max_in_flight = limits::CALLS as u32;
        Bounds { max_in_flight, queue: 100, queue_wait: Duration::from_secs(30), rate: None }
    }
}

impl Bounds {
    /// Whether anybody may ever have to wait.
    pub fn is_bound(&self) -> bool {
        self.rate.is_some() || (self.max_in_flight as usize) < limits::CALLS
    }

    /// Takes a setting of this name. Gives it back if it is about something else.
    pub fn take(&mut self, key: Key, value: Value) -> Option<Value> {
        match (key, value) {
            (Key::MaxInFlight, Value::Count(count)) => self.max_in_flight = count.max(1),
            (Key::Queue, Value::Count(count)) => self.queue = count,
            (Key::QueueWait, Value::Time(Some(time))) => self.queue_wait = time,
            (Key::Rate, Value::Rate(rate)) => self.rate = rate,
            (_, value) => return Some(value),
        }
        None
    }
}

impl Rights {
    /// Whether a server is there for it.
    pub fn has_server(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(server)))
    }

    /// Whether it may call a tool of a server.
    pub fn may_call(&self, server: &str, separator: &str, tool: &str) -> bool {
        let Some(globs) = &self.tools else { return true };
        let whole = [server, separator, tool].concat();
        globs.iter().any(|glob| glob.matches(tool) || glob.matches(&whole))
    }
}

/// What a person wrote for some clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientRule {
    /// What they call themselves.
    pub glob: Glob,
    /// When they give a tool up; what is so for all, without.
    pub cap: Option<ClientCap>,
    /// Whether their calls are handed off before they do.
    pub hand_off: Option<bool>,
    /// Which servers they see at the merged door; all, without.
    pub servers: Option<Vec<Glob>>,
    /// How they see tools there; as each server says, without.
    pub expose: Option<Expose>,
    /// Which callback tells of their calls that name none.
    pub callback: Option<Box<str>>,
    /// Where it is written.
    pub source: Box<str>,
}

impl ClientRule {
    /// Whether its clients see a server at the merged door.
    pub fn shows(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(server)))
    }

    /// When its clients give a tool up, if it says so.
    pub(crate) fn cap(&self) -> Option<ClientCap> {
        if self.hand_off == Some(false) { Some(ClientCap::Off) } else { self.cap }
    }
}

/// What a server is: the same for every process or session of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerConfig {
    /// What a person calls the server.
    pub name: Box<str>,
    /// The command that starts it, for errors.
    pub command: Box<str>,
    /// Where it is written, for people.
    pub source: Box<str>,
    /// All that decides how it is started or reached, as a number: with another one it is another program.
    pub program: u64,
    /// It is started before anybody needs it.
    pub eager: bool,
    /// How often a quiet server of the legacy era is asked whether it is there.
    pub heartbeat: Option<Duration>,
    /// How long nobody may use it before its process is stopped.
    pub server_idle: Option<Duration>,
    /// What the server is called in the store: the same after a restart of ours.
    pub identity: Box<str>,
    /// How the server is reached.
    pub transport: Transport,
    /// Who shares a server.
    pub share: Share,
    /// Limits per method and tool, for the calls that begin now: a call keeps the ones that it began with.
    #[serde(with = "crate::recording::form")]
    pub rules: Arc<Rules>,
    /// Between telling a server to cancel and calling it hung.
    pub cancel_grace: Duration,
    /// When the server is started again.
    pub restart: Restart,
    /// The wait before a crashed server is started again; doubles.
    pub restart_backoff: Duration,
    /// Restarts within a minute before a server counts as failed.
    pub restart_intensity: u32,
    /// Further tries when a restarted server does not come up.
    pub connect_retries: u32,
    /// The wait before the first of them; doubles.
    pub connect_backoff: Duration,
    /// How often a failed server is tried again.
    pub reconnect_every: Duration,
    /// The longest wait before a call's second attempt; doubles.
    pub retry_backoff: Duration,
    /// The server's hints about its tools are believed.
    pub trust: bool,
    /// The handshake is answered from memory while the server starts.
    pub instant: bool,
    /// What is seen of it at the merged door.
    #[serde(with = "crate::recording::form")]
    pub exposure: Arc<Exposure>,
    /// How many calls of it there may be at once, of all its processes and clients together.
    pub bounds: Bounds,
}

/// The longest wait before something is tried again, however often it has failed.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// A wait that doubles each time.
pub(crate) fn doubled(base: Duration, times: u32) -> Duration {
    base.saturating_mul(2u32.saturating_pow(times.min(16))).min(LONGEST_BACKOFF)
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            name: "server".into(),
            command: "server".into(),
            source: "".into(),
            program: 0,
            eager: false,
            heartbeat: None,
            server_idle: None,
            identity: "".into(),
            transport: Transport::Process,
            share: Share::Principal,
            rules: Arc::default(),
            cancel_grace: Duration::from_secs(5),
            restart: Restart::OnHang,
            restart_backoff: Duration::from_millis(500),
            restart_intensity: 5,
            connect_retries: 3,
            connect_backoff: Duration::from_secs(2),
            reconnect_every: Duration::from_secs(30),
            retry_backoff: Duration::from_millis(500),
            trust: false,
            instant: false,
            exposure: Arc::default(),
            bounds: Bounds::default(),
        }
    }
}

impl ServerConfig {
    /// The wait before something is tried again that has failed so often in a row. `None` if that is too often: then
    /// it counts as failed, and is tried every `reconnect-every`.
    pub(crate) fn connect_again_after(&self, failures: u32) -> Option<Duration> {
        (failures <= self.connect_retries).then(|| doubled(self.connect_backoff, failures.saturating_sub(1)))
    }

    /// Whether it is the same but for its place in the file.
    pub(crate) fn says_the_same(&self, other: &ServerConfig) -> bool {
        let placed = ServerConfig { source: self.source.clone(), ..other.clone() };
        *self == placed
    }
}

/// What is settled before the first event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The server that the command line names, or the first of a file.
    #[serde(with = "crate::recording::form")]
    pub server: Arc<ServerConfig>,
    /// The other servers of a file, in its order.
    #[serde(with = "crate::recording::form")]
    pub others: Vec<Arc<ServerConfig>>,
    /// What is so for some clients, in the order of the file.
    #[serde(with = "crate::recording::form")]
    pub clients: Vec<Arc<ClientRule>>,
    /// Definitions that the file does not have any more. Their numbers stay theirs: sessions may remember them.
    pub gone: BTreeSet<DefinitionId>,
    /// The last one that had no others beside it: `/mcp` led to it, and sessions may have begun there.
    pub was_alone: Option<DefinitionId>,
    /// What stands between a server's name and that of its tool.
    pub separator: Box<str>,
    /// How long a merged list waits for a slow server.
    pub list_wait: Duration,
    /// Clients are told our limits.
    pub declare_timeouts: bool,
    /// What principals may use, by the names of their tokens; who is not here may use everything.
    pub rights: BTreeMap<Box<str>, Rights>,
    /// Whose habits we have.
    pub manner: Manner,
    /// How long an HTTP session may be unused before what it holds is freed.
    pub session_idle: Duration,
    /// How long a broken stream can be taken up again.
    pub resume_wait: Duration,
    /// How long an answer may take to leave in one piece with the head of its stream.
    pub stream_head: Duration,
    /// How long a client should wait before it does.
    pub resume_min_wait: Duration,
    /// Calls may be tasks, for clients that want them so.
    pub tasks: bool,
    /// Where calls carry their idempotency keys.
    pub key_places: Vec<KeyPlace>,
    /// How long a modern call may take before its client gets the handle of a task.
    pub task_after: Duration,
    /// How long a task is kept after its end.
    pub task_ttl: Duration,
    /// The longest that a client may ask for.
    pub task_ttl_max: Duration,
    /// When clients give a tool up, whatever progress they see; their calls are handed off before.
    pub client_cap: ClientCap,
    /// What is known of clients.
    pub profiles: Profiles,
    /// What becomes of a cap that a client's cancels show.
    pub learn: Learn,
    /// Clients that know how may resume calls after a lost connection.
    pub resumable: bool,
    /// We are only the door to a service of our own, which keeps the calls: what a client declares about
    /// resuming, and what it asks about it, goes there.
    pub door: bool,
    /// What the address that clients reach is called in the store: sessions and streams are kept under it.
    pub identity: Box<str>,
    /// Sessions and streams over HTTP are stored, because the store outlives this process.
    pub durable: bool,
    /// Other processes serve the same sessions and tickets: what we leave when we end goes on there.
    pub replicated: bool,
    /// Sessions of one principal.
    pub max_sessions: usize,
    /// Calls of one principal that are in flight.
    pub max_calls: usize,
    /// How long calls may finish after the client's end.
    pub drain: Duration,
    /// The longest message.
    pub max_message: usize,
    /// Callbacks by their names.
    pub callbacks: BTreeMap<Box<str>, When>,
    /// Arguments whose values nobody is shown, besides those whose name says so.
    pub redact: Vec<Glob>,
    /// Whose steps are told to those who look on.
    pub observed: Observed,
    /// Calls are recorded as parts of traces, and their servers are told so. Then all steps are told.
    pub traces: bool,
    /// For jitter.
    pub seed: u64,
    /// A fault for the simulation to find.
    #[cfg(feature = "planted")]
    #[serde(skip)]
    pub planted: Option<crate::planted::Planted>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            server: Arc::default(),
            others: Vec::new(),
            clients: Vec::new(),
            gone: BTreeSet::new(),
            was_alone: None,
            separator: "__".into(),
            list_wait: Duration::from_secs(4),
            declare_timeouts: false,
            rights: BTreeMap::new(),
            manner: Manner::Wrap,
            session_idle: Duration::from_secs(5 * 60),
            resume_wait: Duration::from_secs(10 * 60),
            stream_head: limits::STREAM_HEAD,
            resume_min_wait: Duration::from_secs(1),
            tasks: false,
            key_places: KeyPlace::defaults(),
            task_after: Duration::from_secs(10),
            task_ttl: Duration::from_secs(60 * 60),
            task_ttl_max: Duration::from_secs(72 * 60 * 60),
            client_cap: ClientCap::Known,
            profiles: Profiles::default(),
            learn: Learn::Ask,
            resumable: false,
            door: false,
            identity: "".into(),
            durable: false,
            replicated: false,
            max_sessions: 1_000,
            max_calls: 20_000,
            drain: Duration::from_secs(30),
            max_message: 64 << 20,
            callbacks: BTreeMap::new(),
            redact: Vec::new(),
            observed: Observed::Nothing,
            traces: false,
            seed: 0,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}

impl From<ServerConfig> for Config {
    fn from(server: ServerConfig) -> Config {
        Config { server: Arc::new(server), ..Config::default() }
    }
}

impl Config {
    /// The server that the command line names, to be changed.
    pub fn server_mut(&mut self) -> &mut ServerConfig {
        Arc::make_mut(&mut self.server)
    }

    /// What a server is. `None` if there is no such definition.
    pub fn definition(&self, id: DefinitionId) -> Option<&Arc<ServerConfig>> {
        if self.gone.contains(&id) {
            return None;
        }
        match usize::from(id.0).checked_sub(1) {
            None => Some(&self.server),
            Some(other) => self.others.get(other),
        }
    }

    /// Every definition and its number.
    pub fn definitions(&self) -> impl Iterator<Item = (DefinitionId, &Arc<ServerConfig>)> {
        self.named().filter(|(id, _)| !self.gone.contains(id))
    }

    /// Every definition that there is or was.
    pub(crate) fn named(&self) -> impl Iterator<Item = (DefinitionId, &Arc<ServerConfig>)> {
        let all = std::iter::once(&self.server).chain(&self.others);
        (0..).map(DefinitionId).zip(all)
    }

    /// What is so for a client that calls itself this. Of two rules that fit, the nearer glob wins, then the later one.
    pub fn rule_for(&self, name: &str) -> Option<&Arc<ClientRule>> {
        let fitting = self.clients.iter().filter_map(|rule| Some((rule.glob.closeness(name)?, rule)));
        fitting.max_by_key(|(closeness, _)| *closeness).map(|(_, rule)| rule)
    }

    /// The only definition, if there are no others.
    pub(crate) fn only_definition(&self) -> Option<DefinitionId> {
        let mut all = self.definitions().map(|(id, _)| id);
        all.next().filter(|_| all.next().is_none())
    }

    /// Its limits per method and tool, to be added to.
    pub fn rules_mut(&mut self) -> &mut Rules {
        Arc::make_mut(&mut self.server_mut().rules)
    }

    /// What the server, and the sessions of its clients, are called in the store.
    pub fn is_called(&mut self, identity: Box<str>) {
        self.identity.clone_from(&identity);
        self.server_mut().identity = identity;
    }

    /// Whether calls may have tickets, so that an earlier process may have left some.
    pub fn has_tickets(&self) -> bool {
        let capped = |cap: ClientCap| matches!(cap, ClientCap::After(_));
        let rules = || self.clients.iter().filter_map(|rule| rule.cap());
        self.tasks || self.resumable || capped(self.client_cap) || rules().any(capped)
    }

    /// Whether there is any tool that not everybody may call.
    pub(crate) fn leaves_tools_out(&self) -> bool {
        !self.rights.is_empty() || self.definitions().any(|(_, server)| server.exposure.leaves_tools_out())
    }

    /// Whether any limit follows what is measured.
    pub fn adapts(&self) -> bool {
        self.definitions().any(|(_, server)| server.rules.adapts())
    }

    /// What limits follow is measured by the steps of all calls.
    pub(crate) fn looks_on_itself(&mut self) {
        if self.adapts() || self.traces {
            self.observed = Observed::All;
        }
    }

    /// Whether anything may be stored whoever the client is, so that the server needs a name in the store. For a
    /// client whose calls are handed off because of what is known of it, `Action::NeedIdentity` asks for one.
    pub fn uses_store(&self) -> bool {
        self.has_tickets()
            || self.durable
            || self.definitions().any(|(_, server)| server.rules.any_keeps_answers())
    }
}
