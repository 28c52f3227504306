//! Resources that several sessions of one server have subscribed to. To the server they are one client: it is told
//! to stop only when the last of them does.

use super::Engine;
use crate::calls::{Call, Request};
use crate::id::{CallId, ClientId, ServerId};
use crate::method::Method;
use crate::servers::{Life, Own};
use crate::wire::{Field, Message, Outgoing, scan_message};

impl Engine {
    /// Answers `resources/unsubscribe` in the server's place while other sessions want to hear of the resource.
    /// False if it is for the server.
    pub(super) fn others_stay_subscribed(&mut self, request: &Request, message: &Message) -> bool {
        let Some(answer) = self.unsubscribe_one(request, message) else { return false };
        self.reply(request.client, request.way, Some(&request.id), answer);
        true
    }

    /// Does the same with one that has waited for its server: others may have subscribed meanwhile.
    pub(super) fn others_have_subscribed(&mut self, id: CallId, message: &Message) -> bool {
        let unsubscribes = |call: &&Call| call.request.method == Method::ResourcesUnsubscribe;
        let Some(call) = self.calls.get(id).filter(unsubscribes) else { return false };
        let request = call.request.clone();
        let Some(answer) = self.unsubscribe_one(&request, message) else { return false };
        self.settle(id, Some(answer));
        true
    }

    /// The answer to one session of several that does not want to hear of a resource any more; `None` if no other
    /// does.
    fn unsubscribe_one(&mut self, request: &Request, message: &Message) -> Option<Outgoing> {
        let uri = message.raw(Field::ParamsUri)?;
        let (_, clients) = self.servers.get(&request.server)?.handshake.subscribed.get(uri)?;
        let others = clients.iter().any(|client| *client != request.client);
        if planted!(self, UnsubscribesAll) || !others {
            return None;
        }
        self.servers.unsubscribe(request.server, uri, request.client);
        self.keep_for_waking(request.client, &request.method, message);
        let id = request.id.patch();
        let answer = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), br#","result":{}}"#].concat();
        Some(Outgoing::plain(answer))
    }

    /// A session does not need its server any more: what only this session wanted to hear of is taken back, if the
    /// server has others to work for.
    pub(super) fn unsubscribe_gone(&mut self, client: ClientId, id: ServerId) {
        let unwanted = self.servers.unsubscribe_all(id, client);
        let Some(server) = self.servers.get(&id) else { return };
        if server.clients.is_empty() || server.life != Life::Up || !self.config.manner.serves() {
            return;
        }
        for uri in unwanted {
            self.unsubscribe(id, &uri);
        }
    }

    fn unsubscribe(&mut self, id: ServerId, uri: &[u8]) {
        let head = br#"{"jsonrpc":"2.0","id":0,"method":"resources/unsubscribe","params":{"uri":"#;
        let request = [&head[..], uri, b"}}"].concat();
        if let Some(message) = scan_message(request.into()) {
            self.ask_again(id, &message, Own::Quiet);
        }
    }
}
