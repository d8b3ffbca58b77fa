//! Submissions and trials as Parquet: a folder of files that DuckDB, polars, pyarrow and Spark read with one glob.
//!
//! ```text
//! FLEET/submissions/side=a/trial=t-6d3f9c2a51b07e84/part-0.parquet    a row per submission
//! FLEET/trials/side=a/trial=t-6d3f9c2a51b07e84/part-0.parquet         one row
//! ```
//!
//! Three traps. Readers make columns of the folders' names and guess their types, so `side` and `trial` never look like a
//! number, and are no columns of the files. Not all readers know unsigned numbers or times in ns, so times are INT64 and
//! ids are texts. And a writer that keeps more than a row group makes memory follow the trial: here a group is
//! `ROW_GROUP` rows, and of a group one column at a time is put together.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::submissions::{COLUMNS, Cell, Column, Keys, Kind, Rows};
use super::trials::{FleetTrial, Value};
use crate::attribution::{Buckets, PhaseNames};
use crate::model::Submission;

/// Rows of a row group.
const ROW_GROUP: usize = 1 << 17;
/// Values that are put together before the column's writer gets them.
const BATCH: usize = 1 << 13;

/// A table of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// A row per submission.
    Submissions,
    /// A row per trial.
    Trials,
}

impl Table {
    /// The table's folder.
    pub fn name(self) -> &'static str {
        match self {
            Table::Submissions => "submissions",
            Table::Trials => "trials",
        }
    }
}

/// Where a trial's file of a table stands in the folder of its fleet, with `/` between the parts.
pub fn place(table: Table, trial: &FleetTrial<'_>) -> String {
    format!(
        "{}/side={}/trial={}/part-0.parquet",
        table.name(),
        trial.side_letter(),
        trial.key()
    )
}

/// Writes the submissions of a trial.
///
/// # Errors
/// Whatever `out` refuses, and a number beyond 63 bits.
pub fn write_submissions(
    trial: &FleetTrial<'_>,
    phase_names: &PhaseNames,
    buckets: &Buckets,
    out: impl Write + Send,
) -> io::Result<()> {
    let keys = Keys::new(trial.trace, phase_names);
    let rows = Rows::new(trial.trace, &keys, buckets);
    submissions(&rows, ROW_GROUP, out).map_err(io_error)
}

/// Writes the row of a trial.
///
/// # Errors
/// Whatever `out` refuses, and a number beyond 63 bits.
pub fn write_trial(trial: &FleetTrial<'_>, out: impl Write + Send) -> io::Result<()> {
    one_row(trial, out).map_err(io_error)
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        // What `out` said, where it said something.
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

/// Submissions in groups of so many rows.
fn submissions(rows: &Rows<'_>, row_group: usize, out: impl Write + Send) -> Result<()> {
    let mut properties = WriterProperties::builder();
    for column in &COLUMNS {
        let encoding = match column.kind {
            // A dictionary, as is the default.
            Kind::Text | Kind::Flag => continue,
            // Most differ, and little from the one before.
            Kind::Number => Encoding::DELTA_BINARY_PACKED,
            Kind::Id => Encoding::DELTA_BYTE_ARRAY,
        };
        let path = ColumnPath::from(column.name);
        if column.kind == Kind::Id {
            // The least and the greatest of texts say nothing of numbers.
            properties = properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, encoding);
    }
    let fields = COLUMNS
        .iter()
        .map(|column| field(column.name, column.kind, column.nullable));
    let mut file = file(fields, properties, out)?;
    let texts: Vec<ByteArray> = rows.texts().iter().map(|text| ByteArray::from(*text)).collect();
    for submissions in rows.submissions().chunks(row_group) {
        let mut group = file.next_row_group()?;
        for column in &COLUMNS {
            write_submissions_column(rows, &texts, column, submissions, &mut group)?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// A column of a row group; `texts` are those of `rows`.
fn write_submissions_column(
    rows: &Rows<'_>,
    texts: &[ByteArray],
    column: &Column,
    submissions: &[Submission],
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
) -> Result<()> {
    let cell = |submission: &Submission| rows.cell(column, submission);
    let nullable = column.nullable;
    match column.kind {
        Kind::Text => write_column::<ByteArrayType, _>(group, nullable, submissions, |part, batch| {
            for submission in part {
                batch.push(match cell(submission) {
                    Cell::Text(text) => texts.get(text).cloned(),
                    _ => None,
                });
            }
            Ok(())
        }),
        Kind::Number => write_column::<Int64Type, _>(group, nullable, submissions, |part, batch| {
            for submission in part {
                batch.push(match cell(submission) {
                    Cell::Number(number) => Some(signed(number)?),
                    _ => None,
                });
            }
            Ok(())
        }),
        Kind::Flag => write_column::<BoolType, _>(group, nullable, submissions, |part, batch| {
            for submission in part {
                batch.push(match cell(submission) {
                    Cell::Flag(flag) => Some(flag),
                    _ => None,
                });
            }
            Ok(())
        }),
        // The digits of a batch are one buffer, and an id is a part of it.
        Kind::Id => write_column::<ByteArrayType, _>(group, nullable, submissions, |part, batch| {
            let (mut digits, mut spans) = (Vec::new(), Vec::with_capacity(part.len()));
            let mut number = itoa::Buffer::new();
            for submission in part {
                let begin = digits.len();
                spans.push(match cell(submission) {
                    Cell::Id(id) => {
                        digits.extend_from_slice(number.format(id).as_bytes());
                        Some((begin, digits.len() - begin))
                    }
                    _ => None,
                });
            }
            let digits = ByteArray::from(digits);
            for span in spans {
                batch.push(span.map(|(begin, length)| digits.slice(begin, length)));
            }
            Ok(())
        }),
    }
}

fn one_row(trial: &FleetTrial<'_>, out: impl Write + Send) -> Result<()> {
    let values = trial.values();
    let kind = |value: &Value<'_>| match value {
        Value::Text(_) => Kind::Text,
        Value::Number(_) => Kind::Number,
    };
    // All may be missing, so that the tables of all trials are of one form.
    let fields = values.iter().map(|(name, value)| field(name, kind(value), true));
    let mut file = file(fields, WriterProperties::builder(), out)?;
    let mut group = file.next_row_group()?;
    for (_, value) in &values {
        let value = std::slice::from_ref(value);
        match value {
            [Value::Number(_)] => write_column::<Int64Type, _>(&mut group, true, value, |value, batch| {
                value.iter().try_for_each(|value| {
                    batch.push(match value {
                        Value::Number(Some(number)) => Some(signed(*number)?),
                        _ => None,
                    });
                    Ok(())
                })
            }),
            _ => write_column::<ByteArrayType, _>(&mut group, true, value, |value, batch| {
                value.iter().for_each(|value| {
                    batch.push(match value {
                        Value::Text(Some(text)) => Some(ByteArray::from(text.as_bytes().to_vec())),
                        _ => None,
                    });
                });
                Ok(())
            }),
        }?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

/// INT64 for a number that is never negative.
fn signed(number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|_| ParquetError::General(format!("{number} is more than a Parquet table can hold")))
}

fn field(name: &str, kind: Kind, nullable: bool) -> Result<Arc<Type>> {
    let (physical, logical) = match kind {
        Kind::Text | Kind::Id => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Number => (Physical::INT64, None),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    let repetition = if nullable {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let field = Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()?;
    Ok(Arc::new(field))
}

fn file<W: Write + Send>(
    fields: impl Iterator<Item = Result<Arc<Type>>>,
    properties: WriterPropertiesBuilder,
    out: W,
) -> Result<SerializedFileWriter<W>> {
    let schema = Type::group_type_builder("schema")
        .with_fields(fields.collect::<Result<_>>()?)
        .build()?;
    let properties = properties
        .set_max_row_group_row_count(None)
        // A fleet is many small files: what is said of each page would be a large part of them.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .build();
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
}

/// Values of a part of a column; levels say which rows have one.
struct Batch<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Batch<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(value.is_some().into());
        self.values.extend(value);
    }
}

/// Writes the next column of a group, in parts; `fill` makes values of items.
fn write_column<T: DataType, I>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    nullable: bool,
    items: &[I],
    fill: impl Fn(&[I], &mut Batch<T::T>) -> Result<()>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has no such column".into()));
    };
    let mut batch = Batch {
        values: Vec::with_capacity(BATCH.min(items.len())),
        levels: Vec::with_capacity(BATCH.min(items.len())),
    };
    for part in items.chunks(BATCH) {
        batch.values.clear();
        batch.levels.clear();
        fill(part, &mut batch)?;
        let levels = nullable.then_some(batch.levels.as_slice());
        column.typed::<T>().write_batch(&batch.values, levels, None)?;
    }
    column.close()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;

    use super::*;
    use crate::attribution::MappedSide;
    use crate::attribution::fixture::Builder;
    use crate::model::Trace;

    fn trial(trace: &Trace) -> FleetTrial<'_> {
        FleetTrial {
            side: MappedSide::A,
            name: "bench",
            input: "in",
            unit: None,
            units: None,
            set: &[],
            trace,
        }
    }

    fn written(write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<SerializedFileReader<File>> {
        let file = tempfile::tempfile()?;
        write(&file)?;
        Ok(SerializedFileReader::new(file).unwrap())
    }

    #[test]
    fn a_row_group_has_its_rows_and_no_more() {
        let mut builder = Builder::new();
        builder.submission(1_000, 50, "Compute", "buffer", "encoder");
        let mut trace = builder.build();
        let one = trace.submissions[0];
        trace.submissions = vec![one; 2_003];
        let (names, buckets) = (PhaseNames::default(), Buckets::default());
        let keys = Keys::new(&trace, &names);
        let rows = Rows::new(&trace, &keys, &buckets);
        let reader = written(|file| submissions(&rows, 1_000, file).map_err(io_error)).unwrap();
        let groups: Vec<i64> = reader
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows())
            .collect();
        assert_eq!(groups, [1_000, 1_000, 3]);
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 2_003);
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused() {
        let mut builder = Builder::new();
        builder.submission(0, 1 << 63, "Compute", "", "");
        let trace = builder.build();
        let names = PhaseNames::default();
        let error = write_submissions(&trial(&trace), &names, &Buckets::default(), io::sink()).unwrap_err();
        assert!(error.to_string().contains("9223372036854775808 is more"), "{error}");
        assert!(write_trial(&trial(&trace), io::sink()).is_err());
    }

    #[test]
    fn a_full_disk_is_told_as_such() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "", "");
        let trace = builder.build();
        let error = write_trial(&trial(&trace), Full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }

    #[test]
    fn a_trial_is_one_row_whose_first_column_is_its_name() {
        let mut builder = Builder::new();
        builder.submission(0, 10, "Compute", "", "");
        let trace = builder.build();
        let reader = written(|file| write_trial(&trial(&trace), file)).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get_string(0).unwrap(), "bench");
    }
}
