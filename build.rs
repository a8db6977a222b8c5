//! Tells the program its commit and target. A change of the commit rebuilds this package alone.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=BURNISH_COMMIT={}", commit().unwrap_or_default());
    println!("cargo:rustc-env=BURNISH_TARGET={}", std::env::var("TARGET").unwrap_or_default());
    println!("cargo:rustc-env=BURNISH_RUSTC={}", rustc().unwrap_or_default());
}

/// Returns the commit of a checkout, or the one that Cargo noted in a published package. A package inside another repository has
/// none.
fn commit() -> Option<String> {
    let root = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    if let Ok(noted) = std::fs::read_to_string(Path::new(&root).join(".cargo_vcs_info.json")) {
        let (_, rest) = noted.split_once("\"sha1\": \"")?;
        return rest.get(..12).map(str::to_owned);
    }
    let is_own = Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?
        == Path::new(&root).canonicalize().ok()?;
    if !is_own {
        return None;
    }
    // Every commit and every checkout adds a line to this file.
    let log = Path::new(&root).join(git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.is_file() {
        println!("cargo:rerun-if-changed={}", log.display());
    }
    git(&root, &["rev-parse", "--short=12", "HEAD"])
}

fn git(root: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn rustc() -> Option<String> {
    let output = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
