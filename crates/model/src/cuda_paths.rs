//! Finds what CubeCL compiles kernels for CUDA with, where pip and conda put it.
//!
//! CubeCL looks into `CUDA_PATH`, and without it into a few folders of toolkits; the C++ compiler, libnvrtc, is loaded by its name. Packages
//! of pip and environments of conda are in none of these places. [`find_toolkit`] looks there, and [`missing`] says what to install.
// Without the feature only the search is built, for its tests.
#![cfg_attr(not(feature = "cuda"), allow(dead_code))]

use std::ffi::{CString, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

const DRIVER: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
const NVRTC: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];
/// Where CubeCL looks without `CUDA_PATH`: for headers into the first that exists, for libdevice into the first that has it.
const USUAL: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];
const LIBDEVICE: &str = "nvvm/libdevice/libdevice.10.bc";
/// Where Triton has the same file.
const TRITONS: &str = "lib/libdevice.10.bc";

/// What makes machine code of kernels in this build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compiler {
    /// NVRTC, of C++: it needs the headers of CUDA.
    Nvrtc,
    /// LLVM, which is in the program: it needs the mathematical functions of CUDA, libdevice.
    Llvm,
}

impl Compiler {
    fn of_this_build() -> Self {
        #[cfg(feature = "cuda")]
        if matches!(burn_cubecl::cubecl::cuda::CudaCompiler::default(), burn_cubecl::cubecl::cuda::CudaCompiler::Cpp(_)) {
            return Self::Nvrtc;
        }
        Self::Llvm
    }

    /// The files without which it compiles none of our models.
    fn files(self) -> &'static [&'static str] {
        match self {
            // Products on tensor cores include mma.h, which includes crt/mma.h.
            Self::Nvrtc => &["include/cuda_fp16.h", "include/cuda_bf16.h", "include/mma.h", "include/crt/mma.h"],
            Self::Llvm => &[LIBDEVICE],
        }
    }

    /// The first of its files that a root lacks.
    fn lacks(self, root: &Path) -> Option<&'static str> {
        self.files().iter().copied().find(|file| !root.join(file).is_file())
    }

    /// Where CubeCL will look.
    fn root(self) -> Option<PathBuf> {
        if let Some(path) = std::env::var_os("CUDA_PATH") {
            return Some(path.into());
        }
        let usual = USUAL.map(PathBuf::from).into_iter();
        match self {
            Self::Nvrtc => {
                let distribution = Path::new("/usr/bin/nvcc").exists().then(|| PathBuf::from("/usr"));
                usual.chain(distribution).find(|root| root.exists())
            }
            Self::Llvm => usual.chain(["/usr/lib/cuda".into(), "/usr".into()]).find(|root| self.lacks(root).is_none()),
        }
    }

    fn packages(self) -> &'static str {
        match self {
            Self::Nvrtc => {
                "for CUDA 12: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12 nvidia-cuda-cccl-cu12; for CUDA 13: pip \
                 install nvidia-cuda-nvrtc nvidia-cuda-nvcc nvidia-cuda-cccl; or conda install -c conda-forge cuda-nvrtc cuda-nvcc \
                 cuda-cudart-dev; or on Debian: apt-get install nvidia-cuda-toolkit"
            }
            Self::Llvm => {
                "for CUDA 12: pip install nvidia-cuda-nvcc-cu12; for CUDA 13: pip install nvidia-nvvm; or conda install -c conda-forge \
                 cuda-nvcc; or on Debian: apt-get install nvidia-cuda-toolkit"
            }
        }
    }
}

/// Makes CubeCL find the packages of pip and conda where it would find no toolkit. To be called before the first CUDA device is opened;
/// later calls do nothing. What is not found is left to [`missing`].
pub fn find_toolkit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| find(Compiler::of_this_build()));
}

fn find(compiler: Compiler) {
    let groups = groups(&Surroundings::of_this_process());
    // WSL keeps the driver where the loader does not look.
    if !loads(&DRIVER) {
        load(Path::new("/usr/lib/wsl/lib/libcuda.so.1"));
    }
    if compiler == Compiler::Nvrtc && !loads(&NVRTC) {
        let toolkits = compiler.root().into_iter().collect();
        // A library that is loaded already is found by its name.
        [toolkits].iter().chain(&groups).flat_map(|group: &Vec<PathBuf>| libraries(group)).find(|library| load(library));
    }
    if std::env::var_os("CUDA_PATH").is_some() || compiler.root().is_some_and(|root| compiler.lacks(&root).is_none()) {
        return;
    }
    if let Some(root) = groups.iter().find_map(|group| toolkit(compiler, group, &cache()?)) {
        // SAFETY: the environment is written once, and read at that time by Rust's library only, which waits for the writer: the devices are
        // opened on the main thread before anything of C runs beside it.
        unsafe { std::env::set_var("CUDA_PATH", root) };
    }
}

/// Says what CUDA lacks on this machine and how to install it, or nothing. To be called after [`find_toolkit`].
pub fn missing() -> Option<String> {
    if !loads(&DRIVER) {
        return Some(
            "libcuda.so.1 was not found, which comes with NVIDIA's driver: install the driver (Debian: apt-get install nvidia-driver), or \
             start the container with its GPUs (docker run --gpus all, with the NVIDIA Container Toolkit)"
                .into(),
        );
    }
    lacking(Compiler::of_this_build(), loads(&NVRTC))
}

/// Says what `compiler` lacks.
fn lacking(compiler: Compiler, nvrtc: bool) -> Option<String> {
    let install = compiler.packages();
    if compiler == Compiler::Nvrtc && !nvrtc {
        return Some(format!("libnvrtc was not found, with which kernels are compiled. Install it: {install}"));
    }
    match compiler.root() {
        None => Some(format!(
            "no CUDA toolkit was found with {}, which compiling kernels needs. Install it: {install}",
            names(compiler)
        )),
        Some(root) => compiler.lacks(&root).map(|file| {
            let named = if std::env::var_os("CUDA_PATH").is_some() { "CUDA_PATH names" } else { "CUDA lies in" };
            format!("{named} {}, which has no {file}. Install it: {install}; CUDA_PATH may name another folder", root.display())
        }),
    }
}

/// The names of the files that a compiler needs.
fn names(compiler: Compiler) -> String {
    compiler.files().iter().map(|file| file.trim_start_matches("include/")).collect::<Vec<_>>().join(", ")
}

/// Where Python and conda keep packages.
#[derive(Debug, Default)]
pub struct Surroundings {
    virtual_env: Option<PathBuf>,
    conda: Option<PathBuf>,
    home: Option<PathBuf>,
    path: Vec<PathBuf>,
}

impl Surroundings {
    fn of_this_process() -> Self {
        let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        Self { virtual_env: folder("VIRTUAL_ENV"), conda: folder("CONDA_PREFIX"), home: folder("HOME"), path }
    }

    /// The folders of packages of the active environment, of the `python3` on PATH, and of the user.
    fn packages(&self) -> Vec<PathBuf> {
        let python = self.path.iter().find(|folder| folder.join("python3").is_file()).and_then(|folder| folder.parent());
        let local = python.map(|prefix| prefix.join("local"));
        let user = self.home.as_ref().map(|home| home.join(".local"));
        let prefixes = [self.virtual_env.as_deref(), python, local.as_deref(), user.as_deref()];
        let mut found = Vec::new();
        for lib in prefixes.into_iter().flatten().flat_map(|prefix| [prefix.join("lib"), prefix.join("lib64")]) {
            let versions = children(&lib).into_iter().filter(|path| starts(path, "python3"));
            found.extend(
                versions.flat_map(|path| [path.join("site-packages"), path.join("dist-packages")]).filter(|at| at.is_dir()),
            );
        }
        found
    }
}

/// Groups of folders that have one version of CUDA in parts, each laid out like a toolkit: the environment of conda, then for each folder
/// of Python's packages those of CUDA 13 and those of CUDA 12.
pub fn groups(at: &Surroundings) -> Vec<Vec<PathBuf>> {
    let mut groups = Vec::new();
    if let Some(conda) = &at.conda {
        groups.push([vec![conda.clone()], children(&conda.join("targets"))].concat());
    }
    for packages in at.packages() {
        let (whole, parts): (Vec<_>, Vec<_>) =
            children(&packages.join("nvidia")).into_iter().partition(|path| starts(path, "cu1"));
        // Triton, which comes with PyTorch, has libdevice.
        let triton = packages.join("triton/backends/nvidia");
        groups.extend(whole.into_iter().rev().map(|version| vec![version, triton.clone()]));
        groups.push([parts, vec![triton]].concat());
    }
    groups
}

/// The files of NVRTC in a group.
fn libraries(group: &[PathBuf]) -> Vec<PathBuf> {
    let folders = group.iter().flat_map(|root| ["lib", "lib64"].map(|lib| root.join(lib)));
    folders.flat_map(|folder| children(&folder)).filter(|file| starts(file, "libnvrtc.so.1")).collect()
}

/// The toolkit that a group has: one of its folders if that has everything, else a folder below `cache` with links to their files.
///
/// Returns nothing if they lack something together.
pub fn toolkit(compiler: Compiler, group: &[PathBuf], cache: &Path) -> Option<PathBuf> {
    if let Some(root) = group.iter().find(|root| compiler.lacks(root).is_none()) {
        return Some(root.clone());
    }
    let has = |root: &PathBuf, file: &str| root.join(file).is_file() || (file == LIBDEVICE && root.join(TRITONS).is_file());
    if !compiler.files().iter().all(|file| group.iter().any(|root| has(root, file))) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    group.hash(&mut hasher);
    let made = cache.join(format!("cuda-{:016x}", hasher.finish()));
    let libdevice = Path::new(LIBDEVICE).parent().unwrap_or(Path::new(""));
    for root in group {
        let headers = children(&root.join("include")).into_iter().map(|header| (header, Path::new("include")));
        let bitcode = [LIBDEVICE, TRITONS].map(|file| root.join(file)).into_iter().filter(|file| file.is_file());
        for (file, folder) in headers.chain(bitcode.map(|file| (file, libdevice))) {
            link(&file, &made.join(folder)).ok()?;
        }
    }
    compiler.lacks(&made).is_none().then_some(made)
}

/// Links a file or folder into a folder, which keeps what it has of that name unless that leads nowhere.
fn link(entry: &Path, folder: &Path) -> std::io::Result<()> {
    let Some(name) = entry.file_name() else { return Ok(()) };
    let at = folder.join(name);
    if at.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    // Another process may do the same at this moment: a link is put in place whole.
    let meanwhile = folder.join(format!(".{}-{}", std::process::id(), name.to_string_lossy()));
    std::os::unix::fs::symlink(entry, &meanwhile)?;
    std::fs::rename(&meanwhile, &at)
}

/// The folder for the links, in the user's cache.
fn cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache"))).map(|cache| cache.join("burnish"))
}

/// What a folder has, in the order of names; nothing if it is not there.
fn children(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn starts(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|file| file.as_bytes().starts_with(name.as_bytes()))
}

/// Whether the loader finds a library by one of these names.
fn loads(names: &[&str]) -> bool {
    names.iter().any(|name| load(Path::new(name)))
}

/// Loads a library, for as long as the process runs.
fn load(library: &Path) -> bool {
    unsafe extern "C" {
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    }
    const RTLD_LAZY: c_int = 1;
    // SAFETY: the name ends in 0 and outlives the call. The libraries are NVIDIA's, whose constructors may run in any thread.
    CString::new(library.as_os_str().as_bytes()).is_ok_and(|name| !unsafe { dlopen(name.as_ptr(), RTLD_LAZY) }.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[&str]) {
        for file in files {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
    }

    /// An environment of Python with files among its packages.
    fn environment(files: &[&str]) -> (tempfile::TempDir, Surroundings) {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("lib/python3.11/site-packages"), files);
        let at = Surroundings { virtual_env: Some(folder.path().into()), ..Surroundings::default() };
        (folder, at)
    }

    fn found(compiler: Compiler, at: &Surroundings, cache: &Path) -> Option<PathBuf> {
        groups(at).iter().find_map(|group| toolkit(compiler, group, cache))
    }

    /// As the packages of pip lay them out: each has a folder of its own.
    const CUDA_12: [&str; 8] = [
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9",
        "nvidia/cuda_runtime/include/cuda_runtime.h",
        "nvidia/cuda_runtime/include/cuda_fp16.h",
        "nvidia/cuda_runtime/include/cuda_bf16.h",
        "nvidia/cuda_runtime/include/mma.h",
        "nvidia/cuda_nvcc/include/crt/mma.h",
        "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
    ];

    /// And one folder for all of them.
    const CUDA_13: [&str; 6] = [
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/include/cuda_fp16.h",
        "nvidia/cu13/include/cuda_bf16.h",
        "nvidia/cu13/include/mma.h",
        "nvidia/cu13/include/crt/mma.h",
        "nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
    ];

    #[test]
    fn the_packages_of_cuda_12_become_one_toolkit_of_links() {
        let (folder, at) = environment(&CUDA_12);
        let cache = folder.path().join("cache");
        let root = found(Compiler::Nvrtc, &at, &cache).unwrap();
        assert!(root.starts_with(&cache) && root.join("include/cuda_runtime.h").is_file(), "{}", root.display());
        // Again, as another run does, which finds the links made.
        assert_eq!(found(Compiler::Nvrtc, &at, &cache).unwrap(), root);
        let nvcc = folder.path().join("lib/python3.11/site-packages/nvidia/cuda_nvcc");
        assert_eq!(found(Compiler::Llvm, &at, &cache).unwrap(), nvcc);
        let names: Vec<_> =
            groups(&at).iter().flat_map(|group| libraries(group)).map(|file| file.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["libnvrtc.so.12"]);
    }

    #[test]
    fn the_packages_of_cuda_13_are_a_toolkit() {
        let (folder, at) = environment(&CUDA_13);
        let root = folder.path().join("lib/python3.11/site-packages/nvidia/cu13");
        for compiler in [Compiler::Nvrtc, Compiler::Llvm] {
            assert_eq!(found(compiler, &at, folder.path()).unwrap(), root);
        }
    }

    #[test]
    fn a_python_on_the_path_and_a_user_have_packages_too() {
        let (folder, _) = environment(&CUDA_13);
        write(folder.path(), &["bin/python3"]);
        let path = vec!["/nowhere".into(), folder.path().join("bin")];
        assert!(found(Compiler::Nvrtc, &Surroundings { path, ..Surroundings::default() }, folder.path()).is_some());
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join(".local/lib/python3.12/site-packages"), &CUDA_13);
        let at = Surroundings { home: Some(home.path().into()), ..Surroundings::default() };
        assert!(found(Compiler::Llvm, &at, folder.path()).is_some());
    }

    /// Conda has headers below `targets`, and libdevice beside them.
    #[test]
    fn an_environment_of_conda_is_a_toolkit() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("targets/x86_64-linux");
        write(&target, &["include/cuda_fp16.h", "include/cuda_bf16.h", "include/mma.h", "include/crt/mma.h"]);
        write(folder.path(), &["lib/libnvrtc.so.12", LIBDEVICE]);
        let at = Surroundings { conda: Some(folder.path().into()), ..Surroundings::default() };
        assert_eq!(found(Compiler::Nvrtc, &at, folder.path()).unwrap(), target);
        assert_eq!(found(Compiler::Llvm, &at, folder.path()).unwrap(), folder.path());
    }

    /// PyTorch brings the headers of the runtime, which are not enough, and Triton, whose libdevice is.
    #[test]
    fn what_pytorch_brings_is_enough_for_llvm_alone() {
        let torch = [&CUDA_12[..6], &["triton/backends/nvidia/lib/libdevice.10.bc"]].concat();
        let (folder, at) = environment(&torch);
        let cache = folder.path().join("cache");
        assert_eq!(found(Compiler::Nvrtc, &at, &cache), None);
        assert!(found(Compiler::Llvm, &at, &cache).unwrap().join(LIBDEVICE).is_file());
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let nvrtc = lacking(Compiler::Nvrtc, false).unwrap();
        assert!(nvrtc.contains("libnvrtc") && nvrtc.contains("nvidia-cuda-nvrtc-cu12"), "{nvrtc}");
        if std::env::var_os("CUDA_PATH").is_none() && Compiler::Llvm.root().is_none() {
            let libdevice = lacking(Compiler::Llvm, true).unwrap();
            assert!(libdevice.contains("libdevice.10.bc") && libdevice.contains("nvidia-nvvm"), "{libdevice}");
        }
    }
}
