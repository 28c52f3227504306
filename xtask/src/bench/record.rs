//! The results as JSON, with the value of every round, for later comparison.

use serde_json::{Value, json};

use super::figures::{Figure, Goal};
use super::machine::Machine;
use super::options::Options;
use super::results::Results;
use super::targets::Target;

pub fn render(results: &Results, machine: &Machine, options: &Options) -> String {
    let figures: Vec<Value> = results.table.figures.iter().map(|row| figure(results, row)).collect();
    let failures: Vec<Value> = results
        .failures()
        .iter()
        .map(|f| json!({"measure": f.measure, "target": f.target.name(), "error": f.error}))
        .collect();
    let record = json!({
        "table": results.table.name,
        "machine": {
            "processor": machine.processor,
            "kernel": machine.kernel,
            "core": machine.core,
            "loadBefore": machine.load,
        },
        "rounds": options.rounds,
        "quick": options.quick,
        "allMet": results.all_met(),
        "figures": figures,
        "failures": failures,
    });
    format!("{record:#}\n")
}

fn figure(results: &Results, figure: &Figure) -> Value {
    json!({
        "key": figure.key,
        "title": figure.title,
        "unit": figure.unit,
        "direct": target(results, figure, Target::Direct),
        "floor": target(results, figure, Target::Floor),
        "outlast": target(results, figure, Target::Outlast),
        "ratio": results.ratio(figure.metric),
        "goal": goal(figure.goal),
        "met": results.met(figure),
    })
}

fn target(results: &Results, figure: &Figure, target: Target) -> Value {
    let Some(value) = results.value(figure, target) else {
        return Value::Null;
    };
    json!({"value": value, "rounds": results.rounds(figure.metric, target)})
}

fn goal(goal: Goal) -> Value {
    match goal {
        Goal::RatioAtMost(bound) => json!({"ratioAtMost": bound}),
        Goal::RatioAtLeast(bound) => json!({"ratioAtLeast": bound}),
        Goal::AtMost(bound) | Goal::CountAtMost(bound) => json!({"atMost": bound}),
        Goal::Never => json!({"atMost": 0}),
        Goal::None => Value::Null,
    }
}
