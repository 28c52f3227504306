//! What a principal may use, where a person says so: its servers and its tools. Some tools are for nobody
//! (`tools.allow`, `tools.deny`).
//!
//! A server that is not for it is not there: its address is unknown, and its part of a merged list is missing. A tool
//! that is not for it is in no list, and a call of it is refused, at whichever door.

use super::Engine;
use crate::calls::Request;
use crate::config::Rights;
use crate::error::Kind;
use crate::id::{ClientId, DefinitionId, ServerId};
use crate::method::Method;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch, scan_message};
use crate::{json, limits};
use std::collections::BTreeSet;

impl Engine {
    /// What is written of a principal. `None` if it may use everything.
    #[inline]
    pub(super) fn rights_of(&self, principal: Option<&str>) -> Option<&Rights> {
        // Most people write none, and every call asks.
        if self.config.rights.is_empty() { None } else { self.config.rights.get(principal?) }
    }

    /// The same for the principal of a client.
    #[inline]
    pub(super) fn rights_of_client(&self, client: ClientId) -> Option<&Rights> {
        if self.config.rights.is_empty() {
            return None;
        }
        self.rights_of(self.clients.get(&client)?.principal.as_deref())
    }

    /// Whether a server is there for a principal.
    pub(super) fn may_use(&self, principal: Option<&str>, definition: DefinitionId) -> bool {
        let Some(rights) = self.rights_of(principal) else { return true };
        self.config.definition(definition).is_some_and(|config| rights.has_server(&config.name))
    }

    /// The servers that there are for a principal.
    pub(super) fn definitions_for(&self, principal: Option<&str>) -> Vec<DefinitionId> {
        let all = self.config.definitions().map(|(id, _)| id);
        all.filter(|id| self.may_use(principal, *id)).collect()
    }

    pub(super) fn has_any_server(&self, principal: Option<&str>) -> bool {
        self.config.definitions().any(|(id, _)| self.may_use(principal, id))
    }

    /// Whether the principal of a client may call a tool of a server.
    pub(super) fn may_call(&self, client: ClientId, server: &str, tool: &str) -> bool {
        let rights = self.rights_of_client(client);
        rights.is_none_or(|rights| rights.may_call(server, &self.config.separator, tool))
    }

    /// Refuses a call of a tool that is not for whoever makes it. False if it is.
    #[inline]
    pub(super) fn is_forbidden(&mut self, now: Mono, request: &Request) -> bool {
        self.selective && self.refuse_forbidden(now, request)
    }

    #[cold]
    fn refuse_forbidden(&mut self, now: Mono, request: &Request) -> bool {
        let tool = request.tool.as_deref().filter(|_| request.method == Method::ToolsCall);
        let Some((tool, why)) = tool.and_then(|tool| Some((tool, self.why_forbidden(request, tool)?))) else {
            return false;
        };
        let (tool, server) = (crate::error::cut(tool, limits::NAME), self.server_name(request.server));
        let why = format!("`{tool}` of server `{server}` is not {why}");
        self.refuse_request(now, request, Kind::NotAllowed, why);
        true
    }

    /// What is so of a tool that may not be called: what it is not, and where that is written.
    fn why_forbidden(&self, request: &Request, tool: &str) -> Option<String> {
        let definition = self.definition_of(request.server);
        if !definition.exposure.shows(tool) {
            return Some(format!("among its tools here (tools.allow and tools.deny, {})", definition.source));
        }
        if self.may_call(request.client, &definition.name, tool) {
            return None;
        }
        let source = self.rights_of_client(request.client).map(|rights| &*rights.source);
        Some(format!("for this token ({})", source.unwrap_or_default()))
    }

    /// The answer to a list of tools, for a client that may not see all of them. `listed` is what its server said.
    #[cold]
    pub(super) fn without_forbidden(
        &self,
        (client, id): (ClientId, ServerId),
        listed: &Message,
        answer: Outgoing,
    ) -> Outgoing {
        let hidden = self.forbidden_in(client, id, listed);
        if hidden.is_empty() {
            return answer;
        }
        let whole = scan_message(answer.to_vec().into());
        let shown = whole.as_ref().and_then(|whole| {
            let tools = json::member(whole.raw(Field::Result)?, "tools")?;
            let mut left = json::elements(tools)?;
            left.retain(|tool| name_of(tool).is_none_or(|name| !hidden.contains(&name)));
            let left = [b"[", &*left.join(&b","[..]), b"]"].concat();
            let edit = Edit::range(json::range_in(&whole.bytes, tools), Patch::of(&[&left]));
            Some(Outgoing::edited(whole.bytes.clone(), vec![edit]))
        });
        shown.unwrap_or(answer)
    }

    fn forbidden_in(&self, client: ClientId, id: ServerId, listed: &Message) -> BTreeSet<String> {
        let definition = self.definition_of(id);
        let tools = listed.raw(Field::Result).and_then(|result| json::member(result, "tools"));
        let names = tools.and_then(json::elements).unwrap_or_default().into_iter().filter_map(name_of);
        let may_call =
            |name: &str| definition.exposure.shows(name) && self.may_call(client, &definition.name, name);
        names.filter(|name| !may_call(name)).collect()
    }
}

fn name_of(tool: &[u8]) -> Option<String> {
    serde_json::from_slice(json::member(tool, "name")?).ok()
}
