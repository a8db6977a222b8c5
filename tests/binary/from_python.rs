//! The Python package, by its tests in `python/tests`, which call the real binary.

use std::process::Command;

#[test]
fn the_python_package_passes_its_tests() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3");
        return;
    }
    let mut tests = Command::new("python3");
    tests.args(["-B", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "--start-directory", "python/tests"]);
    tests
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("BURNISH_TRAINER", env!("CARGO_BIN_EXE_trainer"))
        .env("HF_HUB_OFFLINE", "1");
    for name in ["VERL_FILE_LOGGER_PATH", "VERL_FILE_LOGGER_ROOT", "RUST_LOG"] {
        tests.env_remove(name);
    }
    let output = tests.output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
