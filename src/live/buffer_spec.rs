//! Buffers by type, length and fill: `f32:n:random`. The same text gives the same bytes every time.

use std::path::PathBuf;
use std::str::FromStr;

use super::expression::{Expression, Sizes};
use crate::error::{Error, Result};

/// What a buffer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// `f32`
    F32,
    /// `f16`
    F16,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `i16`
    I16,
    /// `u16`
    U16,
    /// `i8`
    I8,
    /// `u8`
    U8,
}

impl Element {
    /// Every type with its name and the bytes of one.
    pub(super) const ALL: [(Element, &'static str, u64); 8] = [
        (Element::F32, "f32", 4),
        (Element::F16, "f16", 2),
        (Element::I32, "i32", 4),
        (Element::U32, "u32", 4),
        (Element::I16, "i16", 2),
        (Element::U16, "u16", 2),
        (Element::I8, "i8", 1),
        (Element::U8, "u8", 1),
    ];

    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        Element::ALL
            .iter()
            .find(|(element, ..)| *element == self)
            .map_or(1, |(_, _, bytes)| *bytes)
    }

    /// A value of 32 random bits: in [0, 1), or any of the type's.
    fn random(self, bits: u32) -> f64 {
        let bits = f64::from(bits);
        let whole = f64::from(u32::MAX) + 1.0;
        match self {
            // 24 bits, which a float holds; a half rounds, and 11 bits keep it below 1.
            Element::F32 => (bits / 256.0).floor() / f64::from(1 << 24),
            Element::F16 => (bits / f64::from(1 << 21)).floor() / f64::from(1 << 11),
            Element::U32 => bits,
            Element::I32 => bits - whole / 2.0,
            Element::U16 => (bits / 65_536.0).floor(),
            Element::I16 => (bits / 65_536.0).floor() - 32_768.0,
            Element::U8 => (bits / 16_777_216.0).floor(),
            Element::I8 => (bits / 16_777_216.0).floor() - 128.0,
        }
    }

    /// One element of this value, as a GPU of this machine reads it; beyond the type, its end.
    fn write(self, value: f64, to: &mut Vec<u8>) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast of a float stops at the type's ends, which is what a fill may do"
        )]
        match self {
            Element::F32 => to.extend((value as f32).to_ne_bytes()),
            Element::F16 => to.extend(half(value as f32).to_ne_bytes()),
            Element::I32 => to.extend((value as i32).to_ne_bytes()),
            Element::U32 => to.extend((value as u32).to_ne_bytes()),
            Element::I16 => to.extend((value as i16).to_ne_bytes()),
            Element::U16 => to.extend((value as u16).to_ne_bytes()),
            Element::I8 => to.extend((value as i8).to_ne_bytes()),
            Element::U8 => to.extend((value as u8).to_ne_bytes()),
        }
    }
}

/// What a buffer holds at first.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Every element is this: `zeros`, `0.5`.
    Number(f64),
    /// 0, 1, 2, … up to the largest of the type, and that from there on.
    Count,
    /// Uniform in [0, 1) for floats, over all values of an integer type; the same every time.
    Random,
    /// The bytes of a file.
    File(PathBuf),
}

/// A buffer to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    /// Type of its elements.
    pub element: Element,
    /// How many.
    pub length: Expression,
    /// What it holds.
    pub fill: Fill,
}

/// Largest buffer: 64 GiB.
pub const MOST_BYTES: u64 = 64 << 30;

impl FromStr for BufferSpec {
    type Err = String;

    /// `f32:1048576`, `f32:m*k:random`, `u32:64:count`, `f16:n:0.5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let (element, length, fill) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let element = Element::ALL.iter().find(|(_, name, _)| *name == element);
        let (element, ..) = element.ok_or_else(|| {
            let names: Vec<String> = Element::ALL.iter().map(|(_, name, _)| format!("{name}:")).collect();
            format!("`{text}` begins with none of {}", names.join(", "))
        })?;
        let length = length.ok_or_else(|| format!("`{text}` has no number of elements: write f32:1048576"))?;
        if parts.next().is_some() {
            return Err(format!("`{text}` has more parts than TYPE:LENGTH:FILL"));
        }
        Ok(BufferSpec {
            element: *element,
            length: length.parse()?,
            fill: match fill.unwrap_or("zeros") {
                "zeros" => Fill::Number(0.0),
                "random" => Fill::Random,
                "count" => Fill::Count,
                number => match number.parse::<f64>() {
                    Ok(number) if number.is_finite() => Fill::Number(number),
                    _ => return Err(format!("`{number}` is none of zeros, random, count, and no number")),
                },
            },
        })
    }
}

impl BufferSpec {
    /// Its size in bytes.
    ///
    /// # Errors
    /// The length is no whole number with these sizes, or the buffer larger than [`MOST_BYTES`].
    pub fn bytes(&self, sizes: &Sizes) -> Result<u64> {
        let bytes = self.length.count(sizes)?.saturating_mul(self.element.bytes());
        if bytes > MOST_BYTES {
            return Err(Error::usage(format!("{bytes} bytes are more than {MOST_BYTES}")));
        }
        Ok(bytes)
    }

    /// What it holds, in the order of this machine; `seed` tells the random buffers of one program apart.
    ///
    /// # Errors
    /// Those of [`BufferSpec::bytes`]; a file that cannot be read or has another size; a buffer for which there is no
    /// memory.
    pub fn contents(&self, sizes: &Sizes, seed: u64) -> Result<Vec<u8>> {
        let length = self.bytes(sizes)?;
        if let Fill::File(path) = &self.fill {
            let origin = path.display().to_string();
            let bytes = std::fs::read(path).map_err(|error| Error::io("read it", error).with_origin(&origin))?;
            if bytes.len() as u64 != length {
                let error = Error::usage(format!("it has {} bytes, and the buffer {length}", bytes.len()));
                return Err(error.with_origin(origin));
            }
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        usize::try_from(length)
            .ok()
            .and_then(|length| bytes.try_reserve_exact(length).ok())
            .ok_or_else(|| Error::usage(format!("there is no memory for a buffer of {length} bytes")))?;
        let mut random = Random::new(seed);
        for at in 0..length / self.element.bytes() {
            let value = match &self.fill {
                Fill::Number(number) => *number,
                Fill::Random => self.element.random(random.next()),
                Fill::Count | Fill::File(_) => at as f64,
            };
            self.element.write(value, &mut bytes);
        }
        Ok(bytes)
    }
}

/// xorshift64*, the upper half of each step.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let upper = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        u32::try_from(upper).unwrap_or(u32::MAX)
    }
}

/// The nearest half-precision float, ties to even, as bits: Rust's own `f16` is not stable.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let low = |bits: u32| u16::try_from(bits & 0xffff).unwrap_or(0);
    let sign = low((bits >> 16) & 0x8000);
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // 65520 and more round to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    // Below 2^-14 a half has less precision: the sum with 0.5 rounds at the right bit.
    if magnitude < 0x3880_0000 {
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | low(rounded.to_bits() - 0.5f32.to_bits());
    }
    let rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
    sign | low((rounded - 0x3800_0000) >> 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Sizes {
        Sizes::from([("n".to_owned(), 4.0)])
    }

    fn bytes(text: &str) -> Vec<u8> {
        text.parse::<BufferSpec>().unwrap().contents(&sizes(), 1).unwrap()
    }

    #[test]
    fn a_buffer_holds_what_was_asked_for() {
        assert_eq!(bytes("u8:n:count"), [0, 1, 2, 3]);
        assert_eq!(bytes("u16:2*n"), [0; 16]);
        assert_eq!(
            bytes("f32:2:0.5"),
            [0.5f32.to_ne_bytes(), 0.5f32.to_ne_bytes()].concat()
        );
        assert_eq!(bytes("i32:1:-7"), (-7i32).to_ne_bytes());
        assert_eq!(bytes("f16:1:0.5"), 0x3800u16.to_ne_bytes());
        assert_eq!(
            bytes("i8:130:count")[126..],
            [126, 127, 127, 127],
            "it stops at the end of the type"
        );
    }

    #[test]
    fn random_bytes_are_the_same_every_time_and_differ_by_seed() {
        assert_eq!(bytes("u8:8:random"), bytes("u8:8:random"));
        let spec: BufferSpec = "f32:1000:random".parse().unwrap();
        let contents = |seed| spec.contents(&sizes(), seed).unwrap();
        assert_ne!(contents(1), contents(2));
        let floats: Vec<f32> = contents(1)
            .chunks_exact(4)
            .map(|c| f32::from_ne_bytes(c.try_into().unwrap()))
            .collect();
        assert!(floats.iter().all(|float| (0.0..1.0).contains(float)));
        let mean = floats.iter().sum::<f32>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.05, "{mean}");
        let (mut low, mut high) = (0, 0);
        for byte in bytes("i8:1000:random") {
            if byte < 128 { high += 1 } else { low += 1 }
        }
        assert!(low > 400 && high > 400, "both signs: {low} and {high}");
    }

    #[test]
    fn halves_are_the_nearest() {
        let cases = [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65_504.0, 0x7bff),
            (65_519.99, 0x7bff),
            (65_520.0, 0x7c00),
            (f32::INFINITY, 0x7c00),
            (f32::NAN, 0x7e00),
            (5.960_464_5e-8, 0x0001),
            (2.9e-8, 0x0000),
            (6.103_515_6e-5, 0x0400),
            (1.000_488_3, 0x3c00),
            (1.001_464_8, 0x3c02),
        ];
        for (value, wanted) in cases {
            assert_eq!(half(value), wanted, "{value}");
        }
    }

    #[test]
    fn what_is_no_buffer_is_refused() {
        let refused = |text: &str| {
            let spec = text.parse::<BufferSpec>();
            spec.and_then(|spec| spec.bytes(&sizes()).map_err(|error| error.to_string()))
                .unwrap_err()
        };
        assert_eq!(
            refused("f64:n"),
            "`f64:n` begins with none of f32:, f16:, i32:, u32:, i16:, u16:, i8:, u8:"
        );
        assert_eq!(
            refused("f32:n:zero"),
            "`zero` is none of zeros, random, count, and no number"
        );
        assert_eq!(refused("f32"), "`f32` has no number of elements: write f32:1048576");
        assert_eq!(refused("f32:1:2:3"), "`f32:1:2:3` has more parts than TYPE:LENGTH:FILL");
        assert_eq!(refused("f32:0"), "`0` is 0, and must be a whole number of at least 1");
        assert_eq!(refused("f32:1e12"), "4000000000000 bytes are more than 68719476736");
    }
}
