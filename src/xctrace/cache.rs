//! Exports that were made before, in a folder of the user's own.
//!
//! One file per export: a header (magic, length, SHA-256), then the XML. It is written beside its final name and
//! renamed only when the export is known to be complete; what does not match its header is as good as absent.
//! A cache is never needed, so nothing here is an error to the caller: no entry is always a possible answer.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Take, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

/// All entries together; the ones that were not used for longest go first.
const LIMIT: u64 = 8 << 30;
/// Changes with the layout of the files and with what the key is made of.
const MAGIC: [u8; 16] = *b"trace-attr xml1\n";
/// Magic, length, SHA-256.
const HEADER: usize = 16 + 8 + 32;
/// Begins the names of files that are being written.
const PART: &str = "part-";
/// Age at which a part belongs to nobody any more (its program was killed).
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The cache's folder: `TRACE_ATTR_CACHE_DIR`, else `trace-attr` in the user's cache folder; `None` when there is none.
pub fn default_cache_dir() -> Option<PathBuf> {
    use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
    match std::env::var_os("TRACE_ATTR_CACHE_DIR") {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => Some(choose_native_strategy().ok()?.cache_dir().join("trace-attr")),
    }
}

/// What an export depends on, as a file name: the bundle's files, the tool's version and the question put to it.
/// `None` when the bundle cannot be read whole.
pub(super) fn key(bundle: &Path, version: &str, question: &str) -> Option<String> {
    let bundle = fs::canonicalize(bundle).ok()?;
    let mut files = Vec::new();
    list(&bundle, &bundle, &mut files).ok()?;
    files.sort();

    let mut hash = Sha256::new();
    // Every part is preceded by its length, so no two lists of parts look alike.
    let mut add = |part: &[u8]| {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    };
    add(&MAGIC);
    add(bundle.as_os_str().as_bytes());
    add(version.as_bytes());
    add(question.as_bytes());
    for (name, facts) in &files {
        add(name.as_os_str().as_bytes());
        add(facts.as_bytes());
    }
    Some(hex(&hash.finalize()))
}

/// Every file below `folder`, by its name relative to `bundle`, with its kind, size and time of change.
fn list(bundle: &Path, folder: &Path, files: &mut Vec<(PathBuf, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Links are not followed: they may lead out of the bundle, or in a circle.
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            list(bundle, &path, files)?;
        } else {
            let facts = format!(
                "{:o} {} {}.{:09}",
                metadata.mode(),
                metadata.len(),
                metadata.mtime(),
                metadata.mtime_nsec()
            );
            files.push((path.strip_prefix(bundle).unwrap_or(&path).to_path_buf(), facts));
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder that holds the entries.
fn entries(folder: &Path) -> PathBuf {
    folder.join("exports")
}

fn entry(folder: &Path, key: &str) -> PathBuf {
    entries(folder).join(format!("{key}.export"))
}

/// The XML of an entry, if it is there and unharmed.
pub(super) fn open(folder: &Path, key: &str) -> Option<Take<BufReader<File>>> {
    if !is_ours(&entries(folder)) {
        return None;
    }
    let mut file = File::open(entry(folder, key)).ok()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let mut xml = BufReader::with_capacity(64 << 10, file);

    let mut hash = Sha256::new();
    let length = io::copy(&mut xml, &mut HashWriter(&mut hash)).ok()?;
    if head(length, hash) != header {
        return None;
    }
    // Entries that are used stay.
    let _ = xml.get_ref().set_modified(SystemTime::now());
    xml.seek(SeekFrom::Start(u64::try_from(HEADER).ok()?)).ok()?;
    Some(xml.take(length))
}

/// Whether the folder is the user's, whatever stands above it.
fn is_ours(folder: &Path) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw())
}

struct HashWriter<'h>(&'h mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn head(length: u64, hash: Sha256) -> Vec<u8> {
    [&MAGIC, length.to_le_bytes().as_slice(), &hash.finalize()].concat()
}

/// An entry that is being written. Dropping it leaves nothing behind.
pub(super) struct Pending {
    folder: PathBuf,
    key: String,
    file: BufWriter<NamedTempFile>,
    hash: Sha256,
    length: u64,
}

impl Pending {
    /// Begins an entry; `None` when the folder cannot be written to.
    pub(super) fn begin(folder: &Path, key: String) -> Option<Pending> {
        let exports = entries(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(&exports).ok()?;
        if !is_ours(&exports) {
            return None;
        }
        // It may be older than this rule.
        fs::set_permissions(&exports, fs::Permissions::from_mode(0o700)).ok()?;
        let file = tempfile::Builder::new().prefix(PART).tempfile_in(&exports).ok()?;
        let mut file = BufWriter::with_capacity(64 << 10, file);
        // The place of the header, which says its say when the rest is known.
        file.write_all(&[0; HEADER]).ok()?;
        Some(Pending {
            folder: folder.to_path_buf(),
            key,
            file,
            hash: Sha256::new(),
            length: 0,
        })
    }

    /// Adds bytes; gives the entry up when they cannot be written, or are more than the whole cache may hold.
    pub(super) fn write(mut self, bytes: &[u8]) -> Option<Pending> {
        self.file.write_all(bytes).ok()?;
        self.hash.update(bytes);
        self.length = self.length.saturating_add(u64::try_from(bytes.len()).ok()?);
        (self.length < LIMIT).then_some(self)
    }

    /// The name that the entry will have.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The export is complete: makes the entry one.
    pub(super) fn store(self) -> Option<()> {
        let Pending {
            folder,
            key,
            file,
            hash,
            length,
        } = self;
        let mut file = file.into_inner().ok()?;
        file.rewind().ok()?;
        file.write_all(&head(length, hash)).ok()?;
        file.flush().ok()?;
        file.persist(entry(&folder, &key)).ok()?;
        shrink(&entries(&folder), LIMIT)
    }
}

/// Removes parts that nobody writes any more, then the entries that were not used for longest until `limit` is kept.
fn shrink(exports: &Path, limit: u64) -> Option<()> {
    let mut entries = Vec::new();
    let mut total = 0_u64;
    for entry in fs::read_dir(exports).ok()?.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let (path, used) = (entry.path(), metadata.modified().ok()?);
        if entry.file_name().as_bytes().starts_with(PART.as_bytes()) {
            if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(path);
            }
        } else if path.extension().is_some_and(|extension| extension == "export") {
            total = total.saturating_add(metadata.len());
            entries.push((used, metadata.len(), path));
        }
    }
    entries.sort();
    for (_, length, path) in entries {
        if total <= limit {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total = total.saturating_sub(length);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(folder: &Path, key: &str, xml: &[u8]) {
        Pending::begin(folder, key.to_owned())
            .unwrap()
            .write(xml)
            .unwrap()
            .store()
            .unwrap();
    }

    fn read(folder: &Path, key: &str) -> Option<Vec<u8>> {
        let mut xml = Vec::new();
        open(folder, key)?.read_to_end(&mut xml).unwrap();
        Some(xml)
    }

    #[test]
    fn an_entry_comes_back_as_it_was_and_a_harmed_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), "k", b"<trace-toc/>");
        assert_eq!(read(folder.path(), "k").unwrap(), b"<trace-toc/>");
        assert_eq!(read(folder.path(), "other"), None);

        let path = entry(folder.path(), "k");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut harmed = whole.clone();
            harmed[at] ^= 1;
            fs::write(&path, harmed).unwrap();
            assert_eq!(read(folder.path(), "k"), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read(folder.path(), "k"), None, "cut at {at}");
        }
        fs::write(&path, [&whole, b" ".as_slice()].concat()).unwrap();
        assert_eq!(read(folder.path(), "k"), None);
    }

    #[test]
    fn folder_and_files_are_private_and_an_unfinished_entry_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        store(&folder, "k", b"<trace-toc/>");
        drop(
            Pending::begin(&folder, "l".to_owned())
                .unwrap()
                .write(b"<trace")
                .unwrap(),
        );
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&entries(&folder)), 0o700);
        assert_eq!(mode(&entry(&folder, "k")), 0o600);
        assert_eq!(fs::read_dir(entries(&folder)).unwrap().count(), 1);
    }

    #[test]
    fn the_oldest_entries_make_room_and_abandoned_parts_go() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (age, key) in ["new", "old", "oldest"].into_iter().enumerate() {
            store(folder.path(), key, b"<trace-toc/>");
            let hours = Duration::from_secs(3600 * u64::try_from(age).unwrap());
            File::open(entry(folder.path(), key))
                .unwrap()
                .set_modified(now - hours)
                .unwrap();
        }
        let exports = entries(folder.path());
        for (name, age) in [("part-a", ABANDONED * 2), ("part-b", Duration::ZERO)] {
            File::create(exports.join(name))
                .unwrap()
                .set_modified(now - age)
                .unwrap();
        }
        shrink(&exports, u64::try_from(2 * (HEADER + 12)).unwrap()).unwrap();
        assert!(read(folder.path(), "new").is_some() && read(folder.path(), "old").is_some());
        assert!(read(folder.path(), "oldest").is_none());
        assert!(!exports.join("part-a").exists() && exports.join("part-b").exists());
    }

    #[test]
    fn the_key_follows_the_bundle_the_version_and_the_question() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("a.trace");
        fs::create_dir_all(bundle.join("corespace")).unwrap();
        fs::write(bundle.join("corespace/data"), "1").unwrap();
        let first = key(&bundle, "27.0", "toc").unwrap();
        assert_eq!(first.len(), 64);
        assert_eq!(key(&bundle.join("../a.trace"), "27.0", "toc").unwrap(), first);
        assert_ne!(key(&bundle, "27.1", "toc").unwrap(), first);
        assert_ne!(key(&bundle, "27.0", "run 1").unwrap(), first);
        fs::write(bundle.join("corespace/data"), "12").unwrap();
        let second = key(&bundle, "27.0", "toc").unwrap();
        assert_ne!(second, first);
        File::open(bundle.join("corespace/data"))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        assert_ne!(key(&bundle, "27.0", "toc").unwrap(), second);
        assert_eq!(key(&folder.path().join("none"), "27.0", "toc"), None);
    }
}
