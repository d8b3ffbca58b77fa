//! What was worked out before, in a folder of the user's own: exports of bundles, and tables of large inputs.
//!
//! In: a kind, a key and bytes. Out: a file that is complete or not there, for it is written beside its final name and
//! renamed at the end; so two processes at once do no harm. What an entry holds, and whether it is unharmed, its owner
//! knows: [`crate::xctrace`] for exports, [`crate::recording`] for tables. A cache is never needed: without one, or with
//! one that cannot be used, everything is read as if for the first time.

mod key;

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

pub(crate) use key::Key;

/// All entries together, when the user says nothing else.
pub const DEFAULT_LIMIT: u64 = 8 << 30;
/// Names the folder.
const FOLDER: &str = "TRACE_ATTR_CACHE_DIR";
/// Names the limit.
pub const LIMIT: &str = "TRACE_ATTR_CACHE_LIMIT";
/// Begins the names of files that are being written.
const PART: &str = "part-";
/// Age at which a part belongs to nobody any more (its program was killed).
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// XML that xctrace made of a bundle.
    Exports,
    /// Tables of an input, read and checked.
    Tables,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Exports, Kind::Tables];

    /// Its folder below the cache's.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exports => "exports",
            Kind::Tables => "tables",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Kind::Exports => "export",
            Kind::Tables => "tables",
        }
    }
}

/// A folder of entries, and how much they may take together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Usage {
    fn add(&mut self, bytes: u64) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Cache {
    /// A cache in `folder`, which need not be there, of at most `limit` bytes.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Cache { folder, limit }
    }

    /// The user's: in `TRACE_ATTR_CACHE_DIR`, else `trace-attr` in the user's cache folder; `None` when there is no such
    /// folder.
    ///
    /// # Errors
    /// A `TRACE_ATTR_CACHE_LIMIT` that is no size.
    pub fn of_user() -> Result<Option<Cache>> {
        use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let limit = match set(LIMIT) {
            None => DEFAULT_LIMIT,
            Some(text) => parse_size(&text.to_string_lossy()).ok_or_else(|| {
                Error::usage(format!("{LIMIT} is no size: `{}`", text.to_string_lossy()))
                    .with_help("give bytes, or a number with KB, MB, GB, KiB, MiB or GiB; 0 keeps nothing")
            })?,
        };
        let folder = match set(FOLDER) {
            Some(folder) => Some(PathBuf::from(folder)),
            None => choose_native_strategy()
                .ok()
                .map(|user| user.cache_dir().join("trace-attr")),
        };
        Ok(folder.map(|folder| Cache::new(folder, limit)))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes of all entries together; the ones that were not used for longest go first.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn entries(&self, kind: Kind) -> PathBuf {
        self.folder.join(kind.name())
    }

    fn entry(&self, kind: Kind, key: &str) -> PathBuf {
        self.entries(kind).join(format!("{key}.{}", kind.extension()))
    }

    /// The file of an entry; `None` when there is none, or its folder is one that others may have written to.
    pub(crate) fn open(&self, kind: Kind, key: &str) -> Option<File> {
        if !is_ours(&self.entries(kind)) {
            return None;
        }
        File::open(self.entry(kind, key)).ok()
    }

    /// Begins an entry whose first `head` bytes are written last, when the others are known.
    pub(crate) fn begin(&self, kind: Kind, key: String, head: usize) -> io::Result<Pending> {
        let entries = self.entries(kind);
        DirBuilder::new().recursive(true).mode(0o700).create(&entries)?;
        // It may be older than this rule.
        if is_the_users(&entries) {
            fs::set_permissions(&entries, fs::Permissions::from_mode(0o700))?;
        }
        if !is_ours(&entries) {
            let text = format!("{} is not a folder of this user", entries.display());
            return Err(io::Error::other(text));
        }
        let file = tempfile::Builder::new().prefix(PART).tempfile_in(&entries)?;
        let mut pending = Pending {
            cache: self.clone(),
            kind,
            key,
            file: BufWriter::with_capacity(256 << 10, file),
            length: 0,
        };
        pending.write_all(&vec![0; head])?;
        Ok(pending)
    }

    /// How much there is of a kind.
    pub fn usage(&self, kind: Kind) -> Usage {
        let mut usage = Usage::default();
        for file in self.files(kind).iter().filter(|file| !file.part) {
            usage.add(file.bytes);
        }
        usage
    }

    /// Removes every entry, and gives what that was; entries that another process is writing will still come.
    ///
    /// # Errors
    /// The first file that cannot be removed.
    pub fn clear(&self) -> io::Result<Usage> {
        let mut removed = Usage::default();
        for kind in Kind::ALL {
            for file in self.files(kind) {
                if file.part && !file.is_abandoned() {
                    continue;
                }
                match fs::remove_file(&file.path) {
                    Ok(()) if !file.part => removed.add(file.bytes),
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(removed)
    }

    /// Files of a kind, and only those that were made here.
    fn files(&self, kind: Kind) -> Vec<Kept> {
        let entries = self.entries(kind);
        if !is_the_users(&entries) {
            return Vec::new();
        }
        let listed = fs::read_dir(entries).into_iter().flatten().flatten();
        let file = |entry: fs::DirEntry| {
            let path = entry.path();
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let part = entry.file_name().as_encoded_bytes().starts_with(PART.as_bytes());
            let ours = part || path.extension().is_some_and(|extension| extension == kind.extension());
            ours.then_some(Kept {
                used: metadata.modified().ok()?,
                bytes: metadata.len(),
                path,
                part,
            })
        };
        listed.filter_map(file).collect()
    }

    /// Removes parts that nobody writes any more, then the entries that were not used for longest until the limit is kept.
    fn shrink(&self) {
        let (parts, mut entries): (Vec<_>, Vec<_>) = Kind::ALL
            .into_iter()
            .flat_map(|kind| self.files(kind))
            .partition(|file| file.part);
        for part in parts.into_iter().filter(Kept::is_abandoned) {
            let _ = fs::remove_file(part.path);
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if total <= self.limit {
                break;
            }
            if fs::remove_file(entry.path).is_ok() {
                total = total.saturating_sub(entry.bytes);
            }
        }
    }
}

/// Entries that are used stay; a file system that cannot note it costs nothing but that.
pub(crate) fn mark_used(file: &File) {
    let _ = file.set_modified(SystemTime::now());
}

/// A file of the cache, in the order in which they go.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
    part: bool,
}

impl Kept {
    fn is_abandoned(&self) -> bool {
        self.used.elapsed().is_ok_and(|age| age > ABANDONED)
    }
}

fn is_the_users(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Whether the folder is the user's, whatever stands above it, and nobody else can write to it.
fn is_ours(folder: &Path) -> bool {
    is_the_users(folder) && fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o022 == 0)
}

/// An entry that is being written. Dropping it leaves nothing behind.
pub(crate) struct Pending {
    cache: Cache,
    kind: Kind,
    key: String,
    file: BufWriter<NamedTempFile>,
    length: u64,
}

impl Write for Pending {
    /// Fails also when the entry is more than the whole cache may hold.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let amount = self.file.write(bytes)?;
        self.length = self.length.saturating_add(amount as u64);
        if self.length > self.cache.limit {
            return Err(io::Error::other(format!("it takes more than {LIMIT} allows")));
        }
        Ok(amount)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Pending {
    /// The name that the entry will have.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// It is complete: writes its head and makes it an entry.
    pub(crate) fn store(self, head: &[u8]) -> io::Result<()> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        file.write_all(head)?;
        file.flush()?;
        file.persist(self.cache.entry(self.kind, &self.key))?;
        self.cache.shrink();
        Ok(())
    }
}

/// `500MB`, `2 GiB`, `1000000`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn store(cache: &Cache, kind: Kind, key: &str, bytes: &[u8]) {
        let mut pending = cache.begin(kind, key.to_owned(), 1).unwrap();
        pending.write_all(bytes).unwrap();
        pending.store(b"#").unwrap();
    }

    fn read(cache: &Cache, kind: Kind, key: &str) -> Option<String> {
        let mut text = String::new();
        cache.open(kind, key)?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn an_entry_is_there_when_it_is_complete_and_an_unfinished_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("new"), 100);
        store(&cache, Kind::Tables, "k", b"rest");
        drop(cache.begin(Kind::Tables, "l".to_owned(), 1).unwrap());
        assert_eq!(read(&cache, Kind::Tables, "k").unwrap(), "#rest");
        assert_eq!(read(&cache, Kind::Exports, "k"), None);
        assert_eq!(read(&cache, Kind::Tables, "l"), None);

        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(cache.folder()), 0o700);
        assert_eq!(mode(&cache.entries(Kind::Tables)), 0o700);
        assert_eq!(mode(&cache.entry(Kind::Tables, "k")), 0o600);
        assert_eq!(fs::read_dir(cache.entries(Kind::Tables)).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_read_from() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), 100);
        store(&cache, Kind::Tables, "k", b"rest");
        let entries = cache.entries(Kind::Tables);
        fs::set_permissions(&entries, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(read(&cache, Kind::Tables, "k"), None);
        // The next entry closes it; what stood in it until then has to pass its own checks.
        store(&cache, Kind::Tables, "l", b"rest");
        assert!(read(&cache, Kind::Tables, "l").is_some());

        fs::remove_dir_all(&entries).unwrap();
        std::os::unix::fs::symlink(folder.path(), &entries).unwrap();
        assert!(
            cache.begin(Kind::Tables, "k".to_owned(), 1).is_err(),
            "a link is no folder"
        );
    }

    #[test]
    fn the_oldest_entries_of_both_kinds_make_room_and_abandoned_parts_go() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), 10);
        let now = SystemTime::now();
        let entries = [(Kind::Tables, "new"), (Kind::Exports, "old"), (Kind::Tables, "oldest")];
        let large = Cache::new(folder.path().to_owned(), 100);
        for (age, (kind, key)) in entries.into_iter().enumerate() {
            store(&large, kind, key, b"1234");
            let hours = Duration::from_secs(3600 * u64::try_from(age).unwrap());
            let file = File::open(cache.entry(kind, key)).unwrap();
            file.set_modified(now - hours).unwrap();
        }
        for (name, age) in [("part-a", ABANDONED * 2), ("part-b", Duration::ZERO)] {
            let file = File::create(cache.entries(Kind::Tables).join(name)).unwrap();
            file.set_modified(now - age).unwrap();
        }
        fs::write(cache.entries(Kind::Tables).join("README"), "somebody's own").unwrap();
        cache.shrink();
        assert!(read(&cache, Kind::Tables, "new").is_some() && read(&cache, Kind::Exports, "old").is_some());
        assert!(read(&cache, Kind::Tables, "oldest").is_none());
        let there = |name: &str| cache.entries(Kind::Tables).join(name).exists();
        assert!(!there("part-a") && there("part-b"));

        let one = Usage { entries: 1, bytes: 5 };
        assert_eq!((cache.usage(Kind::Tables), cache.usage(Kind::Exports)), (one, one));
        assert_eq!(cache.clear().unwrap(), Usage { entries: 2, bytes: 10 });
        assert_eq!(cache.usage(Kind::Tables), Usage::default());
        assert!(there("part-b") && there("README"));
    }

    #[test]
    fn an_entry_beyond_the_limit_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), 4);
        let mut pending = cache.begin(Kind::Exports, "k".to_owned(), 1).unwrap();
        pending.write_all(b"123").unwrap();
        let error = pending.write_all(b"4").unwrap_err();
        assert!(error.to_string().contains(LIMIT), "{error}");
    }

    #[test]
    fn a_limit_is_a_number_of_bytes_with_or_without_a_unit() {
        for (text, size) in [
            ("0", Some(0)),
            ("1000", Some(1000)),
            ("2GiB", Some(2 << 30)),
            (" 500 mb ", Some(500_000_000)),
            ("", None),
            ("GB", None),
            ("2TB", None),
            ("1.5GB", None),
            ("-1", None),
            ("99999999999GB", None),
        ] {
            assert_eq!(parse_size(text), size, "{text:?}");
        }
    }
}
