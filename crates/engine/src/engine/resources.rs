//! Resources that several sessions of one server have subscribed to. To the server they are one client: it is told
//! to stop only when the last of them does.

use super::Engine;
use crate::calls::Request;
use crate::id::{ClientId, ServerId};
use crate::servers::{Life, Own};
use crate::wire::{Field, Message, Outgoing, scan_message};

impl Engine {
    /// Answers `resources/unsubscribe` in the server's place while other sessions want to hear of the resource.
    /// False if it is for the server.
    pub(super) fn others_stay_subscribed(&mut self, request: &Request, message: &Message) -> bool {
        let Some(uri) = message.raw(Field::ParamsUri) else { return false };
        let Some(server) = self.servers.get(&request.server) else { return false };
        let wanted = server.handshake.subscribed.get(uri);
        if !wanted.is_some_and(|(_, clients)| clients.iter().any(|client| *client != request.client)) {
            return false;
        }
        self.servers.unsubscribe(request.server, uri, request.client);
        self.keep_for_waking(request.client, &request.method, message);
        let id = request.id.patch();
        let answer = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), br#","result":{}}"#].concat();
        self.reply(request.client, request.way, Some(&request.id), Outgoing::plain(answer));
        true
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
