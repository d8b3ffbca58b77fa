//! The C interface on the stand-in: the part that needs command buffers. The rest is `tests/c_interface.rs` of the project.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{NonNull, null, null_mut};

use metal_double::session;
use objc2::rc::autoreleasepool;
use objc2_metal::*;
use trace_attr::live::ffi::{
    Status, trace_attr_live_commit, trace_attr_live_last_error, trace_attr_live_observe, trace_attr_live_profile_begin,
    trace_attr_live_profile_end, trace_attr_live_scope_pop, trace_attr_live_scope_push,
};
use trace_attr::live::{Profile, Via};

#[test]
fn command_buffers_are_watched_by_their_pointers() {
    let session = session();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    autoreleasepool(|_| {
        let queue = MTLCreateSystemDefaultDevice().unwrap().newCommandQueue().unwrap();
        let profile = trace_attr_live_profile_begin();
        unsafe {
            assert_eq!(trace_attr_live_scope_push(c"layer 3".as_ptr(), null(), 0), Status::Ok);

            let committed = queue.commandBuffer().unwrap();
            let pointer = NonNull::from(&*committed).as_ptr().cast::<c_void>();
            assert_eq!(trace_attr_live_commit(pointer, c"attention".as_ptr()), Status::Ok);
            assert_eq!(trace_attr_live_commit(pointer, c"twice".as_ptr()), Status::Usage);
            let error = CStr::from_ptr(trace_attr_live_last_error()).to_str().unwrap();
            assert!(error.starts_with("the command buffer was committed already"), "{error}");

            let observed = queue.commandBuffer().unwrap();
            let pointer = NonNull::from(&*observed).as_ptr().cast::<c_void>();
            assert_eq!(trace_attr_live_observe(pointer, c"mlp".as_ptr()), Status::Ok);
            observed.commit();

            assert_eq!(trace_attr_live_observe(null_mut(), c"x".as_ptr()), Status::Usage);
            assert_eq!(trace_attr_live_scope_pop(), Status::Ok);
            let file = CString::new(path.to_str().unwrap()).unwrap();
            assert_eq!(trace_attr_live_profile_end(profile, file.as_ptr()), Status::Ok);
        }
    });
    let profile = Profile::from_json(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let seen: Vec<_> = profile
        .events()
        .iter()
        .filter_map(|event| Some((&*event.name, event.path.joined(), event.gpu.as_ref()?.via)))
        .collect();
    let wanted = [("attention", Via::Committed), ("mlp", Via::Observed)];
    assert_eq!(seen, wanted.map(|(label, via)| (label, "layer 3".to_owned(), via)));
    assert!(
        profile
            .events()
            .iter()
            .filter(|event| event.gpu.is_some())
            .all(|event| event.gpu_span().is_some())
    );
    session.end();
}
