//! Rows in columns, or one below the other where a terminal is too narrow for columns.

use super::terminal::{Stream, columns};

/// The first line holds the headings.
pub fn table<const N: usize>(lines: &[[String; N]]) -> String {
    laid_out(lines, Stream::Stdout.is_terminal().then(columns).flatten())
}

fn laid_out<const N: usize>(lines: &[[String; N]], room: Option<usize>) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let all: usize = widths.iter().sum::<usize>() + 2 * N.saturating_sub(1);
    match (lines, room) {
        ([headings, rows @ ..], Some(room)) if all > room => {
            rows.iter().map(|row| below_each_other(headings, row)).collect()
        }
        _ => lines.iter().map(|line| in_columns(line, &widths)).collect(),
    }
}

fn in_columns<const N: usize>(line: &[String; N], widths: &[usize; N]) -> String {
    let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

fn below_each_other<const N: usize>(headings: &[String; N], row: &[String; N]) -> String {
    let names = headings.iter().map(|heading| heading.to_lowercase());
    let rest = names.zip(row).skip(1).map(|(name, cell)| format!("  {name}: {cell}\n"));
    format!("{}\n{}", row.first().map_or("", String::as_str), rest.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_columns_where_there_is_room() {
        let lines =
            [["NAME", "DOES"], ["a", "much for one"], ["longer", "b"]].map(|it| it.map(str::to_owned));
        let columns = "NAME    DOES\na       much for one\nlonger  b\n";
        assert_eq!(laid_out(&lines, None), columns);
        assert_eq!(laid_out(&lines, Some(20)), columns);
        assert_eq!(laid_out(&lines, Some(19)), "a\n  does: much for one\nlonger\n  does: b\n");
    }
}
