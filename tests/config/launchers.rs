//! Launchers: a command is found by its position, and no word of a launcher's options changes it.

use burnish::convert::shell::{ShellEnv, read, targets};
use proptest::prelude::*;

/// Launchers, with `OPTION` in place of further options and `COMMAND` in place of a Python command.
const LAUNCHERS: &[&str] = &[
    "ray job submit --address=http://127.0.0.1:8265 OPTION -- COMMAND",
    "ray job submit OPTION --working-dir . COMMAND",
    "nohup env A=1 B=verl OPTION COMMAND",
    "timeout -k 5 OPTION 3h COMMAND",
    "nice -n 10 numactl -C 0-3 OPTION COMMAND",
    "srun -N1 --job-name trl OPTION --gpus=8 COMMAND",
    "mpirun -np 2 --mca btl openlib OPTION COMMAND",
    "uv run --extra vllm OPTION COMMAND",
    "conda run -n verl OPTION COMMAND",
    "docker run --rm -it --gpus all OPTION -v /a:/b image COMMAND",
    "docker exec -it OPTION trl COMMAND",
    "docker compose -f f.yaml exec OPTION trainer COMMAND",
    "kubectl exec -n verl OPTION -it pod -- COMMAND",
    "apptainer exec --nv OPTION --bind /a:/b openrlhf.sif COMMAND",
    "own_launcher OPTION COMMAND",
    "bash -c 'COMMAND'",
    "bash -euo pipefail -c 'cd /verl && COMMAND'",
    "srun OPTION bash -lc 'COMMAND'",
    "ssh -p 22 user@trl 'cd /openrlhf; COMMAND'",
    "ssh node <<'EOF'\ncd /openrlhf\nCOMMAND\nEOF",
    "su - trl -c 'COMMAND'",
    "pdsh -w a,b 'COMMAND'",
    "tmux new-session -d -s verl OPTION 'COMMAND'",
    "tmux send-keys -t trl 'COMMAND' Enter",
    "screen -dmS openrlhf OPTION COMMAND",
    "sbatch -N 4 OPTION --wrap='COMMAND'",
    "gcloud compute tpus tpu-vm ssh trl --command='COMMAND'",
    "cat > run.sh <<'EOF'\nCOMMAND\nEOF\nsbatch OPTION run.sh",
    "( COMMAND ) 200> lock",
];

/// Python commands, with `OPTION` in place of options of their launcher, and the name of their program.
const COMMANDS: &[(&str, &str)] = &[
    ("python3 -u -m verl.trainer.main_ppo", "verl.trainer.main_ppo"),
    ("python -X dev openrlhf/cli/train_sft.py", "openrlhf/cli/train_sft.py"),
    ("/opt/env/bin/python3.11 -W ignore -mtrl.scripts.grpo", "trl.scripts.grpo"),
    ("trl", "trl"),
    ("deepspeed --include localhost:0,1 OPTION --module openrlhf.cli.train_dpo", "openrlhf.cli.train_dpo"),
    ("accelerate launch --config_file verl.yaml OPTION -m trl.scripts.dpo", "trl.scripts.dpo"),
    ("accelerate launch --multi_gpu OPTION train.py", "train.py"),
    ("torchrun --standalone --nproc_per_node 8 OPTION -m verl.trainer.fsdp_sft_trainer", "verl.trainer.fsdp_sft_trainer"),
    ("python -m torch.distributed.run --nnodes 2 OPTION my/train.py", "my/train.py"),
    ("python -m debugpy --listen 5678 --wait-for-client -m verl.trainer.main_ppo", "verl.trainer.main_ppo"),
];

/// Texts of options that look like commands.
const TEXTS: &[&str] = &[
    "verl",
    "openrlhf",
    "trl",
    "trl sft",
    "verl.trainer.main_ppo",
    "{\"working_dir\": \"/openrlhf\"}",
    "{\"env_vars\": {\"PYTHONPATH\": \"/root/verl\"}}",
    "python3 -m openrlhf.cli.train_ppo_ray --pretrain m",
    "python3",
    "bash",
    "a.py",
];

/// Returns the name and the arguments of the program that a script starts last.
fn started(script: &str) -> Option<(String, Vec<String>)> {
    let script = read(script, &ShellEnv::for_text("command"), &|_| false).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    let call = script.calls.last()?;
    let target = targets(&call.words).into_iter().next()?;
    Some((target.name, call.words[target.at + 1..].to_vec()))
}

/// Checks a launcher and a command with an option.
fn check(launcher: &str, (command, name): (&str, &str), option: &str) {
    let is_quoted = launcher.contains("COMMAND'");
    let inner = if is_quoted { command.replace("OPTION", "") } else { command.replace("OPTION", option) };
    let script = launcher.replace("OPTION", option).replace("COMMAND", &format!("{inner} a.b=1 --c d"));
    let expected = Some((name.to_string(), ["a.b=1", "--c", "d"].map(String::from).to_vec()));
    assert_eq!(started(&script), expected, "{script}");
}

#[test]
fn commands_are_found_behind_every_launcher() {
    for launcher in LAUNCHERS {
        for command in COMMANDS {
            check(launcher, *command, "");
            // An option without a value may come directly before an interpreter.
            if command.1 != "trl" && !launcher.contains("OPTION '") {
                check(launcher, *command, "--unknown");
            }
        }
        for (text, command) in TEXTS.iter().zip(COMMANDS.iter().cycle()) {
            check(launcher, *command, &format!("--unknown '{text}'"));
            check(launcher, *command, &format!("--unknown='{text}'"));
        }
    }
}

proptest! {
    #[test]
    fn texts_of_options_change_no_command(text in "[ -&(-~é]{0,30}", launcher in 0..LAUNCHERS.len(), command in 0..COMMANDS.len()) {
        check(LAUNCHERS[launcher], COMMANDS[command], &format!("--unknown='{text}'"));
        // A text that begins with a dash is another option.
        let value = text.trim_start_matches('-');
        check(LAUNCHERS[launcher], COMMANDS[command], &format!("--unknown 'x{value}'"));
    }
}

/// Other programs are not taken for trainers.
#[test]
fn words_of_other_programs_are_not_commands() {
    for script in [
        "pip install verl trl openrlhf",
        "git clone https://github.com/x/verl",
        "pkill -f 'python3 -m verl.trainer.main_ppo'",
        "grep -r verl.trainer.main_ppo .",
        "docker run image --model trl",
        "ray start --head --node-name verl.trainer.main_ppo",
        "python3 -c 'import verl.trainer.main_ppo'",
        "echo python3 -m verl.trainer.main_ppo",
        "conda activate trl",
        "uv pip install trl",
        "cat train_sft.py",
        "vim run.sh",
    ] {
        assert_eq!(started(script), None, "{script}");
    }
}
