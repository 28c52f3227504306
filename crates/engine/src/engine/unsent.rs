//! Answers of clients to what a remote server asked, while the server cannot be reached.
//!
//! A person may have typed it, and cannot be asked again. So an answer that met no connection is kept, and sent as soon
//! as the server is reached again in the same session. It is dropped, and noted, if the session is lost, if the server
//! takes its question back, or after [`limits::UNSENT`](crate::limits::UNSENT).

use super::Engine;
use crate::action::Note;
use crate::http::Trouble;
use crate::id::ServerId;
use crate::time::Mono;
use crate::wire::Outgoing;

impl Engine {
    /// An answer comes back: no connection could be made.
    pub(super) fn undelivered(&mut self, now: Mono, id: ServerId, answer: &Outgoing, why: &str) {
        let dropped = self.servers.keep_unsent(now, id, answer.clone());
        self.note_dropped(id, dropped, "too many answers wait for it");
        self.trouble(now, id, None, &Trouble::Unreachable(why.into()));
    }

    /// The server is reached again, in the session in which it asked.
    pub(super) fn send_kept_answers(&mut self, now: Mono, id: ServerId) {
        let (answers, old) = self.servers.take_unsent(now, id);
        self.note_dropped(id, old, "it could not be reached for too long");
        answers.into_iter().for_each(|answer| self.send_answer(id, answer));
    }

    pub(super) fn drop_unsent(&mut self, id: ServerId, why: &str) {
        let (answers, old) = self.servers.take_unsent(self.at, id);
        self.note_dropped(id, answers.len() + old, why);
    }

    /// The server takes a question back whose answer is kept. False if there is none.
    pub(super) fn unsent_is_unwanted(&mut self, id: ServerId, question: &[u8]) -> bool {
        let known = self.servers.forget_unsent(id, question);
        self.note_dropped(id, known.into(), "it has taken its question back");
        known
    }

    fn note_dropped(&mut self, id: ServerId, count: usize, why: &str) {
        if count > 0 {
            let server = self.server_name(id);
            self.note(Note::AnswersDropped { server, count, why: why.into() });
        }
    }
}
