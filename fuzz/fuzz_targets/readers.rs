#![no_main]

// The last byte says in what pieces the rest comes; documents end with a line break that nobody needs.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((size, bytes)) = bytes.split_last() {
        trace_attr_fuzz::readers::agree(bytes, usize::from(*size) * usize::from(*size));
    }
});
