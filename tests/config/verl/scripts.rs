//! Shell scripts: the words that bash passes to the programs they start, and actions that are forbidden.

use super::{convert, golden_folder};
use burnish::convert::from_verl::{self, VerlConversion, VerlSource};
use burnish::convert::shell::{ShellEnv, read, replace_unknowns};
use std::collections::HashMap;

/// A script with its arguments and the words of its first launch, recorded by `scripts/goldens/verl_scripts.py`: every program
/// was a stub that succeeds.
struct Launching {
    script: String,
    text: String,
    arguments: Vec<String>,
    environment: HashMap<String, String>,
    launch: Vec<String>,
}

/// Two times that differ in every part: a difference between their readings is a date.
const TIMES: [i64; 2] = [1_795_352_400, 1_836_953_711];

fn launching() -> Vec<Launching> {
    let path = golden_folder().join("verl-scripts/scripts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let strings = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_string()).collect()
    };
    let parse = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let pairs = line["env"].as_object().unwrap().iter();
        let mut environment: HashMap<String, String> =
            pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_string())).collect();
        environment.insert("HOME".into(), "/home/user".into());
        Launching {
            script: line["script"].as_str().unwrap().to_string(),
            text: line["text"].as_str().unwrap().to_string(),
            arguments: strings(&line["args"]),
            environment,
            launch: strings(&line["launches"][0]).into_iter().filter(|word| !word.is_empty()).collect(),
        }
    };
    text.lines().map(parse).collect()
}

impl Launching {
    fn with<T>(&self, now: i64, run: impl FnOnce(ShellEnv) -> T) -> T {
        run(ShellEnv {
            name: &self.script,
            arguments: &self.arguments,
            folder: "/repo".into(),
            script_folder: None,
            variable: &|name| self.environment.get(name).cloned(),
            line: None,
            launch: None,
            stubs: true,
            now,
        })
    }

    fn convert(&self, now: i64) -> Result<VerlConversion, String> {
        let convert = |env: ShellEnv<'_>| from_verl::convert(&VerlSource { text: &self.text, edition: None, program: None, env });
        self.with(now, convert).map_err(|error| error.to_string())
    }

    /// Returns the words of the trainer's launch without empty words; unset variables are empty.
    fn words(&self, now: i64) -> Result<Vec<String>, String> {
        let is_launch = |word: &String| self.launch.contains(word) && word.contains('.') && !word.contains('=');
        let is_meant = |words: &[String]| words.iter().any(is_launch);
        let script = self.with(now, |env| read(&self.text, &env, &is_meant)).map_err(|error| format!("{error:?}"))?;
        let hole = |index: usize| {
            let hole = &script.unknowns[index];
            if hole.is_unset { String::new() } else { format!("<{}>", hole.message) }
        };
        let call = script.calls.iter().find(|call| is_meant(&call.words)).ok_or("no launch")?;
        let filled = call.words.iter().map(|word| replace_unknowns(word, &hole));
        Ok(filled.filter(|word| !word.is_empty()).collect())
    }
}

/// Replaces the digits of the parts that depend on the time, in our words and in bash's.
fn undated<'a>(ours: [Vec<&'a str>; 2], bash: Vec<&'a str>) -> (Vec<String>, Vec<String>) {
    let is_dated = |index: usize| ours[0].get(index) != ours[1].get(index);
    let plain = |(index, part): (usize, &&str)| {
        if is_dated(index) { part.replace(|c: char| c.is_ascii_digit(), "#") } else { part.to_string() }
    };
    (ours[0].iter().enumerate().map(plain).collect(), bash.iter().enumerate().map(plain).collect())
}

fn texts(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Compares two lists, and returns the first difference.
fn difference(ours: &[String], bash: &[String]) -> Option<String> {
    let first = (0..ours.len().max(bash.len())).find(|index| ours.get(*index) != bash.get(*index))?;
    Some(format!("{:?}, in bash {:?}", ours.get(first), bash.get(first)))
}

#[test]
fn golden_scripts_are_read_as_bash_reads_them() {
    let mut wrong = vec![];
    let all = launching();
    for one in &all {
        let [first, second] = TIMES.map(|now| one.words(now).unwrap_or_else(|error| vec![error]));
        let (ours, bash) = undated([texts(&first), texts(&second)], texts(&one.launch));
        wrong.extend(difference(&ours, &bash).map(|differs| format!("{}: {differs}", one.script)));
    }
    assert!(all.len() >= 5 && wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The recipe of a script is the recipe of the words that bash passes.
#[test]
fn golden_scripts_convert_as_the_words_of_bash_do() {
    let (mut wrong, all) = (vec![], launching());
    for one in &all {
        let [first, second] = TIMES.map(|now| one.convert(now).map_or_else(|error| error, |converted| converted.recipe));
        let words = burnish::util::shell::command_line(&one.launch);
        let source = VerlSource { text: &words, edition: None, program: None, env: ShellEnv::for_text("command") };
        let bash =
            from_verl::convert(&source).map_or_else(|error| format!("bash's words: {error}"), |converted| converted.recipe);
        let (ours, bash) = undated([first.lines().collect(), second.lines().collect()], bash.lines().collect());
        wrong.extend(difference(&ours, &bash).map(|differs| format!("{}: {differs}", one.script)));
    }
    assert!(all.len() >= 5 && wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

const LAUNCH: &str = "python3 -m verl.trainer.main_ppo";

/// Converts a script that sets `$A`, and returns the line of the recipe with its value.
fn value(script: &str) -> Result<String, String> {
    let converted = convert(&format!("{script}\n{LAUNCH} trainer.project_name=\"'$A'\"")).map_err(|error| error.to_string())?;
    let line = converted.recipe.lines().find_map(|line| line.trim().strip_prefix("project_name: ").map(str::to_string));
    Ok(line.unwrap_or_default().trim_matches('\'').to_string())
}

#[test]
fn values_are_worked_out_as_in_bash() {
    for (script, expected) in [
        ("A=x\nA+=y", "xy"),
        ("A=z1 && A=z2", "z2"),
        ("A=v\ncat <<EOF >f\nA=2\nEOF\ncat <<-'END' | sort\nA=3\n\tEND", "v"),
        ("B=\nA=x${B-4}", "x"),
        ("B=\nA=x${B:-4}", "x4"),
        ("A=x\nif true; then B=2; fi\nfor x in 1; do B=$x; done", "x"),
        ("if [ -n x ]; then A=yes1; else A=no1; fi", "yes1"),
        ("A=x\n[ -z x ] && A=y", "x"),
        ("case ab in a) A=x;; a*) A=y;; esac", "y"),
        ("f() { local A=y; B=$1; }\nA=x\nf 3\nA+=$B", "x3"),
        ("set -- p q r; shift; A=$#$1", "2q"),
        ("A=x$(( 7 / 2 ** 1 + (1 < 2) ))", "x4"),
        ("B=/a/b.tar.gz; A=${B##*/}; A=${A%%.*}-${B#/}", "b-a/b.tar.gz"),
        ("A=x; (A=y); A+=z", "xz"),
        ("set -e\nA=x\nfalse || A=y", "y"),
        ("A=\"${B:-\"it's\"}\"; A=${A/\\'/}", "its"),
        ("while getopts 'a:b' o -- ; do :; done; A=x", "x"),
        ("set -- -b -a 5; while getopts 'a:b' o; do A+=$o$OPTARG; done", "ba5"),
        ("A=\"x \\\n  y\"", "x   y"),
        ("read -r -d '' A <<EOF\n x \\\n  y\nEOF", "x   y"),
        ("IFS=, read -r B A <<< 'p,q,r'; IFS=, read -ra L <<< 'u,,w'; A+=-${#L[@]}${L[2]}", "q,r-3w"),
        ("f() { declare -n out=$1; out=x$FUNCNAME; }\nf A", "xf"),
        ("PRE_1=x; PRE_2=y; A=; for n in ${!PRE_@}; do A+=${!n}; done", "xy"),
        ("[ -d /no/such/model ] || { echo missing; exit 1; }\nA=x", "x"),
        ("f() { read -p ask v; export \"$1=$v\"; }\nf B\nif [[ $B == *a* ]]; then A=x; else exit 1; fi", "x"),
        ("mapfile -t L <<< $'p\\nq'; A=${L[1]}", "q"),
        ("A=x; eval 'A=$A$A'", "xx"),
        ("B=A; A=x; A=${!B}y", "xy"),
        ("printf -v A '%03d-%s' 7 x", "007-x"),
        (&format!("A={}x{}", "${B:-".repeat(14), "}".repeat(14)), "x"),
    ] {
        assert_eq!(value(script).as_deref(), Ok(expected), "{script}");
    }
}

/// Values that only a run could determine are placeholders in the recipe with their reason and line; no command is run.
#[test]
fn what_cannot_be_known_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    for (script, reason) in [
        ("A=$(hostname)".to_string(), "`hostname` is not run (line 1)"),
        ("if ping -c1 x; then\n  A=2\nelse A=3; fi".into(), "`$A` is set inside `if` with an unknown condition (line 1)"),
        ("while read -r x; do\nA=$x\ndone < list".into(), "`$A` is set inside a loop"),
        ("case $(hostname) in\n  a|b) A=2;;\nesac".into(), "inside `case`"),
        ("A=1\nping x && A=2".into(), "after `&&`"),
        (format!("A=$(touch {0}; python3 -c 'open(\"{0}\", \"w\")')", made.display()), "is not run"),
        ("set -u\nA=$NONE".into(), "`$NONE` is not set (line 2)"),
        ("A=${NONE:?which one}".into(), "the script asks for `${NONE}`: which one (line 1)"),
    ] {
        let line = value(&script).unwrap();
        assert!(line.starts_with("${oc.") && line.contains("}  # set me: ") && line.contains(reason), "{script}\n{line}");
    }
    assert!(!made.exists());
    // Without `set -u`, an unset variable is empty, and a message says so.
    let converted = convert(&format!("A=1\n{LAUNCH} trainer.project_name=x$NONE \"\" $NONE ' '")).unwrap();
    assert!(converted.recipe.contains("project_name: x\n"), "{}", converted.recipe);
    assert!(converted.notes[0].contains("command:2: `$NONE` is not set") && converted.notes[1].contains("blank"));
}

#[test]
fn scripts_that_cannot_be_read_are_refused_at_their_line() {
    let deep = format!("A=$(({}1{}))", "(".repeat(60_000), ")".repeat(60_000));
    let long = format!("A=xx\n{}", "A=$A$A\n".repeat(40));
    for (script, parts) in [
        (format!("A={}x{}\n{LAUNCH}", "${B:-".repeat(300), "}".repeat(300)), ["command:1", "nested too deeply"]),
        (deep + "\n" + LAUNCH, ["command:1", "nested too deeply"]),
        (format!("{}\n{LAUNCH}", "( ".repeat(60_000)), ["command:1", "nested too deeply"]),
        (long + LAUNCH, ["command:", "20 MB"]),
        (format!("for ((i = 0; i >= 0; i++)); do A=1; done\n{LAUNCH}"), ["command:1", "too many steps"]),
        (format!("f() {{ f; }}\nf\n{LAUNCH}"), ["command:", "nested too deeply"]),
        (format!("{LAUNCH} data.seed='1"), ["command:1", "quote"]),
        (format!("if [ -z \"$1\" ]; then\n  exit 1\nfi\n{LAUNCH}"), ["command:2", "the script ends here"]),
        ("python3 train.py".into(), ["no command of verl", "main_ppo"]),
        ("python3 train.py lr=1".into(), ["command:1 starts `train.py`, which is not a program of verl", "--as main_ppo"]),
        (format!("A=<PATH>\n{LAUNCH}"), ["command:1", "replace <PATH>"]),
    ] {
        let message = convert(&script).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn launchers_are_seen_through() {
    for launcher in [
        "python3 -m verl.trainer.main_ppo",
        "python verl/trainer/main_ppo.py",
        "PYTHONUNBUFFERED=1 nohup python3 -u -m verl.trainer.main_ppo",
        "torchrun --nnodes=1 --nproc_per_node 8 -m verl.trainer.main_ppo",
        "uv run --frozen --extra vllm python3 -m verl.trainer.main_ppo",
        "accelerate launch --num_processes 8 -m verl.trainer.main_ppo",
        "srun -N1 --container-image=x python3 -m verl.trainer.main_ppo",
        "ray job submit --address=http://localhost:8265 --runtime-env=e.yaml -- python3 -m verl.trainer.main_ppo",
        "exec env A=1 python3 -m verl.trainer.main_ppo",
        "timeout 3h python3 -m verl.trainer.main_ppo",
    ] {
        let converted = convert(&format!("{launcher} data.train_batch_size=24 > log 2>&1 &\nwait")).unwrap();
        assert!(converted.recipe.contains("train_batch_size: 24"), "{launcher}: {}", converted.recipe);
    }
    for script in [
        format!("bash -c \"cd x && {LAUNCH} data.train_batch_size=24\""),
        format!("bash <<EOF\n{LAUNCH} data.train_batch_size=24\nEOF"),
        format!("ssh host '{LAUNCH} data.train_batch_size=24'"),
        format!("srun bash -lc '{LAUNCH} data.train_batch_size=$1' x 24"),
        format!("sbatch --wrap=\"{LAUNCH} data.train_batch_size=24\""),
        format!("sbatch <<'EOF'\n#!/bin/bash\n#SBATCH -N1\n{LAUNCH} data.train_batch_size=24\nEOF"),
        format!("cat > run.sh <<EOF\n{LAUNCH} data.train_batch_size=24\nEOF\nbash run.sh"),
    ] {
        let converted = convert(&script).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(converted.recipe.contains("train_batch_size: 24"), "{script}: {}", converted.recipe);
    }
}

/// verl's experiments and recipes become runs of this program; a message names each lost setting.
#[test]
fn experiments_and_recipes_convert() {
    let fully = "python -m verl.experimental.fully_async_policy.fully_async_main --config-path=config \
                 --config-name=fully_async_ppo_trainer.yaml data.train_batch_size=0 data.gen_batch_size=1 \
                 actor_rollout_ref.actor.ppo_mini_batch_size=32 async_training.require_batches=2 \
                 async_training.trigger_parameter_sync_step=4 rollout.total_rollout_steps=51200 rollout.test_freq=5 \
                 actor_rollout_ref.hybrid_engine=False rollout.nnodes=1";
    let converted = convert(fully).unwrap();
    for line in ["train_batch_size: 256", "total_training_steps: 200", "test_freq: 5", "calculate_log_probs: true"] {
        assert!(converted.recipe.contains(line), "{line}: {}", converted.recipe);
    }
    assert!(converted.blocked.is_empty() && converted.notes[0].contains("take turns"), "{:?}", converted.blocked);
    let multi_turn = format!("{LAUNCH} --config-path=/repo/config --config-name=gsm8k_multiturn_grpo data.train_batch_size=64");
    let converted = convert(&multi_turn).unwrap();
    assert!(converted.recipe.contains("max_prompt_length: 1024") && converted.recipe.contains("train_batch_size: 64"));
    assert!(converted.recipe.contains("enable: true") && converted.blocked.is_empty(), "{}", converted.recipe);
    for (command, key) in [
        ("python -m verl.experimental.one_step_off_policy.main_ppo --config-name=one_step_off_ppo_trainer", None),
        ("python -m verl.experimental.transfer_queue.main_ppo --config-name transfer_queue_ppo_trainer", None),
        ("python3 -m recipe.dapo.main_dapo algorithm.filter_groups.enable=True", None),
        ("python3 -m verl.experimental.vla.main_ppo env.train.seed=4", Some("")),
        ("python3 -m recipe.prime.main_prime", Some("")),
        (&format!("{LAUNCH} +ray_kwargs.a.b=1 ray_kwargs.ray_init.num_cpus=4"), None),
        (&format!("{LAUNCH} actor@actor_rollout_ref.actor=mlite_actor actor_rollout_ref.actor.engine.tp=2"), None),
        (&format!("{LAUNCH} +reward_model.reward_kwargs.overlong_buffer_cfg.enable=True"), None),
        (&format!("{LAUNCH} +actor_rollout_ref.actor.fsdp_config.model_dtype=bfloat16"), None),
        (&format!("{LAUNCH} data.tain_files=x"), Some("data.tain_files")),
        (&format!("{LAUNCH} +data.nothing=1"), Some("data.nothing")),
    ] {
        let converted = convert(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        let blocked: Vec<&str> = converted.blocked.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(blocked.first().copied(), key, "{command}: {:?}", converted.blocked);
    }
}
