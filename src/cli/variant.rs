//! Programs for CUDA and MPI in the same folder: `trainer` replaces itself by one of them when a run needs it.
//!
//! A build for MPI needs that library to start, and one for CUDA is several times larger. Packages therefore install them as
//! `trainer-mpi` and `trainer-cuda` (docs/install.md).

use std::io;
use std::path::{Path, PathBuf};

use burnish_distributed::launcher;

/// Another build of this program.
struct Variant {
    /// Feature of the build, and the end of the program's name.
    feature: &'static str,
    /// Returns true if this process should be that program, should it be installed.
    is_needed: fn() -> bool,
}

/// The variants, the most particular first.
const VARIANTS: &[Variant] = &[
    Variant { feature: "mpi", is_needed: || launcher().is_some_and(|launcher| launcher.processes != Some(1)) },
    Variant { feature: "cuda", is_needed: || true },
];

/// Replaces this process by the required variant if it is installed; returns otherwise. A program with features is a variant
/// itself, and stays.
///
/// # Errors
///
/// If the variant cannot be started.
pub fn become_variant() -> Result<(), String> {
    if cfg!(any(feature = "mpi", feature = "gpu")) {
        return Ok(());
    }
    let needed = VARIANTS.iter().filter(|variant| (variant.is_needed)()).map(|variant| variant.feature);
    let Some(program) = std::env::current_exe().ok().and_then(|program| installed(&program, needed)) else { return Ok(()) };
    let error = replace(&program);
    Err(format!("{} does not start: {error}; install it again, or remove it (docs/install.md)", program.display()))
}

/// Returns the first of the variants that is another file in the folder of the program.
fn installed(program: &Path, mut features: impl Iterator<Item = &'static str>) -> Option<PathBuf> {
    let program = program.canonicalize().ok()?;
    let folder = program.parent()?;
    let is_other = |variant: &PathBuf| variant.canonicalize().is_ok_and(|variant| variant.is_file() && variant != program);
    features.find_map(|feature| Some(folder.join(format!("trainer-{feature}"))).filter(is_other))
}

/// Runs the program in place of this one, with the same arguments; returns only if it does not start.
#[cfg(unix)]
fn replace(program: &Path) -> io::Error {
    use std::os::unix::process::CommandExt;
    std::process::Command::new(program).args(std::env::args_os().skip(1)).exec()
}

/// No variant is packaged for other systems.
#[cfg(not(unix))]
fn replace(_: &Path) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variant_in_the_folder_is_chosen_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let program = folder.join("trainer");
        std::fs::write(&program, "").unwrap();
        let chosen = |program: &Path, features: &[&'static str]| installed(program, features.iter().copied());
        assert_eq!(chosen(&program, &["mpi", "cuda"]), None);
        std::fs::write(folder.join("trainer-cuda"), "").unwrap();
        assert_eq!(chosen(&program, &["mpi", "cuda"]), Some(folder.join("trainer-cuda")));
        std::fs::write(folder.join("trainer-mpi"), "").unwrap();
        assert_eq!(chosen(&program, &["mpi", "cuda"]), Some(folder.join("trainer-mpi")));
        assert_eq!(chosen(&program, &[]), None);
        #[cfg(unix)]
        {
            let elsewhere = tempfile::tempdir().unwrap();
            let link = elsewhere.path().join("trainer");
            std::os::unix::fs::symlink(&program, &link).unwrap();
            assert_eq!(chosen(&link, &["cuda"]), Some(folder.join("trainer-cuda")));
            // A link to the program itself would start it for ever.
            std::os::unix::fs::symlink(&program, folder.join("trainer-self")).unwrap();
            assert_eq!(chosen(&program, &["self"]), None);
        }
    }
}
