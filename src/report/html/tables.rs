//! Sections as tables: the same sheets as every text format, with headings that a script can sort by.
//!
//! Rows of sums stand in the foot of their table, so that sorting leaves them there. Numbers of one column stand with their
//! points under each other: what a number lacks in decimals, its cell has as room at its right.

use super::markup::Html;
use crate::label::{cut, cut_middle, width};
use crate::report::sheet::{Align, Cell, Column, Content, Line, Sheet, Style, count, len};

/// Columns of a text in a cell; the whole of it is shown when one points at it.
const CELL_COLUMNS: usize = 90;
/// Columns of a text that stands in one line.
const SHORT: usize = 36;
/// Columns of that whole, and of a sentence.
const LONGEST: usize = 4_000;
/// Columns of a sentence.
const LINE_COLUMNS: usize = 900;
/// Most decimals of a number in a sheet.
const DECIMALS: usize = 2;

/// What a section is called in an address: `duration-buckets`.
pub(super) fn anchor(title: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let text: String = title.chars().map(plain).collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// The heading and everything under it.
pub(super) fn section(html: &mut Html, heading: &'static str, sheet: &Sheet) {
    html.element("section", &[("id", &anchor(&sheet.title))], |html| {
        html.leaf(heading, &[], &sheet.title);
        body(html, sheet);
    });
    html.raw("\n");
}

/// The same, closed until somebody opens it.
pub(super) fn folded(html: &mut Html, sheet: &Sheet) {
    html.element("details", &[("id", &anchor(&sheet.title))], |html| {
        html.element("summary", &[], |html| {
            html.text(&sheet.title);
            if !sheet.rows.is_empty() {
                html.text(" ");
                let rows = if sheet.rows.len() == 1 { "row" } else { "rows" };
                html.leaf("small", &[], &format!("{} {rows}", count(len(&sheet.rows))));
            }
        });
        body(html, sheet);
    });
    html.raw("\n");
}

/// Lines, table, lines.
pub(super) fn body(html: &mut Html, sheet: &Sheet) {
    if !sheet.lines.is_empty() {
        html.element(
            if sheet.numbered { "ol" } else { "ul" },
            &[("class", "lines")],
            |html| {
                sheet.lines.iter().for_each(|text| line(html, "li", text));
            },
        );
    }
    if !sheet.columns.is_empty() {
        table(html, sheet);
    }
    sheet.footer.iter().for_each(|text| line(html, "p", text));
}

/// A sentence.
pub(super) fn line(html: &mut Html, tag: &'static str, Line { text, style }: &Line) {
    let class = class_of(*style);
    html.leaf(tag, &[named("class", class)], &cut(text, LINE_COLUMNS));
}

/// Red and green only repeat what a sign or a word says.
pub(super) fn class_of(style: Style) -> &'static str {
    match style {
        Style::Plain => "",
        Style::Worse => "worse",
        Style::Better => "better",
        Style::Dim => "dim",
        Style::Strong => "strong",
    }
}

fn table(html: &mut Html, sheet: &Sheet) {
    // A wide table moves inside of this, not the page.
    let attributes = [
        ("class", "wide"),
        ("role", "region"),
        ("tabindex", "0"),
        ("aria-label", &*sheet.title),
    ];
    html.element("div", &attributes, |html| {
        html.element("table", &[("class", "sheet")], |html| {
            html.element("thead", &[], |html| headings(html, &sheet.columns));
            let decimals: Vec<usize> = (0..sheet.columns.len()).map(|at| decimals(sheet, at)).collect();
            let sums = sheet.rows.len() - sums(sheet);
            let (rows, sums) = sheet.rows.split_at_checked(sums).unwrap_or((&sheet.rows, &[]));
            for (tag, rows) in [("tbody", rows), ("tfoot", sums)] {
                if !rows.is_empty() {
                    html.element(tag, &[], |html| {
                        for cells in rows {
                            html.element("tr", &[], |html| row(html, cells, &sheet.columns, &decimals));
                            html.raw("\n");
                        }
                    });
                }
            }
        });
    });
}

/// How many rows at the end are sums of those above.
fn sums(sheet: &Sheet) -> usize {
    // The rows of a gate are all of one kind, however they look.
    if sheet.spoken.is_some() {
        return 0;
    }
    let is_sum = |row: &&Vec<Cell>| row.first().is_some_and(|cell| cell.style == Style::Strong);
    sheet.rows.iter().rev().take_while(is_sum).count()
}

fn headings(html: &mut Html, columns: &[Column]) {
    if columns.iter().any(|column| column.group.is_some()) {
        html.element("tr", &[("class", "groups")], |html| {
            let mut rest = columns;
            while let Some(first) = rest.first() {
                let same = rest.iter().take_while(|column| column.group == first.group).count();
                let span = same.to_string();
                html.leaf(
                    "th",
                    &[("colspan", &span), ("scope", "colgroup")],
                    &first
                        .group
                        .as_deref()
                        .map_or_else(String::new, |group| cut(group, CELL_COLUMNS)),
                );
                rest = rest.get(same..).unwrap_or_default();
            }
        });
    }
    html.element("tr", &[], |html| {
        for column in columns {
            let class = if is_number(column) { "n" } else { "t" };
            html.leaf("th", &[("class", class), ("scope", "col")], &column.header);
        }
    });
    html.raw("\n");
}

/// An attribute that is there only when it says something.
fn named<'a>(name: &'static str, value: &'a str) -> (&'static str, &'a str) {
    (if value.is_empty() { "" } else { name }, value)
}

fn is_number(column: &Column) -> bool {
    matches!(column.align, Align::Right | Align::Point)
}

fn row(html: &mut Html, cells: &[Cell], columns: &[Column], decimals: &[usize]) {
    for (at, (cell, column)) in cells.iter().zip(columns).enumerate() {
        let text = match &cell.content {
            Content::Text(text) => text.clone(),
            Content::List(parts) => parts.join(", "),
        };
        let mut class = class_of(cell.style).to_owned();
        if is_number(column) {
            class.push_str(" n");
            if column.align == Align::Point {
                let missing = decimals.get(at).map_or(0, |most| most - decimals_of(&text).min(*most));
                class.push_str(&format!(" r{missing}"));
            }
        }
        let is_list = matches!(cell.content, Content::List(_)) && !is_number(column);
        if is_list || (width(&text) > SHORT && !is_number(column)) {
            class.push_str(" text");
        }
        let shown = if is_list {
            cut(&text, LONGEST)
        } else {
            cut_middle(&text, CELL_COLUMNS)
        };
        let whole = if width(&shown) < width(&text) {
            cut(&text, LONGEST)
        } else {
            String::new()
        };
        let class = named("class", class.trim_start());
        if at == 0 {
            html.leaf("th", &[class, ("scope", "row"), named("title", &whole)], &shown);
        } else {
            html.leaf("td", &[class, named("title", &whole)], &shown);
        }
    }
}

/// The most decimals in a column of numbers.
fn decimals(sheet: &Sheet, column: usize) -> usize {
    let texts = sheet.rows.iter().filter_map(|row| match &row.get(column)?.content {
        Content::Text(text) => Some(decimals_of(text)),
        Content::List(_) => None,
    });
    texts.max().unwrap_or(0)
}

fn decimals_of(number: &str) -> usize {
    number
        .rsplit_once('.')
        .map_or(0, |(_, decimals)| decimals.len().min(DECIMALS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_a_plain_word() {
        assert_eq!(
            anchor("Duration buckets by trial, µs/tok"),
            "duration-buckets-by-trial-s-tok"
        );
        assert_eq!(anchor("Gate: failed (1 of 2 rows)"), "gate-failed-1-of-2-rows");
    }

    #[test]
    fn points_stand_under_each_other_and_sums_in_the_foot() {
        let line = |key: &str, number: &str, style| vec![Cell::new(key).styled(style), Cell::new(number)];
        let sheet = Sheet {
            title: "Phases".into(),
            columns: vec![
                Column::new("phase", Align::Left, 0),
                Column::new("µs", Align::Point, 0).under("A & B"),
            ],
            rows: vec![
                line("<a>", "1.25", Style::Plain),
                line("b", "100.5", Style::Plain),
                line("c", "–", Style::Plain),
                line("TOTAL", "10,000", Style::Strong),
            ],
            ..Sheet::default()
        };
        let mut html = Html::default();
        body(&mut html, &sheet);
        let expected = [
            "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Phases\"><table class=\"sheet\"><thead>\
             <tr class=\"groups\"><th colspan=\"1\" scope=\"colgroup\"></th><th colspan=\"1\" scope=\"colgroup\">A &amp; B</th></tr>\
             <tr><th class=\"t\" scope=\"col\">phase</th><th class=\"n\" scope=\"col\">µs</th></tr>",
            "</thead><tbody><tr><th scope=\"row\">&lt;a&gt;</th><td class=\"n r0\">1.25</td></tr>",
            "<tr><th scope=\"row\">b</th><td class=\"n r1\">100.5</td></tr>",
            "<tr><th scope=\"row\">c</th><td class=\"n r2\">–</td></tr>",
            "</tbody><tfoot><tr><th class=\"strong\" scope=\"row\">TOTAL</th><td class=\"n r2\">10,000</td></tr>",
            "</tfoot></table></div>",
        ];
        assert_eq!(html.finish(), expected.join("\n"));
    }
}
