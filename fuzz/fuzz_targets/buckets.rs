//! `--buckets`: edges rise, names are one more and differ, every duration has its bucket.
#![no_main]

use trace_attr::attribution::Buckets;

libfuzzer_sys::fuzz_target!(|input: (u64, &str)| {
    let (ns, text) = input;
    let Ok(buckets) = Buckets::parse(text) else { return };
    assert!(buckets.edges.is_sorted_by(|a, b| a < b));
    assert_eq!(buckets.names.len(), buckets.edges.len() + 1);
    let mut names = buckets.names.clone();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), buckets.names.len(), "{text}: two buckets of one name");
    let at = buckets.index(ns);
    assert!(at == 0 || buckets.edges[at - 1] <= ns);
    assert!(at == buckets.edges.len() || ns < buckets.edges[at]);
});
