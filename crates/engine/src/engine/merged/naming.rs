//! Requests that name something that one server has: they go to that server, under its own name for it.

use super::{Asking, Engine};
use crate::catalog::Kind;
use crate::clients::Way;
use crate::error::json_text;
use crate::id::{ClientId, DefinitionId, ServerId};
use crate::json;
use crate::merged::Needs;
use crate::method::Method;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Patch};
use std::ops::Range;

/// What a request names, and where in its message.
struct Named {
    kind: Kind,
    name: String,
    at: Range<usize>,
}

impl Engine {
    /// What must be known before it is known whose a request is. Nothing if that is known already.
    pub(super) fn needs_to_resolve(&mut self, asking: &Asking, message: &Message) -> Option<Needs> {
        let named = named(&asking.method, message)?;
        if self.resolve(asking.client, &named).is_some() {
            return None;
        }
        Some(match named.kind {
            Kind::Tools => Needs::Lists(&[Kind::Tools]),
            Kind::Prompts => Needs::Lists(&[Kind::Prompts]),
            Kind::Resources | Kind::Templates => Needs::Lists(&[Kind::Resources, Kind::Templates]),
        })
    }

    /// The server that has what is named, and what it is called there.
    fn resolve(&mut self, client: ClientId, named: &Named) -> Option<(DefinitionId, Box<str>)> {
        let view = self.view_of(client, named.kind, false);
        if let Some(found) = view.resolve(&named.name) {
            return Some((found.definition, found.entry.name.clone()));
        }
        if named.kind != Kind::Resources {
            return None;
        }
        let templates = self.view_of(client, Kind::Templates, false);
        let found = templates.resolve(&named.name);
        if let Some(found) = found {
            return Some((found.definition, found.entry.name.clone()));
        }
        let found = templates.template_for(&named.name)?;
        // Of a template that says whose it is, a uri does so in the same way.
        let prefix = found.public.strip_suffix(&*found.entry.name).unwrap_or_default();
        let own = named.name.strip_prefix(prefix).unwrap_or(&named.name);
        Some((found.definition, own.into()))
    }

    /// Passes a request to the server that has what it names.
    pub(super) fn call_merged(&mut self, now: Mono, asking: &Asking, message: &Message) {
        let Some(named) = named(&asking.method, message) else { return self.unknown_method(asking, message) };
        if asking.method == Method::ToolsCall && self.own_tool_at_merged(now, asking, message) {
            return;
        }
        let found = self.resolve(asking.client, &named);
        let server = found
            .as_ref()
            .and_then(|(definition, _)| self.clients.get(&asking.client)?.server_of(*definition));
        let (Some((_, own)), Some(server)) = (found, server) else {
            return self.nobody_has(asking, &named);
        };
        let renamed = if *own == *named.name { None } else { renamed(message, &named, &own) };
        let message = renamed.as_ref().unwrap_or(message);
        if matches!(asking.method, Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) {
            // A woken session gets servers that have not listed anything yet, so it is kept in their own words.
            let name = self.server_name(server);
            if self.clients.sets_up_at(asking.client, &name, &asking.method, message) {
                self.keep_session(asking.client);
            }
        }
        let (id, method) = (asking.id.clone(), asking.method.clone());
        self.pass_to(now, (asking.client, asking.way), server, (id, method), message);
    }

    fn nobody_has(&mut self, asking: &Asking, named: &Named) {
        let name = crate::error::cut(&named.name, crate::limits::NAME);
        let (code, what) = match named.kind {
            Kind::Tools => (-32602, "Unknown tool"),
            Kind::Prompts => (-32602, "Unknown prompt"),
            Kind::Resources | Kind::Templates if asking.modern => (-32602, "Resource not found"),
            Kind::Resources | Kind::Templates => (-32002, "Resource not found"),
        };
        let text = format!("{what}: {name}; no server behind this address has it now");
        self.refuse_merged(asking, code, &text);
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
        let span = message.envelope.get(field)?;
        Some(Named { kind, name: message.text(field)?.into_owned(), at: span.start()..span.end() })
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
    Some(Named { kind, name, at: json::range_in(&message.bytes, raw) })
}

/// The same request under the server's own name.
fn renamed(message: &Message, named: &Named, own: &str) -> Option<Message> {
    message.edited(Edit::range(named.at.clone(), Patch::of(&[&json_text(own)])))
}

impl Engine {
    /// A request that goes to this server, in the name of its client.
    fn pass_to(
        &mut self,
        now: Mono,
        (client, way): (ClientId, Way),
        server: ServerId,
        (id, method): (crate::id::JsonId, Method),
        message: &Message,
    ) {
        let request = self.read_request(client, server, id, method, message, way);
        self.route(now, request, message);
    }
}
