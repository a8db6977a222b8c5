//! `trainer`: parses the command line, sets up logging, runs the command, and turns an error into a message and an exit code.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::process::ExitCode;

use burnish::cli::{become_variant, check_command, long_version, parse, run};
use burnish::run::{LogFile, Output};
use burnish::tracking::Progress;
use burnish::util::contained::is_contained;
use burnish::util::interrupt::report_file_limit;
use burnish::util::limited_memory::LimitedMemory;
use burnish::util::{secret, terminal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

// burn allocates and frees an activation per operation, and the system's allocator would return the pages each time.
#[global_allocator]
static ALLOCATOR: LimitedMemory<mimalloc::MiMalloc> = LimitedMemory(mimalloc::MiMalloc);

fn main() -> ExitCode {
    if let Err(message) = become_variant() {
        terminal::say(&format!("error: {message}\n"));
        return ExitCode::FAILURE;
    }
    // This comes first, because it may set an environment variable, which is only sound while there is one thread.
    #[cfg(feature = "cuda")]
    burnish::model::cuda_paths::set_cuda_path();
    report_file_limit();
    secret::remember_environment();
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    secret::remember_words(&words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>());
    if let Some(text) = long_version(&words) {
        return if terminal::print(&text).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Err(refused) = check_command(&words) {
        refused.message().iter().for_each(|message| terminal::say(&format!("{message}\n")));
        return ExitCode::from(refused.code());
    }
    let cli = parse();
    let output = Output { progress: Progress::hidden(), log: LogFile::default(), records: true };
    log_to(&output);
    let log = output.log.clone();
    let Err(failure) = run(cli, output) else { return ExitCode::SUCCESS };
    if let Some(message) = failure.message() {
        log.line(&message);
        terminal::say(&format!("{message}\n"));
    }
    ExitCode::from(failure.code())
}

/// Sends events that RUST_LOG lets through, and panics, to standard error and, with their time, to the log file of the run.
fn log_to(output: &Output) {
    let Output { progress, log, .. } = output.clone();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,burnish=info"));
    let shown = fmt::layer()
        .with_writer(move || progress.stderr())
        .without_time()
        .with_target(false)
        .with_ansi(terminal::colours_on_stderr());
    let written = fmt::layer().with_writer(move || log.writer()).with_target(false).with_ansi(false);
    tracing_subscriber::registry().with(filter).with(shown).with(written).init();
    #[cfg(feature = "gpu")]
    {
        let log = output.log.clone();
        burnish::model::device_failure::set_log(move |message| log.line(message));
    }
    let log = output.log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        if is_contained() {
            return;
        }
        let backtrace = Backtrace::capture();
        let shown = backtrace.status() == BacktraceStatus::Captured;
        let text = if shown { format!("{panic}\n{backtrace}") } else { panic.to_string() };
        log.line(&text);
        terminal::say(&format!("{text}\n"));
    }));
}
