//! Atomic files and directories: they appear whole or not at all, even if the process is killed.
//!
//! Everything is staged next to its target as `.tmp-NAME-PID`, synced to disk and renamed. A replaced directory is called
//! `.old-NAME-PID` between two renames. [`sweep`] finishes or undoes the work of a killed process. Only one process at a time may
//! write a given path.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::foreign;
use super::output::{OutputTarget, end_of_links};
use crate::platform::{is_running, is_same_file, keep_access};

const STAGED: &str = ".tmp-";
const REPLACED: &str = ".old-";

/// Number of attempts to remove a staged file or folder: a disk may fail one call, and staged files take space until the next start.
const ATTEMPTS: usize = 3;

/// Writes a whole file, or leaves the earlier one untouched. Follows links, keeps an earlier file's mode and owner, and creates
/// missing parent directories. Writes into a target that is not a regular file, such as a device or a pipe.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || match OutputTarget::resolve(path)? {
        OutputTarget::Stream(stream) => Ok(stream.open()?.write_all(bytes)?),
        OutputTarget::File { path, existing } => replace(&path, existing.as_ref(), bytes),
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn replace(path: &Path, existing: Option<&Metadata>, bytes: &[u8]) -> Result<()> {
    let staging = sibling(path, STAGED)?;
    let write = || -> io::Result<()> {
        fs::create_dir_all(parent(path))?;
        let mut file = File::create(&staging)?;
        existing.iter().for_each(|existing| keep_access(&file, existing));
        file.write_all(bytes)?;
        file.sync_all()?;
        match fs::rename(&staging, path) {
            // A file that is itself a mount in a container can be written but not replaced.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                fs::write(path, bytes)?;
                remove(&staging)?;
            }
            renamed => renamed?,
        }
        sync_dir(parent(path))
    };
    Ok(write().inspect_err(|_| _ = remove(&staging))?)
}

/// Refuses a path that [`write_atomic`] could not write later. Creates missing parent directories.
pub fn check_writable(path: &Path) -> Result<()> {
    let check = || match OutputTarget::resolve(path)? {
        OutputTarget::Stream(stream) => Ok(stream.check()?),
        OutputTarget::File { path, .. } => {
            let staging = sibling(&path, STAGED)?;
            if parent(&path).is_file() {
                return Err(io::Error::from(io::ErrorKind::NotADirectory).into());
            }
            fs::create_dir_all(parent(&path))?;
            File::create(&staging)?;
            Ok(remove(&staging)?)
        }
    };
    let check: Result<()> = check();
    check.with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses an output that is the same file as an input, also under another spelling or through a symbolic or hard link. `output`
/// and `inputs`: the user's name for each, such as `data.output_path`, and its path.
///
/// # Errors
/// The two names of the same file.
pub fn refuse_input<'a>(output: (&str, &Path), inputs: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<()> {
    let file_at = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    let Some(written) = file_at(output.1) else { return Ok(()) };
    match inputs.into_iter().find(|(_, path)| file_at(path).is_some_and(|read| is_same_file(&read, &written))) {
        None => Ok(()),
        Some((name, path)) => bail!(
            "{} {} would overwrite {name} {}: they are the same file; name another file, such as {}",
            output.0,
            output.1.display(),
            path.display(),
            renamed(output.1).display(),
        ),
    }
}

/// Returns an unused path with the same extension.
fn renamed(path: &Path) -> PathBuf {
    let (stem, ending) = (path.file_stem().unwrap_or_default(), path.extension());
    let named = |i: usize| {
        let mut name = stem.to_owned();
        name.push(if i == 1 { "-new".to_owned() } else { format!("-new-{i}") });
        ending.into_iter().for_each(|ending| {
            name.push(".");
            name.push(ending);
        });
        path.with_file_name(name)
    };
    (1..).map(named).find(|path| !path.exists()).unwrap_or_default()
}

/// Writes a value as indented JSON. Not atomic: for files inside an [`AtomicDir`].
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    fs::write(path, serde_json::to_vec_pretty(value)?).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads what [`write_json`] wrote.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = foreign::read(path, foreign::SETTINGS)?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
}

/// A directory under construction. [`commit`](Self::commit) puts it in place; dropping it uncommitted removes it.
#[derive(Debug)]
pub struct AtomicDir {
    staging: PathBuf,
    target: PathBuf,
}

impl AtomicDir {
    /// Starts an empty directory that will become `target`, after following links to their end.
    ///
    /// # Errors
    /// If the target exists and is not a directory, or the file system refuses.
    pub fn stage(target: &Path) -> Result<Self> {
        end_of_links(target).map_err(anyhow::Error::from).and_then(|end| Self::stage_at(&end)).with_context(cannot_create(target))
    }

    /// Starts an empty directory that will become `target`, in place of a link there.
    ///
    /// # Errors
    /// The errors of [`stage`](Self::stage).
    pub fn stage_own(target: &Path) -> Result<Self> {
        Self::stage_at(target).with_context(cannot_create(target))
    }

    fn stage_at(target: &Path) -> Result<Self> {
        let existing = target.symlink_metadata();
        if existing.is_ok_and(|existing| !existing.is_dir() && !existing.is_symlink()) {
            bail!("it exists and is not a folder");
        }
        let staging = sibling(target, STAGED)?;
        remove(&staging)?;
        fs::create_dir_all(&staging)?;
        Ok(Self { staging, target: target.to_path_buf() })
    }

    /// Returns the directory to write the contents to until they are committed.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Syncs the contents to disk and renames the directory to its target, replacing an earlier one.
    pub fn commit(self) -> Result<()> {
        let replaced = sibling(&self.target, REPLACED)?;
        let commit = || -> io::Result<()> {
            sync_tree(&self.staging)?;
            remove(&replaced)?;
            if self.target.symlink_metadata().is_ok() {
                fs::rename(&self.target, &replaced)?;
            }
            if let Err(error) = fs::rename(&self.staging, &self.target) {
                _ = fs::rename(&replaced, &self.target);
                return Err(error);
            }
            sync_dir(parent(&self.target))?;
            remove(&replaced)
        };
        commit().with_context(|| format!("cannot put {} in place", self.target.display()))
    }
}

impl Drop for AtomicDir {
    fn drop(&mut self) {
        _ = remove(&self.staging);
    }
}

/// Removes a directory, which is never seen half-removed under its name.
pub fn remove_dir(path: &Path) -> Result<()> {
    let doomed = sibling(path, STAGED)?;
    let remove_renamed = || {
        remove(&doomed)?;
        fs::rename(path, &doomed)?;
        remove(&doomed)
    };
    remove_renamed().with_context(|| format!("cannot remove {}", path.display()))
}

/// Cleans up after killed processes in `dir`. Removes staged files and directories, and restores a directory that was moved away
/// if its replacement never arrived. Leaves entries of running processes alone. A missing `dir` is fine.
pub fn sweep(dir: &Path) -> Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", dir.display())),
    };
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", dir.display()))?.path();
        let Some(leftover) = path.file_name().and_then(|name| name.to_str()).and_then(Leftover::parse) else { continue };
        let target = dir.join(leftover.name);
        if leftover.owner_is_alive() {
            continue;
        }
        if leftover.prefix == REPLACED && target.symlink_metadata().is_err() {
            fs::rename(&path, &target).with_context(|| format!("cannot restore {}", target.display()))?;
        } else {
            remove(&path).with_context(|| format!("cannot remove the leftover {}", path.display()))?;
        }
    }
    Ok(())
}

/// The parts of a staged name.
struct Leftover<'a> {
    prefix: &'static str,
    name: &'a str,
    pid: u32,
}

impl<'a> Leftover<'a> {
    fn parse(file_name: &'a str) -> Option<Self> {
        [STAGED, REPLACED].into_iter().find_map(|prefix| {
            let (name, pid) = file_name.strip_prefix(prefix)?.rsplit_once('-')?;
            Some(Self { prefix, name, pid: pid.parse().ok()? })
        })
    }

    /// Returns true if the process that staged it still runs. Containers give every run the same small process id, so our own id
    /// means an earlier run.
    fn owner_is_alive(&self) -> bool {
        self.pid != std::process::id() && is_running(self.pid)
    }
}

/// Lists all regular files under `dir`, as paths relative to it, sorted.
pub fn files_under(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            // Links to folders are not entered: they may form a cycle.
            if entry.file_type()?.is_dir() {
                pending.push(path);
            } else {
                files.push(path.strip_prefix(dir).map_err(io::Error::other)?.to_path_buf());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn cannot_create(path: &Path) -> impl Fn() -> String {
    move || format!("cannot create {}", path.display())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sibling(path: &Path, prefix: &str) -> Result<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        bail!("'{}' does not end in a readable file name", path.display());
    };
    Ok(parent(path).join(format!("{prefix}{name}-{}", std::process::id())))
}

/// Removes a file, link or directory tree, in several attempts. A missing path is fine.
fn remove(path: &Path) -> io::Result<()> {
    in_attempts(|| remove_once(path))
}

/// Repeats a removal that fails. Returns the last error.
fn in_attempts(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    (1..ATTEMPTS).find_map(|_| remove().ok()).map_or_else(remove, Ok)
}

fn remove_once(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn sync_tree(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() { sync_tree(&path)? } else { File::open(&path)?.sync_all()? }
    }
    sync_dir(dir)
}

/// Makes a rename in `dir` durable. Ignores the two errors of file systems that cannot sync a directory.
fn sync_dir(dir: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(dir)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn write_atomic_replaces_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/file.txt");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(&dir.path().join("deep")), ["file.txt"]);
    }

    /// Tests named pipes, links to special files, and a device if this user may make one.
    #[test]
    fn special_files_are_written_into_and_links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let make = |program: &str, arguments: &[&str]| {
            std::process::Command::new(program).args(arguments).current_dir(dir.path()).status().unwrap().success()
        };
        assert!(make("mkfifo", &["pipe"]));
        symlink("pipe", at("to-pipe")).unwrap();
        for name in ["pipe", "to-pipe"] {
            check_writable(&at(name)).unwrap();
            let pipe = at("pipe");
            let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
            write_atomic(&at(name), b"through").unwrap();
            assert_eq!(reader.join().unwrap(), b"through", "{name}");
            assert!(fs::metadata(at("pipe")).unwrap().file_type().is_fifo(), "{name}");
        }
        if make("sh", &["-c", "mknod null c 1 3 2>/dev/null && true > null"]) {
            check_writable(&at("null")).unwrap();
            write_atomic(&at("null"), b"nowhere").unwrap();
            assert!(fs::metadata(at("null")).unwrap().file_type().is_char_device());
        } else {
            println!("no device is written to: this user may not make one");
        }

        // Two links, one relative to another folder, to a file that does not exist yet.
        fs::create_dir_all(at("a/b")).unwrap();
        symlink("a/second", at("first")).unwrap();
        symlink("b/file", at("a/second")).unwrap();
        for text in ["one", "two"] {
            check_writable(&at("first")).unwrap();
            write_atomic(&at("first"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(at("a/b/file")).unwrap(), text);
            assert!(at("first").is_symlink() && at("a/second").is_symlink());
            fs::set_permissions(at("a/b/file"), fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert_eq!(names(&at("a/b")), ["file"]);
        assert_eq!(fs::metadata(at("a/b/file")).unwrap().permissions().mode() & 0o777, 0o600);

        symlink("loop", at("loop")).unwrap();
        symlink("a", at("folder")).unwrap();
        for (name, expected) in [("loop", "links"), ("folder", "is a directory"), ("a/b/file/below", "not a directory")] {
            for error in [check_writable(&at(name)).unwrap_err(), write_atomic(&at(name), b"").unwrap_err()] {
                let error = format!("{error:#}").to_lowercase();
                assert!(error.starts_with("cannot write ") && error.contains(expected), "{error}");
            }
        }

        // Folders are created at the end of a link too.
        symlink("a/new", at("to-new")).unwrap();
        for name in ["x", "y"] {
            let staged = AtomicDir::stage(&at("to-new")).unwrap();
            fs::write(staged.path().join(name), "").unwrap();
            staged.commit().unwrap();
            assert_eq!((names(&at("a/new")), at("to-new").is_symlink()), (vec![name.to_owned()], true));
        }
        assert!(AtomicDir::stage(&at("pipe")).unwrap_err().to_string().contains("cannot create"));
        // A link to a parent folder does not make the walk endless.
        symlink("..", at("a/b/up")).unwrap();
        assert_eq!(files_under(&at("a")).unwrap().len(), 4);
    }

    #[test]
    fn a_directory_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("result");
        let staged = AtomicDir::stage(&target).unwrap();
        fs::write(staged.path().join("a"), "first").unwrap();
        assert!(!target.exists());
        staged.commit().unwrap();

        let abandoned = AtomicDir::stage(&target).unwrap();
        fs::write(abandoned.path().join("b"), "lost").unwrap();
        drop(abandoned);
        assert_eq!((names(dir.path()), names(&target)), (vec!["result".into()], vec!["a".into()]));

        let second = AtomicDir::stage(&target).unwrap();
        fs::write(second.path().join("c"), "second").unwrap();
        second.commit().unwrap();
        assert_eq!((names(dir.path()), names(&target)), (vec!["result".into()], vec!["c".into()]));
    }

    /// A failing disk is a closure here: no user can make a real disk fail in a test.
    #[test]
    fn a_removal_that_fails_is_repeated() {
        let dir = tempfile::tempdir().unwrap();
        let staged = dir.path().join(".tmp-global_step_1-7");
        for (failing, is_left) in [(0, false), (1, false), (ATTEMPTS - 1, false), (ATTEMPTS, true)] {
            let files = ["actor/model", "actor/optim", "data.json"].map(|name| staged.join(name));
            fs::create_dir_all(staged.join("actor")).unwrap();
            files.iter().for_each(|file| fs::write(file, "").unwrap());
            let mut calls = 0;
            let removed = in_attempts(|| {
                calls += 1;
                if calls > failing {
                    return remove_once(&staged);
                }
                // Each failing attempt removes one file before the error.
                remove_once(&files[calls - 1]).and(Err(io::Error::from_raw_os_error(5)))
            });
            assert_eq!((removed.is_err(), staged.exists(), calls), (is_left, is_left, (failing + 1).min(ATTEMPTS)), "{failing}");
        }
        // The next start removes the rest. No process has this id.
        let left = dir.path().join(".tmp-global_step_1-4294967295");
        fs::rename(&staged, left).unwrap();
        sweep(dir.path()).unwrap();
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn sweep_undoes_what_a_killed_process_left() {
        let dir = tempfile::tempdir().unwrap();
        // No process has this id: it is above every kernel's limit.
        for name in [".tmp-a-4294967295/part", ".old-b-4294967295/whole", ".old-c-4294967295/earlier", "c/later", ".tmp-notes"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let own = format!(".tmp-d-{}", std::process::id());
        fs::write(dir.path().join(own), "an earlier process with our id").unwrap();
        let alive = format!(".tmp-e-{}", std::os::unix::process::parent_id());
        fs::write(dir.path().join(&alive), "a running process").unwrap();
        sweep(dir.path()).unwrap();
        assert_eq!(names(dir.path()), [alive, ".tmp-notes".into(), "b".into(), "c".into()]);
        assert!(dir.path().join("b/whole").exists() && dir.path().join("c/later").exists());
        sweep(&dir.path().join("missing")).unwrap();
    }
}
