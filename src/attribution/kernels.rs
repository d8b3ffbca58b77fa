//! Kernel families.

/// Kernel names by family, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFamilies(pub std::collections::BTreeMap<String, std::collections::BTreeSet<String>>);

/// Ordered prefix rules.
#[derive(Debug, Clone)]
pub struct KernelRules {}
