//! Lines of the Go benchmark format, for `benchstat`: one per row, side and trial.
//!
//! ```text
//! gpu: Apple M5 Max
//! per: token
//!
//! BenchmarkBusy/side=a 1 574578.125 ns/op 24.25 submissions/op
//! BenchmarkPhase/key=hf2q.decode.lm_head/side=a 1 182600 ns/op 1 submissions/op
//! ```
//!
//! An `op` is a unit (a token), or a trial. Names have no spaces: what Go's format acts on is percent-encoded, and
//! decoding gives the label back. Configuration lines hold what must not be compared across; the tool keeps files apart
//! by them. Lines that begin with `#` are no part of the format and are skipped by its readers.

use std::fmt::Write as _;

use super::series::{Series, per, remarks, series, sides};
use crate::compare::Comparison;
use crate::compare::gate::{RowKey, Table};
use crate::label::visible;

/// The whole file.
pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    for (letter, side) in sides(comparison) {
        let _ = writeln!(out, "# {letter}: {}", visible(&side.name));
    }
    for remark in remarks(comparison) {
        let _ = writeln!(out, "# {remark}");
    }
    if let Some(gpu) = one_gpu(comparison) {
        let _ = writeln!(out, "gpu: {}", visible(gpu));
    }
    let _ = writeln!(out, "per: {}", visible(per(comparison)));
    let _ = writeln!(out, "timing: {}\n", comparison.settings.timing.name());
    for series in series(comparison) {
        let name = name(&series);
        for (letter, side) in sides(comparison) {
            let cell = if letter == "a" { &series.row.a } else { &series.row.b };
            let Some(cell) = cell else { continue };
            for (stats, trial) in cell.trials.iter().zip(&side.trials) {
                let submissions = stats.submissions as f64 / trial.units.unwrap_or(1) as f64;
                let ns = series.trial_ns(stats, trial);
                let _ = writeln!(out, "{name}/side={letter} 1 {ns} ns/op {submissions} submissions/op");
            }
        }
    }
    out
}

/// The GPU of all trials; `None` when they differ or do not say.
fn one_gpu(comparison: &Comparison) -> Option<&str> {
    let mut gpus = sides(comparison).flat_map(|(_, side)| side.trials.iter().map(|trial| trial.gpu.as_deref()));
    let first = gpus.next()??;
    gpus.all(|gpu| gpu == Some(first)).then_some(first)
}

/// `BenchmarkPhase/key=…`.
fn name(series: &Series<'_>) -> String {
    let (word, key) = match &series.key {
        RowKey::Busy => return "BenchmarkBusy".to_owned(),
        RowKey::Total => return "BenchmarkTotal".to_owned(),
        RowKey::In(Table::Buckets, key) => ("Bucket", key),
        RowKey::In(Table::Encoders, key) => ("Encoder", key),
        RowKey::In(Table::Phases, key) => ("Phase", key),
        RowKey::In(Table::Channels, key) => ("Channel", key),
        RowKey::Kernel(key) => ("Kernel", key),
    };
    format!("Benchmark{word}/key={}", encoded(key))
}

/// A label as part of a name: letters and digits of any script and a few signs stay, the rest is percent-encoded UTF-8.
fn encoded(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        // No `/` and no `=`, which part a name; nor `-`: a number behind it would be taken for GOMAXPROCS.
        let stays = c.is_alphanumeric() && visible(c.encode_utf8(&mut [0; 4])).chars().eq([c])
            || matches!(c, '.' | '_' | ':' | '(' | ')' | '<' | '>' | ',' | '+');
        if stays {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encoded;

    fn decoded(name: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = name.as_bytes().iter();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'%' => {
                    let digits = [*rest.next().unwrap(), *rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => *byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_name_has_no_spaces_and_gives_its_label_back() {
        assert_eq!(encoded("hf2q.decode.layer:0"), "hf2q.decode.layer:0");
        assert_eq!(encoded("ffn.gate & ffn.up"), "ffn.gate%20%26%20ffn.up");
        assert_eq!(encoded("a/b=c%20-8"), "a%2Fb%3Dc%2520%2D8");
        for label in [
            "",
            "行列積 ✅",
            "a\u{a0}b\u{2028}c",
            "\u{1b}[31m\n",
            "100%",
            "e\u{301}\u{3164}\u{202e}",
        ] {
            let name = encoded(label);
            assert!(!name.contains(|c: char| c.is_whitespace() || c.is_control()), "{name}");
            assert_eq!(decoded(&name), label);
        }
    }
}
