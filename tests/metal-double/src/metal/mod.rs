//! The stand-in for Metal: one device whose GPU is a thread, and whose kernels are Rust functions that a test registers.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use crate::runtime::{Class, Id, Owned};

mod capture;
mod command_buffer;
mod counters;
mod device;
mod encoder;
pub(crate) mod gpu;
mod library;

pub(crate) use capture::{forget as forget_capture, is_capturing};

/// What a kernel of one name does and needs.
#[derive(Clone)]
pub struct Kernel {
    pub max_threads: usize,
    pub width: usize,
    pub static_memory: usize,
    /// What a launch takes.
    pub nanoseconds: u64,
    /// Function constants by name, as bytes.
    pub constants: BTreeMap<String, Vec<u8>>,
    pub run: Arc<dyn Fn(&Arguments) + Send + Sync>,
}

/// What a launch was given.
pub struct Arguments<'a> {
    pub grid: [usize; 3],
    pub threads: [usize; 3],
    pub constants: &'a BTreeMap<String, Vec<u8>>,
    bound: &'a BTreeMap<usize, Argument>,
}

impl Arguments<'_> {
    /// A bound buffer as 32-bit floats, from its offset on.
    pub fn floats(&self, index: usize) -> &[Cell<f32>] {
        let bytes = self.bytes(index);
        let (before, floats, _) = {
            // SAFETY: every bit pattern is a float.
            unsafe { bytes.align_to::<Cell<f32>>() }
        };
        assert!(before.is_empty(), "argument {index} is not aligned for floats");
        floats
    }

    pub fn bytes(&self, index: usize) -> &[Cell<u8>] {
        match self
            .bound
            .get(&index)
            .unwrap_or_else(|| panic!("the kernel has no argument {index}"))
        {
            Argument::Buffer(buffer, offset) => {
                let memory = crate::runtime::body::<Memory>(buffer.0);
                &memory.bytes()[*offset..]
            }
            Argument::Bytes(bytes) => {
                // SAFETY: `Cell<u8>` has the layout of `u8`; the kernel may not write what the encoder copied, and if it
                // does, only it sees that.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<Cell<u8>>(), bytes.len()) }
            }
        }
    }
}

pub(crate) enum Argument {
    Buffer(Owned, usize),
    Bytes(Vec<u8>),
}

/// The memory of a buffer, which CPU and GPU share. Aligned for every type.
pub(crate) struct Memory {
    words: std::cell::UnsafeCell<Vec<u128>>,
    length: usize,
}
// SAFETY: as with Metal, who reads and writes at the same time is the program's care.
unsafe impl Sync for Memory {}
impl Memory {
    fn zeroed(length: usize) -> Memory {
        Memory {
            words: vec![0; length.div_ceil(16)].into(),
            length,
        }
    }
    fn bytes(&self) -> &[Cell<u8>] {
        // SAFETY: the words are alive while `self` is, and hold at least `length` bytes.
        unsafe { std::slice::from_raw_parts(self.address().cast::<Cell<u8>>(), self.length) }
    }
    fn address(&self) -> *mut c_void {
        // SAFETY: the vector itself is never changed, only what it points to.
        unsafe { (*self.words.get()).as_mut_ptr().cast() }
    }
}

/// Descriptors are bags of properties.
#[derive(Default)]
pub(crate) struct Properties(Mutex<HashMap<&'static str, Property>>);
enum Property {
    Number(usize),
    Object(Owned),
}
impl Properties {
    fn set_number(&self, name: &'static str, value: usize) {
        self.0.lock().unwrap().insert(name, Property::Number(value));
    }
    fn set_object(&self, name: &'static str, value: Id) {
        self.0
            .lock()
            .unwrap()
            .insert(name, Property::Object(crate::runtime::keep(value)));
    }
    fn number(&self, name: &str) -> Option<usize> {
        match self.0.lock().unwrap().get(name)? {
            Property::Number(number) => Some(*number),
            Property::Object(_) => None,
        }
    }
    /// Borrowed: the descriptor keeps it.
    fn object(&self, name: &str) -> Option<Id> {
        match self.0.lock().unwrap().get(name)? {
            Property::Object(object) => Some(object.0),
            Property::Number(_) => None,
        }
    }
}
/// A method that sets a number or an object of a bag.
macro_rules! setter {
    ($function:ident, number $name:literal) => {
        unsafe extern "C-unwind" fn $function(bag: crate::runtime::Id, _: crate::runtime::Sel, value: usize) {
            crate::runtime::body::<crate::metal::Properties>(bag).set_number($name, value);
        }
    };
    ($function:ident, object $name:literal) => {
        unsafe extern "C-unwind" fn $function(
            bag: crate::runtime::Id,
            _: crate::runtime::Sel,
            value: crate::runtime::Id,
        ) {
            crate::runtime::body::<crate::metal::Properties>(bag).set_object($name, value);
        }
    };
}
pub(crate) use setter;

/// Three numbers, as `MTLSize`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Size([usize; 3]);

pub(crate) static CLASSES: &[&Class] = &[
    &library::_OBJC_CLASS_MTLCompileOptions,
    &library::_OBJC_CLASS_MTLFunctionConstantValues,
    &counters::_OBJC_CLASS_MTLComputePassDescriptor,
    &counters::_OBJC_CLASS_MTLCounterSampleBufferDescriptor,
    &capture::_OBJC_CLASS_MTLCaptureManager,
    &capture::_OBJC_CLASS_MTLCaptureDescriptor,
];
