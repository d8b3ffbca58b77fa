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
use std::path::Path;
use std::sync::Arc;

use super::backend::{Backend, Constant, ConstantValue, Contents};
use super::buffer_spec::{BufferSpec, Element, Fill, MOST_BYTES};
use super::expression::{Expression, Sizes};
use super::metrics::Metrics;
use super::profile::Profile;
use super::runtime::{Kernel, KernelCode, PreparedKernel, Runtime};
use super::session::{self, Scope};
use crate::error::{Error, Result};
use crate::placed::{self, Value};

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
        for ((name, spec), seed) in self.buffers.iter().zip(1..) {
            let bytes = spec.contents(&Sizes::new(), seed)?;
            buffers.insert(name, Arc::new(runtime.backend().buffer(Contents::Bytes(&bytes))?));
        }
        for dispatch in &self.dispatches {
            // Both were looked up when the file was read.
            let Some((kernel, (pipeline, limits))) = pipelines.get(&dispatch.kernel) else {
                continue;
            };
            let arguments = dispatch.buffers.iter().filter_map(|name| buffers.get(name).cloned());
            let bytes = dispatch.buffers.iter().filter_map(|name| self.buffers.get(name));
            let bytes = bytes.map(|spec| spec.bytes(&Sizes::new())).sum::<Result<u64>>()?;
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
                let types = Element::ALL.map(|(element, name, _)| (name, element));
                element = Some(value.one_of(&types)?);
            }
            "length" => length = Some((value.whole(MOST_BYTES)?, value)),
            "fill" | "file" if fill.is_some() => {
                return Err(value.refuse("a buffer has `fill` or `file`, not both"));
            }
            "fill" if value.kind() == "string" => {
                let fills = [("zeros", 0), ("random", 1), ("count", 2)];
                fill = Some(match value.one_of(&fills)? {
                    0 => Fill::Number(0.0),
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
        element: element.ok_or_else(|| value.refuse("lacks `type` (f32, f16, i32, u32, i16, u16, i8, u8)"))?,
        length: Expression::whole(length),
        fill: fill.unwrap_or(Fill::Number(0.0)),
    };
    if length == 0 {
        return Err(at.refuse("a buffer has at least one element"));
    }
    spec.bytes(&Sizes::new()).map_err(|error| at.misfit(error))?;
    Ok(spec)
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
