//! Compression with the same bytes every time: gzip without a time stamp, zstd by a fixed level.

use std::io::{Read, Write};

use flate2::{Compression, GzBuilder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// One gzip member, its header without name and time.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    gzip_at(bytes, Compression::best())
}

/// One gzip member of stored blocks: its bytes do not depend on the compressor's version.
pub fn gzip_stored(bytes: &[u8]) -> Vec<u8> {
    gzip_at(bytes, Compression::none())
}

fn gzip_at(bytes: &[u8], level: Compression) -> Vec<u8> {
    // 255 is "unknown" for the operating system: the same on every one.
    let mut encoder = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), level);
    encoder.write_all(bytes).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

/// One zstd frame.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// One zstd frame of raw blocks.
pub fn zstd_stored(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Uncompressed)
}

/// What comes out of a packed file before its end or its first fault, and whether it was whole. By the file's name.
pub fn unpacked(name: &str, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut plain = Vec::new();
    let whole = if name.ends_with(".gz") {
        flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain).is_ok()
    } else if name.ends_with(".zst") {
        let mut rest = bytes;
        loop {
            if rest.is_empty() {
                break true;
            }
            let Ok(mut decoder) = ruzstd::decoding::StreamingDecoder::new(&mut rest) else {
                break false;
            };
            if decoder.read_to_end(&mut plain).is_err() {
                break false;
            }
        }
    } else {
        plain.extend_from_slice(bytes);
        true
    };
    (plain, whole)
}
