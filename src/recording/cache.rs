//! Recordings that were read before: [`Kind::Tables`] of the [`Cache`].
//!
//! In: an input, and how it is to be read. Out: what `recording` keeps of it - typed rows, texts, counts, remarks - as it
//! was when the input was read and passed every check. What cannot be read is never kept, so an entry stands for an input
//! without a fault. An entry is found by what the input's files are, and by which program read them in which way; one
//! that is damaged is told and made anew.
//!
//! ```text
//! magic, key (32 bytes), length, checksum of these three    the head
//! length, checksum, columns of rows and other values        a frame, again and again: see `frames`
//! ```

mod frames;
mod rows;
mod whole;

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use self::frames::{Damaged, FrameReader, FrameWriter, checksum};
use super::{Progress, ReadOptions, Recording, RunChoice};
use crate::cache::{self, Cache, Key, Kind};
use crate::source::Source;
use crate::xctrace::Bundle;

/// Changes with the layout of the files and with what the key is made of.
const MAGIC: [u8; 16] = *b"trace-attr rows1";
/// Bytes of the key.
const KEY: usize = 32;
/// Magic, key, length, checksum.
const HEAD: usize = 16 + KEY + 8 + 8;
/// Inputs of fewer rows, whatever the table, are read again in the time that a person does not notice
/// (docs/performance.md), and their entries would crowd out larger ones.
const FEWEST_ROWS: u64 = 20_000;

/// The place of one input, read in one way.
pub(super) struct Entry<'a> {
    cache: &'a Cache,
    source: &'a Source,
    options: &'a ReadOptions,
    identity: Identity,
}

impl<'a> Entry<'a> {
    /// `None`: the input, or this way to read it, is not kept.
    pub(super) fn of(source: &'a Source, options: &'a ReadOptions) -> Option<Self> {
        let cache = options.cache.as_ref().filter(|_| !options.without_scanner)?;
        Some(Entry {
            cache,
            source,
            options,
            identity: Identity::of(source, options)?,
        })
    }

    /// The input as it was read before.
    pub(super) fn recall(&self, progress: &dyn Progress) -> Option<Recording> {
        let file = self.cache.open(Kind::Tables, &self.identity.key)?;
        let origin = self.source.origin();
        let length = file.metadata().ok()?.len();
        progress.begin(&origin, Some(length));
        match unsealed(Counted { file: &file, progress }, length, &self.identity.key, origin) {
            Ok(recording) => {
                cache::mark_used(&file);
                Some(recording)
            }
            Err(Damaged(what)) => {
                progress.warning(&format!(
                    "what the cache has of {} is damaged and not used: {what}",
                    self.source.origin()
                ));
                None
            }
        }
    }

    /// Keeps what was read, unless the input is small, or is no longer what it was when it was looked for.
    pub(super) fn keep(&self, recording: &Recording, progress: &dyn Progress) {
        let rows: u64 = recording
            .runs
            .iter()
            .flat_map(|run| run.seen.values())
            .map(|seen| seen.rows)
            .sum();
        let unchanged = || Identity::of(self.source, self.options).is_some_and(|now| now.key == self.identity.key);
        if (rows < FEWEST_ROWS && !self.options.cache_small)
            || !self.identity.settled
            || !whole::can_hold(recording)
            || !unchanged()
        {
            return;
        }
        if let Err(error) = self.store(recording) {
            progress.warning(&format!(
                "the tables of {} could not be kept in the cache: {error}",
                self.source.origin()
            ));
        }
    }

    fn store(&self, recording: &Recording) -> io::Result<()> {
        let key = &self.identity.key;
        let mut entry = self.cache.begin(Kind::Tables, key.clone(), HEAD)?;
        let length = write_frames(recording, key, &mut entry)?;
        entry.store(&head(key, length))
    }
}

/// What an input is, as far as it can be told without reading it.
struct Identity {
    key: String,
    /// The files were left alone for long enough that the next change will have another time.
    settled: bool,
}

impl Identity {
    /// `None` for what is not in files that stay, or cannot be read.
    fn of(source: &Source, options: &ReadOptions) -> Option<Self> {
        let now = SystemTime::now();
        let mut key = reading(options);
        let mut settled = true;
        match source {
            Source::Stdin => return None,
            Source::Bundle(path) => {
                let bundle = Bundle::open(path, options.xctrace.clone()).ok()?;
                key.add(bundle.state()?.as_bytes());
            }
            Source::File(_) | Source::Folder(_) => {}
        }
        for path in source.files().ok()? {
            // Its name says whether it is the table of contents, and where among the others it comes.
            key.add(path.file_name().unwrap_or_default().as_bytes());
            let path = fs::canonicalize(&path).ok()?;
            let metadata = fs::metadata(&path).ok().filter(Metadata::is_file)?;
            key.add(path.as_os_str().as_bytes());
            key.add_file(&metadata);
            // A file of another place with the same size and time; a time that was set back.
            for fact in [metadata.dev(), metadata.ino()] {
                key.add(&fact.to_le_bytes());
            }
            for fact in [metadata.ctime(), metadata.ctime_nsec()] {
                key.add(&fact.to_le_bytes());
            }
            settled &= is_settled(&metadata, now);
        }
        Some(Identity {
            key: key.finish(),
            settled,
        })
    }
}

/// Everything but the input that what is read depends on.
fn reading(options: &ReadOptions) -> Key {
    let ReadOptions {
        run,
        signposts,
        // With bundles comes the state of theirs; the others change nothing in what is read.
        xctrace: _,
        jobs: _,
        cache: _,
        cache_small: _,
        without_scanner: _,
        block_bytes: _,
    } = options;
    let mut key = Key::new(&MAGIC);
    key.add(env!("CARGO_PKG_VERSION").as_bytes());
    // Another build of the same version may read in another way.
    if let Ok(path) = std::env::current_exe()
        && let Ok(metadata) = fs::metadata(path)
    {
        key.add_file(&metadata);
    }
    let (choice, number) = match run {
        RunChoice::Only => (0_u64, 0),
        RunChoice::Number(number) => (1, *number),
        RunChoice::All => (2, 0),
    };
    for fact in [choice, number, u64::from(*signposts)] {
        key.add(&fact.to_le_bytes());
    }
    key
}

/// Whether a change after `now` would be seen: times of files go on in steps, of whole seconds and more in some places.
fn is_settled(metadata: &Metadata, now: SystemTime) -> bool {
    let time = |seconds: i64, nanos: i64| {
        let time = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(time)
    };
    let settled = |seconds, nanos| {
        let step = Duration::from_millis(if nanos == 0 { 2000 } else { 50 });
        let age = time(seconds, nanos).and_then(|time| now.duration_since(time).ok());
        age.is_some_and(|age| age > step)
    };
    settled(metadata.mtime(), metadata.mtime_nsec()) && settled(metadata.ctime(), metadata.ctime_nsec())
}

/// Tells how much of an entry was read.
struct Counted<'a> {
    file: &'a File,
    progress: &'a dyn Progress,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.file.read(out)?;
        self.progress.advance(amount as u64);
        Ok(amount)
    }
}

fn head(key: &str, length: u64) -> Vec<u8> {
    let mut head = [&MAGIC, digest(key).as_slice(), &length.to_le_bytes()].concat();
    head.extend(checksum(0, &head).to_le_bytes());
    head
}

/// The bytes that a key's digits stand for.
fn digest(key: &str) -> [u8; KEY] {
    let mut bytes = [0; KEY];
    for (byte, digits) in bytes.iter_mut().zip(key.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    bytes
}

/// Where the checksums of frames begin, so that a frame of another entry is none of this one.
fn first_seed(key: &str) -> u64 {
    checksum(0, &digest(key))
}

/// Gives the length of what it wrote.
fn write_frames(recording: &Recording, key: &str, out: impl Write) -> io::Result<u64> {
    let mut frames = FrameWriter::new(out, first_seed(key));
    whole::put(recording, &mut frames)?;
    frames.finish()
}

/// The recording in a file of that length.
fn unsealed(mut file: impl Read, length: u64, key: &str, origin: String) -> Result<Recording, Damaged> {
    let mut found = [0; HEAD];
    file.read_exact(&mut found).map_err(|_| Damaged("it is cut"))?;
    let length = length.saturating_sub(HEAD as u64);
    if !found.starts_with(&MAGIC) {
        return Err(Damaged("it is of another version, or no entry of the cache"));
    }
    if found.as_slice() != head(key, length) {
        return Err(Damaged("its head is of another entry, or of another length"));
    }
    let mut frames = FrameReader::new(file, length, first_seed(key));
    let recording = whole::take(origin, &mut frames)?;
    frames.end()?;
    Ok(recording)
}

/// A recording as an entry of the cache, and an entry as a recording: for tests of any bytes.
#[doc(hidden)]
pub mod bytes {
    use super::{Damaged, HEAD, MAGIC, Recording, first_seed, frames, head, unsealed, whole, write_frames};

    const KEY: &str = "00";

    /// An entry that holds the recording; `None` when none can.
    pub fn of_recording(recording: &Recording) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let length = write_frames(recording, KEY, &mut bytes).ok()?;
        whole::can_hold(recording).then(|| [head(KEY, length), bytes].concat())
    }

    /// What an entry holds; else what is wrong with it.
    ///
    /// # Errors
    /// Whatever is not as it was written.
    pub fn to_recording(entry: &[u8]) -> Result<Recording, &'static str> {
        let length = entry.len() as u64;
        unsealed(entry, length, KEY, String::new()).map_err(|Damaged(what)| what)
    }

    /// An entry with right checksums around any values: what somebody could make by hand.
    pub fn sealed(values: &[u8]) -> Vec<u8> {
        let frame = frames::sealed(values, first_seed(KEY));
        [head(KEY, frame.len() as u64), frame].concat()
    }

    /// The values of an entry of one frame.
    pub fn values(entry: &[u8]) -> &[u8] {
        debug_assert!(entry.starts_with(&MAGIC));
        entry.get(HEAD + frames::HEAD..).unwrap_or_default()
    }
}
