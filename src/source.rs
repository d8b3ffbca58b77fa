//! Bytes: a file, a folder, standard input, plain or compressed, becomes UTF-8 XML for [`crate::xml`].
//!
//! What a file is, its content decides, not its name: gzip (every member), zstd (every frame), a byte order
//! mark, UTF-16. What cannot be an export is refused here, in words that say what it is instead.

mod unchanged;
mod unpack;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::{Error, ErrorKind, Result};
use unchanged::Unchanged;

/// Whether a file begins as JSON does, which no export does: with `{`, after white space. `false` also for what cannot be
/// read, so that the reader of exports says why.
pub fn is_json(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// An opened input: UTF-8 XML without a byte order mark.
pub type Input<'a> = Box<dyn BufRead + Send + 'a>;

const BUFFER: usize = 256 << 10;

/// An input as the user named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `-`.
    Stdin,
    /// One file with one or several tables.
    File(PathBuf),
    /// A folder of exported files.
    Folder(PathBuf),
    /// A `.trace` bundle, which only xctrace can read.
    Bundle(PathBuf),
}

impl Source {
    /// Looks at a path.
    ///
    /// # Errors
    /// A path that is not there, a frame capture (`.gputrace`), or something that is neither file nor folder.
    pub fn from_argument(argument: &Path) -> Result<Source> {
        if argument.as_os_str() == "-" {
            return Ok(Source::Stdin);
        }
        let origin = argument.display().to_string();
        let metadata = std::fs::metadata(argument).map_err(|error| {
            Error::io("open it", error)
                .with_origin(&origin)
                .with_help(missing_help(argument))
        })?;
        let extension = argument.extension().unwrap_or_default();
        if extension.eq_ignore_ascii_case("gputrace") {
            return Err(Error::new(ErrorKind::NotAnExport(
                "a .gputrace is a frame capture, not a recording: it holds no timeline of the GPU".to_owned(),
            ))
            .with_origin(origin)
            .with_help("record a Metal System Trace: `xcrun xctrace record --template 'Metal System Trace' …`"));
        }
        if !metadata.is_dir() {
            return Ok(Source::File(argument.to_owned()));
        }
        let bundle = extension.eq_ignore_ascii_case("trace")
            || ["form.template", "Trace1.run", "instrument_data"]
                .iter()
                .any(|name| argument.join(name).exists());
        Ok(if bundle {
            Source::Bundle(argument.to_owned())
        } else {
            Source::Folder(argument.to_owned())
        })
    }

    /// The input as it is shown in errors.
    pub fn origin(&self) -> String {
        match self {
            Source::Stdin => "standard input".to_owned(),
            Source::File(path) | Source::Folder(path) | Source::Bundle(path) => path.display().to_string(),
        }
    }

    /// The files to read, in a fixed order: a table of contents first, then by name.
    ///
    /// # Errors
    /// A folder that cannot be listed or holds no export. A bundle has no files to read: see [`crate::xctrace`].
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        match self {
            Source::Stdin | Source::Bundle(_) => Ok(Vec::new()),
            Source::File(path) => Ok(vec![path.clone()]),
            Source::Folder(path) => exported_files(path),
        }
    }
}

fn missing_help(path: &Path) -> String {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if parent == Path::new(".") {
        "there is no file or folder of this name here".to_owned()
    } else if parent.is_dir() {
        format!("there is no file or folder of this name in {}", parent.display())
    } else {
        format!("the folder {} is not there either", parent.display())
    }
}

fn exported_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let origin = || folder.display().to_string();
    let entries =
        std::fs::read_dir(folder).map_err(|error| Error::io("list the folder", error).with_origin(origin()))?;
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("list the folder", error).with_origin(origin()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Dot files and the Finder's sidecars (`._x.xml`) are nobody's export.
        if name.starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            folders.push(name);
        } else if has_export_name(&name) {
            files.push((!is_contents(&path), name, path));
        }
    }
    files.sort();
    folders.sort();
    if files.is_empty() {
        let error = Error::unfit("the folder holds no exported file (.xml, .xml.gz, .xml.zst)").with_origin(origin());
        return Err(if let Some(first) = folders.first() {
            error.with_help(format!(
                "give one folder per trial, such as {}",
                folder.join(first).display()
            ))
        } else {
            error.with_help("`trace-attr export run.trace -o DIR` makes such a folder on a Mac")
        });
    }
    Ok(files.into_iter().map(|(_, _, path)| path).collect())
}

/// Whether a file of this name counts as exported in a folder.
pub fn is_export(file: &Path) -> bool {
    file.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        !name.starts_with('.') && has_export_name(&name)
    })
}

fn has_export_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".xml", ".xml.gz", ".xml.zst"].iter().any(|end| name.ends_with(end))
}

/// Whether a file of a folder is the table of contents, by the name that `export` gives it.
pub fn is_contents(file: &Path) -> bool {
    file.file_name()
        .is_some_and(|name| name.to_string_lossy().to_ascii_lowercase().starts_with("toc."))
}

/// Opens a file as UTF-8 XML; `progress` sees the bytes of the file as they are read. A compressed file is unpacked on a
/// thread of its own; a file that changes before its end was read is an error where it ends.
///
/// # Errors
/// A file that cannot be opened, is empty, or is no XML in any form that is read.
pub fn open<'a>(path: &Path, progress: impl Fn(u64) + Send + 'a) -> Result<Input<'a>> {
    let file = File::open(path).and_then(Unchanged::new);
    file.map_err(|error| Error::io("open it", error))
        .and_then(|mut input| {
            let mut head = Vec::new();
            Read::take(&mut input, 4)
                .read_to_end(&mut head)
                .map_err(|error| Error::io("read it", error))?;
            let packed = is_gzip(&head) || is_zstd(&head);
            let input = io::Cursor::new(head).chain(input);
            if packed {
                Ok(Box::new(unpack::unpack(input, progress)?) as Input<'a>)
            } else {
                decode(Counted { input, progress })
            }
        })
        .map_err(|error| error.with_origin(path.display().to_string()))
}

/// A reader that reports how much was read.
struct Counted<R, F> {
    input: R,
    progress: F,
}

impl<R: Read, F: Fn(u64)> Read for Counted<R, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let amount = self.input.read(out)?;
        (self.progress)(amount as u64);
        Ok(amount)
    }
}

/// Turns raw bytes into UTF-8 XML without a byte order mark.
///
/// # Errors
/// An empty input, a zip or another binary, a compressed file that is cut before its first byte.
pub fn decode<'a>(input: impl Read + Send + 'a) -> Result<Input<'a>> {
    let mut input: Input<'a> = Box::new(BufReader::with_capacity(BUFFER, input));
    // A compressed file can be compressed again; more than twice is somebody's joke.
    for _ in 0..3 {
        let (start, whole) = peek(input)?;
        input = match start.as_slice() {
            [] => return Err(Error::new(ErrorKind::Empty)),
            start if is_gzip(start) => Box::new(BufReader::with_capacity(
                BUFFER,
                flate2::bufread::MultiGzDecoder::new(whole),
            )),
            start if is_zstd(start) => Box::new(BufReader::with_capacity(
                BUFFER,
                ZstdReader {
                    input: whole,
                    decoder: FrameDecoder::new(),
                    inside: false,
                },
            )),
            _ => return text(whole, &start),
        };
    }
    Err(Error::new(ErrorKind::NotAnExport(
        "the file is compressed more than twice".to_owned(),
    )))
}

fn is_gzip(start: &[u8]) -> bool {
    matches!(start, [0x1f, 0x8b, ..])
}

/// A frame, or one that is to be skipped.
fn is_zstd(start: &[u8]) -> bool {
    matches!(
        start,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

/// The first bytes, without taking them; short only at the end of the input.
fn peek(mut input: Input<'_>) -> Result<(Vec<u8>, Input<'_>)> {
    if let Some(start) = input
        .fill_buf()
        .ok()
        .and_then(|start| start.get(..8))
        .map(<[u8]>::to_vec)
    {
        return Ok((start, input));
    }
    let mut head = [0u8; 8];
    let mut length = 0;
    while let Some(rest) = head.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(amount) => length += amount,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Error::new(ErrorKind::Truncated {
                    at: crate::error::Position::default(),
                })
                .with_help("the compressed file is cut: copy it again, or make it again"));
            }
            Err(error) => return Err(Error::io("read it", error)),
        }
    }
    let head = head.get(..length).unwrap_or_default().to_vec();
    let input = Box::new(io::Cursor::new(head.clone()).chain(input));
    Ok((head, input))
}

fn text<'a>(mut input: Input<'a>, start: &[u8]) -> Result<Input<'a>> {
    let not = |what: &str| Error::new(ErrorKind::NotAnExport(what.to_owned()));
    match start {
        [0xef, 0xbb, 0xbf, ..] => {
            input.consume(3);
            Ok(input)
        }
        [0xff, 0xfe, ..] => {
            input.consume(2);
            Ok(utf16(input, u16::from_le_bytes))
        }
        [0xfe, 0xff, ..] => {
            input.consume(2);
            Ok(utf16(input, u16::from_be_bytes))
        }
        [b'<', 0, ..] => Ok(utf16(input, u16::from_le_bytes)),
        [0, b'<', ..] => Ok(utf16(input, u16::from_be_bytes)),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => {
            Err(not("this is a zip archive, not an export").with_help("unzip it, and give what is inside"))
        }
        [b'b', b'p', b'l', b'i', b's', b't', ..] => {
            Err(not("this is a binary property list, not an export")
                .with_help("give the .trace bundle itself, on a Mac"))
        }
        _ if start
            .iter()
            .find(|byte| !byte.is_ascii_whitespace())
            .is_none_or(|byte| *byte == b'<') =>
        {
            Ok(input)
        }
        _ => Err(not("this is no XML: it does not begin with `<`")
            .with_help("give what `xctrace export` wrote, or a folder of such files")),
    }
}

fn utf16<'a>(input: Input<'a>, unit: fn([u8; 2]) -> u16) -> Input<'a> {
    Box::new(BufReader::with_capacity(
        BUFFER,
        Utf16Reader {
            input,
            unit,
            high: None,
            ready: Vec::new(),
            taken: 0,
        },
    ))
}

/// UTF-16 to UTF-8; a lone surrogate or an odd byte is an error, not a replacement character.
struct Utf16Reader<'a> {
    input: Input<'a>,
    unit: fn([u8; 2]) -> u16,
    high: Option<u16>,
    ready: Vec<u8>,
    taken: usize,
}

impl Utf16Reader<'_> {
    fn fill(&mut self) -> io::Result<bool> {
        self.ready.clear();
        self.taken = 0;
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the UTF-16 text {what}"));
        let mut units = Vec::with_capacity(4096);
        units.extend(self.high.take());
        let mut bytes = Vec::with_capacity(8192);
        let amount = io::Read::take(&mut self.input, 8192).read_to_end(&mut bytes)?;
        let pairs = bytes.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the UTF-16 text ends inside a character",
            ));
        }
        units.extend(pairs.map(|pair| match pair {
            [first, second] => (self.unit)([*first, *second]),
            _ => 0,
        }));
        if amount == 8192 {
            // A pair of surrogates may be cut in two by the buffer.
            if let Some(last) = units.last().copied().filter(|unit| (0xd800..0xdc00).contains(unit)) {
                self.high = Some(last);
                units.pop();
            }
        }
        for character in char::decode_utf16(units) {
            let character = character.map_err(|_| bad("has half a surrogate pair"))?;
            let mut buffer = [0u8; 4];
            self.ready
                .extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        }
        Ok(amount > 0)
    }
}

impl Read for Utf16Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.ready.len() {
            if !self.fill()? {
                return Ok(0);
            }
        }
        let mut rest = self.ready.get(self.taken..).unwrap_or_default();
        let amount = rest.read(out)?;
        self.taken += amount;
        Ok(amount)
    }
}

/// zstd, frame after frame; frames to be skipped are skipped, checksums are checked.
struct ZstdReader<'a> {
    input: Input<'a>,
    decoder: FrameDecoder,
    inside: bool,
}

impl ZstdReader<'_> {
    /// `false` at the end of the input.
    fn open_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut Read::take(&mut self.input, length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.failure(&error)),
            }
        }
    }

    /// A cut file is told as such, whatever part of a frame it was cut in.
    fn failure(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.input.fill_buf() {
            Ok([]) => io::ErrorKind::UnexpectedEof.into(),
            _ => io::Error::new(io::ErrorKind::InvalidData, format!("bad zstd data: {error}")),
        }
    }
}

impl Read for ZstdReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside {
                if !self.open_frame()? {
                    return Ok(0);
                }
                self.inside = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                if let Err(error) = self
                    .decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                {
                    return Err(self.failure(&error));
                }
            }
            let amount = self.decoder.read(out)?;
            if amount > 0 {
                return Ok(amount);
            }
            let (stored, found) = (
                self.decoder.get_checksum_from_data(),
                self.decoder.get_calculated_checksum(),
            );
            if stored.is_some() && stored != found {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the zstd checksum does not match",
                ));
            }
            self.inside = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn read(bytes: impl Into<Vec<u8>>) -> Result<String> {
        let mut text = String::new();
        let bytes: Vec<u8> = bytes.into();
        decode(io::Cursor::new(bytes))?
            .read_to_string(&mut text)
            .map_err(|error| Error::io("read it", error))?;
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn every_member_and_frame_is_read() {
        assert_eq!(read([gzip("<a>"), gzip("</a>")].concat()).unwrap(), "<a></a>");
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        assert_eq!(
            read([skippable.clone(), zstd("<a>"), skippable, zstd("</a>")].concat()).unwrap(),
            "<a></a>"
        );
        assert_eq!(read(gzip(&String::from_utf8_lossy(b"<a/>"))).unwrap(), "<a/>");
    }

    #[test]
    fn a_cut_compressed_file_is_an_error_at_every_length() {
        let text: String = (0..3000u64)
            .map(|n| format!("<row>{}</row>", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        for whole in [gzip(&text), zstd(&text)] {
            assert_eq!(read(whole.clone()).unwrap(), text);
            for cut in [1, 3, 9, whole.len() / 2, whole.len() - 5, whole.len() - 1] {
                let result = read(&whole[..cut]);
                assert!(
                    result.is_err(),
                    "cut at {cut} of {} gave {} bytes",
                    whole.len(),
                    result.unwrap().len()
                );
            }
        }
    }

    #[test]
    fn b32_byte_order_marks_and_utf16() {
        let text = "<a>µ×😀’</a>\r\n".repeat(5000);
        assert_eq!(
            read([b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat()).unwrap(),
            text
        );
        for (mark, unit) in [
            (true, u16::to_le_bytes as fn(u16) -> [u8; 2]),
            (true, u16::to_be_bytes),
            (false, u16::to_le_bytes),
        ] {
            let mut bytes: Vec<u8> = if mark { unit(0xfeff).to_vec() } else { Vec::new() };
            bytes.extend(text.encode_utf16().flat_map(unit));
            assert_eq!(read(bytes.clone()).unwrap(), text);
            bytes.pop();
            assert!(read(bytes).is_err());
        }
        assert!(
            read([0xff, 0xfe, b'<', 0, 0x00, 0xd8, b'x', 0]).is_err(),
            "half a surrogate pair"
        );
    }

    /// A file of that content, and what reading it whole gives after `change`.
    fn changed(content: &[u8], change: impl FnOnce(&Path)) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.xml");
        std::fs::write(&path, content).unwrap();
        let mut input = open(&path, |_| ())?;
        let mut text = vec![0; 10];
        input.read_exact(&mut text).unwrap();
        change(&path);
        let mut text = String::from_utf8(text).unwrap();
        input
            .read_to_string(&mut text)
            .map_err(|error| Error::io("read on", error))?;
        Ok(text)
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_an_error() {
        // Larger than every buffer on the way, and the packed ones than what the other thread has read already.
        let text: String = (0..150_000u64)
            .map(|n| format!("<row>{}</row>", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        for content in [text.clone().into_bytes(), gzip(&text), zstd(&text)] {
            assert!(changed(&content, |_| ()).unwrap() == text);
            let half = content.len() as u64 / 2;
            let edits: [&dyn Fn(&std::fs::File); 3] = [
                &|file| file.set_len(half).unwrap(),
                &|file| file.set_len(3 * half).unwrap(),
                &|file| file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap(),
            ];
            for (number, edit) in edits.into_iter().enumerate() {
                let result = changed(&content, |path| edit(&File::options().write(true).open(path).unwrap()));
                let told = result.map(|text| text.len()).unwrap_err().to_string();
                // A cut or grown packed file may be found bad before its end is.
                assert!(
                    told.contains("changed while it was read") || (number < 2 && content.len() < text.len()),
                    "{told}"
                );
            }
        }
    }

    #[test]
    fn a_packed_file_is_read_as_its_bytes_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.xml.gz");
        let text = "<a>µ</a>".repeat(100_000);
        let cut = |bytes: Vec<u8>| bytes[..bytes.len() - 9].to_vec();
        for content in [
            gzip(&text),
            zstd(&text),
            gzip(&text)[..3].to_vec(),
            cut(gzip(&text)),
            cut(zstd(&text)),
            gzip(""),
            gzip("PK\x03\x04"),
            gzip("hello"),
        ] {
            std::fs::write(&path, &content).unwrap();
            let told = AtomicU64::new(0);
            let whole = |input: Result<Input<'_>>| {
                let mut text = Vec::new();
                let result = input.and_then(|mut input| {
                    input
                        .read_to_end(&mut text)
                        .map_err(|error| Error::io("read it", error))
                });
                (result.map_err(|error| error.kind().to_string()), text)
            };
            let opened = whole(open(&path, |bytes| {
                told.fetch_add(bytes, Ordering::Relaxed);
            }));
            assert!(opened == whole(decode(&content[..])));
            assert!(opened.0.is_err() || told.load(Ordering::Relaxed) == content.len() as u64);
            // Nobody has to read to the end.
            drop(open(&path, |_| ()));
        }
    }

    #[test]
    fn what_is_no_export_is_named() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("empty"));
        assert!(message(b"PK\x03\x04rest").contains("zip"));
        assert!(message(b"bplist00").contains("property list"));
        assert!(message(b"hello").contains("no XML"));
        assert!(message(&gzip("")).contains("empty"));
        assert_eq!(read("\n <a/>").unwrap(), "\n <a/>");
    }
}
