//! The most memory of a GPU that was in use at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use burn::tensor::Device;

/// CubeCL counts what is in use now and keeps no peak of it, so a thread looks this often, as long as somebody wants to know.
const INTERVAL: Duration = Duration::from_millis(20);

/// Peaks since [`DeviceMemory::watch`], of this process alone. A peak shorter than `INTERVAL` may be missed.
pub struct DeviceMemory(Arc<Peaks>);

struct Peaks {
    device: Device,
    /// Bytes of tensors.
    allocated: AtomicU64,
    /// Bytes taken from the driver, those kept for later tensors included.
    reserved: AtomicU64,
}

impl DeviceMemory {
    /// `None` where the device counts nothing, as the CPU.
    pub fn watch(device: &Device) -> Option<Self> {
        device.memory_pool_usage()?;
        let peaks = Arc::new(Peaks { device: device.clone(), allocated: AtomicU64::new(0), reserved: AtomicU64::new(0) });
        let weak = Arc::downgrade(&peaks);
        std::thread::Builder::new().name("device memory".to_owned()).spawn(move || look(&weak)).ok()?;
        Some(Self(peaks))
    }

    /// Peaks of allocated and reserved memory, in GiB.
    pub fn peaks_gib(&self) -> [f64; 2] {
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
