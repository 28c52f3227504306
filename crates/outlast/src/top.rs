//! `outlast top`: what runs now, how near it is to its limits, and what waits for a person.
//!
//! It looks at what outlast tells of itself, and is no part of any call. Not here: what is stored of live calls
//! (`observe/`).

mod draw;
mod http;
mod model;
mod screen;
mod source;
mod view;

pub use http::Address;
pub use view::Sort;

use crate::observe::stderr::say;
use crate::observe::table::table as laid_out;
use crate::observe::terminal::Stream;
use crate::store::Home;
use crate::tasks::{Problem, Status, print};
use source::Source;
use std::io;
use std::process::ExitCode;
use view::View;

/// What is asked.
#[derive(Debug)]
pub struct Request {
    /// Print it once, and end.
    pub once: bool,
    /// For programs; once.
    pub json: bool,
    pub sort: Sort,
    /// Only lines with this text.
    pub filter: String,
    pub from: From,
}

/// Where to look.
#[derive(Debug)]
pub enum From {
    /// The store that all outlast processes of a user share.
    Store(Home),
    /// An `outlast serve`.
    Serve(Address),
}

/// Does what is asked.
pub fn run(request: Request) -> io::Result<ExitCode> {
    let status = act(request).unwrap_or_else(|Problem(status, why)| {
        say(&why);
        status
    });
    Ok(ExitCode::from(status as u8))
}

fn act(request: Request) -> Result<Status, Problem> {
    let Request { once, json, sort, filter, from } = request;
    let source = match from {
        From::Store(place) => Source::Store(place),
        From::Serve(address) => Source::Serve(address),
    };
    if json {
        return print(format!("{}\n", source.json()?).as_bytes());
    }
    let mut view = View::new(sort, filter);
    if once {
        view.show(source.state()?);
        return print(table(&view).as_bytes());
    }
    screen::run(&source, view, Stream::Stdout.has_colours()).map(|()| Status::Done)
}

/// The list as text.
fn table(view: &View) -> String {
    let rows = view.rows();
    if rows.is_empty() {
        return "no call is open\n".into();
    }
    let heads = draw::heads().map(str::to_owned);
    let lines = rows.iter().map(|row| draw::cells(row, view.state.now));
    laid_out(&[heads].into_iter().chain(lines).collect::<Vec<_>>())
}
