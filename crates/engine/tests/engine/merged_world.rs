//! The merged door in any weather: sessions and modern clients in front of three servers that are slow, change their
//! minds, end, cannot be started, and answer errors. Whatever happens, every request is answered once as soon as the
//! servers are well again, and nothing is left behind when everybody has gone.

use outlast_testkit::script::World;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 400;
const STEPS: usize = 120;
const SESSIONS: u8 = 3;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Rng(u64);

impl Rng {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % count as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// What a server was asked and has not answered.
struct Asked {
    server: u32,
    id: Value,
    method: String,
    paged: bool,
}

struct Play {
    world: World,
    rng: Rng,
    /// Everything so far, for whoever must find out.
    story: Vec<String>,
    asked: Vec<Asked>,
    /// Servers that are about to start, and to end.
    starting: BTreeSet<u32>,
    ending: BTreeSet<u32>,
    servers: BTreeSet<u32>,
    /// Requests by their exchange: the id, and how often it was answered. Standing streams have none.
    open: BTreeMap<u32, (String, usize)>,
    /// The heads of requests, for those that end with their session.
    heads: BTreeMap<u32, String>,
    standing: BTreeSet<u32>,
    stores: Vec<u64>,
    exchanges: u32,
}

impl Play {
    fn new(seed: u64) -> Play {
        let mut play = Play {
            world: World::default(),
            rng: Rng(seed),
            story: Vec::new(),
            asked: Vec::new(),
            starting: BTreeSet::new(),
            ending: BTreeSet::new(),
            servers: BTreeSet::new(),
            open: BTreeMap::new(),
            heads: BTreeMap::new(),
            standing: BTreeSet::new(),
            stores: Vec::new(),
            exchanges: 0,
        };
        for line in ["set serve", "set server ci", "set server late", "set session-idle 20s"] {
            play.input(line);
        }
        for line in ["set tasks", "set resumable", "set share session", "set share all", "set restart never"]
        {
            if play.rng.chance(30) {
                play.input(line);
            }
        }
        play
    }

    fn input(&mut self, line: &str) {
        self.story.push(line.to_owned());
        let out = self.world.input(line);
        out.iter().for_each(|line| self.read(line));
        self.story.extend(out);
        if let Err(broken) = self.world.engine.check_invariants() {
            self.fail(&broken);
        }
    }

    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        panic!("{why}\n{}", self.story.join("\n"));
    }

    /// What comes out.
    fn read(&mut self, line: &str) {
        if let Some(text) = line.strip_prefix(">> ") {
            let Some((server, text)) = text.split_once(": ") else { return };
            let (Ok(server), Ok(message)) = (server.parse(), serde_json::from_str::<Value>(text)) else {
                return;
            };
            if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                let paged = message["params"].get("cursor").is_some();
                self.asked.push(Asked { server, id: id.clone(), method: method.into(), paged });
            }
        } else if let Some(text) = line.strip_prefix("<< ") {
            self.read_response(text);
        } else if let Some(text) = line.strip_prefix(".. ") {
            self.read_action(text);
        }
    }

    fn read_response(&mut self, text: &str) {
        let Some((exchange, text)) = text.split_once(": ") else { return };
        let Ok(exchange) = exchange.parse::<u32>() else { return };
        if let Some((id, count)) = self.open.get_mut(&exchange) {
            let answers = [format!(r#""id":{id},"result""#), format!(r#""id":{id},"error""#)];
            *count += answers.iter().filter(|answer| text.contains(*answer)).count();
        }
        let ends = text == "finish" || (text.as_bytes()[0].is_ascii_digit() && !text.ends_with(" events"));
        if ends {
            self.standing.remove(&exchange);
            let refused = text.starts_with('4') || text.starts_with('5') || text.starts_with("202");
            if let Some((id, count)) = self.open.remove(&exchange)
                && !refused
                && count != 1
            {
                self.fail(&format!("exchange {exchange}: request {id} was answered {count} times"));
            }
        }
    }

    fn read_action(&mut self, text: &str) {
        if let Some(rest) = text.strip_prefix("store ") {
            self.stores.extend(rest.split(':').next().and_then(|number| number.parse::<u64>().ok()));
        }
        if let Some(server) = text.strip_prefix("let go of ") {
            let server = server.parse().unwrap();
            self.servers.remove(&server);
            self.starting.remove(&server);
            self.ending.remove(&server);
        }
        let Some((server, deed)) = text.split_once(": ") else { return };
        let Ok(server) = server.parse::<u32>() else { return };
        if deed.starts_with("start") {
            self.servers.insert(server);
            self.starting.insert(server);
            self.ending.remove(&server);
            self.asked.retain(|asked| asked.server != server);
        } else {
            self.ending.insert(server);
        }
    }

    // Clients.

    fn post(&mut self, head: &str, method: &str, params: &str) {
        self.exchanges += 1;
        let exchange = self.exchanges;
        let id = exchange.to_string();
        self.open.insert(exchange, (id.clone(), 0));
        self.heads.insert(exchange, head.to_owned());
        self.input(&format!(
            r#"post {exchange} {head} {{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#
        ));
    }

    fn says(&mut self, head: &str, method: &str, params: &str) {
        self.exchanges += 1;
        let exchange = self.exchanges;
        self.input(&format!(
            r#"post {exchange} {head} {{"jsonrpc":"2.0","method":"{method}","params":{{{params}}}}}"#
        ));
    }

    /// All sessions begin before anything else, so that their names are known.
    fn sessions_begin(&mut self) {
        for session in 1..=u32::from(SESSIONS) {
            let version = r#""protocolVersion":"2025-11-25","capabilities":{"roots":{}}"#;
            self.post("", "initialize", version);
            self.heads.insert(session, format!("session={session}"));
        }
    }

    fn client_acts(&mut self) {
        let session = self.rng.below(usize::from(SESSIONS)) + 1;
        let head = format!("session={session}");
        let tool = self.rng.pick(&["srv__run", "ci__run", "late__run", "ci__own2", "nobody__has", "run"]);
        let key = if self.rng.chance(30) { r#","_meta":{"dev.outlast/idempotencyKey":"k"}"# } else { "" };
        let task = if self.rng.chance(15) { r#","task":{}"# } else { "" };
        match self.rng.below(18) {
            0 => self.says(&head, "notifications/initialized", ""),
            1 | 2 => self.post(&head, "tools/list", ""),
            3 => self.post(&head, "prompts/list", ""),
            4 => self.post(&head, "resources/list", ""),
            5 => self.post(&head, "resources/subscribe", r#""uri":"file:///both""#),
            6 => self.post(&head, "resources/unsubscribe", r#""uri":"file:///both""#),
            7 => self.post(&head, "resources/read", r#""uri":"file:///t/x""#),
            8 => self.post(&head, "logging/setLevel", r#""level":"debug""#),
            9 => self.post(&head, "completion/complete", r#""ref":{"type":"ref/prompt","name":"ci__ask"}"#),
            10 => self.stands(&head),
            11 if self.rng.chance(20) => {
                self.exchanges += 1;
                let heads = &self.heads;
                self.open.retain(|exchange, _| heads.get(exchange) != Some(&head));
                self.input(&format!("delete {} {head}", self.exchanges));
            }
            12 => self.cancels(&head),
            13 => self.hangs_up(),
            14 => {
                let method = self.rng.pick(&["tools/list", "server/discover", "prompts/list"]);
                self.post(&format!("version=2026-07-28 method={method}"), method, META);
            }
            15 => {
                let head = format!("version=2026-07-28 method=tools/call name={tool}");
                self.post(&head, "tools/call", &format!(r#""name":"{tool}",{META}"#));
            }
            _ => self.post(&head, "tools/call", &format!(r#""name":"{tool}"{task}{key}"#)),
        }
    }

    fn stands(&mut self, head: &str) {
        self.exchanges += 1;
        self.standing.insert(self.exchanges);
        self.input(&format!("get {} {head}", self.exchanges));
    }

    /// A cancelled request needs no answer, and may have one that crosses it.
    fn cancels(&mut self, head: &str) {
        let Some(exchange) = self.some_open() else { return };
        self.open.remove(&exchange);
        self.says(head, "notifications/cancelled", &format!(r#""requestId":{exchange}"#));
    }

    fn hangs_up(&mut self) {
        let Some(exchange) = self.some_open() else { return };
        self.open.remove(&exchange);
        self.input(&format!("hang-up {exchange}"));
    }

    fn some_open(&mut self) -> Option<u32> {
        let open: Vec<u32> = self.open.keys().copied().collect();
        (!open.is_empty()).then(|| open[self.rng.below(open.len())])
    }

    // Servers.

    fn server_acts(&mut self) {
        let (starting, ending) = (self.starting.first().copied(), self.ending.first().copied());
        match self.rng.below(10) {
            0 | 1 if starting.is_some() => self.starts(starting.unwrap_or_default()),
            2 if ending.is_some() => self.ends(ending.unwrap_or_default()),
            3 if !self.servers.is_empty() => self.misbehaves(),
            4 if !self.stores.is_empty() => {
                let number = self.stores.remove(0);
                let word = if self.rng.chance(10) { "not-stored" } else { "stored" };
                self.input(&format!("{word} {number}"));
            }
            _ if !self.asked.is_empty() => {
                let at = self.rng.below(self.asked.len());
                let asked = self.asked.remove(at);
                let well = !self.rng.chance(8);
                self.answers(&asked, well);
            }
            _ => {}
        }
    }

    fn starts(&mut self, server: u32) {
        self.starting.remove(&server);
        if self.rng.chance(10) {
            return self.input(&format!("server-{server} start-failed not-found"));
        }
        self.input(&format!("server-{server} started"));
    }

    fn ends(&mut self, server: u32) {
        self.ending.remove(&server);
        self.asked.retain(|asked| asked.server != server);
        self.input(&format!("server-{server} exited 0"));
        self.input(&format!("server-{server} output-closed"));
    }

    fn misbehaves(&mut self) {
        let servers: Vec<u32> = self.servers.difference(&self.starting).copied().collect();
        if servers.is_empty() {
            return;
        }
        let server = servers[self.rng.below(servers.len())];
        let what = self.rng.pick(&["tools", "prompts", "resources"]);
        match self.rng.below(6) {
            0 => self.ends(server),
            1 => {
                let Some(at) = self.asked.iter().position(|asked| asked.server == server) else { return };
                let asked = self.asked.remove(at);
                self.input(&format!("server-{server} server-oversized {}", asked.id));
            }
            2 => self.input(&format!("server-{server} < {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{}}}}")),
            _ => self.input(&format!(
                r#"server-{server} < {{"jsonrpc":"2.0","method":"notifications/{what}/list_changed"}}"#
            )),
        }
    }

    fn answers(&mut self, asked: &Asked, well: bool) {
        let Asked { server, id, method, paged } = asked;
        let more = if *paged || !self.rng.chance(20) { "" } else { r#","nextCursor":"more""# };
        let result = match method.as_str() {
            _ if !well => {
                return self.input(&format!(
                    r#"server-{server} < {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"no"}}}}"#
                ));
            }
            "initialize" => {
                let capabilities = r#"{"tools":{},"prompts":{},"resources":{"subscribe":true},"logging":{},"completions":{}}"#;
                format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#)
            }
            "server/discover" => {
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#
                    .into()
            }
            "tools/list" => format!(r#"{{"tools":[{{"name":"run"}},{{"name":"own{server}"}}]{more}}}"#),
            "prompts/list" => format!(r#"{{"prompts":[{{"name":"ask"}}]{more}}}"#),
            "resources/list" => format!(r#"{{"resources":[{{"uri":"file:///both"}}]{more}}}"#),
            "resources/templates/list" => r#"{"resourceTemplates":[{"uriTemplate":"file:///t/{x}"}]}"#.into(),
            _ => "{}".into(),
        };
        self.input(&format!(r#"server-{server} < {{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    // The end.

    /// From now on everything goes well.
    fn heal(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for server in std::mem::take(&mut self.starting) {
                self.input(&format!("server-{server} started"));
            }
            for asked in std::mem::take(&mut self.asked) {
                self.answers(&asked, true);
            }
            for server in std::mem::take(&mut self.ending) {
                self.ends(server);
            }
            for number in std::mem::take(&mut self.stores) {
                self.input(&format!("stored {number}"));
            }
            self.input("wait 5s");
        }
    }

    fn finish(mut self) {
        self.heal(30);
        if let Some((exchange, _)) = self.open.first_key_value() {
            self.fail(&format!("exchange {exchange} is never answered"));
        }
        for exchange in std::mem::take(&mut self.standing) {
            self.input(&format!("hang-up {exchange}"));
        }
        for session in 1..=SESSIONS {
            self.exchanges += 1;
            self.input(&format!("delete {} session={session}", self.exchanges));
        }
        self.heal(10);
        self.input("wait 100h");
        self.heal(10);
        if let Err(left) = self.world.engine.check_nothing_is_left() {
            self.fail(&left);
        }
    }
}

fn play(seed: u64) {
    let mut play = Play::new(seed);
    play.sessions_begin();
    for _ in 0..STEPS {
        match play.rng.below(10) {
            0..3 => play.client_acts(),
            3..9 => play.server_acts(),
            _ => {
                let time = play.rng.pick(&["1ms", "100ms", "2s", "5s", "30s"]);
                play.input(&format!("wait {time}"));
            }
        }
    }
    play.finish();
}

#[test]
fn every_request_at_the_merged_door_is_answered_in_any_weather() {
    (1..=SEEDS).for_each(play);
}
