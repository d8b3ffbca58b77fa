//! Workflow commands of GitHub Actions: `::error title=…::…`, so that a job shows what came of a comparison.
//!
//! The worst first, at most ten, which is what a step shows; the tenth then says how many there are not. A failed row is
//! an error, a row that cannot be judged a warning, as are the warnings of the comparison; the rest is a notice. Every
//! line is a command: nothing else is printed, and no label can start one.

use super::ReportOptions;
use super::series::{left_out, warnings};
use super::verdict_text::{key, result, self_test, sentence};
use crate::compare::gate::GateResult;
use crate::compare::{Comparison, headline};
use crate::label;

/// Annotations that GitHub shows of one kind and step.
const MOST: usize = 10;
/// Columns of a title and of a message.
const TITLE_COLUMNS: usize = 120;
const MESSAGE_COLUMNS: usize = 1_000;

/// Worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Error,
    Warning,
    Notice,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Notice => "notice",
        }
    }
}

struct Annotation {
    level: Level,
    title: String,
    message: String,
}

/// All commands, a line each.
pub(super) fn render(comparison: &Comparison, options: &ReportOptions) -> String {
    let name = options.name(comparison);
    let mut all = Vec::new();
    for row in comparison.gate.iter().flat_map(|gate| &gate.rows) {
        let level = match row.result {
            GateResult::Failed => Level::Error,
            GateResult::CannotJudge => Level::Warning,
            GateResult::Passed if row.excused => Level::Warning,
            GateResult::Passed => Level::Notice,
        };
        all.push(Annotation {
            level,
            title: format!("{name}: {}: {}", result(row.result), key(&row.key)),
            message: sentence(row, comparison),
        });
    }
    let mut outcome = vec![label::visible(&headline(comparison))];
    outcome.extend(left_out(comparison));
    all.push(Annotation {
        level: Level::Notice,
        title: format!("{name}: GPU time"),
        message: outcome.join("\n"),
    });
    all.extend(warnings(comparison).into_iter().map(|message| Annotation {
        level: Level::Warning,
        title: format!("{name}: note"),
        message,
    }));
    if let Some(test) = comparison.gate.as_ref().and_then(|gate| gate.self_test.as_ref()) {
        all.push(Annotation {
            level: if test.works() { Level::Notice } else { Level::Warning },
            title: format!("{name}: self-test"),
            message: self_test(test).join("\n"),
        });
    }
    all.sort_by_key(|annotation| annotation.level);
    let hidden = all.split_off(all.len().min(if all.len() > MOST { MOST - 1 } else { MOST }));
    if let Some(worst) = hidden.first() {
        all.push(Annotation {
            level: worst.level,
            title: format!("{name}: more"),
            message: format!("{} more remarks are in the report", hidden.len()),
        });
    }
    all.iter().map(command).collect()
}

fn command(annotation: &Annotation) -> String {
    format!(
        "::{} title={}::{}\n",
        annotation.level.name(),
        property(&label::cut(&annotation.title, TITLE_COLUMNS)),
        data(&label::cut(&annotation.message, MESSAGE_COLUMNS))
    )
}

/// A message: GitHub ends it at the line break.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property: a colon or a comma would end it as well.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_where_it_should() {
        let annotation = Annotation {
            level: Level::Error,
            title: "a: 3 %, b::c".into(),
            message: "100 %\r\n::error::x".into(),
        };
        assert_eq!(
            command(&annotation),
            "::error title=a%3A 3 %25%2C b%3A%3Ac::100 %25%0D%0A::error::x\n"
        );
    }
}
