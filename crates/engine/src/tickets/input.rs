//! What servers ask through modern tasks, and what clients answer.

use super::{Asker, Question, Tickets};
use crate::id::{AskId, TaskNo};
use crate::limits;
use crate::record::{Change, State};
use crate::time::Wall;
use bytes::Bytes;

impl Tickets {
    /// A task shows a question, if there is room for one more.
    pub(crate) fn put_question(&mut self, no: TaskNo, request: Bytes, asker: Asker) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        if task.input.questions.len() < limits::QUESTIONS {
            task.input.ask(task.epoch, request, asker);
        }
    }

    /// What the server wants back with the answers.
    pub(crate) fn has_input_state(&mut self, no: TaskNo, state: Option<Bytes>) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.input.state = state;
        }
    }

    /// A task waits for its client while anything is not answered. Gives what is to be written.
    pub(crate) fn mind_input(&mut self, no: TaskNo, at: Wall) -> Option<Change> {
        let task = self.tasks.get_mut(&no).filter(|task| task.state.is_open())?;
        let state = if task.input.is_needed() { State::InputRequired } else { State::Working };
        if task.state == state && state != State::InputRequired {
            return None;
        }
        task.store_questions();
        self.move_to(no, state, at, |_| {})
    }

    /// Whether any task shows the question of a server.
    pub(crate) fn shows(&self, ask: AskId) -> Vec<TaskNo> {
        let asker = Asker::Request(ask);
        self.numbers(|task| task.input.questions.iter().any(|open| open.asker == asker))
    }

    /// The question of a server is answered, taken back or given up.
    pub(crate) fn close_question(&mut self, no: TaskNo, ask: AskId) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.input.questions.retain(|question| question.asker != Asker::Request(ask));
        }
    }

    /// A client answers one question. Gives back how it was asked; `None` if it is not open.
    pub(crate) fn answer(&mut self, no: TaskNo, key: &str, response: &[u8]) -> Option<Asker> {
        let task = self.tasks.get_mut(&no)?;
        let mut questions = task.input.questions.iter_mut();
        let question = questions.find(|open| &*open.key == key && open.answer.is_none())?;
        question.answer = Some(Bytes::copy_from_slice(response));
        Some(question.asker.clone())
    }

    /// Takes all that was asked by an answer of the server, with what it wants back.
    pub(crate) fn take_answers(&mut self, no: TaskNo) -> (Vec<Question>, Option<Bytes>) {
        let Some(task) = self.tasks.get_mut(&no) else { return (Vec::new(), None) };
        let by_result = |open: &mut Question| matches!(open.asker, Asker::Result(_));
        (task.input.questions.extract_if(.., by_result).collect(), task.input.state.take())
    }
}
