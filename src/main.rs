//! `trainer`: parse, set up logging, run, and turn a failure into a message and an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use burnish::cli::{Cli, Failure, run};
use burnish::tracking::Progress;
use clap::Parser;
use tracing_subscriber::EnvFilter;

// burn allocates and frees an activation per operation; the system's allocator returns the pages each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let progress = Progress::hidden();
    let above_bar = progress.clone();
    let filter = EnvFilter::try_from_env("BURNISH_LOG").unwrap_or_else(|_| EnvFilter::new("warn,burnish=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || above_bar.stderr())
        .without_time()
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match run(cli, progress) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Setup(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Run(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Interrupted(message)) => {
            eprintln!("{message}");
            ExitCode::from(3)
        }
        Err(Failure::Different) => ExitCode::FAILURE,
    }
}
