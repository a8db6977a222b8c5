//! The program on older processors, as QEMU emulates them. The CPU's operations are chosen when the program starts, so one program
//! runs on all; a wrong choice ends it with an illegal instruction.
//!
//! Without `qemu-x86_64-static` on the PATH the test passes with a message; `BURNISH_REQUIRE_QEMU=1` makes that a failure.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{rows, small_run, succeed, trainer};

/// Processors, and the operations that each must get.
const PROCESSORS: [(&str, &str); 2] = [("Nehalem", "portable"), ("Haswell", "AVX2")];
/// Largest relative difference of a gradient's norm: sums are added in another order, and without fused multiplication.
const TOLERANCE: f64 = 1e-3;

#[expect(clippy::print_stdout, reason = "a test says that it is skipped")]
fn emulator() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let named = |folder: PathBuf| ["qemu-x86_64-static", "qemu-x86_64"].map(|name| folder.join(name));
    let found = env::split_paths(&path).flat_map(named).find(|program| program.is_file());
    if found.is_none() {
        assert!(env::var_os("BURNISH_REQUIRE_QEMU").is_none(), "BURNISH_REQUIRE_QEMU is set, and qemu-x86_64-static is missing");
        println!("skipped: qemu-x86_64-static is missing");
    }
    found
}

/// Returns a command as it runs on another processor.
fn emulated(emulator: &Path, processor: &str, command: &Command) -> Command {
    let mut emulated = Command::new(emulator);
    emulated.args(["-cpu", processor]).arg(command.get_program()).args(command.get_args());
    emulated.current_dir(env!("CARGO_MANIFEST_DIR"));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => emulated.env(name, value),
            None => emulated.env_remove(name),
        };
    }
    emulated
}

#[test]
fn one_program_trains_on_old_and_new_processors() {
    let Some(emulator) = emulator() else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let few = ["data.val_max_samples=8", "actor_rollout_ref.rollout.n=2", "trainer.total_training_steps=1"];
        small_run(&folder.path().join(name), &few)
    };
    let norm = |name: &str| {
        let last = rows(&folder.path().join(name)).pop().unwrap().1;
        last["actor/grad_norm"].as_f64().unwrap()
    };
    succeed(run("native"));
    for (processor, operations) in PROCESSORS {
        let facts = succeed(emulated(&emulator, processor, &trainer(&["--version", "--verbose"]))).stdout;
        let facts = String::from_utf8(facts).unwrap();
        let line = facts.lines().find(|line| line.starts_with("CPU kernels")).unwrap();
        assert!(line.contains(operations), "{processor}: {line}");
        succeed(emulated(&emulator, processor, &run(processor)));
        let (native, other) = (norm("native"), norm(processor));
        assert!((native - other).abs() <= TOLERANCE * native, "{processor}: {other}, here {native}");
    }
}
