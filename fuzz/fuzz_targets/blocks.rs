#![no_main]

// The last byte says how large the blocks are, the one before it how many rows come before them.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let [bytes @ .., rows, size] = bytes {
        let block = usize::from(*size) * usize::from(*size);
        let _ = trace_attr_fuzz::readers::agree_in_blocks(bytes, block, usize::from(*rows) % 4);
    }
});
