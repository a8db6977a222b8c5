//! Starts a run with several ranks, finds its processes, and waits for their end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Maximum time in which a job must end after a signal or a failure.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// The launcher, and true if it is Open MPI's; `None` if it is not installed.
static MPIRUN: LazyLock<Option<(String, bool)>> = LazyLock::new(|| {
    let name = std::env::var("BURNISH_MPIRUN").unwrap_or("mpirun".to_owned());
    let version = Command::new(&name).arg("--version").output().ok()?;
    Some((name, String::from_utf8_lossy(&version.stdout).contains("Open MPI")))
});

/// True if there is a launcher. Where `BURNISH_REQUIRE_MPI` is set, as `.ci/run` does, its absence fails the test.
#[expect(clippy::print_stderr, reason = "a skipped test reports it")]
pub(crate) fn has_mpi() -> bool {
    if MPIRUN.is_none() {
        assert!(std::env::var_os("BURNISH_REQUIRE_MPI").is_none(), "BURNISH_REQUIRE_MPI is set, and there is no mpirun");
        eprintln!("there is no mpirun: no job of several processes is started");
    }
    MPIRUN.is_some()
}

/// The variable in which the launcher tells a process its rank.
pub(crate) fn rank_variable() -> &'static str {
    if is_open_mpi() { "OMPI_COMM_WORLD_RANK" } else { "PMI_RANK" }
}

pub(crate) fn is_open_mpi() -> bool {
    MPIRUN.as_ref().is_some_and(|(_, is_open_mpi)| *is_open_mpi)
}

/// The launcher with programs, each with its number of ranks.
pub(crate) fn job_of(programs: &[(usize, Command)]) -> Command {
    let (mpirun, is_open_mpi) = MPIRUN.as_ref().expect("a launcher");
    let mut command = Command::new(mpirun);
    if *is_open_mpi {
        command.args(["--oversubscribe", "--bind-to", "none"]);
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    }
    command.env("RAYON_NUM_THREADS", "1");
    for (i, (ranks, program)) in programs.iter().enumerate() {
        if i > 0 {
            command.arg(":");
        }
        command.args(["-n", &ranks.to_string()]).arg(program.get_program()).args(program.get_args());
        command.current_dir(program.get_current_dir().expect("a folder"));
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
    command
}

/// Returns the launcher with a program on this many ranks.
pub(crate) fn job(ranks: usize, program: Command) -> Command {
    job_of(&[(ranks, program)])
}

/// A job that runs. It is ended when this is dropped.
pub(crate) struct Running {
    child: Option<Child>,
    /// Words in the command line of all its processes, and of no other test's.
    folder: PathBuf,
}

impl Running {
    /// Starts a job; its processes are recognized by the folder of their run.
    pub(crate) fn start(mut job: Command, folder: &Path) -> Self {
        let child = job.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the launcher starts");
        Self { child: Some(child), folder: folder.to_owned() }
    }

    /// Sends a signal to the launcher.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.as_ref().expect("a job").id(), name);
    }

    /// The process of a rank.
    pub(crate) fn rank(&self, rank: usize) -> u32 {
        let own = format!("{}={rank}", rank_variable());
        let is_rank = |process: &u32| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == own.as_bytes())
        };
        processes(&self.folder).into_iter().find(is_rank).expect("the process of the rank")
    }

    /// Waits until a file of the run exists and is not empty.
    pub(crate) fn wait_for(&mut self, file: &str) {
        let path = self.folder.join(file);
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::metadata(&path).map_or(0, |file| file.len()) == 0 {
            if self.child.as_mut().expect("a job").try_wait().unwrap().is_some() {
                let output = self.child.take().expect("a job").wait_with_output().unwrap();
                panic!("the job has ended without {}: {}", path.display(), messages(&output));
            }
            assert!(Instant::now() < deadline, "{} did not appear", path.display());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the end, for `patience` at most, and returns the exit code and the messages. No process is left.
    pub(crate) fn end(mut self, patience: Duration) -> (Option<i32>, String) {
        let start = Instant::now();
        let child = self.child.as_mut().expect("a job");
        while child.try_wait().unwrap().is_none() && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(child.try_wait().unwrap().is_some(), "the job still runs after {patience:?}");
        let output = self.child.take().expect("a job").wait_with_output().unwrap();
        // The launcher may end shortly before its killed processes.
        while !processes(&self.folder).is_empty() {
            assert!(start.elapsed() < patience + SOON, "a process is left");
            std::thread::sleep(Duration::from_millis(10));
        }
        (output.status.code(), messages(&output))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            processes(&self.folder).into_iter().for_each(|process| signal(process, "KILL"));
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Returns the messages that a job has printed.
fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends a signal to a process, if it still runs.
pub(crate) fn signal(process: u32, name: &str) {
    _ = Command::new("kill").args([format!("-{name}"), process.to_string()]).stderr(Stdio::null()).status().unwrap();
}

/// The processes of the program with a folder in their command line.
fn processes(folder: &Path) -> Vec<u32> {
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_trainer")).unwrap();
    let entries = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let folder = folder.to_str().expect("a plain path");
    let is_ours = |process: &u32| {
        let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|path| path == program)
            && String::from_utf8_lossy(&command).contains(folder)
    };
    entries.filter(is_ours).collect()
}
