//! The samples of a run, and what follows from them.

use std::collections::BTreeMap;

use super::figures::{Figure, Goal, Metric, Sample};
use super::tables::Table;
use super::targets::Target;

pub struct Results {
    pub table: &'static Table,
    /// By metric and target: the values by round.
    samples: BTreeMap<(Metric, Target), BTreeMap<usize, f64>>,
    failures: Vec<Failure>,
}

/// A measure that could not be taken.
pub struct Failure {
    pub measure: &'static str,
    pub target: Target,
    pub error: String,
}

impl Results {
    pub fn new(table: &'static Table) -> Results {
        Results { table, samples: BTreeMap::new(), failures: Vec::new() }
    }

    pub fn add(&mut self, round: usize, target: Target, samples: Vec<Sample>) {
        for (metric, value) in samples {
            let rounds = self.samples.entry((metric, target)).or_default();
            rounds.insert(round, value);
        }
    }

    pub fn fail(&mut self, measure: &'static str, target: Target, error: &anyhow::Error) {
        let error = format!("{error:#}");
        eprintln!("  {measure} of {target} failed and is not tried again: {error}");
        self.failures.push(Failure { measure, target, error });
    }

    pub fn has_failed(&self, measure: &str, target: Target) -> bool {
        let mut failures = self.failures.iter();
        failures.any(|failure| failure.measure == measure && failure.target == target)
    }

    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The values of a metric in the order of the rounds.
    pub fn rounds(&self, metric: Metric, target: Target) -> Vec<f64> {
        let rounds = self.samples.get(&(metric, target));
        rounds.map_or_else(Vec::new, |rounds| rounds.values().copied().collect())
    }

    /// The value to report: the median, except where a single bad round is bad enough.
    pub fn value(&self, figure: &Figure, target: Target) -> Option<f64> {
        let rounds = self.rounds(figure.metric, target);
        match figure.goal {
            Goal::Never => rounds.into_iter().reduce(f64::max),
            _ => median(rounds),
        }
    }

    /// outlast against the table's base.
    pub fn ratio(&self, metric: Metric) -> Option<f64> {
        self.ratio_of(metric, Target::Outlast)
    }

    /// A target against the table's base: taken in each round, then the median.
    pub fn ratio_of(&self, metric: Metric, target: Target) -> Option<f64> {
        let base = self.samples.get(&(metric, self.table.base))?;
        let values = self.samples.get(&(metric, target))?;
        let both = values.iter().filter_map(|(round, value)| {
            let base = *base.get(round)?;
            (base > 0.0).then_some(value / base)
        });
        median(both.collect())
    }

    /// Whether outlast reaches the goal; `None` if there is none or it could not be measured.
    pub fn met(&self, figure: &Figure) -> Option<bool> {
        match figure.goal {
            Goal::RatioAtMost(bound) => Some(self.ratio(figure.metric)? <= bound),
            Goal::RatioAtLeast(bound) => Some(self.ratio(figure.metric)? >= bound),
            Goal::AtMost(bound) | Goal::CountAtMost(bound) => {
                Some(self.value(figure, Target::Outlast)? <= bound)
            }
            Goal::Never => Some(self.value(figure, Target::Outlast)? == 0.0),
            Goal::None => None,
        }
    }

    /// Whether no count misses its goal. One that was not taken is no miss.
    pub fn counts_met(&self) -> bool {
        let counts = self.table.figures.iter().filter(|figure| matches!(figure.goal, Goal::CountAtMost(_)));
        counts.into_iter().all(|figure| self.met(figure) != Some(false))
    }

    /// What could not be measured does not count as met.
    pub fn all_met(&self) -> bool {
        let mut goals = self.table.figures.iter().filter(|figure| figure.has_goal());
        goals.all(|figure| self.met(figure) == Some(true))
    }
}

/// The middle value, or the mean of the two middle ones.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// The value that `share` of all values do not exceed.
pub fn percentile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tables::TABLES;

    fn results(floor: [f64; 3], outlast: [f64; 3]) -> Results {
        let mut results = Results::new(&TABLES[0]);
        for round in 0..3 {
            let sample = |value| vec![(Metric::ColdStart, value)];
            results.add(round, Target::Floor, sample(floor[round]));
            results.add(round, Target::Outlast, sample(outlast[round]));
        }
        results
    }

    /// Both sides of the second round suffer from the same noisy minute.
    #[test]
    fn ratio_is_taken_inside_each_round() {
        let results = results([1.0, 10.0, 1.0], [1.2, 12.0, 1.2]);
        let ratio = results.ratio(Metric::ColdStart);
        assert!((ratio.unwrap() - 1.2).abs() < 1e-9);
    }

    #[test]
    fn goal_without_a_measurement_is_not_met() {
        let results = results([1.0; 3], [1.0; 3]);
        let met = results.table.figures.iter().filter(|f| results.met(f) == Some(true));
        assert_eq!(met.map(|f| f.key).collect::<Vec<_>>(), ["cold_start"]);
        assert!(!results.all_met());
    }

    #[test]
    fn one_bad_round_is_enough_for_what_must_never_happen() {
        let mut results = Results::new(&TABLES[0]);
        for (round, lost) in [0.0, 1.0, 0.0].into_iter().enumerate() {
            results.add(round, Target::Outlast, vec![(Metric::LimitsNotFired, lost)]);
        }
        let figure = results.table.figures.iter().find(|f| f.metric == Metric::LimitsNotFired);
        assert_eq!(results.met(figure.unwrap()), Some(false));
    }

    #[test]
    fn percentile_is_a_value_that_occurred() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(values.clone(), 0.99), Some(198.0));
        assert_eq!(percentile(values, 0.5), Some(100.0));
        assert_eq!(percentile(Vec::new(), 0.5), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), Some(2.5));
    }
}
