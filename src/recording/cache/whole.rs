//! A recording as values, and values as a recording: texts first, so that every id behind them can be checked.
//!
//! A field that is added to a struct here does not compile until it is written and read.

use std::io::{self, Write};

use super::frames::{Columns, Damaged, FrameReader, FrameWriter, Known};
use super::rows::{opt, opt_name, to_opt, to_opt_name};
use crate::model::{Nanos, Note, PrivateFact, Process, Reason, Severity};
use crate::recording::pairing::Pairing;
use crate::recording::submission_map::SubmissionMap;
use crate::recording::{MERGED_NODES, Recording, RunTables, Seen, TimingTable};
use crate::tables::Texts;
use crate::tables::contents::{Contents, Run};

const NONSENSE: Damaged = Damaged("it holds what was never written");

/// Codes of remarks that reading makes about the input itself; others are about how the reading went.
const CODES: [&str; 1] = [MERGED_NODES];

type Written = io::Result<()>;
type Found<T> = Result<T, Damaged>;

/// Whether every part of it can be written.
pub(super) fn can_hold(recording: &Recording) -> bool {
    recording.notes.iter().all(|note| CODES.contains(&note.code))
}

pub(super) fn put<W: Write>(recording: &Recording, out: &mut FrameWriter<W>) -> Written {
    let Recording {
        // As the user names it this time.
        origin: _,
        contents,
        runs,
        texts,
        notes,
    } = recording;
    put_texts(texts, out)?;
    put_list(out, notes, |out, note| {
        let Note { code, severity, text } = note;
        let code = CODES.iter().position(|known| known == code);
        out.number(code.unwrap_or(CODES.len()) as u64)?;
        out.number(u64::from(*severity == Severity::Warning))?;
        out.text(text)
    })?;
    put_option(out, contents.as_ref(), |out, contents| {
        let Contents { runs } = contents;
        put_list(out, runs, put_contents)
    })?;
    put_list(out, runs, put_run)
}

/// The recording of what the user calls `origin`.
pub(super) fn take<R: io::Read>(origin: String, input: &mut FrameReader<R>) -> Found<Recording> {
    let (texts, known) = take_texts(input)?;
    let notes = take_list(input, |input| {
        let code = usize::try_from(input.number()?).ok().and_then(|at| CODES.get(at));
        Ok(Note {
            code: code.ok_or(NONSENSE)?,
            severity: if input.number_below(2)? == 1 {
                Severity::Warning
            } else {
                Severity::Note
            },
            text: take_text(input)?,
        })
    })?;
    let contents = take_option(input, |input| {
        Ok(Contents {
            runs: take_list(input, take_contents)?,
        })
    })?;
    Ok(Recording {
        origin,
        contents,
        runs: take_list(input, |input| take_run(input, known))?,
        texts,
        notes,
    })
}

fn put_list<W: Write, T>(
    out: &mut FrameWriter<W>,
    list: &[T],
    put: impl Fn(&mut FrameWriter<W>, &T) -> Written,
) -> Written {
    out.number(list.len() as u64)?;
    list.iter().try_for_each(|item| put(out, item))
}

fn take_list<R: io::Read, T>(
    input: &mut FrameReader<R>,
    take: impl Fn(&mut FrameReader<R>) -> Found<T>,
) -> Found<Vec<T>> {
    // Grows with what was read: an item is larger here than in the file.
    (0..input.count()?).map(|_| take(input)).collect()
}

fn put_option<W: Write, T>(
    out: &mut FrameWriter<W>,
    value: Option<T>,
    put: impl Fn(&mut FrameWriter<W>, T) -> Written,
) -> Written {
    out.number(u64::from(value.is_some()))?;
    value.map_or(Ok(()), |value| put(out, value))
}

fn take_option<R: io::Read, T>(
    input: &mut FrameReader<R>,
    take: impl Fn(&mut FrameReader<R>) -> Found<T>,
) -> Found<Option<T>> {
    match input.number_below(2)? {
        0 => Ok(None),
        _ => take(input).map(Some),
    }
}

fn take_text<R: io::Read>(input: &mut FrameReader<R>) -> Found<String> {
    input.text().map(str::to_owned)
}

fn put_opt<W: Write>(out: &mut FrameWriter<W>, value: Option<u64>) -> Written {
    opt(value).into_iter().try_for_each(|number| out.number(number))
}

fn take_opt<R: io::Read>(input: &mut FrameReader<R>) -> Found<Option<u64>> {
    to_opt([input.number()?, input.number()?]).ok_or(NONSENSE)
}

fn put_process<W: Write>(out: &mut FrameWriter<W>, process: &Process) -> Written {
    let Process { name, pid } = process;
    out.text(name)?;
    put_opt(out, pid.map(u64::from))
}

fn take_process<R: io::Read>(input: &mut FrameReader<R>) -> Found<Process> {
    let name = take_text(input)?;
    let pid = take_opt(input)?.map(u32::try_from).transpose();
    Ok(Process {
        name,
        pid: pid.map_err(|_| NONSENSE)?,
    })
}

fn put_texts<W: Write>(texts: &Texts, out: &mut FrameWriter<W>) -> Written {
    let names: Vec<&str> = texts.names.iter().collect();
    put_list(out, &names, |out, name| out.text(name))?;
    let processes: Vec<&Process> = texts.processes().map(|(_, process)| process).collect();
    put_list(out, &processes, |out, process| put_process(out, process))?;
    out.rows(texts.labels())
}

/// Each text has the id that it had, so none may be there twice.
fn take_texts<R: io::Read>(input: &mut FrameReader<R>) -> Found<(Texts, Known)> {
    let mut texts = Texts::default();
    let mut known = Known::default();
    let next = |id: u32, count: &mut u64| {
        let is_next = u64::from(id) == *count;
        *count += 1;
        if is_next { Ok(()) } else { Err(NONSENSE) }
    };
    for _ in 0..input.count()? {
        next(texts.names.intern(input.text()?).0, &mut known.names)?;
    }
    for _ in 0..input.count()? {
        next(texts.intern_process(take_process(input)?).0, &mut known.processes)?;
    }
    for label in input.rows(known)? {
        next(texts.intern_label(label).0, &mut known.labels)?;
    }
    Ok((texts, known))
}

fn put_contents<W: Write>(out: &mut FrameWriter<W>, run: &Run) -> Written {
    let Run {
        number,
        target,
        duration,
        start_date,
        end_reason,
        instruments_version,
        template,
        os_version,
        shader_timeline,
        tables,
        private,
    } = run;
    out.number(*number)?;
    put_option(out, target.as_ref(), put_process)?;
    put_opt(out, duration.map(|duration| duration.0))?;
    for text in [
        start_date,
        end_reason,
        instruments_version,
        template,
        os_version,
        shader_timeline,
    ] {
        put_option(out, text.as_ref(), |out, text| out.text(text))?;
    }
    put_list(out, tables, |out, (schema, count)| {
        out.text(schema)?;
        out.number(*count)
    })?;
    put_list(out, private, |out, fact| {
        let PrivateFact {
            element,
            attribute,
            value,
        } = fact;
        [element, attribute, value]
            .into_iter()
            .try_for_each(|text| out.text(text))
    })
}

fn take_contents<R: io::Read>(input: &mut FrameReader<R>) -> Found<Run> {
    Ok(Run {
        number: input.number()?,
        target: take_option(input, take_process)?,
        duration: take_opt(input)?.map(Nanos),
        start_date: take_option(input, take_text)?,
        end_reason: take_option(input, take_text)?,
        instruments_version: take_option(input, take_text)?,
        template: take_option(input, take_text)?,
        os_version: take_option(input, take_text)?,
        shader_timeline: take_option(input, take_text)?,
        tables: take_list(input, |input| Ok((take_text(input)?, input.number()?)))?,
        private: take_list(input, |input| {
            Ok(PrivateFact {
                element: take_text(input)?,
                attribute: take_text(input)?,
                value: take_text(input)?,
            })
        })?,
    })
}

fn put_run<W: Write>(out: &mut FrameWriter<W>, run: &RunTables) -> Written {
    let RunTables {
        number,
        seen,
        intervals,
        points,
        has_map,
        encoders,
        shaders,
        shader_samples,
        gpu,
        thermal,
        performance,
        signpost_events,
        signpost_intervals,
        // Points are paired and joined to the map at the end of the reading.
        pairing: _,
        map: _,
    } = run;
    out.number(*number)?;
    let seen: Vec<_> = seen.iter().collect();
    put_list(out, &seen, |out, (schema, seen)| {
        let Seen { nodes, rows } = seen;
        out.text(schema)?;
        out.number(*nodes)?;
        out.number(*rows)
    })?;
    for table in [intervals, points] {
        put_option(out, table.as_ref(), put_timing)?;
    }
    out.number(u64::from(*has_map))?;
    put_option(out, encoders.as_ref(), |out, rows| out.rows(rows))?;
    put_option(out, shaders.as_ref(), |out, rows| out.rows(rows))?;
    put_option(out, shader_samples.as_ref(), |out, rows| out.rows(rows))?;
    out.number(opt_name(*gpu))?;
    out.rows(thermal)?;
    out.rows(performance)?;
    put_option(out, signpost_events.as_ref(), |out, rows| out.rows(rows))?;
    put_option(out, signpost_intervals.as_ref(), |out, rows| out.rows(rows))
}

fn take_run<R: io::Read>(input: &mut FrameReader<R>, known: Known) -> Found<RunTables> {
    Ok(RunTables {
        number: input.number()?,
        seen: take_list(input, |input| {
            let schema = take_text(input)?;
            let (nodes, rows) = (input.number()?, input.number()?);
            Ok((schema, Seen { nodes, rows }))
        })?
        .into_iter()
        .collect(),
        intervals: take_option(input, |input| take_timing(input, known))?,
        points: take_option(input, |input| take_timing(input, known))?,
        has_map: input.number_below(2)? == 1,
        encoders: take_option(input, |input| input.rows(known))?,
        shaders: take_option(input, |input| input.rows(known))?,
        shader_samples: take_option(input, |input| input.rows(known))?,
        gpu: to_opt_name(input.number()?, known).ok_or(NONSENSE)?,
        thermal: input.rows(known)?,
        performance: input.rows(known)?,
        signpost_events: take_option(input, |input| input.rows(known))?,
        signpost_intervals: take_option(input, |input| input.rows(known))?,
        pairing: Pairing::default(),
        map: SubmissionMap::default(),
    })
}

fn put_timing<W: Write>(out: &mut FrameWriter<W>, table: &TimingTable) -> Written {
    out.number(table.rows)?;
    out.number(u64::from(table.has_ids))?;
    for reason in Reason::ALL {
        let count = table.left_out.get(reason);
        out.number(count.rows)?;
        put_opt(out, count.total.map(|total| total.0))?;
    }
    let submissions = table.processes().iter().map(|rows| rows.submissions().len()).sum();
    out.each_row(submissions, table.measured().map(|measured| measured.numbers()))
}

fn take_timing<R: io::Read>(input: &mut FrameReader<R>, known: Known) -> Found<TimingTable> {
    let rows = input.number()?;
    let has_ids = input.number_below(2)? == 1;
    let mut table = TimingTable::default();
    (table.rows, table.has_ids) = (rows, has_ids);
    for reason in Reason::ALL {
        let (rows, total) = (input.number()?, take_opt(input)?);
        if rows > 0 || total.is_some() {
            table.left_out.add(reason, rows, total.map(Nanos));
        }
    }
    let measured = input.count()?;
    input.each_row(measured, known, |measured| table.push(measured))?;
    Ok(table)
}
