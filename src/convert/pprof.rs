//! pprof's profile, gzipped: a sample for each frame with values of its own, its stack from the inside out.
//!
//! Sample types come from the whole metrics: `gpu_ns` is `gpu_time/nanoseconds`, which is shown first, and a count such as
//! `submissions` is `submissions/count`. Values are 64-bit integers there, so metrics that are no whole numbers are not in
//! the file; a comment says which. A function has one location, and all are of one mapping that says that they have their
//! names, so that the tool looks for no binary. What is known of the whole stands in comments.

use std::collections::HashMap;
use std::io::{self, Write as _};

use flate2::{Compression, GzBuilder};

use super::wire::Message;
use super::{gpu_time, json};
use crate::calltree::CallTree;
use crate::label::visible;
use crate::timeline::Value;

/// Fields by their numbers in `profile.proto`.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub(super) mod value_type {
        pub(in super::super) const TYPE: u32 = 1;
        pub(in super::super) const UNIT: u32 = 2;
    }
    pub(super) mod sample {
        pub(in super::super) const LOCATION_ID: u32 = 1;
        pub(in super::super) const VALUE: u32 = 2;
    }
    pub(super) mod mapping {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const FILENAME: u32 = 5;
        pub(in super::super) const HAS_FUNCTIONS: u32 = 7;
    }
    pub(super) mod location {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const MAPPING_ID: u32 = 2;
        pub(in super::super) const LINE: u32 = 4;
        pub(in super::super) const LINE_FUNCTION_ID: u32 = 1;
    }
    pub(super) mod function {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const SYSTEM_NAME: u32 = 3;
    }
}

/// The one mapping.
const MAPPING: u64 = 1;
/// pprof adds up signed numbers.
const MOST: u64 = i64::MAX.unsigned_abs();

pub(super) fn write(tree: &CallTree, out: &mut dyn io::Write) -> io::Result<()> {
    // No time and no name in the header: the same input gives the same bytes.
    let mut out = GzBuilder::new().mtime(0).write(out, Compression::default());
    let mut texts = Texts::default();
    texts.number("");
    let mut head = Message::default();
    for name in tree.whole() {
        let (kind, unit) = value_type(name);
        let mut value_type = Message::default();
        value_type.varint(field::value_type::TYPE, texts.number(&kind));
        value_type.varint(field::value_type::UNIT, texts.number(unit));
        head.message(field::SAMPLE_TYPE, &value_type);
    }
    out.write_all(head.bytes())?;

    let mut functions: HashMap<&str, u64> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    for frame in tree
        .frames()
        .iter()
        .filter(|frame| frame.whole.iter().any(|value| *value > 0))
    {
        let mut locations = Vec::new();
        for frame in tree.outwards(frame) {
            let number = *functions.entry(&frame.name).or_insert_with(|| {
                names.push(&frame.name);
                names.len() as u64
            });
            locations.push(number);
        }
        let mut sample = Message::default();
        sample.packed(field::sample::LOCATION_ID, locations);
        sample.packed(field::sample::VALUE, frame.whole.iter().map(|value| MOST.min(*value)));
        let mut message = Message::default();
        message.message(field::SAMPLE, &sample);
        out.write_all(message.bytes())?;
    }

    let mut rest = Message::default();
    let mut mapping = Message::default();
    mapping.varint(field::mapping::ID, MAPPING);
    mapping.varint(field::mapping::FILENAME, texts.number("GPU"));
    mapping.varint(field::mapping::HAS_FUNCTIONS, 1);
    rest.message(field::MAPPING, &mapping);
    for (name, number) in names.iter().zip(1u64..) {
        let mut line = Message::default();
        line.varint(field::location::LINE_FUNCTION_ID, number);
        let mut location = Message::default();
        location.varint(field::location::ID, number);
        location.varint(field::location::MAPPING_ID, MAPPING);
        location.message(field::location::LINE, &line);
        rest.message(field::LOCATION, &location);
        let mut function = Message::default();
        function.varint(field::function::ID, number);
        function.varint(field::function::NAME, texts.number(&visible(name)));
        function.varint(field::function::SYSTEM_NAME, texts.number(&visible(name)));
        rest.message(field::FUNCTION, &function);
    }
    let mut comments = vec![concat!("writer: trace-attr ", env!("CARGO_PKG_VERSION")).to_owned()];
    for (name, value) in &tree.about {
        match value {
            // One line for each: the tool prints them above its tables.
            Value::List(values) => {
                let each = values.iter().zip(1u32..);
                comments.extend(each.map(|(value, number)| format!("{} {number}: {}", visible(name), json::of(value))));
            }
            value => comments.push(format!("{}: {}", visible(name), json::of(value))),
        }
    }
    if !tree.other().is_empty() {
        let names: Vec<String> = tree.other().iter().map(|name| visible(name)).collect();
        comments.push(format!(
            "not in this file, because no whole numbers: {}",
            names.join(", ")
        ));
    }
    rest.packed(field::COMMENT, comments.iter().map(|comment| texts.number(comment)));
    if let Some(name) = tree.whole().get(gpu_time(tree)) {
        rest.varint(field::DEFAULT_SAMPLE_TYPE, texts.number(&value_type(name).0));
    }
    for text in &texts.all {
        rest.text(field::STRING_TABLE, text);
    }
    out.write_all(rest.bytes())?;
    out.finish().map(|_| ())
}

/// Type and unit of a metric.
fn value_type(metric: &str) -> (String, &'static str) {
    match metric.strip_suffix("_ns") {
        Some(what) => (visible(&format!("{what}_time")), "nanoseconds"),
        None => (visible(metric), "count"),
    }
}

/// The table of texts, each once.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, u64>,
    all: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }
}
