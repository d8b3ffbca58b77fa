//! JUnit XML: a test case per gated row, for the test view of any CI system.
//!
//! A failed row is a `failure` of type `regression`, a row that cannot be judged is an `error` with its reason as type,
//! and a row is `skipped` only where `--on-inconclusive pass` excused it. Limits and bounds are properties of the case.
//! A missing trial and a self-test are cases too, because they also decide the exit status. Without a gate there are no
//! rows to test: the suite is empty and says the outcome in its output.
//!
//! XML has no way to write most control characters. They are taken out, and with them the rest of the terminal sequence
//! that they begin, which would only be noise.

use std::fmt::Write as _;

use super::ReportOptions;
use super::series::remarks;
use super::verdict_text::{numbers, self_test};
use crate::compare::gate::{GateResult, GatedRow, SelfTest};
use crate::compare::{Comparison, headline};
use crate::inference::percent;
use crate::label;

/// A test case.
struct Case {
    name: String,
    properties: Vec<(&'static str, String)>,
    outcome: Outcome,
    /// What is said of it.
    text: String,
}

enum Outcome {
    Passed,
    Failure,
    Error(&'static str),
    Skipped,
}

/// The whole file.
pub(super) fn render(comparison: &Comparison, options: &ReportOptions) -> String {
    let suite = options.name(comparison);
    let mut cases = Vec::new();
    if let Some(gate) = &comparison.gate {
        cases.extend(gate.rows.iter().map(|row| gated(row, comparison)));
        cases.extend(gate.self_test.as_ref().map(tried));
    }
    cases.extend(missing_trials(comparison));
    let count = |wanted: fn(&Outcome) -> bool| cases.iter().filter(|case| wanted(&case.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failure)),
        count(|outcome| matches!(outcome, Outcome::Error(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped)),
    );
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"trace-attr\" {counts}>");
    let _ = writeln!(out, "  <testsuite name=\"{}\" {counts}>", escaped(suite));
    properties(&settings(comparison), "    ", &mut out);
    cases.iter().for_each(|case| write_case(case, suite, &mut out));
    let mut said = vec![headline(comparison)];
    said.extend(remarks(comparison));
    let said: Vec<String> = said.iter().map(|line| escaped(line)).collect();
    let _ = writeln!(out, "    <system-out>{}</system-out>", said.join("\n"));
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// What holds for all cases.
fn settings(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("tool", concat!("trace-attr ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("a", comparison.a.name.clone()),
    ];
    settings.extend(comparison.b.as_ref().map(|b| ("b", b.name.clone())));
    settings.extend(comparison.settings.unit.clone().map(|unit| ("unit", unit)));
    settings.push(("timing", comparison.settings.timing.name().to_owned()));
    if let Some(gate) = &comparison.gate {
        settings.push(("margin_pct", comparison.inference.margin_pct.to_string()));
        settings.push(("result", gate.result.name().to_owned()));
    }
    settings
}

fn gated(row: &GatedRow, comparison: &Comparison) -> Case {
    let mut properties = vec![
        ("limit_pct", row.limit_pct.to_string()),
        ("result", row.result.name().to_owned()),
        ("verdict", row.judgement.verdict.name().to_owned()),
    ];
    properties.extend(row.reason.map(|reason| ("reason", reason.to_owned())));
    properties.extend(row.delta_pct.map(|delta| ("delta_pct", delta.to_string())));
    if let Some(test) = &row.judgement.test {
        let interval = &test.interval;
        properties.extend([
            ("method", interval.method.name().to_owned()),
            ("n_a", interval.n_a.to_string()),
            ("n_b", interval.n_b.to_string()),
            ("low_pct", percent(interval.low()).to_string()),
            ("high_pct", percent(interval.high()).to_string()),
            ("resolution_pct", percent(interval.resolution).to_string()),
        ]);
    }
    if let Some(exception) = &row.exception {
        properties.push(("accepted_until", exception.until.to_string()));
        properties.push(("accepted_why", exception.why.clone()));
    }
    Case {
        name: row.key.to_string(),
        properties,
        outcome: match row.result {
            GateResult::Failed => Outcome::Failure,
            GateResult::CannotJudge => Outcome::Error(row.reason.unwrap_or("cannot_judge")),
            GateResult::Passed if row.excused => Outcome::Skipped,
            GateResult::Passed => Outcome::Passed,
        },
        text: numbers(row, comparison),
    }
}

/// Whether the gate showed that it can fail.
fn tried(test: &SelfTest) -> Case {
    Case {
        name: "(self-test)".to_owned(),
        properties: Vec::new(),
        outcome: if test.works() {
            Outcome::Passed
        } else {
            Outcome::Error("self_test")
        },
        text: self_test(test).join("; "),
    }
}

/// Trials that `--keep-going` went on without.
fn missing_trials(comparison: &Comparison) -> Option<Case> {
    let missing = comparison.notes.iter().filter(|note| note.code == "missing_trial");
    let texts: Vec<&str> = missing.map(|note| note.text.as_str()).collect();
    (!texts.is_empty()).then(|| Case {
        name: "(trials)".to_owned(),
        properties: Vec::new(),
        outcome: Outcome::Error("missing_trial"),
        text: texts.join("; "),
    })
}

fn write_case(case: &Case, suite: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "    <testcase classname=\"trace-attr.{}\" name=\"{}\">",
        escaped(suite),
        escaped(&case.name)
    );
    properties(&case.properties, "      ", out);
    let text = escaped(&case.text);
    let _ = match case.outcome {
        Outcome::Passed => writeln!(out, "      <system-out>{text}</system-out>"),
        Outcome::Failure => writeln!(
            out,
            "      <failure type=\"regression\" message=\"{text}\">{text}</failure>"
        ),
        Outcome::Error(reason) => writeln!(out, "      <error type=\"{reason}\" message=\"{text}\">{text}</error>"),
        Outcome::Skipped => writeln!(out, "      <skipped message=\"{text}\"/>"),
    };
    out.push_str("    </testcase>\n");
}

fn properties(all: &[(&str, String)], indent: &str, out: &mut String) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "{indent}<properties>");
    for (name, value) in all {
        let _ = writeln!(
            out,
            "{indent}  <property name=\"{name}\" value=\"{}\"/>",
            escaped(value)
        );
    }
    let _ = writeln!(out, "{indent}</properties>");
}

/// Text for an element or an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in label::visible(&without_sequences(text)).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Text without the characters that XML forbids, and without the terminal sequences that some of them begin.
fn without_sequences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut rest),
            '\t' | '\n' | '\r' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

/// Goes behind what an escape character began: `[31m`, `]0;title` up to its end, `(B`, `c`.
fn skip_sequence(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => {
            // Parameters, then one final character.
            let end = ahead.find(|c| !matches!(c, '\u{20}'..='\u{3f}'));
            if end.is_none_or(|c| matches!(c, '\u{40}'..='\u{7e}')) {
                *rest = ahead;
            } else {
                rest.next();
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // A text up to BEL or ESC \; without an end only the opening is one.
            let mut inside = ahead.clone();
            while let Some(c) = inside.next() {
                if c == '\u{7}' || (c == '\u{1b}' && inside.next() == Some('\\')) {
                    *rest = inside;
                    return;
                }
            }
            *rest = ahead;
        }
        Some('\u{20}'..='\u{2f}') => {
            ahead.next();
            *rest = ahead;
        }
        Some('\u{30}'..='\u{7e}') => *rest = ahead,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{escaped, without_sequences};

    #[test]
    fn a_forbidden_character_goes_with_its_sequence() {
        assert_eq!(without_sequences("a\u{1b}[31mred\u{1b}[0m b"), "ared b");
        assert_eq!(without_sequences("\u{1b}]0;title\u{7}x\u{1b}]8;;u\u{1b}\\y"), "xy");
        assert_eq!(without_sequences("\u{1b}(Bx\u{1b}cy\u{0}z\u{fffe}"), "xyz");
        // What is no sequence stays but for the character itself.
        assert_eq!(without_sequences("a\u{1b}"), "a");
        assert_eq!(without_sequences("\u{1b}]open"), "open");
        assert_eq!(without_sequences("\u{1b}行"), "行");
        assert_eq!(without_sequences("\u{1b}[1行"), "1行");
    }

    #[test]
    fn text_is_text_in_elements_and_attributes() {
        assert_eq!(escaped("a<b>&\"c\"]]>"), "a&lt;b&gt;&amp;&quot;c&quot;]]&gt;");
        assert_eq!(escaped("x\n\u{202e}y"), "x\\u{a}\\u{202e}y");
    }
}
