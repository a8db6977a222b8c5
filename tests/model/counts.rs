//! Counts device operations of this process: launches of kernels, blocking reads, uploads, allocations.
//!
//! CubeCL logs each launch. Reads and allocations are in its memory log, where a read takes a staging buffer; uploads are in the
//! log of wgpu. Both logs use the crate `log`, whose records go to tracing.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn_cubecl::cubecl::config::memory::MemoryLogLevel;
use burn_cubecl::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig, TypeNameFormatLevel, type_name_format};
use burn_cubecl::cubecl::logging::{LaunchObservation, LaunchObserver};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Counts of device operations.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    /// Launches, keyed by the names of their kernels.
    kernels: BTreeMap<&'static str, i64>,
    /// Reads; the host waits for each.
    pub reads: i64,
    writes: i64,
    /// Writes of the shapes and scalars of launches.
    arguments: i64,
    pub allocations: i64,
    /// Allocated bytes. CubeCL's log rounds to three digits.
    pub bytes: i64,
    /// Number of marks written to the log.
    marks: i64,
}

static COUNTS: Mutex<Option<Counts>> = Mutex::new(None);

fn change(change: impl FnOnce(&mut Counts)) {
    change(COUNTS.lock().unwrap().get_or_insert_default());
}

fn now() -> Counts {
    COUNTS.lock().unwrap().clone().unwrap_or_default()
}

impl Counts {
    /// Launches of kernels.
    pub(crate) fn launches(&self) -> u64 {
        self.kernels.values().sum::<i64>().max(0) as u64
    }

    /// Uploads without the uploads of launches; each upload allocates its memory.
    pub(crate) fn uploads(&self) -> i64 {
        self.writes - self.arguments
    }

    /// Returns these counts minus those of a part of the work.
    pub(crate) fn without(mut self, part: &Self) -> Self {
        part.kernels.iter().for_each(|(kernel, count)| *self.kernels.entry(kernel).or_default() -= count);
        self.kernels.retain(|_, count| *count != 0);
        Self {
            kernels: self.kernels,
            reads: self.reads - part.reads,
            writes: self.writes - part.writes,
            arguments: self.arguments - part.arguments,
            allocations: self.allocations - part.allocations,
            bytes: self.bytes - part.bytes,
            marks: self.marks - part.marks,
        }
    }

    /// Prints a line of a table and, with BURNISH_KERNELS, the kernels.
    pub(crate) fn print(&self, label: &str) {
        let (launches, uploads) = (self.launches(), self.uploads());
        println!(
            "{label:<60} | {launches:>5} launches | {:>2} reads | {uploads:>3} uploads | {:>4} allocations | {:>8} bytes",
            self.reads, self.allocations, self.bytes
        );
        if std::env::var_os("BURNISH_KERNELS").is_some() {
            let mut names: BTreeMap<String, i64> = BTreeMap::new();
            for (kernel, count) in &self.kernels {
                let name: String = type_name_format(kernel, TypeNameFormatLevel::Balanced).chars().take(90).collect();
                *names.entry(name).or_default() += count;
            }
            names.iter().for_each(|(name, count)| println!("    {count:>4} {name}"));
        }
    }
}

struct Launches;

impl LaunchObserver for Launches {
    fn launched(&self, kernel: &'static str) {
        change(|counts| *counts.kernels.entry(kernel).or_default() += 1);
    }
}

/// Reads the logs.
struct Logs;

#[derive(Default)]
struct Record {
    message: String,
    target: String,
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.target = value.to_owned();
        }
    }
}

impl<S: Subscriber> Layer<S> for Logs {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        ["log", "cubecl::memory", "wgpu_core::device::queue"].contains(&metadata.target())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut record = Record::default();
        event.record(&mut record);
        let reserved = record.message.split_once(" Reserved memory ");
        change(|counts| match (record.target.as_str(), reserved) {
            ("wgpu_core::device::queue", _) => {
                let writes = ["Queue::write_buffer", "Queue::create_staging_buffer"];
                counts.writes += i64::from(writes.contains(&record.message.as_str()));
            }
            (_, Some(("[Main GPU Memory]", amount))) => {
                counts.allocations += 1;
                counts.bytes += bytes(amount);
            }
            (_, Some(("[Uniform GPU Memory]", _))) => counts.arguments += 1,
            // The first name on wgpu, the other on CUDA and HIP.
            (_, Some(("[Staging CPU Memory]" | "[Pinned CPU Memory]", _))) => counts.reads += 1,
            _ => counts.marks += i64::from(record.message.starts_with("Manual memory cleanup")),
        });
    }
}

/// Reads an amount as CubeCL writes it: `768 B using …`, `2.05 KB using …`.
fn bytes(amount: &str) -> i64 {
    let mut words = amount.split_whitespace();
    let number: f64 = words.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{amount}"));
    let unit = match words.next() {
        Some("KB") => 1e3,
        Some("MB") => 1e6,
        Some("GB") => 1e9,
        _ => 1.0,
    };
    (number * unit) as i64
}

/// Waits until the device has done everything and the log, which a thread of CubeCL writes, contains it.
fn settle(device: &Device) {
    device.sync().unwrap();
    let (before, start) = (now().marks, Instant::now());
    device.memory_cleanup();
    let mut seen = before;
    loop {
        sleep(Duration::from_millis(20));
        let marks = now().marks;
        if marks > before && marks == seen {
            return;
        }
        seen = marks;
        assert!(start.elapsed() < Duration::from_secs(60), "CubeCL logs nothing");
    }
}

/// Counts the operations of `work`.
pub(crate) fn count(device: &Device, work: impl FnOnce()) -> Counts {
    settle(device);
    let before = now();
    work();
    settle(device);
    now().without(&before)
}

/// Counts until the returned value is dropped. CubeCL must not have been used before.
pub(crate) fn watch() -> LaunchObservation {
    let mut config = CubeClRuntimeConfig::default().override_from_env();
    config.memory.logger.level = MemoryLogLevel::Full;
    config.memory.logger.log = Some(Default::default());
    assert!(CubeClRuntimeConfig::try_set(config), "CubeCL is in use already");
    tracing_subscriber::registry().with(Logs).init();
    LaunchObservation::new(Arc::new(Launches))
}
