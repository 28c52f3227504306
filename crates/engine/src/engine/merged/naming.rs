//! Requests that name something that one server has: they go to that server, under its own name for it.

use super::on_demand::{Ours, named_through};
use super::{Asking, Engine};
use crate::catalog::{Kind, foreign_extensions};
use crate::clients::Door;
use crate::error::json_text;
use crate::id::{ClientId, DefinitionId, ServerId};
use crate::json;
use crate::merged::Needs;
use crate::method::Method;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch, scan_message};
use serde_json::json;
use std::ops::Range;

/// What a request names, and where in its message.
pub(super) struct Named {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) place: Place,
}

/// Where the name stands.
pub(super) enum Place {
    /// It is this field.
    Field(Field),
    /// Here.
    At(Range<usize>),
    /// Among the arguments of a tool of ours that calls others: the name and the arguments of that, and what takes the
    /// place of the arguments.
    Through { name: Range<usize>, arguments: Range<usize>, inner: Vec<u8> },
}

/// What a request is about, as far as it is known: looked up once, because every call asks.
pub(super) struct Meant {
    ours: Option<Ours>,
    named: Option<Named>,
    /// The server that has it, and what it is called there.
    found: Option<(DefinitionId, Box<str>)>,
}

impl Meant {
    /// What must be known before it is known whose a request is. Nothing if that is known already.
    pub(super) fn needs(&self) -> Option<Needs> {
        if self.ours == Some(Ours::Find) {
            return Some(Needs::Hidden);
        }
        let named = self.named.as_ref().filter(|_| self.found.is_none())?;
        Some(match named.kind {
            Kind::Tools => Needs::Lists(&[Kind::Tools]),
            Kind::Prompts => Needs::Lists(&[Kind::Prompts]),
            Kind::Resources | Kind::Templates => Needs::Resource,
        })
    }
}

impl Engine {
    pub(super) fn meant(&mut self, asking: &Asking, message: &Message) -> Meant {
        let ours = self.tool_of_ours(asking, message);
        let named = match ours {
            Some(Ours::Find) => None,
            Some(Ours::Describe | Ours::Call) => named_through(message),
            None => named(&asking.method, message),
        };
        let found = named.as_ref().and_then(|named| self.resolve(asking.client, named));
        Meant { ours, named, found }
    }

    /// The server that has what is named, and what it is called there.
    fn resolve(&mut self, client: ClientId, named: &Named) -> Option<(DefinitionId, Box<str>)> {
        let view = self.view_of(client, named.kind, false);
        if let Some(found) = view.resolve(&named.name) {
            return Some((found.definition, (*found.entry.name).into()));
        }
        if named.kind != Kind::Resources {
            return None;
        }
        let templates = self.view_of(client, Kind::Templates, false);
        let found = templates.resolve(&named.name);
        if let Some(found) = found {
            return Some((found.definition, (*found.entry.name).into()));
        }
        let found = templates.template_for(&named.name)?;
        // Of a template that says whose it is, a uri does so in the same way.
        let prefix = found.public.strip_suffix(&*found.entry.name).unwrap_or_default();
        let own = named.name.strip_prefix(prefix).unwrap_or(&named.name);
        Some((found.definition, own.into()))
    }

    /// The server that has a resource, and what it is called there.
    pub(super) fn resource_called(
        &mut self,
        client: ClientId,
        uri: &str,
    ) -> Option<(DefinitionId, Box<str>)> {
        let named = Named { kind: Kind::Resources, name: uri.to_owned(), place: Place::At(0..0) };
        self.resolve(client, &named)
    }

    /// Passes a request to the server that has what it names.
    pub(super) fn call_merged(&mut self, now: Mono, asking: &Asking, message: &Message, meant: Meant) {
        let Meant { ours, named, found } = meant;
        let named = match (ours, named) {
            (Some(Ours::Find), _) => return self.find_tools(asking, message),
            (Some(_), None) => return self.needs_a_name(asking),
            (None, None) => return self.pass_unknown(now, asking, message),
            (Some(Ours::Describe), Some(named)) => return self.describe_tool(asking, &named),
            (_, Some(named)) => named,
        };
        if asking.method == Method::ToolsCall && self.own_tool_at_merged(now, asking, message) {
            return;
        }
        let server = found
            .as_ref()
            .and_then(|(definition, _)| self.clients.get(&asking.client)?.server_of(*definition));
        let server = if planted!(self, MixesServers) {
            self.servers_of(asking.client).first().copied()
        } else {
            server
        };
        let (Some((definition, own)), Some(server)) = (found, server) else {
            return match self.server_of_unknown(asking.client).filter(|_| named.kind == Kind::Resources) {
                Some(server) => self.pass_to(now, asking, server, message),
                None => self.nobody_has(asking, &named),
            };
        };
        if *own != *named.name {
            self.remember_rename(asking.client, &asking.method, (definition, &own), &named.name);
        }
        let renamed = renamed(message, &named, &own);
        let message = renamed.as_ref().unwrap_or(message);
        let plain = if asking.modern { None } else { self.without_wish_for_task(server, message) };
        let message = plain.as_ref().unwrap_or(message);
        if let Some(why) = self.contradicted(asking, server, message) {
            return self.refuse_merged(asking, -32020, &format!("Header mismatch: {why}"));
        }
        if matches!(asking.method, Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) {
            // A woken session gets servers that have not listed anything yet, so it is kept in their own words.
            let name = self.server_name(server);
            if self.clients.sets_up_at(asking.client, &name, &asking.method, message) {
                self.keep_session(asking.client);
            }
        }
        self.pass_to(now, asking, server, message);
    }

    /// The only server of a client that has an extension which we do not know: what we know nothing of is for that
    /// one. `None` if there is none, or several.
    fn server_of_unknown(&self, client: ClientId) -> Option<ServerId> {
        let extended = |id: &ServerId| {
            let welcome = self.servers.get(id).and_then(|server| server.welcome.as_ref());
            let result = welcome.and_then(|welcome| welcome.raw(Field::Result));
            result.is_some_and(|result| !foreign_extensions(result).is_empty())
        };
        let mut extended = self.servers_of(client).into_iter().filter(extended);
        extended.next().filter(|_| extended.next().is_none())
    }

    /// A request that names nothing we know. A method of MCP is about something.
    fn pass_unknown(&mut self, now: Mono, asking: &Asking, message: &Message) {
        let unknown = matches!(asking.method, Method::Other(_));
        match self.server_of_unknown(asking.client).filter(|_| unknown) {
            Some(server) => self.pass_to(now, asking, server, message),
            None => self.unknown_method(asking, message),
        }
    }

    /// What headers of a request say otherwise than its arguments, now that it is known which tool it calls.
    fn contradicted(&self, asking: &Asking, server: ServerId, message: &Message) -> Option<String> {
        let client = self.clients.get(&asking.client)?;
        if asking.method != Method::ToolsCall || !matches!(client.door, Door::Exchange(_)) {
            return None;
        }
        self.servers.get(&server)?.mirrors.contradiction(&client.mirrored, message)
    }

    /// What a client hears of a resource comes under the name that it has for it.
    fn remember_rename(
        &mut self,
        client: ClientId,
        method: &Method,
        (definition, own): (DefinitionId, &str),
        public: &str,
    ) {
        match method {
            Method::ResourcesSubscribe => self.clients.renames(client, definition, own, Some(public)),
            Method::ResourcesUnsubscribe => self.clients.renames(client, definition, own, None),
            _ => {}
        }
    }

    /// A notification of a server as this client may see it.
    pub(in crate::engine) fn as_known_to(
        &self,
        client: ClientId,
        server: ServerId,
        message: &Message,
    ) -> Outgoing {
        let public = || {
            let definition = self.servers.get(&server)?.definition;
            self.clients.get(&client)?.name_for(definition, &message.text(Field::ParamsUri)?)
        };
        let edit = message.envelope.get(Field::ParamsUri).zip(public());
        let edit = edit.map(|(span, public)| Edit::replace(span, Patch::of(&[&json_text(public)])));
        Outgoing::edited(message.bytes.clone(), edit.into_iter().collect())
    }

    pub(super) fn nobody_has(&mut self, asking: &Asking, named: &Named) {
        let name = crate::error::cut(&named.name, crate::limits::NAME);
        let (code, what) = match named.kind {
            Kind::Tools => (-32602, "Unknown tool"),
            Kind::Prompts => (-32602, "Unknown prompt"),
            Kind::Resources | Kind::Templates => (-32002, "Resource not found"),
        };
        let text = format!("{what}: {name}; no server behind this address has it now");
        if asking.modern && matches!(named.kind, Kind::Resources | Kind::Templates) {
            return self.no_such_resource(asking, &text, &named.name);
        }
        self.refuse_merged(asking, code, &text);
    }

    /// The modern era has no code of its own for this: the error's data says which resource it is about.
    fn no_such_resource(&mut self, asking: &Asking, text: &str, uri: &str) {
        const CODE: i32 = -32602;
        let uri = crate::error::cut(uri, crate::limits::NAME);
        let error = json!({"code": CODE, "message": text, "data": {"uri": uri}}).to_string();
        let id = asking.id.patch();
        let answer = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), br#","error":"#, error.as_bytes(), b"}"];
        self.set_status(asking.way, Some(CODE.into()));
        self.reply(asking.client, asking.way, Some(&asking.id), Outgoing::plain(answer.concat()));
    }

    fn unknown_method(&mut self, asking: &Asking, message: &Message) {
        let (code, text) = match asking.method {
            Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::CompletionComplete => {
                (-32602, "Invalid params: what is it about?".to_owned())
            }
            _ => {
                let method = message.text(Field::Method).unwrap_or_default();
                let method = crate::error::cut(&method, crate::limits::NAME);
                (
                    -32601,
                    format!(
                        "Method not found: {method}; at the door of one server (/mcp/NAME) it would pass"
                    ),
                )
            }
        };
        self.refuse_merged(asking, code, &text);
    }
}

/// What a request names; `None` if it names nothing that a server has.
fn named(method: &Method, message: &Message) -> Option<Named> {
    let field = |kind, field| {
        Some(Named { kind, name: message.text(field)?.into_owned(), place: Place::Field(field) })
    };
    match method {
        Method::ToolsCall => field(Kind::Tools, Field::ParamsName),
        Method::PromptsGet => field(Kind::Prompts, Field::ParamsName),
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            field(Kind::Resources, Field::ParamsUri)
        }
        Method::CompletionComplete => completed(message),
        _ => None,
    }
}

/// What `completion/complete` is about: a prompt by its name, or a resource by its template.
fn completed(message: &Message) -> Option<Named> {
    let about = json::member(message.raw(Field::Params)?, "ref")?;
    let (kind, raw) = match json::member(about, "name") {
        Some(raw) => (Kind::Prompts, raw),
        None => (Kind::Resources, json::member(about, "uri")?),
    };
    let name = serde_json::from_slice(raw).ok()?;
    Some(Named { kind, name, place: Place::At(json::range_in(&message.bytes, raw)) })
}

/// The same request under the server's own name; `None` if it is that already.
fn renamed(message: &Message, named: &Named, own: &str) -> Option<Message> {
    let own_name = |at: &Range<usize>| Edit::range(at.clone(), Patch::of(&[&json_text(own)]));
    let edits = match &named.place {
        Place::Field(_) | Place::At(_) if *own == *named.name => return None,
        Place::Field(field) => return message.with_string(*field, &json_text(own)),
        Place::At(at) => vec![own_name(at)],
        Place::Through { name, arguments, inner } => {
            vec![own_name(name), Edit::range(arguments.clone(), Patch::of(&[inner]))]
        }
    };
    scan_message(Outgoing::edited(message.bytes.clone(), edits).to_vec().into())
}

impl Engine {
    /// A request that goes to this server, in the name of its client.
    fn pass_to(&mut self, now: Mono, asking: &Asking, server: ServerId, message: &Message) {
        let Asking { client, way, id, method, .. } = asking.clone();
        let request = self.read_request(client, server, id, method, message, way);
        self.route(now, request, message);
    }
}
