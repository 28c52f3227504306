//! The results as an SVG plot, written by hand so that it stays small and readable as text.
//!
//! Two panels of bars: what is compared with the table's base, and what has a goal of its own, drawn as a
//! share of that goal. What must never happen is not drawn: it has no length.

use super::figures::{Figure, Goal, value_text};
use super::machine::Machine;
use super::results::Results;
use super::targets::Target;

const WIDTH: usize = 820;
const LEFT: f64 = 250.0;
/// Pixels of the farthest goal among ratios.
const FARTHEST: f64 = 360.0;
/// Pixels of the goal where bars are shares of it.
const WHOLE: f64 = 180.0;
/// Longer bars are cut here; their label still tells the value.
const LONGEST: f64 = 396.0;
const ROW: usize = 26;
const HEADING: usize = 44;

const SHARES: &str = "Share of the goal (yellow)";

/// Tones between the two backgrounds: the reader's page may be dark while their system is light, so
/// a media query would guess wrong.
const STYLE: &str = "
  text { font: 13px system-ui, sans-serif; fill: #737b85 }
  .heading { font-weight: 600 }
  .label { text-anchor: end }
  .met { fill: #2f81f7 } .missed { fill: #d1603d }
  .base { stroke: #737b85; stroke-dasharray: 3 3 }
  .goal { stroke: #d4a017; stroke-width: 3 }
";

/// One bar; lengths are in units.
struct Bar {
    title: &'static str,
    length: f64,
    goal: f64,
    label: String,
    met: bool,
}

pub fn render(results: &Results, machine: &Machine) -> String {
    let ratios = bars(results, ratio_bar);
    let shares = bars(results, share_bar);
    let mut body = String::new();
    let mut top = 0;
    let farthest = ratios.iter().map(|bar| bar.goal).fold(1.0, f64::max);
    let unit = FARTHEST / farthest;
    panel(&mut body, &mut top, results.table.times, &ratios, unit);
    body += &vertical("base", unit, HEADING, top);
    panel(&mut body, &mut top, SHARES, &shares, WHOLE);
    body += &text(10.0, top + 24, "", &format!("{}, one core, median of the rounds", machine.processor));
    let height = top + 36;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-label=\"outlast against its goals\">\n\
         <style>{STYLE}</style>\n{body}</svg>\n"
    )
}

fn bars(results: &Results, bar: fn(&Results, &'static Figure) -> Option<Bar>) -> Vec<Bar> {
    results.table.figures.iter().filter_map(|figure| bar(results, figure)).collect()
}

fn ratio_bar(results: &Results, figure: &'static Figure) -> Option<Bar> {
    let (Goal::RatioAtMost(goal) | Goal::RatioAtLeast(goal)) = figure.goal else {
        return None;
    };
    let ratio = results.ratio(figure.metric)?;
    Some(Bar {
        title: figure.title,
        length: ratio,
        goal,
        label: format!("{ratio:.2}× (goal {})", figure.goal_text()),
        met: results.met(figure)?,
    })
}

fn share_bar(results: &Results, figure: &'static Figure) -> Option<Bar> {
    let Goal::AtMost(goal) = figure.goal else {
        return None;
    };
    let value = results.value(figure, Target::Outlast)?;
    Some(Bar {
        title: figure.title,
        length: value / goal,
        goal: 1.0,
        label: format!("{} (goal {})", value_text(value, figure.unit), figure.goal_text()),
        met: results.met(figure)?,
    })
}

/// `unit` is in pixels, for 1.0.
fn panel(body: &mut String, top: &mut usize, heading: &str, bars: &[Bar], unit: f64) {
    *body += &text(10.0, *top + 26, "heading", heading);
    *top += HEADING;
    for bar in bars {
        *body += &draw(bar, *top, unit);
        *top += ROW;
    }
}

fn draw(bar: &Bar, top: usize, unit: f64) -> String {
    let length = (bar.length * unit).min(LONGEST);
    let class = if bar.met { "met" } else { "missed" };
    let beside = LEFT + length.max(bar.goal * unit) + 10.0;
    let mut body = text(LEFT - 10.0, top + 17, "label", bar.title);
    body += &format!(
        "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"16\" rx=\"2\"/>\n",
        y = top + 4
    );
    body += &vertical("goal", bar.goal * unit, top + 1, top + 23);
    body + &text(beside, top + 17, "", &bar.label)
}

fn vertical(class: &str, right: f64, from: usize, to: usize) -> String {
    let x = LEFT + right;
    format!("<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from}\" y2=\"{to}\"/>\n")
}

fn text(x: f64, y: usize, class: &str, words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y}\">{words}</text>\n")
}
