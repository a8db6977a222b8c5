//! `trainer --version --verbose`: what a report of a bug should say about the program.

use std::ffi::OsString;

/// Features of the build that a user chooses, and whether the program has them.
const FEATURES: &[(&str, bool)] = &[
    ("cuda", cfg!(feature = "cuda")),
    ("rocm", cfg!(feature = "rocm")),
    ("metal", cfg!(feature = "metal")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("wgpu", cfg!(feature = "wgpu")),
    ("mpi", cfg!(feature = "mpi")),
];

/// Returns the facts about the program, if the command line asks for its version and for more than that. `words`: the command line
/// after the name of the program.
pub fn long_version(words: &[OsString]) -> Option<String> {
    let has = |names: [&str; 2]| words.iter().any(|word| names.iter().any(|name| word == name));
    let asks = words.len() == 2 && has(["--version", "-V"]) && has(["--verbose", "-v"]);
    asks.then(facts)
}

fn facts() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { text.to_owned() };
    let rows = [
        ("commit", or(env!("BURNISH_COMMIT"), "unknown: not built in a checkout")),
        ("target", or(env!("BURNISH_TARGET"), "unknown")),
        ("rustc", or(env!("BURNISH_RUSTC"), "unknown")),
        ("features", or(&features.join(", "), "none: the CPU, one process")),
        ("CPU kernels", burnish_model::cpu_kernels().to_owned()),
        ("threads", std::thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |count| count.to_string())),
    ];
    let rows: String = rows.iter().map(|(name, value)| format!("{name:13}{value}\n")).collect();
    format!("trainer {}\n{rows}", env!("CARGO_PKG_VERSION"))
}
