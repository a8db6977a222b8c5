//! The Python code that all processes share.

/// Pipes, limits and errors of a process. Python's own modules are imported before modules of the current folder can shadow them.
pub const PROCESS: &str = concat!(
    "import sys\nsys.path[:] = [folder for folder in sys.path if folder]\n",
    include_str!("process.py"),
    include_str!("programs.py")
);
/// Conversion of values to JSON.
pub const VALUES: &str = include_str!("values.py");
/// Substitutes for packages that are not installed.
pub const MODULES: &str = include_str!("modules.py");
