//! Keeps compiled kernels and autotuning choices for later runs.

use std::path::Path;

use burn_cubecl::cubecl::config::cache::CacheConfig;
use burn_cubecl::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};

/// Keeps compiled kernels and autotuning choices in the user's cache folder. Only builds with `cuda` or `rocm` can, since these
/// enable burn's `persistence`. A cubecl.toml or burn.toml in the working folder or above takes precedence. Without this call,
/// CubeCL would keep no kernels, and would keep its choices next to the working folder's Cargo.toml.
pub(super) fn keep_kernels() {
    let sections = CubeClRuntimeConfig::section_file_names().iter().map(|(file, _)| file);
    let files: Vec<&str> = CubeClRuntimeConfig::file_names().iter().chain(sections).copied().collect();
    let exists = |folder: &Path| files.iter().any(|file| folder.join(file).is_file());
    if std::env::current_dir().is_ok_and(|folder| folder.ancestors().any(exists)) {
        return;
    }
    let mut config = CubeClRuntimeConfig::default().override_from_env();
    config.environment.path = CacheConfig::Global;
    // The field exists only with `persistence`.
    #[cfg(any(feature = "cuda", feature = "rocm"))]
    {
        config.compilation.cache = true;
    }
    CubeClRuntimeConfig::try_set(config);
}
