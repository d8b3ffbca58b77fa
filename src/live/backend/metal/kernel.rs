//! Libraries, functions with constants, and pipelines. Whether a profile is active changes nothing here.

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::{NSString, NSURL};
use objc2_metal::{
    MTLComputePipelineState, MTLDataType, MTLDevice, MTLFunction, MTLFunctionConstantValues, MTLLibrary,
};

use super::{Metal, failed, nil, refused, refusing};
use crate::error::{Error, Result};
use crate::live::PipelineLimits;
use crate::live::backend::{Constant, ConstantValue, KernelSource};

/// A compiled library.
pub struct Library(Retained<ProtocolObject<dyn MTLLibrary>>);

/// A pipeline state.
pub struct Pipeline {
    pub(super) state: Retained<ProtocolObject<dyn MTLComputePipelineState>>,
    pub(super) limits: PipelineLimits,
}

impl Metal {
    pub(super) fn make_library(&self, source: KernelSource<'_>) -> Result<Library> {
        autoreleasepool(|_| match source {
            KernelSource::Msl(text) => self
                .shared
                .device
                .newLibraryWithSource_options_error(&NSString::from_str(text), None)
                .map_err(refusing("the kernels do not compile")),
            KernelSource::Metallib(path) => self.load(path),
        })
        .map(Library)
    }

    fn load(&self, path: &Path) -> Result<Retained<ProtocolObject<dyn MTLLibrary>>> {
        let shown = path.display();
        let text = path
            .to_str()
            .ok_or_else(|| Error::usage(format!("`{shown}` cannot be given to Metal: it is not UTF-8")))?;
        let url = NSURL::fileURLWithPath(&NSString::from_str(text));
        let library = self.shared.device.newLibraryWithURL_error(&url);
        library.map_err(|error| refused(&format!("could not load `{shown}`"), &error))
    }

    pub(super) fn make_pipeline(&self, library: &Library, kernel: &str, constants: &[Constant]) -> Result<Pipeline> {
        autoreleasepool(|_| {
            let function = function(&library.0, kernel, constants)?;
            let state = self
                .shared
                .device
                .newComputePipelineStateWithFunction_error(&function)
                .map_err(refusing(&format!("kernel `{kernel}` gives no pipeline")))?;
            let limits = PipelineLimits {
                max_threads_per_threadgroup: state.maxTotalThreadsPerThreadgroup() as u64,
                thread_execution_width: state.threadExecutionWidth() as u64,
                static_threadgroup_memory_bytes: state.staticThreadgroupMemoryLength() as u64,
            };
            Ok(Pipeline { state, limits })
        })
    }
}

fn function(
    library: &ProtocolObject<dyn MTLLibrary>,
    kernel: &str,
    constants: &[Constant],
) -> Result<Retained<ProtocolObject<dyn MTLFunction>>> {
    let names = library.functionNames();
    let mut names: Vec<String> = (0..names.count())
        .map(|at| names.objectAtIndex(at).to_string())
        .collect();
    if !names.iter().any(|name| name == kernel) {
        // Metal's order is not documented.
        names.sort();
        let have = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        return Err(failed(format!(
            "there is no kernel `{kernel}`; the library has: {have}"
        )));
    }
    let name = NSString::from_str(kernel);
    if constants.is_empty() {
        return library
            .newFunctionWithName(&name)
            .ok_or_else(|| nil(&format!("function `{kernel}`")));
    }
    let values = MTLFunctionConstantValues::new();
    for constant in constants {
        set(&values, constant);
    }
    library
        .newFunctionWithName_constantValues_error(&name, &values)
        .map_err(refusing(&format!("kernel `{kernel}` with these constants")))
}

fn set(values: &MTLFunctionConstantValues, constant: &Constant) {
    let name = NSString::from_str(&constant.name);
    let set = |value: NonNull<c_void>, data_type| {
        #[expect(
            unsafe_code,
            reason = "the value has the type that is named beside it, and Metal copies it"
        )]
        // SAFETY: as the reason says: each arm below names its own type.
        unsafe {
            values.setConstantValue_type_withName(value, data_type, &name);
        }
    };
    match &constant.value {
        ConstantValue::Bool(value) => set(NonNull::from(value).cast(), MTLDataType::Bool),
        ConstantValue::Int(value) => set(NonNull::from(value).cast(), MTLDataType::Int),
        ConstantValue::Uint(value) => set(NonNull::from(value).cast(), MTLDataType::UInt),
        ConstantValue::Float(value) => set(NonNull::from(value).cast(), MTLDataType::Float),
    }
}
