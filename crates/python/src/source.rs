//! The Python code that all processes share.

/// The pipes, limits and errors of a process. Python's own modules are imported before the current folder can put others in their place.
pub const PROCESS: &str =
    concat!("import sys\nsys.path[:] = [folder for folder in sys.path if folder]\n", include_str!("process.py"));
/// The conversion of values to JSON.
pub const VALUES: &str = include_str!("values.py");
/// Modules that stand in for packages which are not installed.
pub const MODULES: &str = include_str!("modules.py");
