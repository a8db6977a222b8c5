//! Ends the process when a kernel does not compile or run. CubeCL launches kernels on its own threads and catches their panics.
//! The launch then counts as done, and later reads return stale memory. So a panic on such a thread ends the process with a
//! message. Panics of our own threads are handled as usual.

use std::backtrace::Backtrace;
use std::panic::{self, PanicHookInfo};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;

use burnish_util::contained;
use burnish_util::excerpt::beginning;
use burnish_util::terminal;

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;
type Log = Box<dyn Fn(&str) + Send + Sync>;

/// The GPUs that were opened, by their names in `trainer.device`.
static OPENED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LOG: OnceLock<Log> = OnceLock::new();
/// True while devices are being opened. A failure is then an error of the open call and does not end the process.
static OPENING: AtomicBool = AtomicBool::new(false);
/// The panic message of a CubeCL thread while a device was being opened.
static OPEN_ERROR: Mutex<Option<String>> = Mutex::new(None);

/// Sets a log that gets the message of a failure before the process ends. Only the first call has an effect.
pub fn set_log(log: impl Fn(&str) + Send + Sync + 'static) {
    _ = LOG.set(Box::new(log));
}

/// Makes later failures on CubeCL's threads end the process; their message names this device.
pub(super) fn watch(device: &str) {
    let mut opened = locked(&OPENED);
    if !opened.iter().any(|known| known == device) {
        opened.push(device.to_owned());
    }
    drop(opened);
    install();
}

/// Runs `work`, which may panic while a device is opened, here or on a CubeCL thread.
///
/// # Errors
/// If it panics: the message of the first panic.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static ONE: Mutex<()> = Mutex::new(());
    install();
    let _one = locked(&ONE);
    locked(&OPEN_ERROR).take();
    OPENING.store(true, Ordering::SeqCst);
    let result = contained::caught(work);
    OPENING.store(false, Ordering::SeqCst);
    result.map_err(|excess| {
        let message = match excess {
            contained::ContainedError::Panic(message) => message,
            other => other.to_string(),
        };
        one_line(&locked(&OPEN_ERROR).take().unwrap_or(message))
    })
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before: Hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| on_panic(info, &before)));
    });
}

fn on_panic(info: &PanicHookInfo<'_>, before: &Hook) {
    let place = info.location().map_or("", |location| location.file());
    let message = info.payload_as_str().unwrap_or("a panic without a message");
    if !is_cubecl_thread(thread::current().name(), place) {
        before(info);
        if is_read_failure(message) && !contained::is_contained() && !locked(&OPENED).is_empty() {
            terminal::say(&format!("error: {}\n", advice("a kernel failed, or memory ran out")));
        }
        return;
    }
    if OPENING.load(Ordering::SeqCst) {
        locked(&OPEN_ERROR).get_or_insert_with(|| message.to_owned());
        return;
    }
    if is_expansion(&Backtrace::force_capture().to_string(), place) {
        return;
    }
    end(&format!("a kernel failed: {} ({})", one_line(message), short(place)));
}

/// Ends the process with exit code 1.
fn end(what: &str) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    // Another CubeCL thread is already ending the process.
    while ENDING.swap(true, Ordering::SeqCst) {
        thread::park();
    }
    let message = format!("error: {}", advice(what));
    if let Some(log) = LOG.get() {
        log(&message);
    }
    terminal::say(&format!("{message}\n"));
    process::exit(1);
}

fn advice(what: &str) -> String {
    let devices = locked(&OPENED).join(", ");
    format!(
        "{devices}: {what}; its results cannot be trusted, so the process ends. Set dtype=float32, or use another device: `trainer devices` lists them"
    )
}

/// True for a thread that CubeCL or a driver's library started. Device threads have names (cubecl-common
/// `device/handle/channel.rs`). Threads that wait for a device have no name, like some of our own.
fn is_cubecl_thread(thread: Option<&str>, place: &str) -> bool {
    const WAITING: [&str; 5] = ["cubecl-wgpu-", "cubecl-cuda-", "cubecl-hip-", "cubecl-server-", "wgpu-"];
    match thread {
        Some(name) => name.starts_with("DSU-") || name.starts_with("DSD-"),
        None => is_in(place, &WAITING),
    }
}

/// True if a kernel panicked while it was expanded to CubeCL's representation. CubeCL turns this into an error of the launch
/// (cubecl-runtime `kernel.rs`, `define_kernel`): autotuning skips the kernel, and the error appears where its output is read.
fn is_expansion(backtrace: &str, place: &str) -> bool {
    const EXPANDING: [&str; 3] = ["cubek", "cubecl-std-", "burn-cubecl-"];
    if backtrace.contains("define_kernel") || backtrace.contains("CubeKernel>::define") {
        return true;
    }
    // A stripped binary has no symbol names.
    !backtrace.contains("cubecl_")
        && (is_in(place, &EXPANDING) || place.contains("/frontend/") && is_in(place, &["cubecl-core-"]))
}

/// True if the source file is in a crate whose folder name begins with one of `crates`.
fn is_in(place: &str, crates: &[&str]) -> bool {
    place.split(['/', '\\']).any(|folder| crates.iter().any(|name| folder.starts_with(name)))
}

/// True for a panic of burn where it reads a tensor whose kernels failed.
fn is_read_failure(message: &str) -> bool {
    message.starts_with("Error while reading data") || message.starts_with("Failed to read tensor data")
}

fn one_line(message: &str) -> String {
    beginning(&message.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Shortens the path of a source file in a registry: it begins with the crate.
fn short(place: &str) -> &str {
    place.split_once("/index.").and_then(|(_, rest)| rest.split_once('/')).map_or(place, |(_, file)| file)
}

/// Locks, even if another thread has panicked while it held the lock: that panic must not hide this one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const REGISTRY: &str = "/home/x/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/";
    const CHILD: &str = "BURNISH_TEST_FAILING_KERNEL";

    #[test]
    fn threads_of_ours_and_kernels_that_are_left_out_are_told_apart() {
        let compiler = format!("{REGISTRY}cubecl-wgpu-0.11.3/src/compiler/wgsl/to_wgsl.rs");
        for ours in [Some("main"), Some("engine"), Some("device_failure::tests::x"), None] {
            assert!(!is_cubecl_thread(ours, "src/model/ops/norm.rs"), "{ours:?}");
        }
        assert!(!is_cubecl_thread(Some("main"), &compiler) && is_cubecl_thread(Some("DSU-3-0"), "src/model/ops/cube/norm.rs"));
        assert!(
            is_cubecl_thread(None, &compiler)
                && is_cubecl_thread(None, &format!("{REGISTRY}wgpu-core-30.0.1/src/device/queue.rs"))
        );
        let frames = "3: cubecl_runtime::kernel::define_kernel\n4: <cubecl_wgpu::WgpuServer as Server>::launch";
        assert!(is_expansion(frames, &compiler) && !is_expansion("4: cubecl_wgpu::compute::server::pipeline", &compiler));
        let kernel = format!("{REGISTRY}cubek-matmul-0.3.1/src/components/x.rs");
        assert!(is_expansion("4: <unknown>", &kernel) && !is_expansion("4: <unknown>", &compiler));
        assert_eq!(short(&compiler), "cubecl-wgpu-0.11.3/src/compiler/wgsl/to_wgsl.rs");
    }

    #[test]
    fn a_failed_kernel_ends_the_process_and_a_failed_thread_does_not() {
        if std::env::var_os(CHILD).is_some() {
            watch("wgpu:0");
            let panicking = |name: &str| thread::Builder::new().name(name.to_owned()).spawn(|| panic!("no such\ntype")).unwrap();
            assert!(panicking("ours").join().is_err() && thread::spawn(|| panic!("ours")).join().is_err());
            assert_eq!(caught(|| panicking("DSU-0-0").join().unwrap()).unwrap_err(), "no such type");
            _ = panicking("DSU-0-0").join();
            // Not reached.
            process::exit(0);
        }
        let name = "device_failure::tests::a_failed_kernel_ends_the_process_and_a_failed_thread_does_not";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert_eq!(message.matches("error: ").count(), 1, "{message}");
        assert!(
            message.contains("error: wgpu:0: a kernel failed: no such type") && message.contains("dtype=float32"),
            "{message}"
        );
    }
}
