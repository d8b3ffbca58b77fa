//! A file that says what to run: kernels, buffers, and dispatches in their scopes; no program is needed.
//!
//! ```toml
//! [kernels.vector_add]
//! msl = "vector_add.metal"            # or: metallib = "default.metallib"
//! function = "vector_add"             # default: the key
//! constants = { WIDTH = 4, FAST = true }
//!
//! [buffers.a]
//! type = "f32"
//! length = 1048576
//! fill = "random"                     # or "zeros", "count", a number; or: file = "a.bin"
//!
//! [[dispatch]]
//! scope = ["step", "attention"]       # or one name, or none
//! kernel = "vector_add"
//! buffers = ["a", "b", "c"]           # arguments 0, 1, 2
//! grid = [1048576, 1, 1]              # threads; a number is one direction
//! threads = 256
//! repeat = 10
//! metrics = { bytes = 12582912 }
//! ```
//!
//! Everything is checked before anything runs; an error names the line, and the key that was meant where one is near.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use super::backend::{Backend, Constant, ConstantValue, Contents};
use super::metrics::Metrics;
use super::profile::Profile;
use super::runtime::{Kernel, KernelCode, PreparedKernel, Runtime};
use super::session::{self, Scope};
use crate::error::{Error, Result};
use crate::placed::{self, Value};

/// Largest buffer: 64 GiB.
const MOST_BYTES: u64 = 64 << 30;
/// Most repeats of a dispatch.
const MOST_REPEATS: u64 = 1_000_000;
/// Most threads in one direction.
const MOST_THREADS: u64 = u32::MAX as u64;

/// A file that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFile {
    kernels: BTreeMap<String, Kernel>,
    buffers: BTreeMap<String, BufferSpec>,
    dispatches: Vec<DispatchSpec>,
}

/// Type of the elements of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    F32,
    I32,
    U32,
    U8,
}

impl Element {
    fn bytes(self) -> u64 {
        match self {
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::U8 => 1,
        }
    }
}

/// What a buffer holds.
#[derive(Debug, Clone, PartialEq)]
enum Fill {
    Zeros,
    /// Uniform in [0, 1), or over all values of an integer type; the same every time.
    Random,
    /// 0, 1, 2, …
    Count,
    /// The same number everywhere.
    Number(f64),
    /// The bytes of a file.
    File(PathBuf),
}

/// What a buffer is made of, and what it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferSpec {
    element: Element,
    length: u64,
    fill: Fill,
}

#[derive(Debug, Clone, PartialEq)]
struct DispatchSpec {
    scope: Vec<String>,
    kernel: String,
    buffers: Vec<String>,
    grid: [u64; 3],
    threads: [u64; 3],
    repeat: u64,
    metrics: Metrics,
}

impl RunFile {
    /// Reads a file's text. `name` stands in errors; paths in it are relative to `folder`.
    ///
    /// # Errors
    /// No TOML; a key that is not known, missing or of the wrong type; a dispatch of a kernel or buffer that is not
    /// there. Each with its line.
    pub fn parse(text: &str, name: &str, folder: &Path) -> Result<RunFile> {
        let mut file = RunFile {
            kernels: BTreeMap::new(),
            buffers: BTreeMap::new(),
            dispatches: Vec::new(),
        };
        let mut dispatches = None;
        for (key, value) in placed::table(text, name)?.known(&["kernels", "buffers", "dispatch"])? {
            match key {
                "kernels" => {
                    for (name, value) in value.table()?.entries() {
                        file.kernels.insert(name.to_owned(), kernel(name, value, folder)?);
                    }
                }
                "buffers" => {
                    for (name, value) in value.table()?.entries() {
                        file.buffers.insert(name.to_owned(), buffer(value, folder)?);
                    }
                }
                _ => dispatches = Some(value),
            }
        }
        // Kernels and buffers may stand behind the dispatches that name them.
        if let Some(value) = dispatches {
            file.dispatches = value.each(|value| file.dispatch(value))?;
        }
        if file.dispatches.is_empty() {
            return Err(Error::usage("there is no [[dispatch]], so there is nothing to run").with_origin(name));
        }
        Ok(file)
    }

    fn dispatch(&self, value: &Value<'_>) -> Result<DispatchSpec> {
        let mut spec = DispatchSpec {
            scope: Vec::new(),
            kernel: String::new(),
            buffers: Vec::new(),
            grid: [0; 3],
            threads: [0; 3],
            repeat: 1,
            metrics: Metrics::new(),
        };
        const KEYS: &[&str] = &["scope", "kernel", "buffers", "grid", "threads", "repeat", "metrics"];
        for (key, value) in value.table()?.known(KEYS)? {
            match key {
                "scope" if value.is_list() => spec.scope = value.each(|name| name.string().map(str::to_owned))?,
                "scope" => spec.scope = vec![value.string()?.to_owned()],
                "kernel" => spec.kernel = one_of_these(&value, &self.kernels, "kernel")?,
                "buffers" => spec.buffers = value.each(|name| one_of_these(name, &self.buffers, "buffer"))?,
                "grid" => spec.grid = sizes(&value)?,
                "threads" => spec.threads = sizes(&value)?,
                "repeat" => {
                    spec.repeat = value.whole(MOST_REPEATS)?;
                    if spec.repeat == 0 {
                        return Err(value.refuse("expects at least 1"));
                    }
                }
                _ => {
                    for (name, value) in value.table()?.entries() {
                        let amount: f64 = value.number()?;
                        if !amount.is_finite() {
                            return Err(value.refuse("expects a finite number"));
                        }
                        spec.metrics.set(name.to_owned(), amount);
                    }
                }
            }
        }
        let missing = [
            ("kernel", spec.kernel.is_empty()),
            ("grid", spec.grid == [0; 3]),
            ("threads", spec.threads == [0; 3]),
        ];
        match missing.iter().find(|(_, missing)| *missing) {
            Some((key, _)) => Err(value.refuse(format!("lacks `{key}`"))),
            None => Ok(spec),
        }
    }

    /// How many kernels, buffers and launches it has.
    pub fn counts(&self) -> (u64, u64, u64) {
        let launches = self.dispatches.iter().map(|dispatch| dispatch.repeat).sum();
        (self.kernels.len() as u64, self.buffers.len() as u64, launches)
    }

    /// Makes kernels and buffers, and runs the dispatches in their order, each waited for, under a profile.
    ///
    /// # Errors
    /// A file of a buffer that cannot be read or has another size, code that does not compile, sizes that a pipeline does
    /// not allow, or an error of the GPU.
    pub fn execute<B: Backend>(&self, runtime: &Runtime<B>) -> Result<Profile> {
        let (result, profile) = session::profile(|_| self.run(runtime));
        result.map(|()| profile)
    }

    fn run<B: Backend>(&self, runtime: &Runtime<B>) -> Result<()> {
        let mut pipelines = BTreeMap::new();
        for (name, kernel) in &self.kernels {
            pipelines.insert(name, (kernel, runtime.pipeline(kernel)?));
        }
        let mut buffers = BTreeMap::new();
        for (name, spec) in &self.buffers {
            let bytes = spec.contents()?;
            buffers.insert(name, Arc::new(runtime.backend().buffer(Contents::Bytes(&bytes))?));
        }
        for dispatch in &self.dispatches {
            // Both were looked up when the file was read.
            let Some((kernel, (pipeline, limits))) = pipelines.get(&dispatch.kernel) else {
                continue;
            };
            let arguments = dispatch.buffers.iter().filter_map(|name| buffers.get(name).cloned());
            let bytes = dispatch.buffers.iter().filter_map(|name| self.buffers.get(name));
            let bytes = bytes.map(BufferSpec::bytes).sum();
            let prepared: PreparedKernel<'_, B> = runtime
                .bind(kernel, (Arc::clone(pipeline), *limits), arguments.collect(), (bytes, 0))
                .with_metrics(dispatch.metrics.clone());
            let mut scopes: Vec<Scope> = Vec::new();
            for name in &dispatch.scope {
                scopes.push(session::enter(name, Metrics::new));
            }
            let done = (0..dispatch.repeat).try_for_each(|_| prepared.dispatch(dispatch.grid, dispatch.threads));
            // The innermost ends first.
            while scopes.pop().is_some() {}
            done?;
        }
        Ok(())
    }
}

/// Types of elements, by name.
const ELEMENTS: [(&str, Element); 4] = [
    ("f32", Element::F32),
    ("i32", Element::I32),
    ("u32", Element::U32),
    ("u8", Element::U8),
];

impl FromStr for BufferSpec {
    type Err = String;

    /// `f32:1048576`, `f32:1048576:random`, `u32:64:count`, `f32:16:0.5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let (element, length, fill) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let element = ELEMENTS.iter().find(|(name, _)| *name == element);
        let (_, element) = element.ok_or_else(|| format!("`{text}` does not begin with f32:, i32:, u32: or u8:"))?;
        let length = length
            .and_then(|length| length.parse::<u64>().ok())
            .filter(|length| *length > 0);
        let spec = BufferSpec {
            element: *element,
            length: length.ok_or_else(|| format!("`{text}` has no number of elements: write f32:1048576"))?,
            fill: match fill {
                None | Some("zeros") => Fill::Zeros,
                Some("random") => Fill::Random,
                Some("count") => Fill::Count,
                Some(number) => match number.parse::<f64>() {
                    Ok(number) if number.is_finite() => Fill::Number(number),
                    _ => return Err(format!("`{number}` is none of zeros, random, count, and no number")),
                },
            },
        };
        match spec.bytes() {
            bytes if bytes > MOST_BYTES => Err(format!("{bytes} bytes are more than {MOST_BYTES}")),
            _ => Ok(spec),
        }
    }
}

impl BufferSpec {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.length.saturating_mul(self.element.bytes())
    }

    /// Its bytes, little-endian.
    ///
    /// # Errors
    /// A file that cannot be read, or has another size.
    pub fn contents(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.bytes()).map_err(|_| Error::usage("a buffer is larger than memory"))?;
        if let Fill::File(path) = &self.fill {
            let bytes = std::fs::read(path).map_err(|error| Error::io("read it", error));
            let bytes = bytes.map_err(|error| error.with_origin(path.display().to_string()))?;
            if bytes.len() != length {
                return Err(
                    Error::usage(format!("it has {} bytes, and the buffer {length}", bytes.len()))
                        .with_origin(path.display().to_string()),
                );
            }
            return Ok(bytes);
        }
        let mut bytes = Vec::with_capacity(length);
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for at in 0..self.length {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let value = match &self.fill {
                Fill::Zeros | Fill::File(_) => 0.0,
                Fill::Count => at as f64,
                Fill::Number(number) => *number,
                Fill::Random => match self.element {
                    Element::F32 => (random >> 40) as f64 / (1u64 << 24) as f64,
                    Element::I32 => (random >> 33) as f64,
                    Element::U32 => (random >> 32) as f64,
                    Element::U8 => (random >> 56) as f64,
                },
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a cast of a float stops at the type's ends, which is what a fill may do"
            )]
            match self.element {
                Element::F32 => bytes.extend((value as f32).to_le_bytes()),
                Element::I32 => bytes.extend((value as i32).to_le_bytes()),
                Element::U32 => bytes.extend((value as u32).to_le_bytes()),
                Element::U8 => bytes.push(value as u8),
            }
        }
        Ok(bytes)
    }
}

fn kernel(name: &str, value: &Value<'_>, folder: &Path) -> Result<Kernel> {
    let mut code = None;
    let mut function = name.to_owned();
    let mut constants = Vec::new();
    for (key, value) in value.table()?.known(&["msl", "metallib", "function", "constants"])? {
        match key {
            "msl" | "metallib" if code.is_some() => {
                return Err(value.refuse("a kernel has `msl` or `metallib`, not both"));
            }
            "msl" => {
                let path = folder.join(value.string()?);
                let text = std::fs::read_to_string(&path);
                let text =
                    text.map_err(|error| value.refuse(format!("could not read `{}`: {error}", path.display())))?;
                code = Some(KernelCode::Msl(text));
            }
            "metallib" => {
                let path = folder.join(value.string()?);
                if !path.is_file() {
                    return Err(value.refuse(format!("there is no file `{}`", path.display())));
                }
                code = Some(KernelCode::Metallib(path));
            }
            "function" => function = value.string()?.to_owned(),
            _ => {
                for (name, value) in value.table()?.entries() {
                    constants.push(Constant {
                        name: name.to_owned(),
                        value: constant(value)?,
                    });
                }
            }
        }
    }
    Ok(Kernel {
        code: code.ok_or_else(|| value.refuse("lacks `msl` or `metallib`"))?,
        name: function,
        constants,
    })
}

/// `true`; `4` is an `int`, above its range a `uint`; `0.5` a `float`.
fn constant(value: &Value<'_>) -> Result<ConstantValue> {
    match value.kind() {
        "boolean" => value.truth().map(ConstantValue::Bool),
        "float" => value.number().map(ConstantValue::Float),
        "integer" => value
            .number::<i32>()
            .map(ConstantValue::Int)
            .or_else(|_| value.number::<u32>().map(ConstantValue::Uint)),
        _ => Err(value.refuse("expects a number, true or false")),
    }
}

fn buffer(value: &Value<'_>, folder: &Path) -> Result<BufferSpec> {
    let (mut element, mut length, mut fill) = (None, None, None);
    for (key, value) in value.table()?.known(&["type", "length", "fill", "file"])? {
        match key {
            "type" => {
                element = Some(value.one_of(&ELEMENTS)?);
            }
            "length" => length = Some((value.whole(MOST_BYTES)?, value)),
            "fill" | "file" if fill.is_some() => {
                return Err(value.refuse("a buffer has `fill` or `file`, not both"));
            }
            "fill" if value.kind() == "string" => {
                let fills = [("zeros", 0), ("random", 1), ("count", 2)];
                fill = Some(match value.one_of(&fills)? {
                    0 => Fill::Zeros,
                    1 => Fill::Random,
                    _ => Fill::Count,
                });
            }
            "fill" => fill = Some(Fill::Number(value.number()?)),
            _ => {
                let path = folder.join(value.string()?);
                if !path.is_file() {
                    return Err(value.refuse(format!("there is no file `{}`", path.display())));
                }
                fill = Some(Fill::File(path));
            }
        }
    }
    let (length, at) = length.ok_or_else(|| value.refuse("lacks `length`, the number of its elements"))?;
    let spec = BufferSpec {
        element: element.ok_or_else(|| value.refuse("lacks `type` (f32, i32, u32, u8)"))?,
        length,
        fill: fill.unwrap_or(Fill::Zeros),
    };
    match spec.bytes() {
        0 => Err(at.refuse("a buffer has at least one element")),
        bytes if bytes > MOST_BYTES => Err(at.refuse(format!("{bytes} bytes are more than {MOST_BYTES}"))),
        _ => Ok(spec),
    }
}

/// A name that the file defines elsewhere.
fn one_of_these<T>(value: &Value<'_>, known: &BTreeMap<String, T>, what: &str) -> Result<String> {
    let name = value.string()?;
    if known.contains_key(name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let refused = value.refuse(format!("there is no {what} `{name}`"));
    Err(match (placed::nearest(name, &names), names.as_slice()) {
        (Some(near), _) => refused.with_help(format!("did you mean `{near}`?")),
        (None, []) => refused.with_help(format!("define it under [{what}s.{name}]")),
        (None, names) => refused.with_help(format!("the {what}s are: {}", names.join(", "))),
    })
}

/// A number, or a list of up to three.
fn sizes(value: &Value<'_>) -> Result<[u64; 3]> {
    let given = if value.is_list() {
        value.each(|size| size.whole(MOST_THREADS))?
    } else {
        vec![value.whole(MOST_THREADS)?]
    };
    let sizes = match given.as_slice() {
        [x] => [*x, 1, 1],
        [x, y] => [*x, *y, 1],
        [x, y, z] => [*x, *y, *z],
        _ => return Err(value.refuse("expects one to three numbers")),
    };
    if sizes.contains(&0) {
        return Err(value.refuse("expects at least 1 in each direction"));
    }
    Ok(sizes)
}
