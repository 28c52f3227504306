//! `cargo xtask bench --against PATH`: this build and another outlast, measured in turns.
//!
//! Each round takes a measure of the other program, of this one, and of the other once more, seconds apart and
//! in another order each time. A ratio is taken inside its round, then the median over the rounds: what slows
//! the machine down for a while slows both sides. The other program against itself is the control: what its
//! ratio differs from 1 is what this machine cannot tell apart today. So a row counts as worse only if it is so
//! by more than the tolerance, the control and the scatter of the rounds together.
//!
//! That is sharper than the floor: the floor is another program, and a change of the machine that hits one of
//! them need not hit the other.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};

use super::figures::{Figure, Goal, Metric, Sample, value_text};
use super::instructions;
use super::measures::Measure;
use super::options::Options;
use super::results::median;
use super::sizes::Sizes;
use super::tables::Table;
use super::targets::{Programs, Target};

/// A row is worse if it is so by more than this, beyond what the control and the scatter of the rounds show.
const TOLERANCE: f64 = 0.02;

const WIDTHS: [usize; 7] = [39, 13, 13, 8, 7, 8, 7];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    Other,
    This,
    /// The other program once more.
    Control,
}

const SIDES: [Side; 3] = [Side::Other, Side::This, Side::Control];

/// Compares the program that was built with the one at `other`, and shows the tables.
pub fn run(options: &Options, programs: &Programs, other: &Path) -> Result<()> {
    let both = Both {
        this: programs.with_outlast(None, "this"),
        other: programs.with_outlast(Some(other), "other"),
    };
    let (mut worse, mut failures) = (Vec::new(), Vec::new());
    for table in &options.tables {
        let mut turns = Turns::default();
        turns.take(table, options, &both);
        println!("\n{}", turns.render(table));
        let is_worse = |figure: &&Figure| turns.verdict(figure) == Verdict::Worse;
        worse.extend(table.figures.iter().filter(is_worse).map(|figure| figure.title));
        failures.append(&mut turns.failures);
    }
    ensure!(failures.is_empty(), "not everything could be measured:\n  {}", failures.join("\n  "));
    ensure!(worse.is_empty() || !options.check, "worse than {}: {}", other.display(), worse.join(", "));
    Ok(())
}

struct Both {
    this: Programs,
    other: Programs,
}

impl Both {
    fn of(&self, side: Side) -> &Programs {
        match side {
            Side::This => &self.this,
            Side::Other | Side::Control => &self.other,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Better,
    Same,
    Worse,
    Unknown,
}

/// The values by figure and side, each by round.
#[derive(Default)]
struct Turns {
    samples: BTreeMap<(Metric, Side), BTreeMap<usize, f64>>,
    failures: Vec<String>,
}

impl Turns {
    fn take(&mut self, table: &Table, options: &Options, both: &Both) {
        let sizes = Sizes::for_turns(options.quick);
        for round in 0..options.rounds {
            println!("{}, round {} of {}", table.name, round + 1, options.rounds);
            for measure in table.measures.iter().filter(|measure| options.wants(measure.name)) {
                // A count is the same each time.
                if instructions::is_counted(measure.name) && round > 0 {
                    continue;
                }
                self.take_measure(measure, round, &sizes, both);
            }
        }
    }

    /// What failed once is not tried again: a hung program would cost its whole time limit every round.
    fn take_measure(&mut self, measure: &Measure, round: usize, sizes: &Sizes, both: &Both) {
        for side in in_turn(round) {
            let name = format!("{} ({side:?})", measure.name);
            if self.failures.iter().any(|failure| failure.starts_with(&name)) {
                continue;
            }
            match (measure.take)(both.of(side), Target::Outlast, sizes) {
                Ok(samples) => self.add(round, side, samples),
                Err(error) => self.failures.push(format!("{name}: {error:#}")),
            }
        }
    }

    fn add(&mut self, round: usize, side: Side, samples: Vec<Sample>) {
        for (metric, value) in samples {
            self.samples.entry((metric, side)).or_default().insert(round, value);
        }
    }

    fn value(&self, figure: &Figure, side: Side) -> Option<f64> {
        let rounds = self.samples.get(&(figure.metric, side))?.values().copied();
        match figure.goal {
            Goal::Never => rounds.reduce(f64::max),
            _ => median(rounds.collect()),
        }
    }

    /// A side against the other program: taken in each round, then the median.
    fn ratio(&self, metric: Metric, side: Side) -> Option<f64> {
        median(self.ratios(metric, side)?)
    }

    fn ratios(&self, metric: Metric, side: Side) -> Option<Vec<f64>> {
        let other = self.samples.get(&(metric, Side::Other))?;
        let rounds = self.samples.get(&(metric, side))?.iter();
        let ratios =
            rounds.filter_map(|(round, value)| Some(value / other.get(round).filter(|other| **other > 0.0)?));
        Some(ratios.collect())
    }

    /// How far the median ratio may be from the true one, as a share of it: two standard errors, from how the
    /// rounds scatter around their medians.
    fn scatter(&self, metric: Metric) -> Option<f64> {
        let mut distances = Vec::new();
        for side in [Side::This, Side::Control] {
            let ratios = self.ratios(metric, side)?;
            let middle = median(ratios.clone())?;
            distances.extend(ratios.iter().map(|ratio| (ratio / middle - 1.0).abs()));
        }
        let rounds = distances.len() as f64 / 2.0;
        // From the median distance to the deviation of a normal distribution, and to the error of its median.
        Some(2.0 * 1.2533 * 1.4826 * median(distances)? / rounds.sqrt())
    }

    fn verdict(&self, figure: &Figure) -> Verdict {
        if matches!(figure.goal, Goal::Never) {
            let lost = |side| self.value(figure, side);
            let (Some(this), Some(other)) = (lost(Side::This), lost(Side::Other)) else {
                return Verdict::Unknown;
            };
            return if this > other { Verdict::Worse } else { Verdict::Same };
        }
        let ratio = |side| self.ratio(figure.metric, side);
        let (Some(ratio), Some(control)) = (ratio(Side::This), ratio(Side::Control)) else {
            return Verdict::Unknown;
        };
        let scatter = self.scatter(figure.metric).unwrap_or_default();
        let cost = if figure.unit == "/s" { 1.0 / ratio } else { ratio };
        let bound = control.max(1.0 / control) + TOLERANCE + scatter;
        match cost {
            _ if cost > bound => Verdict::Worse,
            _ if cost < 1.0 / bound => Verdict::Better,
            _ => Verdict::Same,
        }
    }

    fn render(&self, table: &Table) -> String {
        let mut text = line(&["measure", "other", "this", "ratio", "±", "control", ""].map(str::to_owned));
        for figure in table.figures.iter().filter(|figure| self.value(figure, Side::This).is_some()) {
            text += &line(&self.row(figure));
        }
        for failure in &self.failures {
            text += &format!("not measured: {failure}\n");
        }
        text
    }

    fn row(&self, figure: &Figure) -> [String; 7] {
        let value = |side| self.value(figure, side).map_or_else(dash, |value| value_text(value, figure.unit));
        let ratio = |side| self.ratio(figure.metric, side).map_or_else(dash, |ratio| format!("{ratio:.3}×"));
        let scatter = self.scatter(figure.metric).filter(|scatter| scatter.is_finite());
        let scatter = scatter.map_or_else(dash, |scatter| format!("{:.1} %", scatter * 100.0));
        let verdict = match self.verdict(figure) {
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::Same | Verdict::Unknown => "",
        };
        let (this, control) = (ratio(Side::This), ratio(Side::Control));
        let (title, verdict) = (figure.title.to_owned(), verdict.to_owned());
        [title, value(Side::Other), value(Side::This), this, scatter, control, verdict]
    }
}

/// Another side goes first in each round, so that none always runs in another's wake.
fn in_turn(round: usize) -> impl Iterator<Item = Side> {
    (0..SIDES.len()).map(move |place| SIDES[(place + round) % SIDES.len()])
}

fn dash() -> String {
    "-".to_owned()
}

fn line(cells: &[String; 7]) -> String {
    let [title, numbers @ ..] = cells;
    let mut text = format!("{title:<width$}", width = WIDTHS[0]);
    for (cell, width) in numbers.iter().zip(&WIDTHS[1..]) {
        text += &format!(" {cell:>width$}");
    }
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tables::TABLES;

    fn figure(metric: Metric) -> &'static Figure {
        TABLES[0].figures.iter().find(|figure| figure.metric == metric).unwrap()
    }

    /// Three rounds, of which the second is twice as slow for everybody.
    fn turns(metric: Metric, this: f64, control: f64) -> Turns {
        let mut turns = Turns::default();
        for (round, pace) in [1.0, 2.0, 1.0].into_iter().enumerate() {
            for (side, value) in [(Side::Other, 10.0), (Side::This, this), (Side::Control, control)] {
                turns.add(round, side, vec![(metric, value * pace)]);
            }
        }
        turns
    }

    fn verdict(metric: Metric, this: f64, control: f64) -> Verdict {
        turns(metric, this, control).verdict(figure(metric))
    }

    #[test]
    fn worse_is_what_exceeds_the_tolerance_and_the_control() {
        assert_eq!(verdict(Metric::ColdStart, 10.1, 10.0), Verdict::Same);
        assert_eq!(verdict(Metric::ColdStart, 10.3, 10.0), Verdict::Worse);
        assert_eq!(verdict(Metric::ColdStart, 10.3, 10.2), Verdict::Same);
        assert_eq!(verdict(Metric::ColdStart, 10.3, 9.8), Verdict::Same);
        assert_eq!(verdict(Metric::ColdStart, 9.0, 10.0), Verdict::Better);
    }

    #[test]
    fn what_scatters_is_not_called_worse() {
        let mut turns = turns(Metric::ColdStart, 10.6, 10.0);
        assert_eq!(turns.verdict(figure(Metric::ColdStart)), Verdict::Worse);
        for (round, value) in [9.0, 25.0, 12.0].into_iter().enumerate() {
            turns.add(round, Side::Control, vec![(Metric::ColdStart, value)]);
        }
        assert_eq!(turns.verdict(figure(Metric::ColdStart)), Verdict::Same);
    }

    #[test]
    fn more_calls_a_second_are_better() {
        assert_eq!(verdict(Metric::CallsPerSecond, 11.0, 10.0), Verdict::Better);
        assert_eq!(verdict(Metric::CallsPerSecond, 9.0, 10.0), Verdict::Worse);
    }

    #[test]
    fn one_lost_call_is_worse_than_none() {
        let mut turns = turns(Metric::LimitsNotFired, 0.0, 0.0);
        turns.samples.insert((Metric::LimitsNotFired, Side::Other), BTreeMap::from([(0, 0.0), (1, 0.0)]));
        assert_eq!(turns.verdict(figure(Metric::LimitsNotFired)), Verdict::Same);
        turns.add(1, Side::This, vec![(Metric::LimitsNotFired, 1.0)]);
        assert_eq!(turns.verdict(figure(Metric::LimitsNotFired)), Verdict::Worse);
    }

    #[test]
    fn every_side_has_every_place_in_turn() {
        let first: Vec<Side> = (0..3).filter_map(|round| in_turn(round).next()).collect();
        assert_eq!(first, SIDES);
    }

    #[test]
    fn a_row_shows_both_values_the_ratio_and_the_control() {
        let text = turns(Metric::ColdStart, 10.3, 10.0).render(&TABLES[0]);
        let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().rev().take(9).collect();
        assert_eq!(row, ["WORSE", "1.000×", "%", "0.0", "1.030×", "ms", "10.30", "ms", "10.00"]);
    }
}
