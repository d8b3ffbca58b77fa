//! Objects, classes and messages: what `objc2` with its feature `gnustep-1-7` asks of a runtime.
//!
//! A class is a static table of methods with their type encodings; debug builds of objc2 compare these with what it is about
//! to send. Objects are counted by class, so that a test can ask what is still alive; a released object stays as a zombie,
//! so that its next use is caught.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::foundation::{ROOT, ROOT_META};

/// The address of a method's function.
pub type Imp = *const c_void;
/// A selector: the interned name of a method.
pub type Sel = *const c_char;

#[repr(C)]
pub struct Method {
    pub sel: &'static CStr,
    /// Types of result, receiver, selector and arguments, as `@encode` writes them.
    pub types: &'static CStr,
    pub imp: Imp,
}

#[repr(C)]
pub struct Class {
    pub isa: Option<&'static Class>,
    pub name: &'static CStr,
    pub meta: bool,
    pub methods: &'static [Method],
}

// SAFETY: a class and its methods are never written.
unsafe impl Sync for Class {}
// SAFETY: as above.
unsafe impl Sync for Method {}

/// One entry of a class: selector, encoding, function.
macro_rules! method {
    ($sel:literal, $types:literal, $function:expr) => {
        $crate::runtime::Method {
            sel: $sel,
            types: $types,
            imp: $function as *const std::ffi::c_void,
        }
    };
}
/// A class that a program names, with its instance and class methods.
macro_rules! class {
    ($symbol:ident, $meta:ident, $name:literal, [$($instance:expr),* $(,)?], [$($class:expr),* $(,)?]) => {
        static $meta: $crate::runtime::Class =
            $crate::runtime::Class { isa: None, name: $name, meta: true, methods: &[$($class),*] };
        #[unsafe(no_mangle)]
        pub static $symbol: $crate::runtime::Class =
            $crate::runtime::Class { isa: Some(&$meta), name: $name, meta: false, methods: &[$($instance),*] };
    };
}
/// A class behind a protocol, which no program can name.
macro_rules! hidden_class {
    ($symbol:ident, $name:literal, [$($instance:expr),* $(,)?]) => {
        pub(crate) static $symbol: $crate::runtime::Class =
            $crate::runtime::Class { isa: None, name: $name, meta: false, methods: &[$($instance),*] };
    };
}
pub(crate) use {class, hidden_class, method};

enum Body {
    Constant(&'static CStr),
    Owned(Box<dyn Any + Send + Sync>),
}

#[repr(C)]
pub struct Object {
    pub isa: &'static Class,
    retain_count: AtomicIsize,
    body: Body,
}
/// A reference as Objective-C has them: may be null, may be a class.
pub type Id = *const Object;

const IMMORTAL: isize = isize::MAX / 2;

impl Object {
    /// A constant that is never freed, such as a string literal.
    pub const fn constant(isa: &'static Class, text: &'static CStr) -> Object {
        Object {
            isa,
            retain_count: AtomicIsize::new(IMMORTAL),
            body: Body::Constant(text),
        }
    }

    pub fn get<T: 'static>(&self) -> &T {
        match &self.body {
            Body::Owned(body) => body
                .downcast_ref()
                .unwrap_or_else(|| panic!("an object of {:?} is something else inside", self.isa.name)),
            Body::Constant(_) => panic!("{:?} is dead or a constant", self.isa.name),
        }
    }

    pub fn text(&self) -> Option<&'static CStr> {
        match self.body {
            Body::Constant(text) => Some(text),
            Body::Owned(_) => None,
        }
    }
}

/// The body of an object that a caller handed in.
pub(crate) fn body<'a, T: 'static>(object: Id) -> &'a T {
    assert!(!object.is_null(), "nil where an object is required");
    // SAFETY: objects are never freed, only emptied (see `objc_release`).
    unsafe { &*object }.get()
}

/// A reference that is released when it goes.
pub struct Owned(pub Id);
// SAFETY: an object is a retain count and a body that is Send and Sync.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}
impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: `self.0` is one reference of an object of this runtime.
        unsafe { objc_release(self.0) }
    }
}
/// One more reference to an object.
pub(crate) fn keep(object: Id) -> Owned {
    // SAFETY: `object` is null or of this runtime.
    Owned(unsafe { objc_retain(object) })
}

static ALIVE: LazyLock<Mutex<BTreeMap<&'static CStr, isize>>> = LazyLock::new(Default::default);

/// How many objects of each class are alive; classes without any are not listed.
pub fn objects_alive() -> Vec<(String, isize)> {
    let alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    alive
        .iter()
        .filter(|(_, n)| **n != 0)
        .map(|(class, n)| (class.to_string_lossy().into_owned(), *n))
        .collect()
}

/// Forgets what is alive: a test that failed must not fail the next one.
pub(crate) fn forget_alive() {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn count_alive(class: &'static Class, change: isize) {
    *ALIVE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(class.name)
        .or_default() += change;
}

/// A new object with one reference, which is the caller's.
pub fn new_object<T: Send + Sync + 'static>(isa: &'static Class, body: T) -> Id {
    count_alive(isa, 1);
    Box::into_raw(Box::new(Object {
        isa,
        retain_count: AtomicIsize::new(1),
        body: Body::Owned(Box::new(body)),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn objc_retain(object: Id) -> Id {
    if !object.is_null() && !is_class(object) {
        let was = (*object).retain_count.fetch_add(1, SeqCst);
        assert!(was > 0, "retain of a dead {:?}", (*object).isa.name);
    }
    object
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn objc_release(object: Id) {
    if object.is_null() || is_class(object) {
        return;
    }
    let was = (*object).retain_count.fetch_sub(1, SeqCst);
    assert!(was > 0, "over-release of {:?}", (*object).isa.name);
    if was == 1 {
        count_alive((*object).isa, -1);
        // The body goes, the header stays as a zombie so that a late use is caught. Written before it is dropped, because
        // dropping can come back here.
        let place = &raw const (*object).body as *mut Body;
        drop(std::ptr::replace(place, Body::Constant(c"dead")));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn objc_retainAutoreleasedReturnValue(object: Id) -> Id {
    objc_retain(object)
}

static SELECTORS: LazyLock<Mutex<HashMap<CString, &'static CStr>>> = LazyLock::new(Default::default);

fn intern(name: &CStr) -> Sel {
    let mut selectors = SELECTORS.lock().unwrap_or_else(PoisonError::into_inner);
    selectors
        .entry(name.to_owned())
        .or_insert_with(|| Box::leak(name.to_owned().into_boxed_c_str()))
        .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sel_registerName(name: *const c_char) -> Sel {
    intern(CStr::from_ptr(name))
}

#[unsafe(no_mangle)]
pub extern "C" fn sel_getName(sel: Sel) -> *const c_char {
    sel
}

#[unsafe(no_mangle)]
pub extern "C" fn sel_isEqual(a: Sel, b: Sel) -> u8 {
    u8::from(a == b)
}

fn is_class(object: Id) -> bool {
    let address = object.cast::<Class>();
    classes().any(|class| std::ptr::eq(class, address))
}

fn classes() -> impl Iterator<Item = &'static Class> {
    crate::foundation::CLASSES.iter().chain(crate::metal::CLASSES).copied()
}

fn find(class: &'static Class, sel: &CStr) -> Option<&'static Method> {
    let root: &'static [Method] = if class.meta { ROOT_META } else { ROOT };
    class.methods.iter().chain(root).find(|method| method.sel == sel)
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn objc_msg_lookup(object: Id, sel: Sel) -> Imp {
    let class = (*object).isa;
    let sel = CStr::from_ptr(sel);
    if !is_class(object) {
        assert!(
            (*object).retain_count.load(SeqCst) > 0,
            "{sel:?} sent to a dead {:?}",
            class.name
        );
    }
    match find(class, sel) {
        Some(method) => method.imp,
        None => panic!(
            "unrecognized selector {}[{:?} {sel:?}]",
            if class.meta { '+' } else { '-' },
            class.name
        ),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn object_getClass(object: Id) -> &'static Class {
    (*object).isa
}

#[unsafe(no_mangle)]
pub extern "C" fn class_getName(class: &'static Class) -> *const c_char {
    class.name.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn class_isMetaClass(class: &'static Class) -> u8 {
    u8::from(class.meta)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn class_getInstanceMethod(class: &'static Class, sel: Sel) -> Option<&'static Method> {
    find(class, CStr::from_ptr(sel))
}

#[unsafe(no_mangle)]
pub extern "C" fn method_getName(method: &'static Method) -> Sel {
    intern(method.sel)
}

#[unsafe(no_mangle)]
pub extern "C" fn method_getTypeEncoding(method: &'static Method) -> *const c_char {
    method.types.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn objc_getClass(name: *const c_char) -> Option<&'static Class> {
    let name = CStr::from_ptr(name);
    classes().find(|class| !class.meta && class.name == name)
}
