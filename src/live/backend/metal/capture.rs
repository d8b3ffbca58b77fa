//! Xcode's GPU capture into a document. One at a time in a process; Metal allows it only when the program was started with
//! `MTL_CAPTURE_ENABLED=1`, or its `Info.plist` says so.

use std::path::Path;

use objc2::rc::{Retained, autoreleasepool};
use objc2_foundation::{NSString, NSURL};
use objc2_metal::{MTLCaptureDescriptor, MTLCaptureDestination, MTLCaptureManager, MTLCreateSystemDefaultDevice};

use super::{failed, refused};
use crate::error::{Error, Result};
use crate::live::backend::Capture;

/// Captures everything that the default device does.
pub(super) struct Document;

fn manager() -> Retained<MTLCaptureManager> {
    #[expect(
        unsafe_code,
        reason = "the manager of this process, which lives as long as the process"
    )]
    // SAFETY: as the reason says.
    unsafe {
        MTLCaptureManager::sharedCaptureManager()
    }
}

/// Whether a capture could start now. Needs a pool.
pub(super) fn is_supported() -> bool {
    manager().supportsDestination(MTLCaptureDestination::GPUTraceDocument)
}

impl Capture for Document {
    fn start(&self, path: &Path) -> Result<()> {
        autoreleasepool(|_| {
            if !is_supported() {
                return Err(failed("GPU capture is off in this process")
                    .with_help("start the program with MTL_CAPTURE_ENABLED=1 in its environment"));
            }
            let shown = path.display();
            let text = path
                .to_str()
                .ok_or_else(|| Error::usage(format!("`{shown}` is no name for a GPU capture: it is not UTF-8")))?;
            let device = MTLCreateSystemDefaultDevice().ok_or_else(|| failed("there is no Metal device to capture"))?;
            let descriptor = MTLCaptureDescriptor::new();
            descriptor.set_capture_device(&device);
            descriptor.setDestination(MTLCaptureDestination::GPUTraceDocument);
            descriptor.setOutputURL(Some(&NSURL::fileURLWithPath(&NSString::from_str(text))));
            manager()
                .startCaptureWithDescriptor_error(&descriptor)
                .map_err(|error| refused(&format!("could not capture to `{shown}`"), &error))
        })
    }

    fn stop(&self) {
        autoreleasepool(|_| manager().stopCapture());
    }
}
