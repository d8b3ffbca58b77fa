//! Buffers: memory that host and GPU share.

use std::ffi::c_void;
use std::ptr::NonNull;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLDevice, MTLResourceOptions};

use super::{Metal, failed};
use crate::error::{Error, Result};
use crate::live::backend::Contents;

/// Memory that host and GPU share. Never empty.
pub struct Buffer(pub(super) Retained<ProtocolObject<dyn MTLBuffer>>);

const SHARED: MTLResourceOptions = MTLResourceOptions::StorageModeShared;

impl Metal {
    pub(super) fn make_buffer(&self, contents: Contents<'_>) -> Result<Buffer> {
        let device = &self.shared.device;
        let (bytes, buffer) = autoreleasepool(|_| match contents {
            Contents::Bytes([]) | Contents::Zeros(0) => (0, None),
            Contents::Bytes(bytes) => {
                let first = NonNull::from(bytes).cast::<c_void>();
                #[expect(unsafe_code, reason = "the bytes are valid during the call, which copies them")]
                // SAFETY: as the reason says.
                let buffer = unsafe { device.newBufferWithBytes_length_options(first, bytes.len(), SHARED) };
                (bytes.len() as u64, buffer)
            }
            // Metal fills new buffers with zeros.
            Contents::Zeros(length) => {
                let buffer = usize::try_from(length)
                    .ok()
                    .and_then(|length| device.newBufferWithLength_options(length, SHARED));
                (length, buffer)
            }
        });
        buffer.map(Buffer).ok_or_else(|| {
            if bytes == 0 {
                return Error::usage("a buffer must have at least one byte");
            }
            let most = device.maxBufferLength();
            failed(format!(
                "Metal gave no buffer of {bytes} bytes; the device takes at most {most} in one"
            ))
        })
    }

    #[expect(
        clippy::unused_self,
        reason = "a buffer is read through the device that made it, as the contract says"
    )]
    pub(super) fn read_buffer(&self, buffer: &Buffer) -> Vec<u8> {
        let length = buffer.0.length();
        let mut bytes = vec![0u8; length];
        #[expect(
            unsafe_code,
            reason = "shared memory of that length, which the buffer keeps alive; copied as bytes, so no value can be invalid"
        )]
        // SAFETY: as the reason says. The vector has as many bytes, and is memory of its own.
        unsafe {
            std::ptr::copy_nonoverlapping(buffer.0.contents().as_ptr().cast::<u8>(), bytes.as_mut_ptr(), length);
        }
        bytes
    }
}
