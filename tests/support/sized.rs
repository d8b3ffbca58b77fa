//! Exports of about a given size, for measurements: as many tokens of a workload as fill it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::export::{ExportBuilder, IdStyle, Style};
use super::workload::{Engine, Workload};

/// Adds up what is written.
#[derive(Default)]
struct Count(u64);

impl Write for &mut Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The workload whose tables `schemas` take about so many bytes together.
pub fn workload(schemas: &[&str], bytes: u64) -> Workload {
    const SAMPLE: u64 = 400;
    let of = |tokens| Workload::new(Engine::Hf2q, tokens, 1, 4);
    let size = |tokens| {
        let mut count = Count::default();
        for schema in schemas {
            of(tokens)
                .write(schema, &mut count, Style::default())
                .expect("counting does not fail");
        }
        count.0
    };
    let per_token = (size(2 * SAMPLE) - size(SAMPLE)) / SAMPLE;
    of((bytes / per_token.max(1)).max(1))
}

/// Writes each table into a file of its own; `ids`: with Apple's ids, or every value in full. Returns how many ids.
pub fn write(workload: Workload, schemas: &[&str], ids: bool, folder: &Path) -> io::Result<u64> {
    std::fs::create_dir_all(folder)?;
    let mut written = 0;
    for schema in schemas {
        let file = BufWriter::new(File::create(folder.join(format!("{schema}.xml")))?);
        let style = Style {
            ids: if ids { IdStyle::All } else { IdStyle::Absent },
            ..Style::default()
        };
        let mut export = ExportBuilder::with_style(file, style);
        workload.write_table(schema, &mut export);
        written += export.last_id();
        export.finish()?;
    }
    Ok(written)
}
