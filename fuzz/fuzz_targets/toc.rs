//! A table of contents, from bytes to [`Contents`] and back to XML.
#![no_main]

use trace_attr::source;
use trace_attr::tables::contents::Contents;
use trace_attr::xml::{ExportReader, Keep, Part};

fn contents(bytes: &[u8]) -> Vec<(Contents, String)> {
    let mut found = Vec::new();
    let Ok(input) = source::decode(bytes) else { return found };
    let mut reader = ExportReader::new(input, Keep::Types(&[]));
    while let Ok(Some(part)) = reader.next_part() {
        if let Part::Contents(root) = part {
            found.push((Contents::from_element(&root), root.to_xml()));
        }
    }
    found
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for (read, written) in contents(bytes) {
        for run in &read.runs {
            assert!(read.run(run.number).is_some());
        }
        // What is written is read again as the same.
        let again = contents(written.as_bytes());
        assert_eq!(again.len(), 1, "{written}");
        assert_eq!(again[0].0, read, "{written}");
    }
});
