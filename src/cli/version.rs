//! The facts about the program: `trainer --version --verbose`, and the first lines of `trainer self-check`.

use std::ffi::OsString;

use burnish_util::platform;

/// Features of the build that a user chooses, and whether the program has them.
const FEATURES: &[(&str, bool)] = &[
    ("cuda", cfg!(feature = "cuda")),
    ("rocm", cfg!(feature = "rocm")),
    ("metal", cfg!(feature = "metal")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("wgpu", cfg!(feature = "wgpu")),
    ("mpi", cfg!(feature = "mpi")),
];

/// Returns the facts about the program, if the command line requests its version with details. `words`: the command line after
/// the name of the program.
pub fn long_version(words: &[OsString]) -> Option<String> {
    let has = |names: [&str; 2]| words.iter().any(|word| names.iter().any(|name| word == name));
    let asks = words.len() == 2 && has(["--version", "-V"]) && has(["--verbose", "-v"]);
    asks.then(facts)
}

/// Returns the version, the commit, the target and the compiler in one line.
pub(super) fn program() -> String {
    let rows: Vec<String> = built().iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("trainer {}, {}", env!("CARGO_PKG_VERSION"), rows.join(", "))
}

/// Returns the features that are built in.
pub(super) fn features() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    or(&features.join(", "), "none: the CPU, one process")
}

fn or(text: &str, instead: &str) -> String {
    if text.is_empty() { instead.to_owned() } else { text.to_owned() }
}

fn built() -> [(&'static str, String); 4] {
    [
        ("commit", or(env!("BURNISH_COMMIT"), "unknown: not built in a checkout")),
        ("target", or(env!("BURNISH_TARGET"), "unknown")),
        ("system", platform::system_version()),
        ("rustc", or(env!("BURNISH_RUSTC").trim_start_matches("rustc "), "unknown")),
    ]
}

fn facts() -> String {
    let threads = std::thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |count| count.to_string());
    let further = [("features", features()), ("CPU kernels", burnish_model::cpu_kernels().to_owned()), ("threads", threads)];
    let lacking = Some(("unknown", platform::LACKS.to_owned())).filter(|(_, lacks)| !lacks.is_empty());
    let rows: String =
        built().iter().chain(&further).chain(&lacking).map(|(name, value)| format!("{name:13}{value}\n")).collect();
    format!("trainer {}\n{rows}", env!("CARGO_PKG_VERSION"))
}
