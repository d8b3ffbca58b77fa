//! Buffers by type, size and fill: `f32:n:random`. The same text gives the same bytes everywhere.

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
    const ALL: [(Element, &'static str, u64); 8] = [
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

    /// The type of this name.
    ///
    /// # Errors
    /// There is none; with the names that there are.
    pub fn parse(name: &str) -> Result<Element> {
        let found = Element::ALL.iter().find(|(_, known, _)| *known == name);
        found.map(|(element, ..)| *element).ok_or_else(|| {
            let known: Vec<&str> = Element::ALL.iter().map(|(_, known, _)| *known).collect();
            Error::usage(format!(
                "`{name}` is no type of a buffer; there are {}",
                known.join(", ")
            ))
        })
    }

    /// One element of this value, as a GPU of this machine reads it. Integers keep their low bits.
    fn write(self, value: f64, to: &mut Vec<u8>) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "fills are small numbers; `as` saturates what a user sets beyond the type"
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// Every element is this: `zeros`, `ones`, `0.5`.
    Value(f64),
    /// Each element is its place, counted from 0, up to 255 and from 0 again: exact in every type.
    Index,
    /// Uniform in [-1, 1) for floats; any of 0 to 127 for integers. From a generator with a fixed seed.
    Random,
}

impl Fill {
    /// The fill of this name, or a number.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Fill> {
        match text {
            "zeros" => Ok(Fill::Value(0.0)),
            "ones" => Ok(Fill::Value(1.0)),
            "index" => Ok(Fill::Index),
            "random" => Ok(Fill::Random),
            number => match number.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Fill::Value(value)),
                _ => Err(Error::usage(format!(
                    "`{text}` is no fill: zeros, ones, index, random or a number"
                ))),
            },
        }
    }
}

/// A buffer to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    /// Type of its elements.
    pub element: Element,
    /// How many.
    pub count: Expression,
    /// What it holds.
    pub fill: Fill,
}

impl BufferSpec {
    /// Reads `TYPE:COUNT[:FILL]`; the fill is `zeros` when none is said.
    ///
    /// # Errors
    /// Which part is none.
    pub fn parse(text: &str) -> Result<BufferSpec> {
        let mut parts = text.split(':');
        let (element, count, fill) = (parts.next(), parts.next(), parts.next());
        match (element, count, parts.next()) {
            (Some(element), Some(count), None) => Ok(BufferSpec {
                element: Element::parse(element.trim())?,
                count: Expression::parse(count)?,
                fill: Fill::parse(fill.map_or("zeros", str::trim))?,
            }),
            _ => Err(Error::usage(format!(
                "`{text}` is no buffer: expected TYPE:COUNT or TYPE:COUNT:FILL, as in f32:n:random"
            ))),
        }
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// The count is no whole number with these sizes, or the buffer too large to be counted.
    pub fn length(&self, sizes: &Sizes) -> Result<u64> {
        let count = self.count.count(sizes)?;
        count
            .checked_mul(self.element.bytes())
            .ok_or_else(|| Error::usage(format!("a buffer of {count} elements is too large")))
    }

    /// Its bytes; `seed` tells buffers of one program apart.
    ///
    /// # Errors
    /// Those of [`BufferSpec::length`], and a buffer that this machine cannot hold.
    pub fn bytes(&self, sizes: &Sizes, seed: u64) -> Result<Vec<u8>> {
        let length = self.length(sizes)?;
        let count = length / self.element.bytes();
        let mut bytes = Vec::new();
        usize::try_from(length)
            .ok()
            .and_then(|length| bytes.try_reserve_exact(length).ok())
            .ok_or_else(|| Error::usage(format!("there is no memory for a buffer of {length} bytes")))?;
        let is_float = matches!(self.element, Element::F32 | Element::F16);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for at in 0..count {
            let value = match self.fill {
                Fill::Value(value) => value,
                Fill::Index => (at % 256) as f64,
                Fill::Random if is_float => f64::from(random.next() >> 8) / f64::from(1 << 23) - 1.0,
                Fill::Random => f64::from(random.next() >> 25),
            };
            self.element.write(value, &mut bytes);
        }
        Ok(bytes)
    }
}

/// xorshift64*, the upper half of each step.
struct Random(u64);

impl Random {
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

    fn bytes(text: &str) -> Vec<u8> {
        let sizes = Sizes::from([("n".to_owned(), 4.0)]);
        BufferSpec::parse(text).unwrap().bytes(&sizes, 1).unwrap()
    }

    #[test]
    fn a_buffer_is_what_its_text_says() {
        assert_eq!(bytes("u8:n:index"), [0, 1, 2, 3]);
        assert_eq!(bytes("u16:2*n"), [0; 16]);
        assert_eq!(bytes("f32:1:ones"), 1f32.to_ne_bytes());
        assert_eq!(bytes("i32:1:-7"), (-7i32).to_ne_bytes());
        assert_eq!(bytes("f16:1:0.5"), 0x3800u16.to_ne_bytes());
        assert_eq!(
            bytes("i8:260:index")[254..258],
            [127, 127, 0, 1],
            "saturated, then from 0 again"
        );
    }

    #[test]
    fn random_bytes_are_the_same_every_time_and_differ_by_seed() {
        assert_eq!(bytes("u8:8:random"), bytes("u8:8:random"));
        let spec = BufferSpec::parse("f32:1000:random").unwrap();
        let (a, b) = (
            spec.bytes(&Sizes::new(), 1).unwrap(),
            spec.bytes(&Sizes::new(), 2).unwrap(),
        );
        assert_ne!(a, b);
        let floats: Vec<f32> = a
            .chunks_exact(4)
            .map(|c| f32::from_ne_bytes(c.try_into().unwrap()))
            .collect();
        assert!(floats.iter().all(|float| (-1.0..1.0).contains(float)));
        let mean = floats.iter().sum::<f32>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
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
        let refused = |text| BufferSpec::parse(text).unwrap_err().to_string();
        assert_eq!(
            refused("f64:n"),
            "`f64` is no type of a buffer; there are f32, f16, i32, u32, i16, u16, i8, u8"
        );
        assert_eq!(
            refused("f32:n:zero"),
            "`zero` is no fill: zeros, ones, index, random or a number"
        );
        assert!(refused("f32").starts_with("`f32` is no buffer: expected TYPE:COUNT"));
        assert!(refused("f32:1:2:3").starts_with("`f32:1:2:3` is no buffer"));
    }
}
