//! Averages and the call tree as text for a terminal or a log; names that could move a cursor are made visible.

use super::averages::{Average, Column, GroupBy, KeyAverages, Mode};
use super::event::Category;
use crate::figures::{NOT_MEASURED, count, number};
use crate::label::{visible, width};

/// The table of `rows`: throughput only where a row has some.
pub(super) fn averages(averages: &KeyAverages) -> String {
    let rows = &averages.rows;
    let columns: Vec<Column> = Column::ALL
        .into_iter()
        .filter(|column| match column {
            Column::Gflops => rows.iter().any(|row| row.metrics.get("flops").is_some()),
            Column::GigabytesPerSecond => rows.iter().any(|row| row.metrics.get("bytes").is_some()),
            Column::InputBytes | Column::OutputBytes => rows.iter().any(|row| column.value(row).is_some()),
            _ => true,
        })
        .collect();
    let header = columns.iter().map(|column| heading(*column, averages.by).to_owned());
    let mut lines: Vec<Vec<String>> = vec![header.collect()];
    for row in rows {
        lines.push(columns.iter().map(|column| cell(*column, row, averages)).collect());
    }
    aligned(&lines)
}

fn heading(column: Column, by: GroupBy) -> &'static str {
    match (column, by) {
        (Column::Name, GroupBy::Name) => "name",
        (Column::Name, GroupBy::CallPath) => "call path",
        (Column::Calls, _) => "calls",
        (Column::CpuTotal, _) => "CPU µs",
        (Column::CpuSelf, _) => "CPU self",
        (Column::CpuAvg, _) => "CPU/call",
        (Column::GpuTotal, _) => "GPU µs",
        (Column::GpuBusy, _) => "GPU busy",
        (Column::GpuAvg, _) => "GPU/call",
        (Column::InputBytes, _) => "bytes in",
        (Column::OutputBytes, _) => "bytes out",
        (Column::Gflops, _) => "GFLOP/s",
        (Column::GigabytesPerSecond, _) => "GB/s",
    }
}

fn cell(column: Column, row: &Average, averages: &KeyAverages) -> String {
    match (column, column.value(row)) {
        (Column::Name, _) => name(row, averages),
        (Column::Calls, _) => count(row.calls),
        (Column::InputBytes, _) => row.input_bytes.map_or_else(|| NOT_MEASURED.to_owned(), count),
        (Column::OutputBytes, _) => row.output_bytes.map_or_else(|| NOT_MEASURED.to_owned(), count),
        (_, value) => value.map_or_else(|| NOT_MEASURED.to_owned(), number),
    }
}

/// The label, and what tells it from another row of that label.
fn name(row: &Average, averages: &KeyAverages) -> String {
    // A name alone is joined with nothing, so nothing in it needs an escape.
    let mut name = match (averages.by, row.key.last()) {
        (GroupBy::Name, Some(name)) => visible(name),
        _ => visible(&row.label()),
    };
    if averages
        .rows
        .iter()
        .any(|other| other.key == row.key && other.mode != row.mode)
    {
        name += match row.mode {
            Some(Mode::OneShot) => " (one-shot)",
            Some(Mode::Prepared) => " (prepared)",
            None => "",
        };
    }
    name
}

/// The first column to the left, the others to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let widest = |at: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(at))
            .map(|cell| width(cell))
            .max()
    };
    let widths: Vec<usize> = (0..columns).map(|at| widest(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let mut out = String::new();
        for ((at, cell), widest) in line.iter().enumerate().zip(&widths) {
            let room = " ".repeat(widest.saturating_sub(width(cell)));
            match at {
                0 => out += &format!("{cell}{room}"),
                _ => out += &format!("  {room}{cell}"),
            }
        }
        text += out.trim_end();
        text.push('\n');
    }
    text
}

/// The call tree, from averages by call path.
pub(super) fn tree(averages: &KeyAverages) -> String {
    let mut root = Node::default();
    for row in &averages.rows {
        let mut node = &mut root;
        for (at, name) in row.key.iter().enumerate() {
            // Scopes hold others; anything else only ends a path.
            let kind = if at + 1 < row.key.len() {
                Category::Scope
            } else {
                row.category
            };
            node = node.child(name, kind, (at + 1 == row.key.len()).then_some(row.mode).flatten());
        }
        node.row = Some(row);
    }
    let mut lines = vec![vec![
        "call tree".to_owned(),
        "calls".to_owned(),
        "CPU µs".to_owned(),
        "GPU µs".to_owned(),
        "GPU busy".to_owned(),
        "GFLOP/s".to_owned(),
        "GB/s".to_owned(),
    ]];
    root.lines("", true, &mut lines);
    // Columns of throughput only where there is some.
    for place in [6, 5] {
        if lines
            .iter()
            .skip(1)
            .all(|line| line.get(place).is_some_and(|cell| cell == NOT_MEASURED))
        {
            for line in &mut lines {
                line.remove(place);
            }
        }
    }
    aligned(&lines)
}

#[derive(Default)]
struct Node<'a> {
    name: String,
    kind: Option<(Category, Option<Mode>)>,
    row: Option<&'a Average>,
    children: Vec<Node<'a>>,
}

impl<'a> Node<'a> {
    fn child(&mut self, name: &str, category: Category, mode: Option<Mode>) -> &mut Node<'a> {
        let (name, kind) = (visible(name), Some((category, mode)));
        let place = self
            .children
            .iter()
            .position(|child| child.name == name && child.kind == kind);
        let place = place.unwrap_or_else(|| {
            self.children.push(Node {
                name,
                kind,
                ..Node::default()
            });
            self.children.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "found or pushed above")]
        &mut self.children[place]
    }

    fn lines(&self, indent: &str, is_root: bool, lines: &mut Vec<Vec<String>>) {
        for (at, child) in self.children.iter().enumerate() {
            let last = at + 1 == self.children.len();
            let (branch, below) = match (is_root, last) {
                (true, _) => ("", ""),
                (false, true) => ("└─ ", "   "),
                (false, false) => ("├─ ", "│  "),
            };
            let value = |column: Column| {
                let value = child.row.and_then(|row| column.value(row));
                value.map_or_else(|| NOT_MEASURED.to_owned(), number)
            };
            lines.push(vec![
                format!("{indent}{branch}{}", child.name),
                child
                    .row
                    .map_or_else(|| NOT_MEASURED.to_owned(), |row| count(row.calls)),
                value(Column::CpuTotal),
                value(Column::GpuTotal),
                value(Column::GpuBusy),
                value(Column::Gflops),
                value(Column::GigabytesPerSecond),
            ]);
            child.lines(&format!("{indent}{below}"), false, lines);
        }
    }
}
