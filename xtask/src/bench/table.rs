//! The results as a table for a person.

use super::figures::{Figure, value_text};
use super::results::Results;
use super::targets::Target;

const WIDTHS: [usize; 7] = [39, 13, 20, 13, 8, 11, 7];

pub fn render(results: &Results) -> String {
    let mut text = line(&["measure", "direct", "floor", "outlast", "ratio", "goal", ""]);
    for figure in results.table.figures {
        let cells = row(results, figure);
        text += &line(&cells.each_ref().map(String::as_str));
    }
    let goals = results.table.figures.iter().filter(|figure| figure.has_goal());
    let met = goals.clone().filter(|f| results.met(f) == Some(true));
    text += &format!("{} of {} goals met\n", met.count(), goals.count());
    for failure in results.failures() {
        let (measure, target) = (failure.measure, failure.target);
        text += &format!("not measured: {measure} of {target}: {}\n", failure.error);
    }
    text
}

/// The same for a page.
pub fn markdown(results: &Results) -> String {
    let mut text =
        String::from("| measure | direct | floor | outlast | ratio | goal |\n|---|--:|--:|--:|--:|--:|\n");
    for figure in results.table.figures {
        let [cells @ .., _] = row(results, figure);
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

fn row(results: &Results, figure: &Figure) -> [String; 7] {
    let value = |target| {
        let value = results.value(figure, target);
        value.map_or_else(dash, |value| value_text(value, figure.unit))
    };
    let floor = value(Target::Floor) + &floor_ratio(results, figure);
    let ratio = results.ratio(figure.metric);
    [
        figure.title.to_owned(),
        value(Target::Direct),
        floor,
        value(Target::Outlast),
        ratio.map_or_else(dash, |ratio| format!("{ratio:.2}×")),
        figure.goal_text(),
        verdict(results, figure).to_owned(),
    ]
}

/// Where the floor is not the base, what it costs itself says how to read our ratio.
fn floor_ratio(results: &Results, figure: &Figure) -> String {
    let ratio =
        results.ratio_of(figure.metric, Target::Floor).filter(|_| results.table.base != Target::Floor);
    ratio.map_or_else(String::new, |ratio| format!(" ({ratio:.2}×)"))
}

fn dash() -> String {
    "-".to_owned()
}

fn verdict(results: &Results, figure: &Figure) -> &'static str {
    match results.met(figure) {
        Some(true) => "met",
        Some(false) => "MISSED",
        None if figure.has_goal() => "UNKNOWN",
        None => "",
    }
}

fn line(cells: &[&str; 7]) -> String {
    let [title, numbers @ ..] = cells;
    let mut text = format!("{title:<width$}", width = WIDTHS[0]);
    for (cell, width) in numbers.iter().zip(&WIDTHS[1..]) {
        text += &format!(" {cell:>width$}");
    }
    text + "\n"
}
