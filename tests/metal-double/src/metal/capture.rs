//! GPU capture: one at a time, only when it was allowed from outside, never onto a document that exists.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{Properties, setter};
use crate::foundation::{nserror, path_of};
use crate::pools::autorelease;
use crate::runtime::{Class, Id, Object, Sel, body, class, method};
use crate::session::setup;

const DOCUMENT: isize = 2;
static RUNNING: Mutex<Option<String>> = Mutex::new(None);
static MANAGER: Object = Object::constant(&_OBJC_CLASS_MTLCaptureManager, c"shared");

setter!(set_object, object "captureObject");
setter!(set_destination, number "destination");
setter!(set_url, object "outputURL");

class!(
    _OBJC_CLASS_MTLCaptureDescriptor,
    DESCRIPTOR_META,
    c"MTLCaptureDescriptor",
    [
        method!(c"setCaptureObject:", c"v@:@", set_object),
        method!(c"setDestination:", c"v@:q", set_destination),
        method!(c"setOutputURL:", c"v@:@", set_url),
    ],
    []
);
class!(
    _OBJC_CLASS_MTLCaptureManager,
    MANAGER_META,
    c"MTLCaptureManager",
    [
        method!(c"supportsDestination:", c"C@:q", supports),
        method!(c"startCaptureWithDescriptor:error:", c"C@:@^@", start),
        method!(c"stopCapture", c"v@:", stop),
        method!(c"isCapturing", c"C@:", capturing),
    ],
    [method!(c"sharedCaptureManager", c"@@:", shared)]
);

unsafe extern "C-unwind" fn shared(_: &'static Class, _: Sel) -> Id {
    &MANAGER
}
unsafe extern "C-unwind" fn supports(_: Id, _: Sel, destination: isize) -> u8 {
    u8::from(destination == DOCUMENT && setup().capture)
}
unsafe extern "C-unwind" fn start(_: Id, _: Sel, descriptor: Id, error: *mut Id) -> u8 {
    let descriptor = body::<Properties>(descriptor);
    let refuse = |code, text: &str| {
        *error = autorelease(nserror("MTLCaptureError", code, text));
        0
    };
    if !setup().capture {
        return refuse(1, "Capturing is not supported.");
    }
    let Some(path) = descriptor.object("outputURL").map(path_of) else {
        return refuse(3, "no output URL");
    };
    if descriptor.object("captureObject").is_none() || descriptor.number("destination") != Some(2) {
        return refuse(3, "nothing to capture, or to nowhere");
    }
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if running.is_some() {
        return refuse(2, "Already capturing.");
    }
    if Path::new(path).exists() {
        return refuse(3, "Output URL already exists.");
    }
    if !Path::new(path).parent().is_some_and(Path::is_dir) {
        return refuse(3, "Output URL cannot be written.");
    }
    *running = Some(path.to_owned());
    1
}
unsafe extern "C-unwind" fn stop(_: Id, _: Sel) {
    let path = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::fs::create_dir(path.expect("stopCapture without a capture")).expect("the document can be made");
}
unsafe extern "C-unwind" fn capturing(_: Id, _: Sel) -> u8 {
    u8::from(is_capturing())
}
pub(crate) fn is_capturing() -> bool {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}
pub(crate) fn forget() {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).take();
}
