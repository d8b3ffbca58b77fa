//! A user's rule file, applied to the rest of the input as a kernel's name.
#![no_main]

use trace_attr::attribution::KernelRules;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (rules, name) = text.split_once('\0').unwrap_or((text, "kernel_mul_mv_id_q4_0"));
    match KernelRules::with_user(rules) {
        Ok(rules) => assert!(!rules.family(name).is_empty()),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
