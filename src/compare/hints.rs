//! Hints of the user's own: what people of a project know about a row, said where the row is found.

use std::collections::{BTreeMap, BTreeSet};

use super::{Comparison, Side};
use crate::attribution::Buckets;
use crate::model::Note;

/// Hints by table (`buckets`, `encoders`, `phases`, `channels`, `kernels`) and key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    tables: BTreeMap<String, BTreeMap<String, String>>,
}

impl Hints {
    /// A hint for a key of a table.
    pub fn add(&mut self, table: &str, key: &str, text: &str) {
        let table = self.tables.entry(table.to_owned()).or_default();
        table.insert(key.to_owned(), text.to_owned());
    }

    /// The hint for a key.
    pub fn get(&self, table: &str, key: &str) -> Option<&str> {
        self.tables.get(table)?.get(key).map(String::as_str)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tables.values().map(BTreeMap::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn keys(&self, table: &str) -> impl Iterator<Item = &str> {
        self.tables
            .get(table)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
    }

    /// Gives each finding its hint.
    pub(super) fn place(&self, comparison: &mut Comparison) {
        for finding in &mut comparison.findings {
            finding.hint = self.get(finding.section, &finding.key).map(str::to_owned);
        }
        comparison.kernel_hints = {
            let families: BTreeSet<&str> = [Some(&comparison.a), comparison.b.as_ref()]
                .into_iter()
                .flatten()
                .flat_map(families)
                .collect();
            let hint = |family: &str| Some((family.to_owned(), self.get("kernels", family)?.to_owned()));
            families.into_iter().filter_map(hint).collect()
        };
    }

    /// Hints for buckets that these edges do not give: nobody would ever see them.
    pub(super) fn notes(&self, buckets: &Buckets) -> Option<Note> {
        let lost: Vec<&str> = self
            .keys("buckets")
            .filter(|key| buckets.names.iter().all(|name| name != key))
            .collect();
        (!lost.is_empty()).then(|| {
            Note::remark(
                "hint_unused",
                format!(
                    "hints for buckets that are not there: {}; the buckets are {}",
                    lost.join(", "),
                    buckets.names.join(", ")
                ),
            )
        })
    }
}

fn families(side: &Side) -> impl Iterator<Item = &str> {
    let kernels = side.trials.iter().filter_map(|trial| trial.kernels.as_ref());
    kernels.flat_map(|families| families.0.keys()).map(String::as_str)
}
