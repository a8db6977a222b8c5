//! Peak memory of a GPU.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use burn::tensor::Device;

/// Time between two samples: CubeCL reports current use but no peak, so a thread polls it.
const INTERVAL: Duration = Duration::from_millis(20);

/// Peaks of this process since [`DeviceMemory::watch`]. A peak shorter than `INTERVAL` may be missed.
pub(crate) struct DeviceMemory(Arc<Peaks>);

struct Peaks {
    device: Device,
    /// Bytes of tensors.
    allocated: AtomicU64,
    /// Bytes taken from the driver, including those kept for later tensors.
    reserved: AtomicU64,
}

impl DeviceMemory {
    /// Starts to watch; `None` if the device reports no memory, like the CPU.
    pub(crate) fn watch(device: &Device) -> Option<Self> {
        device.memory_pool_usage()?;
        let peaks = Arc::new(Peaks { device: device.clone(), allocated: AtomicU64::new(0), reserved: AtomicU64::new(0) });
        let weak = Arc::downgrade(&peaks);
        std::thread::Builder::new().name("device memory".to_owned()).spawn(move || look(&weak)).ok()?;
        Some(Self(peaks))
    }

    /// Returns the peaks of allocated and reserved memory, in GiB.
    pub(crate) fn peaks_gib(&self) -> [f64; 2] {
        self.0.update();
        [&self.0.allocated, &self.0.reserved].map(|peak| peak.load(Ordering::Relaxed) as f64 / (1u64 << 30) as f64)
    }
}

impl Peaks {
    fn update(&self) {
        if let Some(now) = self.device.memory_pool_usage() {
            self.allocated.fetch_max(now.bytes_in_use, Ordering::Relaxed);
            self.reserved.fetch_max(now.bytes_reserved, Ordering::Relaxed);
        }
    }
}

fn look(peaks: &Weak<Peaks>) {
    while let Some(peaks) = peaks.upgrade() {
        peaks.update();
        drop(peaks);
        std::thread::sleep(INTERVAL);
    }
}
