//! NSObject, NSString, NSArray, NSData, NSError and NSURL.

use std::ffi::{CStr, CString, c_char, c_void};

use crate::pools::autorelease;
use crate::runtime::{Class, Id, Method, Owned, Sel, body, class, keep, method, new_object, objc_release};

pub(crate) static ROOT: &[Method] = &[method!(c"init", c"@@:", init)];
pub(crate) static ROOT_META: &[Method] = &[method!(c"alloc", c"@@:", alloc), method!(c"new", c"@@:", new)];

struct Allocated;
unsafe extern "C-unwind" fn init(object: Id, _: Sel) -> Id {
    object
}
unsafe extern "C-unwind" fn alloc(class: &'static Class, _: Sel) -> Id {
    new_object(class, Allocated)
}
unsafe extern "C-unwind" fn new(class: &'static Class, _: Sel) -> Id {
    new_object(class, crate::metal::Properties::default())
}

const UTF8: i32 = 4;

class!(
    _OBJC_CLASS_NSString,
    NSSTRING_META,
    c"NSString",
    [
        method!(c"initWithBytes:length:encoding:", c"@@:^vQi", string_init),
        method!(c"UTF8String", c"*@:", string_utf8),
        method!(c"lengthOfBytesUsingEncoding:", c"Q@:i", string_length),
    ],
    []
);
/// A new NSString, owned by the caller.
pub fn nsstring(text: &str) -> Id {
    new_object(
        &_OBJC_CLASS_NSString,
        CString::new(text).expect("the double's strings hold no zero byte"),
    )
}
/// The text of an NSString.
pub fn text<'a>(string: Id) -> &'a str {
    c_text(string).to_str().expect("the double's strings are UTF-8")
}
fn c_text<'a>(string: Id) -> &'a CStr {
    assert!(!string.is_null(), "nil where a string is required");
    // SAFETY: objects are never freed.
    unsafe { &*string }
        .text()
        .unwrap_or_else(|| body::<CString>(string).as_c_str())
}
unsafe extern "C-unwind" fn string_init(object: Id, _: Sel, bytes: *const u8, length: usize, encoding: i32) -> Id {
    assert_eq!(encoding, UTF8);
    objc_release(object);
    nsstring(std::str::from_utf8(std::slice::from_raw_parts(bytes, length)).expect("UTF-8"))
}
unsafe extern "C-unwind" fn string_utf8(object: Id, _: Sel) -> *const c_char {
    c_text(object).as_ptr()
}
unsafe extern "C-unwind" fn string_length(object: Id, _: Sel, encoding: i32) -> usize {
    assert_eq!(encoding, UTF8);
    c_text(object).count_bytes()
}

class!(
    _OBJC_CLASS_NSArray,
    NSARRAY_META,
    c"NSArray",
    [
        method!(c"count", c"Q@:", array_count),
        method!(c"objectAtIndex:", c"@@:Q", array_at),
    ],
    []
);
/// A new NSArray, owned by the caller.
pub fn nsarray(items: Vec<Owned>) -> Id {
    new_object(&_OBJC_CLASS_NSArray, items)
}
unsafe extern "C-unwind" fn array_count(array: Id, _: Sel) -> usize {
    body::<Vec<Owned>>(array).len()
}
unsafe extern "C-unwind" fn array_at(array: Id, _: Sel, index: usize) -> Id {
    let item = body::<Vec<Owned>>(array).get(index).expect("NSRangeException");
    give(item)
}

class!(
    _OBJC_CLASS_NSData,
    NSDATA_META,
    c"NSData",
    [
        method!(c"length", c"Q@:", data_length),
        method!(c"bytes", c"^v@:", data_bytes),
    ],
    []
);
/// A new NSData, owned by the caller.
pub fn nsdata(bytes: Vec<u8>) -> Id {
    new_object(&_OBJC_CLASS_NSData, bytes)
}
unsafe extern "C-unwind" fn data_length(data: Id, _: Sel) -> usize {
    body::<Vec<u8>>(data).len()
}
unsafe extern "C-unwind" fn data_bytes(data: Id, _: Sel) -> *const c_void {
    body::<Vec<u8>>(data).as_ptr().cast()
}

struct Failure {
    domain: &'static str,
    code: isize,
    text: String,
}
class!(
    _OBJC_CLASS_NSError,
    NSERROR_META,
    c"NSError",
    [
        method!(c"domain", c"@@:", error_domain),
        method!(c"code", c"q@:", error_code),
        method!(c"localizedDescription", c"@@:", error_text),
    ],
    []
);
/// A new NSError, owned by the caller.
pub fn nserror(domain: &'static str, code: isize, text: &str) -> Id {
    new_object(
        &_OBJC_CLASS_NSError,
        Failure {
            domain,
            code,
            text: text.into(),
        },
    )
}
unsafe extern "C-unwind" fn error_domain(error: Id, _: Sel) -> Id {
    autorelease(nsstring(body::<Failure>(error).domain))
}
unsafe extern "C-unwind" fn error_code(error: Id, _: Sel) -> isize {
    body::<Failure>(error).code
}
unsafe extern "C-unwind" fn error_text(error: Id, _: Sel) -> Id {
    autorelease(nsstring(&body::<Failure>(error).text))
}

struct Url(String);
class!(
    _OBJC_CLASS_NSURL,
    NSURL_META,
    c"NSURL",
    [],
    [method!(c"fileURLWithPath:", c"@@:@", url_of_path)]
);
unsafe extern "C-unwind" fn url_of_path(_: &'static Class, _: Sel, path: Id) -> Id {
    autorelease(new_object(&_OBJC_CLASS_NSURL, Url(text(path).into())))
}
/// The path of a file URL.
pub fn path_of<'a>(url: Id) -> &'a str {
    &body::<Url>(url).0
}

/// What a method returns that does not create: one more reference, which belongs to the pool.
pub fn give(object: &Owned) -> Id {
    let kept = keep(object.0);
    let id = kept.0;
    std::mem::forget(kept);
    autorelease(id)
}

pub(crate) static CLASSES: &[&Class] = &[
    &_OBJC_CLASS_NSString,
    &_OBJC_CLASS_NSArray,
    &_OBJC_CLASS_NSData,
    &_OBJC_CLASS_NSError,
    &_OBJC_CLASS_NSURL,
];
