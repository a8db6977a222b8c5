//! Finds the files with which CubeCL compiles CUDA kernels, also in packages of pip and conda.
//!
//! CubeCL reads `CUDA_PATH`; without it, it looks into a few toolkit folders. It loads the C++ compiler, libnvrtc, by name.
//! Packages of pip and conda environments are in none of these places. [`set_cuda_path`] and `load_libraries` look there, and
//! [`missing`] names the packages to install.
#![cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only the search is tested without the feature"))]

use std::ffi::{CString, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Once;

use burnish_util::cache::cache_folder;

use burnish_util::platform::{bytes_of, own_threads, symlink};
const DRIVER: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
const NVRTC: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];
/// Folders that CubeCL searches without `CUDA_PATH`: headers in the first one that exists, libdevice in the first one that has it.
const USUAL: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];
const LIBDEVICE: &str = "nvvm/libdevice/libdevice.10.bc";
/// The same file in Triton's folder.
const TRITON_LIBDEVICE: &str = "lib/libdevice.10.bc";

/// The compiler of kernels in this build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Compiler {
    /// NVRTC, for C++: needs CUDA's headers.
    Nvrtc,
    /// LLVM, which is part of the program: needs CUDA's mathematical functions, libdevice.
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

    /// The files that it needs to compile the kernels of a model.
    fn files(self) -> &'static [&'static str] {
        match self {
            // Matmuls on tensor cores include mma.h, which includes crt/mma.h.
            Self::Nvrtc => &["include/cuda_fp16.h", "include/cuda_bf16.h", "include/mma.h", "include/crt/mma.h"],
            Self::Llvm => &[LIBDEVICE],
        }
    }

    /// The first of its files that is missing in a toolkit folder.
    fn first_missing(self, root: &Path) -> Option<&'static str> {
        self.files().iter().copied().find(|file| !root.join(file).is_file())
    }

    /// The toolkit folder that CubeCL will use.
    fn root(self) -> Option<PathBuf> {
        std::env::var_os("CUDA_PATH").map(PathBuf::from).or_else(|| self.usual_root())
    }

    /// The toolkit folder that CubeCL uses without `CUDA_PATH`.
    fn usual_root(self) -> Option<PathBuf> {
        let usual = USUAL.map(PathBuf::from).into_iter();
        match self {
            Self::Nvrtc => {
                let distribution = Path::new("/usr/bin/nvcc").exists().then(|| PathBuf::from("/usr"));
                usual.chain(distribution).find(|root| root.exists())
            }
            Self::Llvm => usual.chain(["/usr/lib/cuda".into(), "/usr".into()]).find(|root| self.first_missing(root).is_none()),
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

/// Sets `CUDA_PATH` to packages of pip or conda if CubeCL would find no toolkit. Call it at the top of `main`.
///
/// Does nothing if the process has other threads, since these may read the environment; MPI, for example, starts threads.
pub fn set_cuda_path() {
    let compiler = Compiler::of_this_build();
    let is_complete = || compiler.root().is_some_and(|root| compiler.first_missing(&root).is_none());
    if std::env::var_os("CUDA_PATH").is_some() || is_complete() || !is_only_thread() {
        return;
    }
    let groups = groups(&PackageRoots::of_this_process());
    if let Some(root) = groups.iter().find_map(|group| toolkit(compiler, group, &cache_folder()?)) {
        // SAFETY: this is the only thread of the process, so nothing else reads or writes the environment.
        unsafe { std::env::set_var("CUDA_PATH", root) };
    }
}

/// True if the process has no other thread. False where this cannot be determined.
fn is_only_thread() -> bool {
    own_threads() == Some(1)
}

/// Loads the driver and NVRTC from places where the system's loader does not look, and calls [`set_cuda_path`]. Call it before the first
/// CUDA device is opened; later calls do nothing. [`missing`] reports files that were not found.
pub(crate) fn load_libraries() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_cuda_path();
        load_missing(Compiler::of_this_build());
    });
}

fn load_missing(compiler: Compiler) {
    // WSL keeps the driver in a folder that the loader does not search.
    if !loads(&DRIVER) {
        load(Path::new("/usr/lib/wsl/lib/libcuda.so.1"));
    }
    if compiler == Compiler::Nvrtc && !loads(&NVRTC) {
        let toolkits = compiler.root().into_iter().chain(compiler.usual_root()).collect();
        let groups = groups(&PackageRoots::of_this_process());
        // Once a library is loaded, CubeCL finds it by its name.
        [toolkits].iter().chain(&groups).flat_map(|group: &Vec<PathBuf>| libraries(group)).find(|library| load(library));
    }
}

/// Describes what CUDA needs and this machine lacks, and how to install it. Call it after `load_libraries`.
pub fn missing() -> Option<String> {
    if !loads(&DRIVER) {
        return Some(
            "libcuda.so.1, part of NVIDIA's driver, was not found: install the driver (Debian: apt-get install nvidia-driver), or \
             start the container with its GPUs (docker run --gpus all, with the NVIDIA Container Toolkit)"
                .into(),
        );
    }
    lacking(Compiler::of_this_build(), loads(&NVRTC))
}

/// Describes what `compiler` lacks, and how to install it.
fn lacking(compiler: Compiler, nvrtc: bool) -> Option<String> {
    let install = compiler.packages();
    if compiler == Compiler::Nvrtc && !nvrtc {
        return Some(format!("libnvrtc, which compiles kernels, was not found. Install it: {install}"));
    }
    match compiler.root() {
        None => Some(format!(
            "no CUDA toolkit with {} was found, which is needed to compile kernels. Install it: {install}",
            names(compiler)
        )),
        Some(root) => compiler.first_missing(&root).map(|file| {
            let named = if std::env::var_os("CUDA_PATH").is_some() { "CUDA_PATH names" } else { "the CUDA toolkit is in" };
            format!("{named} {}, which has no {file}. Install it: {install}; or set CUDA_PATH to another folder", root.display())
        }),
    }
}

/// The names of the files that a compiler needs.
fn names(compiler: Compiler) -> String {
    compiler.files().iter().map(|file| file.trim_start_matches("include/")).collect::<Vec<_>>().join(", ")
}

/// The places where Python and conda keep packages.
#[derive(Debug, Default)]
pub(crate) struct PackageRoots {
    /// The folder with the `bin` of this program: the environment into which pip or uv installed it.
    program: Option<PathBuf>,
    virtual_env: Option<PathBuf>,
    conda: Option<PathBuf>,
    home: Option<PathBuf>,
    path: Vec<PathBuf>,
}

impl PackageRoots {
    fn of_this_process() -> Self {
        let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        let program =
            std::env::current_exe().ok().and_then(|program| Some(program.canonicalize().ok()?.parent()?.parent()?.to_owned()));
        Self { program, virtual_env: folder("VIRTUAL_ENV"), conda: folder("CONDA_PREFIX"), home: folder("HOME"), path }
    }

    /// The package folders of the program's environment, of the active one, of the `python3` on PATH, and of the user.
    fn packages(&self) -> Vec<PathBuf> {
        let python = self.path.iter().find(|folder| folder.join("python3").is_file()).and_then(|folder| folder.parent());
        let local = python.map(|prefix| prefix.join("local"));
        let user = self.home.as_ref().map(|home| home.join(".local"));
        let prefixes = [self.program.as_deref(), self.virtual_env.as_deref(), python, local.as_deref(), user.as_deref()];
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

/// Groups of folders that together hold one version of CUDA, each folder laid out like a toolkit. First the conda environment,
/// then for each package folder of Python the packages of CUDA 13 and of CUDA 12.
pub(crate) fn groups(at: &PackageRoots) -> Vec<Vec<PathBuf>> {
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

/// Returns a group's toolkit: one of its folders if it is complete, otherwise a folder in `cache` with links to the files of all
/// of them. `None` if the group lacks a file.
pub(crate) fn toolkit(compiler: Compiler, group: &[PathBuf], cache: &Path) -> Option<PathBuf> {
    if let Some(root) = group.iter().find(|root| compiler.first_missing(root).is_none()) {
        return Some(root.clone());
    }
    let has =
        |root: &PathBuf, file: &str| root.join(file).is_file() || (file == LIBDEVICE && root.join(TRITON_LIBDEVICE).is_file());
    if !compiler.files().iter().all(|file| group.iter().any(|root| has(root, file))) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    group.hash(&mut hasher);
    let made = cache.join(format!("cuda-{:016x}", hasher.finish()));
    let libdevice = Path::new(LIBDEVICE).parent().unwrap_or(Path::new(""));
    for root in group {
        let headers = children(&root.join("include")).into_iter().map(|header| (header, Path::new("include")));
        let bitcode = [LIBDEVICE, TRITON_LIBDEVICE].map(|file| root.join(file)).into_iter().filter(|file| file.is_file());
        for (file, folder) in headers.chain(bitcode.map(|file| (file, libdevice))) {
            link(&file, &made.join(folder)).ok()?;
        }
    }
    compiler.first_missing(&made).is_none().then_some(made)
}

/// Links a file or folder into `folder`. An entry of the same name is kept unless it is a broken link.
fn link(entry: &Path, folder: &Path) -> std::io::Result<()> {
    let Some(name) = entry.file_name() else { return Ok(()) };
    let at = folder.join(name);
    if at.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    // Another process may do the same now, so the link is made under another name and then renamed.
    let meanwhile = folder.join(format!(".{}-{}", std::process::id(), name.to_string_lossy()));
    symlink(entry, &meanwhile)?;
    std::fs::rename(&meanwhile, &at)
}

/// The entries of a folder, sorted by name; empty if the folder does not exist.
fn children(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn starts(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|file| bytes_of(file).starts_with(name.as_bytes()))
}

/// True if the loader finds a library by one of these names.
fn loads(names: &[&str]) -> bool {
    names.iter().any(|name| load(Path::new(name)))
}

/// Loads a library until the process ends.
fn load(library: &Path) -> bool {
    unsafe extern "C" {
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    }
    const RTLD_LAZY: c_int = 1;
    // SAFETY: the name ends in 0 and outlives the call. Constructors of NVIDIA's libraries may run on any thread.
    CString::new(bytes_of(library.as_os_str())).is_ok_and(|name| !unsafe { dlopen(name.as_ptr(), RTLD_LAZY) }.is_null())
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

    /// A Python environment with these files among its packages.
    fn environment(files: &[&str]) -> (tempfile::TempDir, PackageRoots) {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("lib/python3.11/site-packages"), files);
        let at = PackageRoots { virtual_env: Some(folder.path().into()), ..PackageRoots::default() };
        (folder, at)
    }

    fn found(compiler: Compiler, at: &PackageRoots, cache: &Path) -> Option<PathBuf> {
        groups(at).iter().find_map(|group| toolkit(compiler, group, cache))
    }

    /// The layout of pip's packages of CUDA 12: one folder per package.
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

    /// The layout of pip's packages of CUDA 13: one folder for all.
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
        // Another run finds the existing links.
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
    fn the_program_a_python_on_the_path_and_a_user_have_packages_too() {
        let (folder, _) = environment(&CUDA_13);
        write(folder.path(), &["bin/python3"]);
        let path = vec!["/nowhere".into(), folder.path().join("bin")];
        assert!(found(Compiler::Nvrtc, &PackageRoots { path, ..PackageRoots::default() }, folder.path()).is_some());
        let program = Some(folder.path().into());
        assert!(found(Compiler::Llvm, &PackageRoots { program, ..PackageRoots::default() }, folder.path()).is_some());
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join(".local/lib/python3.12/site-packages"), &CUDA_13);
        let at = PackageRoots { home: Some(home.path().into()), ..PackageRoots::default() };
        assert!(found(Compiler::Llvm, &at, folder.path()).is_some());
    }

    /// Conda has headers in a folder below `targets`, and libdevice outside it.
    #[test]
    fn an_environment_of_conda_is_a_toolkit() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("targets/x86_64-linux");
        write(&target, &["include/cuda_fp16.h", "include/cuda_bf16.h", "include/mma.h", "include/crt/mma.h"]);
        write(folder.path(), &["lib/libnvrtc.so.12", LIBDEVICE]);
        let at = PackageRoots { conda: Some(folder.path().into()), ..PackageRoots::default() };
        assert_eq!(found(Compiler::Nvrtc, &at, folder.path()).unwrap(), target);
        assert_eq!(found(Compiler::Llvm, &at, folder.path()).unwrap(), folder.path());
    }

    /// PyTorch installs the runtime's headers, which do not suffice for NVRTC, and Triton's libdevice, which suffices for LLVM.
    #[test]
    fn what_pytorch_brings_is_enough_for_llvm_alone() {
        let torch = [&CUDA_12[..6], &["triton/backends/nvidia/lib/libdevice.10.bc"]].concat();
        let (folder, at) = environment(&torch);
        let cache = folder.path().join("cache");
        assert_eq!(found(Compiler::Nvrtc, &at, &cache), None);
        assert!(found(Compiler::Llvm, &at, &cache).unwrap().join(LIBDEVICE).is_file());
    }

    #[test]
    fn other_threads_are_noticed() {
        std::thread::spawn(|| assert!(!is_only_thread())).join().unwrap();
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
