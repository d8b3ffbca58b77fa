#![no_main]

// The first byte says in what pieces the rest comes.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((size, bytes)) = bytes.split_first() {
        trace_attr_fuzz::readers::agree(bytes, usize::from(*size) * usize::from(*size));
    }
});
