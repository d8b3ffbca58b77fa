//! Libraries, functions, constants and pipelines. Of MSL only this is read: `kernel void NAME(`, `function_constant(N)` with
//! the name before it, and whether braces are balanced. A metallib is a text file with names of kernels.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use super::Kernel;
use crate::foundation::{nsarray, nserror, nsstring, path_of, text};
use crate::pools::autorelease;
use crate::runtime::{Class, Id, Owned, Sel, body, class, hidden_class, method, new_object};
use crate::session::setup;

class!(
    _OBJC_CLASS_MTLCompileOptions,
    OPTIONS_META,
    c"MTLCompileOptions",
    [],
    []
);
class!(
    _OBJC_CLASS_MTLFunctionConstantValues,
    VALUES_META,
    c"MTLFunctionConstantValues",
    [
        method!(c"setConstantValue:type:withName:", c"v@:^vQ@", set_by_name),
        method!(c"setConstantValue:type:atIndex:", c"v@:^vQQ", set_by_index),
    ],
    [method!(c"new", c"@@:", values_new)]
);
hidden_class!(
    LIBRARY,
    c"MTLLibrary(double)",
    [
        method!(c"newFunctionWithName:", c"@@:@", new_function),
        method!(
            c"newFunctionWithName:constantValues:error:",
            c"@@:@@^@",
            new_function_with_constants
        ),
        method!(c"functionNames", c"@@:", function_names),
    ]
);
hidden_class!(FUNCTION, c"MTLFunction(double)", []);
hidden_class!(
    PIPELINE,
    c"MTLComputePipelineState(double)",
    [
        method!(c"maxTotalThreadsPerThreadgroup", c"Q@:", max_threads),
        method!(c"threadExecutionWidth", c"Q@:", execution_width),
        method!(c"staticThreadgroupMemoryLength", c"Q@:", static_memory),
    ]
);

struct Library {
    functions: Vec<String>,
    /// Names of the function constants that the source declares, by index.
    constants: BTreeMap<usize, String>,
}

pub(super) fn library_of_source(source: &str, error: *mut Id) -> Id {
    if source.matches('{').count() != source.matches('}').count() {
        return refuse(
            error,
            "MTLLibraryErrorDomain",
            3,
            "program_source:1:16: error: expected '}'",
        );
    }
    let functions = source
        .split("kernel void ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next());
    let functions = functions.map(|name| name.trim().to_owned()).collect();
    let mut constants = BTreeMap::new();
    for declared in source.split("constant ").skip(1) {
        let Some((before, after)) = declared.split_once("[[function_constant(") else {
            continue;
        };
        let name = before.trim().rsplit(' ').next().expect("a split has a part");
        let index = after
            .split(')')
            .next()
            .and_then(|index| index.parse().ok())
            .expect("an index");
        constants.insert(index, name.to_owned());
    }
    new_object(&LIBRARY, Library { functions, constants })
}

pub(super) fn library_of_url(url: Id, error: *mut Id) -> Id {
    let path = path_of(url);
    match std::fs::read_to_string(path) {
        Ok(names) if names.starts_with("MTLB") => {
            let functions = names.split_whitespace().skip(1).map(str::to_owned).collect();
            new_object(
                &LIBRARY,
                Library {
                    functions,
                    constants: BTreeMap::new(),
                },
            )
        }
        Ok(_) => refuse(error, "MTLLibraryErrorDomain", 1, "Invalid library file"),
        Err(_) => refuse(error, "MTLLibraryErrorDomain", 6, &format!("library not found: {path}")),
    }
}

fn refuse(error: *mut Id, domain: &'static str, code: isize, text: &str) -> Id {
    // SAFETY: every caller hands on the place that the program gave.
    unsafe { *error = autorelease(nserror(domain, code, text)) };
    std::ptr::null()
}

#[derive(Default)]
struct Values {
    by_name: Mutex<BTreeMap<String, Vec<u8>>>,
    by_index: Mutex<BTreeMap<usize, Vec<u8>>>,
}
/// Bytes of a scalar `MTLDataType`.
fn size_of_type(data_type: usize) -> usize {
    match data_type {
        3 | 29 | 33 => 4,  // float, int, uint
        16 | 37 | 41 => 2, // half, short, ushort
        45 | 49 | 53 => 1, // char, uchar, bool
        81 | 85 => 8,      // long, ulong
        other => panic!("function constant of a type that the double does not have: {other}"),
    }
}
unsafe extern "C-unwind" fn values_new(class: &'static Class, _: Sel) -> Id {
    new_object(class, Values::default())
}
unsafe fn constant(value: *const c_void, data_type: usize) -> Vec<u8> {
    std::slice::from_raw_parts(value.cast::<u8>(), size_of_type(data_type)).to_vec()
}
unsafe extern "C-unwind" fn set_by_name(values: Id, _: Sel, value: *const c_void, data_type: usize, name: Id) {
    let value = constant(value, data_type);
    body::<Values>(values)
        .by_name
        .lock()
        .unwrap()
        .insert(text(name).to_owned(), value);
}
unsafe extern "C-unwind" fn set_by_index(values: Id, _: Sel, value: *const c_void, data_type: usize, index: usize) {
    let value = constant(value, data_type);
    body::<Values>(values).by_index.lock().unwrap().insert(index, value);
}

struct Function {
    name: String,
    constants: BTreeMap<String, Vec<u8>>,
    missing: Option<String>,
}
unsafe extern "C-unwind" fn new_function(library: Id, _: Sel, name: Id) -> Id {
    let (library, name) = (body::<Library>(library), text(name).to_owned());
    if !library.functions.contains(&name) {
        return std::ptr::null();
    }
    let missing = library.constants.values().next().cloned();
    new_object(
        &FUNCTION,
        Function {
            name,
            constants: BTreeMap::new(),
            missing,
        },
    )
}
unsafe extern "C-unwind" fn new_function_with_constants(
    library: Id,
    _: Sel,
    name: Id,
    values: Id,
    error: *mut Id,
) -> Id {
    let (library, name) = (body::<Library>(library), text(name).to_owned());
    if !library.functions.contains(&name) {
        return refuse(
            error,
            "MTLLibraryErrorDomain",
            5,
            &format!("Function {name} was not found in the library"),
        );
    }
    let values = body::<Values>(values);
    let (by_name, by_index) = (values.by_name.lock().unwrap(), values.by_index.lock().unwrap());
    let mut constants = BTreeMap::new();
    for (index, declared) in &library.constants {
        match by_name.get(declared).or_else(|| by_index.get(index)) {
            Some(value) => constants.insert(declared.clone(), value.clone()),
            None => {
                let text = format!("Function {name} requires a value for the constant '{declared}'");
                return refuse(error, "MTLLibraryErrorDomain", 3, &text);
            }
        };
    }
    new_object(
        &FUNCTION,
        Function {
            name,
            constants,
            missing: None,
        },
    )
}
unsafe extern "C-unwind" fn function_names(library: Id, _: Sel) -> Id {
    let names = body::<Library>(library)
        .functions
        .iter()
        .map(|name| Owned(nsstring(name)));
    autorelease(nsarray(names.collect()))
}

pub(super) fn new_pipeline(function: Id, error: *mut Id) -> Id {
    let function = body::<Function>(function);
    if let Some(missing) = &function.missing {
        let text = format!(
            "Function {} requires a value for the constant '{missing}'",
            function.name
        );
        return refuse(error, "AGXMetalDouble", 3, &text);
    }
    let kernel = setup().kernels.get(&function.name).cloned();
    match kernel {
        Some(kernel) => new_object(
            &PIPELINE,
            Kernel {
                constants: function.constants.clone(),
                ..kernel
            },
        ),
        None => refuse(
            error,
            "AGXMetalDouble",
            3,
            &format!("the test registered no kernel {}", function.name),
        ),
    }
}
unsafe extern "C-unwind" fn max_threads(pipeline: Id, _: Sel) -> usize {
    body::<Kernel>(pipeline).max_threads
}
unsafe extern "C-unwind" fn execution_width(pipeline: Id, _: Sel) -> usize {
    body::<Kernel>(pipeline).width
}
unsafe extern "C-unwind" fn static_memory(pipeline: Id, _: Sel) -> usize {
    body::<Kernel>(pipeline).static_memory
}
