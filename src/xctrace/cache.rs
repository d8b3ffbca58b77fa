//! Exports that were made before: [`Kind::Exports`] of the [`Cache`].
//!
//! One file per export: a header (magic, length, SHA-256), then the XML. It becomes an entry only when the export is known
//! to be complete; what does not match its header is as good as absent. Nothing here is an error to the caller: no entry
//! is always a possible answer.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::cache::{self, Cache, Key, Kind};

/// Changes with the layout of the files and with what the key is made of.
const MAGIC: [u8; 16] = *b"trace-attr xml1\n";
/// Magic, length, SHA-256.
const HEADER: usize = 16 + 8 + 32;

/// What an export depends on, as a file name: the bundle's files, the tool's version and the question put to it.
/// `None` when the bundle cannot be read whole.
pub(super) fn key(bundle: &Path, version: &str, question: &str) -> Option<String> {
    let bundle = fs::canonicalize(bundle).ok()?;
    let mut files = Vec::new();
    list(&bundle, &bundle, &mut files).ok()?;
    files.sort_by(|(a, _), (b, _)| a.cmp(b));

    let mut key = Key::new(&MAGIC);
    key.add(bundle.as_os_str().as_bytes());
    key.add(version.as_bytes());
    key.add(question.as_bytes());
    for (name, metadata) in &files {
        key.add(name.as_os_str().as_bytes());
        key.add_file(metadata);
    }
    Some(key.finish())
}

/// Every file below `folder`, by its name relative to `bundle`.
fn list(bundle: &Path, folder: &Path, files: &mut Vec<(PathBuf, fs::Metadata)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Links are not followed: they may lead out of the bundle, or in a circle.
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            list(bundle, &path, files)?;
        } else {
            files.push((path.strip_prefix(bundle).unwrap_or(&path).to_path_buf(), metadata));
        }
    }
    Ok(())
}

/// The XML of an entry, if it is there and unharmed.
pub(super) fn open(cache: &Cache, key: &str) -> Option<Take<BufReader<File>>> {
    let mut file = cache.open(Kind::Exports, key)?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let mut xml = BufReader::with_capacity(64 << 10, file);

    let mut hash = Sha256::new();
    let length = io::copy(&mut xml, &mut HashWriter(&mut hash)).ok()?;
    if head(length, hash) != header {
        return None;
    }
    cache::mark_used(xml.get_ref());
    xml.seek(SeekFrom::Start(u64::try_from(HEADER).ok()?)).ok()?;
    Some(xml.take(length))
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

/// An export that is being written. Dropping it leaves nothing behind.
pub(super) struct Pending {
    entry: cache::Pending,
    hash: Sha256,
    length: u64,
}

impl Pending {
    /// Begins an entry; `None` when the folder cannot be written to.
    pub(super) fn begin(cache: &Cache, key: String) -> Option<Pending> {
        Some(Pending {
            entry: cache.begin(Kind::Exports, key, HEADER).ok()?,
            hash: Sha256::new(),
            length: 0,
        })
    }

    /// Adds bytes; gives the entry up when they cannot be written, or are more than the whole cache may hold.
    pub(super) fn write(mut self, bytes: &[u8]) -> Option<Pending> {
        self.entry.write_all(bytes).ok()?;
        self.hash.update(bytes);
        self.length = self.length.saturating_add(u64::try_from(bytes.len()).ok()?);
        Some(self)
    }

    /// The name that the entry will have.
    pub(super) fn key(&self) -> &str {
        self.entry.key()
    }

    /// The export is complete: makes the entry one.
    pub(super) fn store(self) -> Option<()> {
        self.entry.store(&head(self.length, self.hash)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cache: &Cache, key: &str) -> Option<Vec<u8>> {
        let mut xml = Vec::new();
        open(cache, key)?.read_to_end(&mut xml).unwrap();
        Some(xml)
    }

    #[test]
    fn an_entry_comes_back_as_it_was_and_a_harmed_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), 1000);
        let pending = Pending::begin(&cache, "k".to_owned()).unwrap();
        pending.write(b"<trace-toc/>").unwrap().store().unwrap();
        assert_eq!(read(&cache, "k").unwrap(), b"<trace-toc/>");
        assert_eq!(read(&cache, "other"), None);

        let path = folder.path().join("exports/k.export");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut harmed = whole.clone();
            harmed[at] ^= 1;
            fs::write(&path, harmed).unwrap();
            assert_eq!(read(&cache, "k"), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read(&cache, "k"), None, "cut at {at}");
        }
        fs::write(&path, [&whole, b" ".as_slice()].concat()).unwrap();
        assert_eq!(read(&cache, "k"), None);
    }

    #[test]
    fn the_key_follows_the_bundle_the_version_and_the_question() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("a.trace");
        fs::create_dir_all(bundle.join("corespace")).unwrap();
        fs::write(bundle.join("corespace/data"), "1").unwrap();
        let first = key(&bundle, "27.0", "toc").unwrap();
        assert_eq!(key(&bundle.join("../a.trace"), "27.0", "toc").unwrap(), first);
        assert_ne!(key(&bundle, "27.1", "toc").unwrap(), first);
        assert_ne!(key(&bundle, "27.0", "run 1").unwrap(), first);
        fs::write(bundle.join("corespace/data"), "12").unwrap();
        let second = key(&bundle, "27.0", "toc").unwrap();
        assert_ne!(second, first);
        File::open(bundle.join("corespace/data"))
            .unwrap()
            .set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        assert_ne!(key(&bundle, "27.0", "toc").unwrap(), second);
        assert_eq!(key(&folder.path().join("none"), "27.0", "toc"), None);
    }
}
