//! The two tables: what is measured, what it is compared with, where it is published.

use super::figures::{self, Figure};
use super::http;
use super::measures::{self, Measure};
use super::targets::Target;

pub struct Table {
    /// As the command line and the files call it.
    pub name: &'static str,
    /// What every ratio is to.
    pub base: Target,
    /// The base in words, for the plot.
    pub times: &'static str,
    pub figures: &'static [Figure],
    pub measures: &'static [Measure],
    /// The page that shows it between `<!-- bench -->` and `<!-- /bench -->`.
    pub page: &'static str,
    pub svg: &'static str,
}

pub static TABLES: [Table; 2] = [
    Table {
        name: "stdio",
        base: Target::Floor,
        times: "Times the floor, a process that only copies bytes (dashed: the floor; yellow: the goal)",
        figures: &figures::STDIO,
        measures: &measures::MEASURES,
        page: "docs/bench.md",
        svg: "docs/bench.svg",
    },
    Table {
        name: "http",
        base: Target::Direct,
        times: "Times the server reached directly over HTTP (dashed: the server; yellow: the goal)",
        figures: &figures::HTTP,
        measures: &http::MEASURES,
        page: "docs/http-bench.md",
        svg: "docs/http-bench.svg",
    },
];
