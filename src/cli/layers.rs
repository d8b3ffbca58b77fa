//! The command line over the configuration file over the defaults, and where each value came from.
//!
//! What the command line left open is filled in from the file, so that everything behind works on one set of options.
//! An option for both sides on the command line counts for both, whatever the file says of one.

use std::path::{Path, PathBuf};

use clap::Args;

use super::analyse::{PerSideArgs, SharedArgs, ShowArgs};
use super::judging::{JudgingArgs, OnInconclusive, read};
use super::selection::{LabelMapArgs, SelectArgs, SideSelectArgs, UnitArgs};
use crate::attribution::{KernelRule, KernelRules, LabelMap, LabelRule};
use crate::compare::gate::{Limit, Percent};
use crate::config::{Config, FILE_NAME, Placed, Sided, Written, find};
use crate::error::{Error, Result};
use crate::join::TimingChoice;
use crate::model::{Nanos, WindowSpan};

/// Which configuration file.
#[derive(Debug, Args)]
pub(super) struct ConfigFileArgs {
    /// Configuration file [default: trace-attr.toml in this folder or the nearest one above]
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    config: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long, conflicts_with = "config", help_heading = "Configuration")]
    no_config: bool,
}

/// A value that is in force.
pub(super) struct Entry {
    /// Its key in a configuration file.
    pub(super) key: &'static str,
    /// The value, as it is written there, or in words where nothing is set.
    pub(super) value: String,
    /// `default`, `trace-attr.toml:3`, `command line`.
    pub(super) origin: String,
}

/// The file, and what became of each option.
pub(super) struct Layers {
    pub(super) file: Config,
    /// The file's path; `None`: there is none.
    pub(super) path: Option<PathBuf>,
    pub(super) told: Told,
}

/// What became of each option, in the order in which they were filled.
#[derive(Default)]
pub(super) struct Told {
    /// The file as messages name it.
    file: String,
    pub(super) entries: Vec<Entry>,
}

impl Layers {
    /// Reads the file, if there is one.
    pub(super) fn load(args: &ConfigFileArgs) -> Result<Layers> {
        let path = match &args.config {
            Some(path) => Some(path.clone()),
            None if args.no_config => None,
            None => above()?,
        };
        let file = match &path {
            Some(path) => Config::read(path, &path.display().to_string())?,
            None => Config::default(),
        };
        Ok(Layers {
            told: Told {
                file: file.name.clone(),
                entries: Vec::new(),
            },
            file,
            path,
        })
    }

    /// The file's name without its folders, for reports.
    pub(super) fn shown_name(&self) -> Option<String> {
        let name = self.path.as_ref()?.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Process, timing table and window; `own` is absent where there is one side.
    pub(super) fn fill_selection(&mut self, select: &mut SelectArgs, mut own: Option<&mut SideSelectArgs>) {
        let Layers { file, told, .. } = self;
        told.sided(
            ["process", "process_a", "process_b"],
            &mut select.process,
            own.as_mut().map(|own| [&mut own.process_a, &mut own.process_b]),
            &file.process,
            |name| quoted(name),
            "the recorded one",
        );
        let timing = |timing: &TimingChoice| {
            quoted(match timing {
                TimingChoice::Auto => "auto",
                TimingChoice::Intervals => "intervals",
                TimingChoice::Points => "points",
            })
        };
        told.one("timing", &mut select.timing, file.timing.as_ref(), timing, "\"auto\"");
        told.windows(select, own, file);
    }

    /// Names of phases.
    pub(super) fn fill_label_map(&mut self, names: &LabelMapArgs) {
        let Layers { file, told, .. } = self;
        told.rules("label_map", names.label_map.as_deref(), file.label_map.as_ref(), "none");
    }

    /// Units; `own` is absent where they are not told apart by side.
    pub(super) fn fill_counts(&mut self, counts: &mut UnitArgs, own: Option<&mut PerSideArgs>) {
        let Layers { file, told, .. } = self;
        told.units(counts, own, file);
    }

    /// Bucket edges.
    pub(super) fn fill_buckets(&mut self, buckets: &mut Option<String>) {
        let Layers { file, told, .. } = self;
        let default = "\"2us,8us,32us,80us\"";
        told.one(
            "buckets",
            buckets,
            file.buckets.as_ref(),
            |edges| quoted(edges),
            default,
        );
    }

    /// What every analysis has; `own` is absent where there is one side.
    pub(super) fn fill(&mut self, shared: &mut SharedArgs, mut own: Option<&mut PerSideArgs>) {
        self.fill_selection(&mut shared.select, own.as_mut().map(|own| &mut own.select));
        self.fill_counts(&mut shared.counts, own);
        self.fill_buckets(&mut shared.buckets);
        let Layers { file, told, .. } = self;
        told.rules(
            "kernel_rules",
            shared.kernel_rules.as_deref(),
            file.kernel_rules.as_ref(),
            "the built-in ones",
        );
        self.fill_label_map(&shared.names);
        let Layers { file, told, .. } = self;
        let hints = file.hints.as_ref();
        match hints {
            Some(placed) => {
                let origin = told.at(placed);
                told.tell("hints", counted(placed.value.len(), "hint"), origin);
            }
            None => told.tell("hints", "none".to_owned(), "default".to_owned()),
        }
    }

    /// What is shown.
    pub(super) fn fill_show(&mut self, show: &mut ShowArgs) {
        let Layers { file, told, .. } = self;
        told.one("slowest", &mut show.slowest, file.slowest.as_ref(), u16::to_string, "5");
    }

    /// Names of both sides.
    pub(super) fn fill_names(&mut self, a: &mut Option<String>, b: &mut Option<String>) {
        let Layers { file, told, .. } = self;
        told.one("name_a", a, file.name_a.as_ref(), |name| quoted(name), "the process");
        told.one("name_b", b, file.name_b.as_ref(), |name| quoted(name), "the process");
    }

    /// Verdicts and the gate.
    pub(super) fn fill_judging(&mut self, judging: &mut JudgingArgs) {
        let Layers { file, told, .. } = self;
        let percent = |percent: &Percent| quoted(&percent.to_string());
        told.one("margin", &mut judging.margin, file.margin.as_ref(), percent, "\"1 %\"");
        told.one(
            "control",
            &mut judging.control,
            file.control.as_ref(),
            |regex| quoted(regex.as_str()),
            "none",
        );
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        // Pairs take their noise from themselves.
        let noise = file.noise.as_ref().filter(|_| !judging.paired);
        told.one("noise", &mut judging.noise, noise, path, "none");
        told.one(
            "gate.fail_above",
            &mut judging.fail_above,
            file.fail_above.as_ref(),
            percent,
            "none",
        );
        // A gate that is given besides must not open those of the project: only the same row is replaced.
        let mut rows = (!judging.gate.is_empty()).then(|| judging.gate.clone());
        if let (Some(given), Some(placed)) = (&mut rows, &file.gate_rows) {
            let others = placed
                .value
                .iter()
                .filter(|limit| !judging.gate.iter().any(|own| own.key == limit.key));
            given.extend(others.cloned());
        }
        told.one(
            "gate.rows",
            &mut rows,
            file.gate_rows.as_ref(),
            |rows| limits(rows),
            "none",
        );
        judging.gate = rows.unwrap_or_default();
        // Without a limit these would be about nothing.
        let gated = judging.fail_above.is_some() || !judging.gate.is_empty();
        let accept = file.accept.as_ref().filter(|_| gated);
        told.one("gate.accept", &mut judging.accept, accept, path, "none");
        let how = |pass: bool| {
            if pass {
                OnInconclusive::Pass
            } else {
                OnInconclusive::Fail
            }
        };
        let inconclusive = file.pass_inconclusive.as_ref().filter(|_| gated).map(|placed| Placed {
            value: how(placed.value),
            line: placed.line,
        });
        let word = |how: &OnInconclusive| {
            quoted(match how {
                OnInconclusive::Fail => "fail",
                OnInconclusive::Pass => "pass",
            })
        };
        told.one(
            "gate.on_inconclusive",
            &mut judging.on_inconclusive,
            inconclusive.as_ref(),
            word,
            "\"fail\"",
        );
    }

    /// The file, and files that it names.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        fn named<T>(placed: Option<&Placed<Written<T>>>) -> Option<&PathBuf> {
            match &placed?.value {
                Written::File(path) => Some(path),
                Written::Here(_) => None,
            }
        }
        let rules = named(self.file.kernel_rules.as_ref());
        self.path.iter().chain(rules).chain(named(self.file.label_map.as_ref()))
    }

    /// The rules for kernel families.
    pub(super) fn kernel_rules(&self, given: Option<&Path>) -> Result<KernelRules> {
        let here = |rules: &Vec<KernelRule>| KernelRules::with_rules(rules.clone());
        match chosen(given, self.file.kernel_rules.as_ref()) {
            None => Ok(KernelRules::default()),
            Some(Chosen::Here(rules)) => here(rules),
            Some(Chosen::File(path)) => {
                KernelRules::with_user(&read(path)?).map_err(|error| error.with_origin(path.display().to_string()))
            }
        }
    }

    /// The names of phases.
    pub(super) fn label_map(&self, given: Option<&Path>) -> Result<LabelMap> {
        let here = |rules: &Vec<LabelRule>| LabelMap::with_rules(rules.clone());
        match chosen(given, self.file.label_map.as_ref()) {
            None => Ok(LabelMap::default()),
            Some(Chosen::Here(rules)) => here(rules),
            Some(Chosen::File(path)) => {
                LabelMap::parse(&read(path)?).map_err(|error| error.with_origin(path.display().to_string()))
            }
        }
    }
}

impl Told {
    fn at<T>(&self, placed: &Placed<T>) -> String {
        format!("{}:{}", self.file, placed.line)
    }

    fn tell(&mut self, key: &'static str, value: String, origin: String) {
        self.entries.push(Entry { key, value, origin });
    }

    /// Fills one option, and tells what became of it.
    fn one<T: Clone>(
        &mut self,
        key: &'static str,
        slot: &mut Option<T>,
        placed: Option<&Placed<T>>,
        show: impl Fn(&T) -> String,
        default: &str,
    ) {
        let origin = match (&slot, placed) {
            (Some(_), _) => "command line".to_owned(),
            (None, Some(placed)) => {
                *slot = Some(placed.value.clone());
                self.at(placed)
            }
            (None, None) => "default".to_owned(),
        };
        let value = slot.as_ref().map_or_else(|| default.to_owned(), show);
        self.tell(key, value, origin);
    }

    /// Fills an option for both sides and for each; `own` is absent where there is one side.
    fn sided<T: Clone>(
        &mut self,
        keys: [&'static str; 3],
        both: &mut Option<T>,
        own: Option<[&mut Option<T>; 2]>,
        placed: &Sided<T>,
        show: impl Fn(&T) -> String,
        default: &str,
    ) {
        let [key, key_a, key_b] = keys;
        let given = both.is_some();
        self.one(key, both, placed.both.as_ref(), &show, default);
        let Some([a, b]) = own else { return };
        for (key, slot, placed) in [(key_a, a, &placed.a), (key_b, b, &placed.b)] {
            let placed = placed.as_ref().filter(|_| !given);
            if slot.is_some() || placed.is_some() {
                self.one(key, slot, placed, &show, "");
            }
        }
    }

    /// `--from` or `--to` on the command line is another window than the file's.
    fn windows(&mut self, select: &mut SelectArgs, mut own: Option<&mut SideSelectArgs>, file: &Config) {
        let times = [
            ("from", select.from),
            ("to", select.to),
            ("from_a", own.as_ref().and_then(|own| own.from_a)),
            ("to_a", own.as_ref().and_then(|own| own.to_a)),
            ("from_b", own.as_ref().and_then(|own| own.from_b)),
            ("to_b", own.as_ref().and_then(|own| own.to_b)),
        ];
        let times: Vec<_> = times.into_iter().filter_map(|(key, time)| Some((key, time?))).collect();
        let none = Sided::default();
        let placed = if times.is_empty() { &file.window } else { &none };
        let default = if times.is_empty() {
            "first start to last end of the process"
        } else {
            "by times"
        };
        self.sided(
            ["window", "window_a", "window_b"],
            &mut select.window,
            own.as_mut().map(|own| [&mut own.window_a, &mut own.window_b]),
            placed,
            span,
            default,
        );
        for (key, time) in times {
            self.tell(key, nanos(&time), "command line".to_owned());
        }
        self.sided(
            ["skip_first", "skip_first_a", "skip_first_b"],
            &mut select.skip_first,
            own.as_mut().map(|own| [&mut own.skip_first_a, &mut own.skip_first_b]),
            &file.skip_first,
            nanos,
            "nothing",
        );
    }

    /// `--tokens` says both how many units there are and what they are called.
    fn units(&mut self, shared: &mut UnitArgs, own: Option<&mut PerSideArgs>, file: &Config) {
        let some = |list: &[u64]| (!list.is_empty()).then(|| list.to_vec());
        let numbers = |list: &Vec<u64>| {
            let numbers: Vec<String> = list.iter().map(u64::to_string).collect();
            match numbers.as_slice() {
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            }
        };
        let mut both = some(&shared.units).or_else(|| some(&shared.tokens));
        let mut named_tokens = !shared.tokens.is_empty();
        match own {
            None => self.sided(
                ["units", "units_a", "units_b"],
                &mut both,
                None,
                &file.units,
                numbers,
                "none",
            ),
            Some(own) => {
                let mut a = some(&own.units_a).or_else(|| some(&own.tokens_a));
                let mut b = some(&own.units_b).or_else(|| some(&own.tokens_b));
                named_tokens |= !own.tokens_a.is_empty() || !own.tokens_b.is_empty();
                // Numbers for each side on the command line leave nothing for both.
                let none = Sided::default();
                let placed = if a.is_some() || b.is_some() { &none } else { &file.units };
                self.sided(
                    ["units", "units_a", "units_b"],
                    &mut both,
                    Some([&mut a, &mut b]),
                    placed,
                    numbers,
                    "none",
                );
                if own.tokens_a.is_empty() {
                    own.units_a = a.unwrap_or_default();
                    own.units_b = b.unwrap_or_default();
                }
                named_tokens &= own.units_a.is_empty() && own.units_b.is_empty();
            }
        }
        if shared.tokens.is_empty() {
            shared.units = both.unwrap_or_default();
        }
        if named_tokens {
            self.tell("unit", quoted("token"), "command line".to_owned());
        } else {
            let given = shared.unit.is_some();
            self.one(
                "unit",
                &mut shared.unit,
                file.unit.as_ref(),
                |unit| quoted(unit),
                "\"token\"",
            );
            shared.unit_given = given;
        }
    }

    fn rules<T>(
        &mut self,
        key: &'static str,
        given: Option<&Path>,
        placed: Option<&Placed<Written<Vec<T>>>>,
        default: &str,
    ) {
        match (given, placed) {
            (Some(path), _) => self.tell(key, quoted(&path.display().to_string()), "command line".to_owned()),
            (None, Some(placed)) => {
                let value = match &placed.value {
                    Written::File(path) => quoted(&path.display().to_string()),
                    Written::Here(rules) => counted(rules.len(), "rule"),
                };
                let origin = self.at(placed);
                self.tell(key, value, origin);
            }
            (None, None) => self.tell(key, default.to_owned(), "default".to_owned()),
        }
    }
}

/// Rules that are in force, and where they stand.
enum Chosen<'a, T> {
    File(&'a Path),
    Here(&'a T),
}

fn chosen<'a, T>(given: Option<&'a Path>, placed: Option<&'a Placed<Written<T>>>) -> Option<Chosen<'a, T>> {
    match (given, placed.map(|placed| &placed.value)) {
        (Some(path), _) => Some(Chosen::File(path)),
        (None, Some(Written::File(path))) => Some(Chosen::File(path)),
        (None, Some(Written::Here(rules))) => Some(Chosen::Here(rules)),
        (None, None) => None,
    }
}

/// The configuration file of this folder, as a path from here.
fn above() -> Result<Option<PathBuf>> {
    let here = std::env::current_dir().map_err(|error| Error::io("find the current folder", error))?;
    let found = find(&here);
    let up = found
        .as_deref()
        .and_then(Path::parent)
        .and_then(|folder| here.ancestors().position(|other| other == folder));
    Ok(up.map(|up| {
        let mut path: PathBuf = std::iter::repeat_n("..", up).collect();
        path.push(FILE_NAME);
        path
    }))
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn nanos(time: &Nanos) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let whole = units.into_iter().find(|(_, scale)| time.0.is_multiple_of(*scale));
    let (unit, scale) = whole.unwrap_or(("ns", 1));
    quoted(&format!("{}{unit}", time.0 / scale))
}

fn span(span: &WindowSpan) -> String {
    match span {
        WindowSpan::Process => "first start to last end of the process".to_owned(),
        WindowSpan::Signpost(name) => quoted(&format!("signpost:{name}")),
        WindowSpan::Quiet(gap) => quoted(&format!("quiet:{}", nanos(gap).trim_matches('"'))),
    }
}

fn limits(limits: &[Limit]) -> String {
    let limit = |limit: &Limit| match limit.limit {
        Some(percent) => quoted(&format!("{}={percent}", limit.key)),
        None => quoted(&limit.key.to_string()),
    };
    let limits: Vec<String> = limits.iter().map(limit).collect();
    format!("[{}]", limits.join(", "))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
