//! Clients of the modern era at the merged door: they list, call, and listen to what changes.

use super::rules::Who;
use super::{CLIENTS, Visit, World};
use crate::exchange::{MODERN, NAMES, mirror};
use outlast_engine::http::Head;
use outlast_engine::id::ExchangeId;
use outlast_engine::{Event, wire};
use serde_json::{Value, json};

/// How many there are. They are counted after the clients with sessions.
pub(super) const LISTENERS: usize = 3;

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) who: Who,
    /// Public names and uris that it was shown.
    pub(super) tools: Vec<String>,
    pub(super) uris: Vec<String>,
    /// Where it listens.
    listens: Option<ExchangeId>,
}

impl Listener {
    pub(super) fn new(who: Who) -> Listener {
        Listener { who, ..Listener::default() }
    }
}

impl World {
    pub(super) fn listener_acts(&mut self, client: usize) {
        let pause = self.rng.millis(20, 900);
        if self.left > 0 {
            self.agenda.plan(pause, super::Plan::Acts(client));
        }
        let known = !self.listeners[client - CLIENTS].tools.is_empty();
        match self.rng.below(8) {
            0 => self.ask_modern(client, "tools/list", json!({})),
            1 => self.ask_modern(client, "resources/list", json!({})),
            2 | 3 => self.listens(client),
            _ if known => self.calls_modern(client),
            _ => self.ask_modern(client, "tools/list", json!({})),
        }
    }

    fn calls_modern(&mut self, client: usize) {
        let tools = &self.listeners[client - CLIENTS].tools;
        let (name, nonce) = (tools[self.rng.below(tools.len())].clone(), self.judge.next());
        self.ask_modern(client, "tools/call", json!({"name": name, "arguments": {"nonce": nonce}}));
    }

    /// Ends what it listens to, or begins to.
    fn listens(&mut self, client: usize) {
        if let Some(open) = self.listeners[client - CLIENTS].listens.take() {
            self.hangs_up(open);
            return;
        }
        let mut uris = self.listeners[client - CLIENTS].uris.clone();
        uris.retain(|_| self.rng.chance(60));
        let asked = json!({"toolsListChanged": true, "resourceSubscriptions": uris});
        let id = self.judge.listens(client, uris);
        self.post_modern(client, id, "subscriptions/listen", json!({"notifications": asked}));
    }

    pub(super) fn hangs_up(&mut self, exchange: ExchangeId) {
        if let Some(event) = self.exchanges.hang_up(exchange) {
            self.feed(event);
        }
    }

    fn ask_modern(&mut self, client: usize, method: &str, params: Value) {
        let who = self.listeners[client - CLIENTS].who;
        let id = self.judge.asks(self.agenda.now, client, (None, who), method, &params);
        self.outcome.calls += 1;
        self.left = self.left.saturating_sub(1);
        self.post_modern(client, id, method, params);
    }

    fn post_modern(&mut self, client: usize, id: u64, method: &str, mut params: Value) {
        let who = self.listeners[client - CLIENTS].who;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": who.name(), "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut head = Head { takes_json: true, takes_events: true, ..Head::default() };
        head.principal = Some(NAMES[client % NAMES.len()].into());
        head.version = Some(MODERN.into());
        let line = wire::scan(message.to_string().into());
        mirror(&mut head, &line);
        let exchange = self.exchanges.open(&head, true);
        let listens = method == "subscriptions/listen";
        self.visits.push(Visit { client, door: None, who, listen: listens.then_some(id) });
        if listens {
            self.listeners[client - CLIENTS].listens = Some(exchange);
        }
        self.feed(Event::Posted(exchange, Box::new(head), line));
    }

    /// A modern client is shown a list.
    pub(super) fn listener_is_shown(&mut self, client: usize, method: &str, message: &Value) {
        let listener = &mut self.listeners[client - CLIENTS];
        let texts = |list: &str, member: &str| -> Vec<String> {
            let all = message["result"][list].as_array().cloned().unwrap_or_default();
            all.iter().filter_map(|one| Some(one[member].as_str()?.to_owned())).collect()
        };
        match method {
            "tools/list" => {
                let all = texts("tools", "name");
                self.judge.is_shown(None, listener.who, &all);
                listener.tools = all.into_iter().filter(|name| name.contains("__")).collect();
            }
            "resources/list" => {
                listener.uris = texts("resources", "uri");
                self.judge.has_resources(listener.who, &listener.uris);
            }
            _ => {}
        }
    }

    pub(super) fn listeners_leave(&mut self) {
        for client in 0..LISTENERS {
            if let Some(open) = self.listeners[client].listens.take() {
                self.hangs_up(open);
            }
        }
    }
}
