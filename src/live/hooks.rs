//! Work formulas by kernel name: registered once, asked for every launch that brings no metrics of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::event::Launch;
use super::metrics::Metrics;

type Hook = Arc<dyn Fn(&Launch) -> Metrics + Send + Sync>;

static HOOKS: RwLock<BTreeMap<String, Hook>> = RwLock::new(BTreeMap::new());

/// Has `hook` say what work a launch of `kernel` is, in this whole process; an earlier hook of that kernel is replaced.
///
/// It is called while a profile is active, on the thread that launches, when the launch has no metrics of its own.
pub fn register_kernel_hook(kernel: &str, hook: impl Fn(&Launch) -> Metrics + Send + Sync + 'static) {
    let mut hooks = HOOKS.write().unwrap_or_else(PoisonError::into_inner);
    hooks.insert(kernel.to_owned(), Arc::new(hook));
}

/// Forgets the hook of `kernel`; `false` when it had none.
pub fn unregister_kernel_hook(kernel: &str) -> bool {
    let mut hooks = HOOKS.write().unwrap_or_else(PoisonError::into_inner);
    hooks.remove(kernel).is_some()
}

/// The launch with its hook's metrics, when it has none of its own.
pub(super) fn with_metrics(launch: &Launch) -> Launch {
    let mut launch = launch.clone();
    if launch.metrics.is_empty() {
        let hooks = HOOKS.read().unwrap_or_else(PoisonError::into_inner);
        let hook = hooks.get(&*launch.kernel).cloned();
        // A hook may register another one.
        drop(hooks);
        if let Some(hook) = hook {
            launch.metrics = hook(&launch);
        }
    }
    launch
}
