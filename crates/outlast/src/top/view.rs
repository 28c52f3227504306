//! What is on the screen, and what a key does to it. Knows no terminal and no store, so that all of it can be tested.

use super::model::{Call, Hold, State};

/// By what calls are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The oldest first.
    #[default]
    Age,
    /// What is nearest to its limit first.
    Limit,
    Server,
    Tool,
    State,
}

impl Sort {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Sort); 5] = [
        ("age", Sort::Age),
        ("limit", Sort::Limit),
        ("server", Sort::Server),
        ("tool", Sort::Tool),
        ("state", Sort::State),
    ];

    /// The order that is called so.
    pub fn named(name: &str) -> Option<Sort> {
        Sort::ALL.iter().find(|(known, _)| *known == name).map(|(_, sort)| *sort)
    }

    pub fn name(self) -> &'static str {
        Sort::ALL.iter().find(|(_, sort)| *sort == self).map_or("", |(name, _)| name)
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|(_, sort)| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()].1
    }
}

/// A key, as far as any is of use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Up,
    Down,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// What a person wants that the screen alone cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Quit,
    Cancel(String),
    Approve(u64),
    Decline(u64),
    Story(String),
}

/// What the keys mean just now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    List,
    /// The filter is written.
    Filter,
    /// The story of a call, and from which line on.
    Story(String, usize),
    Help,
    /// Whether this is really meant.
    Sure(Wish),
}

/// One line of the list.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    Hold(&'a Hold),
    Call(&'a Call),
}

/// The screen.
#[derive(Debug, Default)]
pub struct View {
    pub state: State,
    pub sort: Sort,
    pub filter: String,
    pub paused: bool,
    pub mode: Mode,
    /// What is told below the list.
    pub notice: String,
    /// The lines of the story that is read.
    pub story: Vec<String>,
    /// Which line is chosen, by what it is about, so that it stays chosen when others come and go.
    chosen: Option<String>,
}

impl Row<'_> {
    fn id(&self) -> String {
        match self {
            Row::Hold(hold) => format!("hold {}", hold.hold),
            Row::Call(call) => format!("call {}", call.id),
        }
    }

    fn fits(&self, filter: &str) -> bool {
        let fits = |text: &str| text.to_lowercase().contains(filter);
        match self {
            Row::Hold(hold) => [&hold.server, &hold.tool, &hold.client].into_iter().any(|text| fits(text)),
            Row::Call(call) => {
                let words = [&*call.server, call.name(), &*call.state, &*call.client, &*call.principal];
                words.into_iter().any(fits)
            }
        }
    }
}

impl View {
    pub fn new(sort: Sort, filter: String) -> View {
        View { sort, filter, ..View::default() }
    }

    /// What is new, unless the screen stands still.
    pub fn show(&mut self, state: State) {
        if !self.paused {
            self.state = state;
        }
    }

    /// The lines, in their order: what waits for a person, then calls.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let filter = self.filter.to_lowercase();
        let now = self.state.now;
        let mut calls: Vec<&Call> = self.state.calls.iter().collect();
        calls.sort_by(|a, b| {
            let older = a.began.cmp(&b.began);
            match self.sort {
                Sort::Age => older,
                Sort::Limit => b.used(now).cmp(&a.used(now)).then(older),
                Sort::Server => a.server.cmp(&b.server).then(older),
                Sort::Tool => a.name().cmp(b.name()).then(older),
                Sort::State => a.state.cmp(&b.state).then(older),
            }
        });
        let open = self.state.holds.iter().filter(|hold| hold.open).map(Row::Hold);
        open.chain(calls.into_iter().map(Row::Call)).filter(|row| row.fits(&filter)).collect()
    }

    /// The place of the chosen line.
    pub fn at(&self) -> usize {
        let chosen = self.chosen.as_deref();
        self.rows().iter().position(|row| Some(&*row.id()) == chosen).unwrap_or(0)
    }

    fn choose(&mut self, at: usize) {
        let rows = self.rows();
        let name = rows.get(at.min(rows.len().saturating_sub(1))).map(Row::id);
        self.chosen = name;
    }

    /// A key is pressed. What is wished, if the screen cannot do it.
    pub fn key(&mut self, key: Key) -> Option<Wish> {
        if key == Key::Interrupt {
            return Some(Wish::Quit);
        }
        match std::mem::take(&mut self.mode) {
            Mode::List => self.key_in_list(key),
            Mode::Filter => {
                self.key_in_filter(key);
                None
            }
            Mode::Story(id, line) => {
                self.key_in_story(key, id, line);
                None
            }
            Mode::Help => None,
            Mode::Sure(wish) => Some(wish).filter(|_| matches!(key, Key::Char('y') | Key::Enter)),
        }
    }

    fn key_in_list(&mut self, key: Key) -> Option<Wish> {
        self.notice.clear();
        match key {
            Key::Char('q') | Key::Escape => return Some(Wish::Quit),
            Key::Up | Key::Char('k') => self.choose(self.at().saturating_sub(1)),
            Key::Down | Key::Char('j') => self.choose(self.at() + 1),
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('p' | ' ') => self.paused = !self.paused,
            Key::Char('?' | 'h') => self.mode = Mode::Help,
            Key::Char('a') => return self.decides(Wish::Approve),
            Key::Char('d') => return self.decides(Wish::Decline),
            Key::Char('c') => self.asks_to_cancel(),
            Key::Enter => return self.wants_story(),
            Key::Char(_) | Key::Backspace | Key::Interrupt => {}
        }
        None
    }

    fn key_in_filter(&mut self, key: Key) {
        match key {
            Key::Enter => return,
            Key::Escape => return self.filter.clear(),
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(c) => self.filter.push(c),
            Key::Up | Key::Down | Key::Interrupt => {}
        }
        self.mode = Mode::Filter;
    }

    fn key_in_story(&mut self, key: Key, id: String, line: usize) {
        let last = self.story.len().saturating_sub(1);
        match key {
            Key::Up | Key::Char('k') => self.mode = Mode::Story(id, line.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.mode = Mode::Story(id, (line + 1).min(last)),
            _ => {}
        }
    }

    fn chosen_hold(&self) -> Option<u64> {
        match self.rows().get(self.at()) {
            Some(Row::Hold(hold)) => Some(hold.hold),
            Some(Row::Call(call)) => call.hold,
            None => None,
        }
    }

    fn chosen_call(&self) -> Option<String> {
        match self.rows().get(self.at()) {
            Some(Row::Call(call)) => Some(call.id.clone()),
            _ => None,
        }
    }

    fn decides(&mut self, wish: fn(u64) -> Wish) -> Option<Wish> {
        let hold = self.chosen_hold();
        if hold.is_none() {
            self.notice = "choose a line that waits for approval".into();
        }
        hold.map(wish)
    }

    fn asks_to_cancel(&mut self) {
        match self.chosen_call() {
            Some(id) => self.mode = Mode::Sure(Wish::Cancel(id)),
            None => self.notice = "choose a call".into(),
        }
    }

    fn wants_story(&mut self) -> Option<Wish> {
        let id = self.chosen_call()?;
        self.mode = Mode::Story(id.clone(), 0);
        Some(Wish::Story(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view() -> View {
        let call = |id: &str, server: &str, began: u64, left: u64| {
            json!({"id": id, "server": server, "method": "tools/call", "tool": format!("t{id}"), "state": "running",
                "began": began, "timeoutMs": 1_000, "timeoutLeftMs": left, "maxMs": null})
        };
        let state = json!({"version": 1, "now": 10_000,
            "calls": [call("1", "b", 5_000, 900), call("2", "a", 1_000, 500), call("3", "a", 9_000, 100)],
            "holds": [{"hold": 7, "server": "a", "tool": "pay", "client": "c", "arguments": "{}", "open": true},
                {"hold": 8, "server": "a", "tool": "pay", "client": "c", "arguments": "{}", "open": false}]});
        let mut view = View::default();
        view.show(crate::top::model::read(&state).unwrap());
        view
    }

    fn order(view: &View) -> Vec<String> {
        view.rows().iter().map(Row::id).collect()
    }

    fn keys(view: &mut View, keys: &str) -> Option<Wish> {
        keys.chars().map(|c| view.key(if c == '\n' { Key::Enter } else { Key::Char(c) })).last().flatten()
    }

    #[test]
    fn what_waits_for_a_person_comes_first_and_then_the_oldest() {
        assert_eq!(order(&view()), ["hold 7", "call 2", "call 1", "call 3"]);
    }

    #[test]
    fn calls_can_be_ordered_by_what_is_left_of_their_limit() {
        let mut view = view();
        assert_eq!(keys(&mut view, "s"), None);
        assert_eq!(order(&view), ["hold 7", "call 3", "call 2", "call 1"]);
        keys(&mut view, "s");
        assert_eq!((order(&view)[1..].concat(), view.sort), ("call 2call 3call 1".into(), Sort::Server));
    }

    #[test]
    fn a_filter_leaves_what_fits() {
        let mut view = view();
        keys(&mut view, "/T3\n");
        assert_eq!((order(&view), &view.mode), (vec!["call 3".to_owned()], &Mode::List));
        keys(&mut view, "/");
        view.key(Key::Escape);
        assert_eq!(order(&view).len(), 4);
    }

    #[test]
    fn the_chosen_line_stays_chosen_when_others_go() {
        let mut view = view();
        keys(&mut view, "jjj");
        let mut state = view.state.clone();
        state.calls.remove(1);
        view.show(state);
        keys(&mut view, "c");
        assert_eq!(keys(&mut view, "y"), Some(Wish::Cancel("3".into())));
    }

    #[test]
    fn a_call_is_cancelled_only_if_that_is_meant() {
        let mut view = view();
        keys(&mut view, "jc");
        assert_eq!((keys(&mut view, "n"), &view.mode), (None, &Mode::List));
    }

    #[test]
    fn only_a_hold_can_be_approved() {
        let mut view = view();
        assert_eq!(keys(&mut view, "a"), Some(Wish::Approve(7)));
        assert_eq!(keys(&mut view, "d"), Some(Wish::Decline(7)));
        assert_eq!((keys(&mut view, "ja"), view.notice.is_empty()), (None, false));
    }

    #[test]
    fn a_screen_that_stands_still_shows_nothing_new() {
        let mut view = view();
        keys(&mut view, "p");
        view.show(State::default());
        assert_eq!(order(&view).len(), 4);
        keys(&mut view, "p");
        view.show(State::default());
        assert!(order(&view).is_empty());
    }

    #[test]
    fn the_story_of_a_call_is_asked_for_and_left() {
        let mut view = view();
        assert_eq!(keys(&mut view, "j\n"), Some(Wish::Story("2".into())));
        view.story = vec!["sent".into(), "answered".into()];
        view.key(Key::Down);
        view.key(Key::Down);
        assert_eq!(view.mode, Mode::Story("2".into(), 1));
        assert_eq!((view.key(Key::Escape), &view.mode), (None, &Mode::List));
    }
}
