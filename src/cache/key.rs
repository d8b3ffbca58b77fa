//! What an entry depends on, as its name: equal parts, equal name.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use sha2::{Digest, Sha256};

/// A name that is being made of parts.
pub(crate) struct Key(Sha256);

impl Key {
    /// Begins with what the entries of one layout have in common.
    pub(crate) fn new(layout: &[u8]) -> Self {
        let mut key = Key(Sha256::new());
        key.add(layout);
        key
    }

    /// Every part is preceded by its length, so no two lists of parts look alike.
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Kind, size and time of change of a file.
    pub(crate) fn add_file(&mut self, metadata: &Metadata) {
        let facts = format!(
            "{:o} {} {}.{:09}",
            metadata.mode(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        self.add(facts.as_bytes());
    }

    /// The name: 64 hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_part_ends_counts() {
        let key = |parts: &[&str]| {
            let mut key = Key::new(b"1");
            parts.iter().for_each(|part| key.add(part.as_bytes()));
            key.finish()
        };
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        assert_eq!(key(&["ab", "c"]).len(), 64);
        let others = [
            key(&["a", "bc"]),
            key(&["abc"]),
            key(&["c", "ab"]),
            key(&["ab", "c", ""]),
        ];
        assert!(others.iter().all(|other| *other != key(&["ab", "c"])));
    }
}
