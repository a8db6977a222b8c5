//! A cache of indices and masks on the device, so that the layers of a pass do not compute them again.

use std::any::Any;
use std::fmt::{Debug, Formatter};
use std::sync::{Arc, Mutex, PoisonError};

/// Values of any types, each computed on first use and then shared. They belong to a layout but are not part of its identity:
/// clones begin empty, and all compare equal.
#[derive(Default)]
pub struct LayoutCache(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl LayoutCache {
    /// Returns the value of this type that `fits`; otherwise creates it with `make`.
    pub fn get<T: Any + Send + Sync>(&self, fits: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.iter().filter_map(|value| value.clone().downcast().ok()).find(|value| fits(value)) {
            return value;
        }
        let value = Arc::new(make());
        values.push(value.clone());
        value
    }
}

impl Clone for LayoutCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for LayoutCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Debug for LayoutCache {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("Prepared")
    }
}
