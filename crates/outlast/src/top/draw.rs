//! Draws the screen: what there is to see, in which place. Everything that servers and clients say is shown escaped.

use super::model::Server;
use super::view::{Mode, Row, Sort, View, Wish};
use crate::observe::text::escape_up_to;
use outlast_engine::settings::show_duration;
use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Text};
use ratatui_widgets::block::Block;
use ratatui_widgets::clear::Clear;
use ratatui_widgets::paragraph::Paragraph;
use ratatui_widgets::table::{Row as TableRow, Table, TableState};
use std::time::Duration;

/// The longest text of a peer in one cell.
const CELL: usize = 200;

const HEADS: [&str; 9] = ["AGE", "LIMIT", "STATE", "SERVER", "TOOL", "CLIENT", "SIGN", "TRY", "SAYS"];

const WIDTHS: [Constraint; 9] = [
    Constraint::Length(8),
    Constraint::Length(12),
    Constraint::Length(11),
    Constraint::Length(14),
    Constraint::Length(22),
    Constraint::Length(18),
    Constraint::Length(7),
    Constraint::Length(3),
    Constraint::Min(10),
];

const HELP: &str = "\
 up, down, j, k   choose a line
 s                sort by age, limit, server, tool, state
 /                show only lines with this text (Escape: all)
 p, blank         let the screen stand still, and go on
 Enter            the story of the call
 c                cancel the call
 a, d             approve or decline what waits for approval
 q                leave";

/// A whole screen.
pub fn draw(frame: &mut Frame<'_>, view: &View, colours: bool) {
    let areas = Layout::vertical([Constraint::Length(2), Constraint::Min(3), Constraint::Length(2)]);
    let [head, list, foot] = areas.areas(frame.area());
    frame.render_widget(Paragraph::new(vec![Line::from(summary(view)), servers(view)]), head);
    draw_list(frame, view, list, colours);
    frame.render_widget(Paragraph::new(vec![Line::from(notice(view)), Line::from(keys(view))]), foot);
    match &view.mode {
        Mode::Story(id, from) => draw_story(frame, view, id, *from, list),
        Mode::Help => draw_box(frame, list, " keys ", HELP.into(), 0),
        Mode::Sure(wish) => draw_box(frame, list, " really? ", question(wish).into(), 0),
        Mode::List | Mode::Filter => {}
    }
}

fn summary(view: &View) -> String {
    let state = &view.state;
    let more = if state.more > 0 { format!(" ({} more)", state.more) } else { String::new() };
    let waits = view.rows().iter().filter(|row| matches!(row, Row::Hold(_))).count();
    let still = if view.paused { "  PAUSED" } else { "" };
    let sort = Sort::name(view.sort);
    format!(
        "outlast top: {} calls{more}, {waits} wait for approval, sorted by {sort}{still}",
        state.calls.len()
    )
}

fn servers(view: &View) -> Line<'static> {
    let server = |server: &Server| {
        let busy = if server.in_flight > 0 { format!(" {}", server.in_flight) } else { String::new() };
        format!("{} {}{busy}", cell(&server.name), server.state)
    };
    let all: Vec<String> = view.state.servers.iter().take(20).map(server).collect();
    Line::from(all.join("  "))
}

fn notice(view: &View) -> String {
    match &view.mode {
        Mode::Filter => format!("filter: {}_", view.filter),
        _ if !view.notice.is_empty() => view.notice.clone(),
        _ if !view.filter.is_empty() => format!("only lines with `{}` (/ and Escape: all)", view.filter),
        _ => String::new(),
    }
}

fn keys(view: &View) -> &'static str {
    match view.mode {
        Mode::List => {
            "q quit  ? keys  s sort  / filter  p pause  Enter story  c cancel  a approve  d decline"
        }
        Mode::Filter => "Enter keep  Escape all",
        Mode::Sure(_) => "y yes  any other key no",
        Mode::Story(..) | Mode::Help => "up, down  Escape back",
    }
}

fn question(wish: &Wish) -> String {
    match wish {
        Wish::Cancel(id) => format!("cancel call {id}? (y)"),
        other => format!("{other:?}"),
    }
}

fn draw_list(frame: &mut Frame<'_>, view: &View, area: Rect, colours: bool) {
    let rows = view.rows();
    let lines = rows.iter().map(|row| {
        TableRow::new(cells(row, view.state.now)).style(if colours {
            style(row, view.state.now)
        } else {
            Style::default()
        })
    });
    let head = TableRow::new(HEADS).style(Style::default().add_modifier(Modifier::BOLD));
    let chosen = Style::default().add_modifier(Modifier::REVERSED);
    let table = Table::new(lines, WIDTHS).header(head).row_highlight_style(chosen).column_spacing(1);
    let mut place = TableState::default().with_selected((!rows.is_empty()).then(|| view.at()));
    frame.render_stateful_widget(table, area, &mut place);
}

fn style(row: &Row<'_>, now: u64) -> Style {
    match row {
        Row::Hold(_) => Style::default().fg(Color::Yellow),
        Row::Call(call) if call.used(now).is_some_and(|share| share >= 80) => Style::default().fg(Color::Red),
        Row::Call(_) => Style::default(),
    }
}

/// What a line shows, for the screen and for `--once`.
pub fn cells(row: &Row<'_>, now: u64) -> [String; 9] {
    match row {
        Row::Hold(hold) => [
            time(hold.waited_ms),
            String::new(),
            format!("approve {}?", hold.hold),
            cell(&hold.server),
            cell(&hold.tool),
            cell(&hold.client),
            String::new(),
            String::new(),
            cell(&hold.arguments),
        ],
        Row::Call(call) => [
            time(now.saturating_sub(call.began)),
            bar(call.used(now)),
            call.state.clone(),
            cell(&call.server),
            cell(call.name()),
            cell(&call.client),
            call.last_sign.map(|sign| time(now.saturating_sub(sign))).unwrap_or_default(),
            call.attempts.to_string(),
            call.message.as_deref().map(cell).unwrap_or_default(),
        ],
    }
}

/// The names of what a line shows.
pub fn heads() -> [&'static str; 9] {
    HEADS
}

fn cell(text: &str) -> String {
    escape_up_to(text, CELL).into_owned()
}

fn time(ms: u64) -> String {
    if ms < 10_000 {
        return format!("{}.{}s", ms / 1_000, ms % 1_000 / 100);
    }
    show_duration(Duration::from_secs(ms / 1_000))
}

/// How much of the limit has passed.
fn bar(share: Option<u64>) -> String {
    let Some(share) = share else { return String::new() };
    let full = (share as usize * 6).div_ceil(100);
    format!("{}{} {share:>3}%", "#".repeat(full), ".".repeat(6 - full))
}

fn draw_story(frame: &mut Frame<'_>, view: &View, id: &str, from: usize, area: Rect) {
    let lines: Vec<Line<'_>> = view.story.iter().map(|line| Line::from(line.as_str())).collect();
    draw_box(frame, area, &format!(" call {id} "), Text::from(lines), from);
}

fn draw_box(frame: &mut Frame<'_>, area: Rect, title: &str, text: Text<'_>, from: usize) {
    frame.render_widget(Clear, area);
    let from = u16::try_from(from).unwrap_or(u16::MAX);
    let block = Block::bordered().title(title.to_owned());
    frame.render_widget(Paragraph::new(text).block(block).scroll((from, 0)), area);
}
