//! Detection of NumPy for the Python of this machine, which functions on columns need.

use std::process::Command;

/// True if `python3` has NumPy. Where `BURNISH_REQUIRE_NUMPY` is set, as `.ci/run` does, a Python without it fails the test.
#[expect(clippy::print_stderr, reason = "a skipped test reports it")]
pub(crate) fn has_numpy() -> bool {
    let there = Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success());
    if !there {
        assert!(std::env::var_os("BURNISH_REQUIRE_NUMPY").is_none(), "BURNISH_REQUIRE_NUMPY is set, and python3 has no NumPy");
        eprintln!("python3 has no NumPy: functions on columns are not called");
    }
    there
}
