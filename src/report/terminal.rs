//! The report for a terminal or a plain text file: sheets as light tables that fit the width.
//!
//! Where a table is too wide, its text columns get narrower first (a key is cut with `…`), then columns go in
//! the order of their priority: spreads and tail latencies, the split of Δ % and its share, sizes of single
//! submissions, counts, percent. What differs, in µs, stays at every width. A line under the table names what
//! went. Colour repeats what a sign or a word says already.

use comfy_table::{
    Attribute, Cell as TableCell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};

use super::ReportOptions;
use super::sections::{Document, document};
use super::sheet::{Align, Cell, Column, Content, Line, Sheet, Style};
use crate::compare::Comparison;
use crate::label::{cut, cut_middle, width};

/// Only a line under the headings.
const LIGHT: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
/// Text columns keep this much while others can still go.
const ROOMY: usize = 18;
/// Text columns keep this much at any width.
const TIGHT: usize = 8;
/// Narrowest page.
const NARROWEST: usize = 40;
/// Widest cell that the others of its column are aligned to, where rows are lines.
const SPOKEN: usize = 40;
/// Spaces between columns, and between groups of columns.
const SPACE: usize = 2;
const GROUP_SPACE: usize = 3;

/// The whole report.
pub(super) fn render(comparison: &Comparison, options: &ReportOptions) -> String {
    let Document {
        headline,
        intro,
        sheets,
        ..
    } = document(comparison, options);
    let mut page = Page {
        width: options.width.max(NARROWEST),
        color: options.color,
        text: String::new(),
        cut: false,
    };
    page.paragraph(&headline, "", "", Style::Strong);
    for Line { text, style } in &intro {
        page.paragraph(text, "", "  ", *style);
    }
    for sheet in &sheets {
        page.sheet(sheet);
    }
    if page.cut {
        page.text.push('\n');
        page.paragraph(
            "A wider page or --format json shows the columns that were left out.",
            "",
            "",
            Style::Dim,
        );
    }
    page.text
}

/// The page as far as it is written.
struct Page {
    width: usize,
    color: bool,
    text: String,
    /// Whether a column was left out.
    cut: bool,
}

impl Page {
    /// A sentence in as many lines as it needs, the first after `first`, the others after `next`.
    fn paragraph(&mut self, text: &str, first: &str, next: &str, style: Style) {
        let room = self.width.saturating_sub(width(first).max(width(next)));
        for (at, line) in wrap(text, room).iter().enumerate() {
            self.text.push_str(if at == 0 { first } else { next });
            self.styled(line, style);
            self.text.push('\n');
        }
    }

    fn styled(&mut self, text: &str, style: Style) {
        let code = match style {
            _ if !self.color => "",
            Style::Plain => "",
            Style::Worse => "31",
            Style::Better => "32",
            Style::Dim => "2",
            Style::Strong => "1",
        };
        if code.is_empty() || text.is_empty() {
            self.text.push_str(text);
        } else {
            self.text.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m"));
        }
    }

    fn sheet(&mut self, sheet: &Sheet) {
        self.text.push('\n');
        self.styled(&sheet.title, Style::Strong);
        self.text.push('\n');
        for (at, Line { text, style }) in sheet.lines.iter().enumerate() {
            let bullet = if sheet.numbered {
                format!("{:>2}. ", at + 1)
            } else {
                "  ".to_owned()
            };
            self.paragraph(text, &bullet, "    ", *style);
        }
        match sheet.spoken {
            Some(word) => self.spoken(word, sheet),
            None if sheet.columns.is_empty() => {}
            None => self.table(sheet),
        }
        for Line { text, style } in &sheet.footer {
            self.paragraph(text, "  ", "    ", *style);
        }
    }

    /// Rows as lines, their cells under each other; a cell that is much wider than the others moves only its own line.
    fn spoken(&mut self, word: &str, sheet: &Sheet) {
        let text = |cell: &Cell| match &cell.content {
            Content::Text(text) => text.clone(),
            Content::List(parts) => parts.join(", "),
        };
        let widest = |at: usize| {
            let cells = sheet.rows.iter().filter_map(|row| row.get(at));
            let widths = cells.map(|cell| width(&text(cell)));
            widths.filter(|width| *width <= SPOKEN).max().unwrap_or(0)
        };
        for row in &sheet.rows {
            let mut line = String::from(word);
            let mut before = 1;
            for (at, cell) in row.iter().enumerate() {
                line += &" ".repeat(before);
                let cell = text(cell);
                line += &cell;
                before = SPACE + widest(at).saturating_sub(width(&cell));
            }
            let style = row.first().map_or(Style::Plain, |cell| cell.style);
            self.paragraph(line.trim_end(), "  ", "    ", style);
        }
    }

    fn table(&mut self, sheet: &Sheet) {
        let layout = Layout::new(sheet, self.width);
        let columns: Vec<&Column> = layout
            .kept
            .iter()
            .filter_map(|(at, _)| sheet.columns.get(*at))
            .collect();
        if let Some(line) = group_line(&columns, &layout) {
            self.styled(&line, Style::Dim);
            self.text.push('\n');
        }
        let mut table = Table::new();
        table
            .load_style(LIGHT)
            .set_content_arrangement(ContentArrangement::Disabled)
            .force_no_tty();
        if self.color {
            table.enforce_styling().style_text_only();
        }
        table.set_header(columns.iter().zip(&layout.kept).map(|(column, (_, room))| {
            TableCell::new(cut(&column.header, *room)).set_alignment(alignment(column.align))
        }));
        for row in &sheet.rows {
            table.add_row(
                columns
                    .iter()
                    .zip(&layout.kept)
                    .map(|(column, (at, room))| match row.get(*at) {
                        Some(cell) => self.cell(cell, column.align, *room, layout.decimals(*at)),
                        None => TableCell::new(""),
                    }),
            );
        }
        for (at, space) in spaces(&columns).into_iter().enumerate() {
            if let Some(column) = table.column_mut(at) {
                // One of the spaces is where other styles have a line between columns.
                column.set_padding((u16::try_from(space.saturating_sub(1)).unwrap_or(u16::MAX), 0));
            }
        }
        self.text.push_str(&table.trim_fmt());
        self.text.push('\n');
        if !layout.dropped.is_empty() {
            self.cut = true;
            let line = format!("not shown at {} columns: {}", self.width, layout.dropped.join(", "));
            self.paragraph(&line, "  ", "    ", Style::Dim);
        }
    }

    fn cell(&self, cell: &Cell, align: Align, room: usize, decimals: usize) -> TableCell {
        let text = match &cell.content {
            Content::Text(text) if align == Align::Point => {
                let missing = decimals.saturating_sub(places(text));
                text.clone() + &" ".repeat(missing)
            }
            Content::Text(text) => cut_middle(text, room),
            Content::List(parts) => wrap_parts(parts.iter().map(String::as_str), ", ", room).join("\n"),
        };
        let shown = TableCell::new(text).set_alignment(alignment(align));
        if !self.color {
            return shown;
        }
        match cell.style {
            Style::Plain => shown,
            Style::Worse => shown.fg(Color::DarkRed),
            Style::Better => shown.fg(Color::DarkGreen),
            Style::Dim => shown.add_attribute(Attribute::Dim),
            Style::Strong => shown.add_attribute(Attribute::Bold),
        }
    }
}

fn alignment(align: Align) -> CellAlignment {
    match align {
        Align::Left => CellAlignment::Left,
        Align::Right | Align::Point => CellAlignment::Right,
    }
}

/// Characters from the decimal point on.
fn places(number: &str) -> usize {
    number.rfind('.').map_or(0, |point| number.len() - point)
}

/// Which columns a table has at a width, and how wide each is.
#[derive(Default)]
struct Layout {
    /// Index and width of each column that stays.
    kept: Vec<(usize, usize)>,
    /// Headings of the others, as they went.
    dropped: Vec<String>,
    /// Per column of the sheet, the most characters that a cell has from its point on.
    decimals: Vec<usize>,
}

impl Layout {
    fn new(sheet: &Sheet, page: usize) -> Layout {
        let measures: Vec<Measure> = sheet
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| Measure::new(sheet, at, column))
            .collect();
        let mut layout = Layout::default();
        let mut kept: Vec<&Measure> = measures.iter().collect();
        while least(sheet, &kept, ROOMY) > page {
            let Some(last) = kept.iter().map(|column| column.priority).max().filter(|last| *last > 0) else {
                break;
            };
            for column in kept.extract_if(.., |column| column.priority == last) {
                if let Some(head) = sheet.columns.get(column.at)
                    && !layout.dropped.contains(&head.header)
                {
                    layout.dropped.push(head.header.clone());
                }
            }
        }
        let floor = if least(sheet, &kept, ROOMY) <= page {
            ROOMY
        } else {
            TIGHT
        };
        let mut room = page.saturating_sub(least(sheet, &kept, floor));
        layout.kept = kept.iter().map(|column| (column.at, column.least(floor))).collect();
        layout.decimals = measures.iter().map(|column| column.decimals).collect();
        // The room that is left goes to the text columns: to the narrow ones first, to lists last, since they wrap.
        let mut order: Vec<(usize, &&Measure)> = kept.iter().enumerate().collect();
        order.sort_by_key(|(place, column)| (column.part > 0, column.natural, *place));
        let mut others = order.iter().filter(|(_, column)| column.flexible).count();
        for (place, column) in order.into_iter().filter(|(_, column)| column.flexible) {
            let more = (column.natural - column.least(floor)).min(room / others.max(1));
            others -= 1;
            room -= more;
            if let Some((_, width)) = layout.kept.get_mut(place) {
                *width += more;
            }
        }
        layout
    }

    fn decimals(&self, at: usize) -> usize {
        self.decimals.get(at).copied().unwrap_or(0)
    }
}

/// What a column needs.
struct Measure {
    at: usize,
    priority: u8,
    /// Width of its widest cell.
    natural: usize,
    /// Width of its heading.
    header: usize,
    /// Width of the widest part of a list in it; 0: no lists.
    part: usize,
    /// Most characters that a number in it has from its point on.
    decimals: usize,
    /// Whether it can be narrower than its cells.
    flexible: bool,
}

impl Measure {
    fn new(sheet: &Sheet, at: usize, column: &Column) -> Measure {
        let header = width(&column.header);
        let mut measure = Measure {
            at,
            priority: column.priority,
            natural: header,
            header,
            part: 0,
            decimals: 0,
            flexible: column.align == Align::Left,
        };
        let point = column.align == Align::Point;
        let cells = || sheet.rows.iter().filter_map(|row| row.get(at));
        for cell in cells() {
            match &cell.content {
                Content::Text(text) if point => measure.decimals = measure.decimals.max(places(text)),
                Content::Text(_) => {}
                Content::List(parts) => {
                    // Each but the last is followed by a comma.
                    let part = parts.iter().map(|part| width(part) + 1).max().unwrap_or(0);
                    measure.part = measure.part.max(part);
                }
            }
        }
        for cell in cells() {
            let width = match &cell.content {
                Content::Text(text) if point => width(text) + measure.decimals - places(text),
                Content::Text(text) => width(text),
                Content::List(parts) => width(&parts.join(", ")),
            };
            measure.natural = measure.natural.max(width);
        }
        measure
    }

    /// How narrow it can be when text columns keep `floor`.
    fn least(&self, floor: usize) -> usize {
        if !self.flexible {
            return self.natural;
        }
        let floor = if self.part > 0 { self.part.min(2 * floor) } else { floor };
        // A heading that is longer is a name of the user's, and can be cut too.
        self.natural.min(floor.max(self.header.min(ROOMY)))
    }
}

/// How narrow a table can be.
fn least(sheet: &Sheet, kept: &[&Measure], floor: usize) -> usize {
    let heads: Vec<&Column> = kept.iter().filter_map(|column| sheet.columns.get(column.at)).collect();
    kept.iter().map(|column| column.least(floor)).sum::<usize>() + spaces(&heads).iter().sum::<usize>()
}

/// Spaces before each column.
fn spaces(columns: &[&Column]) -> Vec<usize> {
    let mut before: Option<&Column> = None;
    let mut spaces = Vec::with_capacity(columns.len());
    for column in columns {
        spaces.push(match before {
            None => 0,
            Some(before) if before.group != column.group => GROUP_SPACE,
            Some(_) => SPACE,
        });
        before = Some(column);
    }
    spaces
}

/// The names of the groups, each with a line over its columns; `None` when no column is in a group.
fn group_line(columns: &[&Column], layout: &Layout) -> Option<String> {
    let mut line = String::new();
    let mut at = 0;
    let mut open: Option<(&str, usize, usize)> = None;
    let mut spans = Vec::new();
    for ((column, (_, room)), space) in columns.iter().zip(&layout.kept).zip(spaces(columns)) {
        let start = at + space;
        at = start + room;
        open = match (open, column.group.as_deref()) {
            (Some((name, from, _)), Some(group)) if name == group => Some((name, from, at)),
            (before, group) => {
                spans.extend(before);
                group.map(|group| (group, start, at))
            }
        };
    }
    spans.extend(open);
    for (place, (name, from, to)) in spans.iter().enumerate() {
        let room = to - from;
        // Side A's columns come first, then B's; the report's head says who they are.
        let name = match ["A", "B"].get(place).filter(|_| width(name) + 2 > room) {
            Some(letter) => (*letter).to_owned(),
            None => cut(name, room.saturating_sub(2)),
        };
        let dashes = room.saturating_sub(width(&name) + 2);
        line.push_str(&" ".repeat(from.saturating_sub(width(&line))));
        line.push_str(&"─".repeat(dashes / 2));
        line.push_str(&format!(" {name} "));
        line.push_str(&"─".repeat(dashes - dashes / 2));
    }
    (!spans.is_empty()).then_some(line)
}

/// `text` broken at spaces into lines of at most `columns`; a word that is longer stands on a line of its own, cut.
/// Several spaces, which align the columns of lines, stay as they are inside a line.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(' ') {
        let word = text.get(from..at).unwrap_or_default();
        if !word.trim_start().is_empty() {
            words.push(word);
            from = at + 1;
        }
    }
    words.extend(text.get(from..).filter(|word| !word.trim_start().is_empty()));
    wrap_parts(words, " ", columns)
}

/// The parts in order, with `separator` between them, in lines of at most `columns`.
///
/// A separator's trailing space goes at the end of a line; a part is never broken, only cut.
fn wrap_parts<'a>(parts: impl IntoIterator<Item = &'a str>, separator: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mark = separator.trim_end();
    let mut parts = parts.into_iter().enumerate().peekable();
    while let Some((at, part)) = parts.next() {
        let behind = if parts.peek().is_some() { width(mark) } else { 0 };
        if at > 0 {
            if width(&line) + width(separator) + width(part) + behind <= columns {
                line.push_str(separator);
            } else {
                line.push_str(mark);
                lines.push(std::mem::take(&mut line));
            }
        }
        // What aligned it on the line before has no meaning here.
        let part = if at > 0 && line.is_empty() {
            part.trim_start()
        } else {
            part
        };
        line.push_str(&cut(part, columns.saturating_sub(behind)));
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_than_asked() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_parts(["a", "b", "c"], ", ", 5), ["a, b,", "c"]);
        assert_eq!(wrap_parts(["a", "b", "c"], ", ", 7), ["a, b, c"]);
        assert_eq!(wrap("incomprehensible", 6), ["incom…"]);
        assert_eq!(wrap("a   b  c  dd", 8), ["a   b  c", "dd"]);
        assert!(wrap("", 5).concat().is_empty());
    }
}
