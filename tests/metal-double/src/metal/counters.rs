//! Stage counters: buffers of timestamps, and passes that write them at the borders of an encoder.
//!
//! A sample buffer belongs to the thread that made it; to resolve it elsewhere is counted against the test. A device has a few
//! of them only, as Apple's do (about 32), and each has at most 4,096 samples.

use std::sync::Mutex;
use std::thread::ThreadId;

use super::{Properties, setter};
use crate::foundation::{_OBJC_CLASS_NSString, nsdata, nserror, nsstring};
use crate::pools::autorelease;
use crate::runtime::{Class, Id, Object, Owned, Sel, body, class, hidden_class, keep, method, new_object};
use crate::session::{Samples as Written, setup};

setter!(set_counter_set, object "counterSet");
setter!(set_label, object "label");
setter!(set_storage_mode, number "storageMode");
setter!(set_sample_count, number "sampleCount");
setter!(set_sample_buffer, object "sampleBuffer");
setter!(set_start_index, number "start");
setter!(set_end_index, number "end");

class!(
    _OBJC_CLASS_MTLCounterSampleBufferDescriptor,
    DESCRIPTOR_META,
    c"MTLCounterSampleBufferDescriptor",
    [
        method!(c"setCounterSet:", c"v@:@", set_counter_set),
        method!(c"setStorageMode:", c"v@:Q", set_storage_mode),
        method!(c"setSampleCount:", c"v@:Q", set_sample_count),
        method!(c"setLabel:", c"v@:@", set_label),
    ],
    []
);
class!(
    _OBJC_CLASS_MTLComputePassDescriptor,
    PASS_META,
    c"MTLComputePassDescriptor",
    [method!(c"sampleBufferAttachments", c"@@:", attachments),],
    [method!(c"computePassDescriptor", c"@@:", pass_new)]
);
hidden_class!(
    ATTACHMENTS,
    c"MTLComputePassSampleBufferAttachmentDescriptorArray",
    [method!(c"objectAtIndexedSubscript:", c"@@:Q", attachment),]
);
hidden_class!(
    ATTACHMENT,
    c"MTLComputePassSampleBufferAttachmentDescriptor",
    [
        method!(c"setSampleBuffer:", c"v@:@", set_sample_buffer),
        method!(c"setStartOfEncoderSampleIndex:", c"v@:Q", set_start_index),
        method!(c"setEndOfEncoderSampleIndex:", c"v@:Q", set_end_index),
    ]
);
hidden_class!(
    COUNTER_SET,
    c"MTLCounterSet(double)",
    [method!(c"name", c"@@:", set_name)]
);
hidden_class!(
    SAMPLE_BUFFER,
    c"MTLCounterSampleBuffer(double)",
    [
        method!(c"resolveCounterRange:", c"@@:{_NSRange=QQ}", resolve),
        method!(c"sampleCount", c"Q@:", sample_count),
    ]
);

unsafe extern "C-unwind" fn set_name(_: Id, _: Sel) -> Id {
    autorelease(nsstring("timestamp"))
}
static TIMESTAMP: Object = Object::constant(&_OBJC_CLASS_NSString, c"timestamp");
#[repr(transparent)]
pub struct Constant(*const Object);
// SAFETY: it points to a static.
unsafe impl Sync for Constant {}
#[unsafe(no_mangle)]
pub static MTLCommonCounterSetTimestamp: Constant = Constant(&raw const TIMESTAMP);

pub(super) fn counter_set() -> Owned {
    Owned(new_object(&COUNTER_SET, ()))
}

/// Two samples of a pass in a sample buffer.
pub(super) struct Sampled {
    buffer: Owned,
    start: usize,
    end: usize,
}
impl Sampled {
    pub(super) fn of_pass(pass: Id) -> Option<Sampled> {
        let attachments = body::<Owned>(pass);
        let attachment = body::<Properties>(body::<Owned>(attachments.0).0);
        let buffer = attachment.object("sampleBuffer")?;
        let count = body::<SampleBuffer>(buffer).values.lock().unwrap().len();
        let index = |name| attachment.number(name).expect("both indices are set");
        let (start, end) = (index("start"), index("end"));
        assert!(start < count && end < count, "sample index past the sample buffer");
        Some(Sampled {
            buffer: keep(buffer),
            start,
            end,
        })
    }
    pub(super) fn write(&self, start: u64, end: u64) {
        let written = setup().samples.pop_front().unwrap_or(Written::Right);
        let (start, end) = match written {
            Written::Right => (start, end),
            Written::Zero => (0, 0),
            Written::Partial => (start, 0),
            Written::Error => (start, u64::MAX),
            Written::EndBeforeStart => (end, start),
            Written::Equal => (start, start),
            Written::Longer => (start, start + 10 * (end - start)),
        };
        let mut values = body::<SampleBuffer>(self.buffer.0).values.lock().unwrap();
        (values[self.start], values[self.end]) = (start, end);
    }
}

struct SampleBuffer {
    values: Mutex<Vec<u64>>,
    owner: ThreadId,
}
pub(super) fn new_sample_buffer(descriptor: Id, error: *mut Id) -> Id {
    let descriptor = body::<Properties>(descriptor);
    let allowed = setup().sample_buffers;
    match (descriptor.number("sampleCount"), descriptor.object("counterSet")) {
        (Some(count @ 1..=4096), Some(_)) if allowed => {
            setup().sample_buffers_made += 1;
            // What was never sampled is the error value.
            let values = Mutex::new(vec![u64::MAX; count]);
            new_object(
                &SAMPLE_BUFFER,
                SampleBuffer {
                    values,
                    owner: std::thread::current().id(),
                },
            )
        }
        _ => {
            // SAFETY: the caller gives a place for the error.
            unsafe { *error = autorelease(nserror("MTLCounterErrorDomain", 1, "Cannot allocate sample buffer")) };
            std::ptr::null()
        }
    }
}
#[repr(C)]
struct Range {
    location: usize,
    length: usize,
}
unsafe extern "C-unwind" fn resolve(buffer: Id, _: Sel, range: Range) -> Id {
    let buffer = body::<SampleBuffer>(buffer);
    if buffer.owner != std::thread::current().id() {
        setup().samples_resolved_elsewhere += 1;
    }
    let values = buffer.values.lock().unwrap();
    let values = values
        .get(range.location..range.location + range.length)
        .expect("resolve past the sample buffer");
    autorelease(nsdata(values.iter().flat_map(|value| value.to_ne_bytes()).collect()))
}
unsafe extern "C-unwind" fn sample_count(buffer: Id, _: Sel) -> usize {
    body::<SampleBuffer>(buffer).values.lock().unwrap().len()
}

unsafe extern "C-unwind" fn pass_new(class: &'static Class, _: Sel) -> Id {
    let attachment = Owned(new_object(&ATTACHMENT, Properties::default()));
    let attachments = Owned(new_object(&ATTACHMENTS, attachment));
    autorelease(new_object(class, attachments))
}
unsafe extern "C-unwind" fn attachments(pass: Id, _: Sel) -> Id {
    crate::foundation::give(body::<Owned>(pass))
}
unsafe extern "C-unwind" fn attachment(attachments: Id, _: Sel, index: usize) -> Id {
    assert_eq!(index, 0, "this device has one sample attachment");
    crate::foundation::give(body::<Owned>(attachments))
}
