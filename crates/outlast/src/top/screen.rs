//! The terminal: keys come in, screens go out. It is given back as it was, whatever happens.

use super::draw::draw;
use super::source::Source;
use super::view::{Key, Mode, View, Wish};
use crate::tasks::Problem;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use std::io::{self, Stdout, stdout};
use std::time::Duration;

/// How often the state is read again.
const REFRESH: Duration = Duration::from_millis(500);

/// Shows the screen until a person leaves it.
pub fn run(source: &Source, mut view: View, colours: bool) -> Result<(), Problem> {
    view.show(source.state()?);
    let screen = Screen::open().and_then(|mut screen| talk(&mut screen, source, &mut view, colours));
    screen.map_err(|error| no_terminal(&error))
}

/// A terminal without line editing, on a page of its own, until this goes.
struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    fn open() -> io::Result<Screen> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(Screen(Terminal::new(CrosstermBackend::new(stdout()))?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody left to be told.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

fn no_terminal(error: &io::Error) -> Problem {
    Problem(
        crate::tasks::Status::Failed,
        format!("top needs a terminal ({error}); write: outlast top --once"),
    )
}

fn talk(screen: &mut Screen, source: &Source, view: &mut View, colours: bool) -> io::Result<()> {
    loop {
        screen.0.draw(|frame| draw(frame, view, colours))?;
        let Some(key) = next_key()? else {
            refresh(source, view);
            continue;
        };
        match view.key(key) {
            Some(Wish::Quit) => return Ok(()),
            Some(wish) => fulfil(source, view, &wish),
            None => {}
        }
    }
}

/// The next key; `None` if it is time to look again.
fn next_key() -> io::Result<Option<Key>> {
    if !event::poll(REFRESH)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => understood(key),
        _ => None,
    })
}

fn understood(key: KeyEvent) -> Option<Key> {
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

fn refresh(source: &Source, view: &mut View) {
    match source.state() {
        Ok(state) => view.show(state),
        Err(Problem(_, why)) => view.notice = why,
    }
    if let Mode::Story(id, _) = &view.mode {
        view.story = source.story(id);
    }
}

fn fulfil(source: &Source, view: &mut View, wish: &Wish) {
    let done = match wish {
        Wish::Cancel(id) => source.cancel(id),
        Wish::Approve(hold) => source.decide(*hold, true),
        Wish::Decline(hold) => source.decide(*hold, false),
        Wish::Story(id) => {
            view.story = source.story(id);
            return;
        }
        Wish::Quit => return,
    };
    view.notice = done.unwrap_or_else(|Problem(_, why)| why);
    refresh(source, view);
}
