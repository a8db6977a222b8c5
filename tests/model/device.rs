//! The device of the tests: the CPU, or the device that BURNISH_TEST_DEVICE names, with a value of `trainer.device` (`wgpu`,
//! `cuda:1`). Tests of the CPU only use `Device::flex()`.

use std::sync::LazyLock;

use burn::tensor::Device;

/// The variable that names a device.
pub(crate) const VARIABLE: &str = "BURNISH_TEST_DEVICE";

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).ok().filter(|name| !matches!(name.as_str(), "" | "cpu"));
    let gpu = name.as_deref().map(|name| {
        let (interface, number) = name.split_once(':').unwrap_or((name, "0"));
        (interface, number.parse().unwrap_or_else(|_| panic!("{VARIABLE}={name}: {number} is not a number")))
    });
    burnish::model::device::open(gpu).unwrap_or_else(|error| panic!("{VARIABLE}: {error:#}"))
});

/// The device that tests run on.
pub(crate) fn device() -> Device {
    DEVICE.clone()
}

/// True if tests run on the CPU.
pub(crate) fn on_cpu() -> bool {
    burnish::model::device::is_cpu(&DEVICE)
}

/// Returns the named device; without a device, prints that the test is skipped.
pub(crate) fn named_device(test: &str) -> Option<Device> {
    if on_cpu() {
        println!("{VARIABLE} does not name a device: {test} is skipped");
    }
    (!on_cpu()).then(device)
}

/// Returns true on the CPU; on other devices prints why the test is only for the CPU.
pub(crate) fn for_the_cpu(why: &str) -> bool {
    if !on_cpu() {
        println!("skipped on {}: {why}", std::env::var(VARIABLE).unwrap_or_default());
    }
    on_cpu()
}

/// Returns true if the device computes in bfloat16; otherwise prints that the test is skipped.
pub(crate) fn has_bfloat16() -> bool {
    let has = on_cpu() || burnish::model::gpu_backends::has_bfloat16(&DEVICE);
    if !has {
        println!("skipped: this device does not compute in bfloat16");
    }
    has
}

/// All cases on the CPU, and the first `few` on a GPU, which compiles and tunes kernels for each new shape.
pub(crate) fn cases<T>(all: impl IntoIterator<Item = T>, few: usize) -> impl Iterator<Item = T> {
    all.into_iter().take(if on_cpu() { usize::MAX } else { few })
}

/// Returns true if the values are equal though they were computed with different neighbouring rows. On the CPU, where rows do not
/// depend on each other, this means bitwise; on a GPU, whose kernels depend on the number of rows, within 1e-5.
pub(crate) fn is_same(got: &[f32], expected: &[f32]) -> bool {
    let same = |a: f32, b: f32| if on_cpu() { a.to_bits() == b.to_bits() } else { (a - b).abs() <= 1e-5 * (1.0 + b.abs()) };
    got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| same(*a, *b))
}

/// Asserts [`is_same`].
#[track_caller]
pub(crate) fn assert_same(label: &str, got: &[f32], expected: &[f32]) {
    assert!(is_same(got, expected), "{label}: {got:?}, not {expected:?}");
}
