"""The cost of rewards, and the messages for a failing reward file: writes docs/benchmarks/rewards.md.

    python3 scripts/bench/bench_rewards.py target/release/trainer

Needs only Python's standard library. Times: 10,000 responses of about 2 kB, scored by verl's gsm8k rule in Rust, and by the same
rule in a Python file through 1 and 2 workers; 5 repeats of each in turn, medians. Misbehaviour: tests/data/rewards/misbehaves.py,
in a run of three steps that is saved after each; the file fails from the second step.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TRAINER = os.path.abspath(sys.argv[1])
REPEATS = 5
COUNT = 10000
RULE = '''import re

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    found = re.findall("#### (\\\\-?[0-9\\\\.\\\\,]+)", solution_str[-300:])
    if not found:
        return 0
    return 1.0 if found[-1].replace(",", "").replace("$", "") == ground_truth else 0.0
'''
CASES = [
    ("raises", "an exception", []),
    ("wrong_type", "the wrong type", []),
    ("no_score", "a missing key", []),
    ("not_a_number", "NaN", []),
    ("hangs", "hangs", ["reward.timeout=2"]),
    ("hangs_in_c", "hangs in C code", ["reward.timeout=2"]),
    ("memory_bomb", "a memory bomb", []),
    ("prints", "prints to stdout", []),
    ("exits", "ends its process", []),
    ("forks_and_exits", "forks and exits", []),
    ("crashes", "a segmentation fault", []),
]


def responses(folder):
    """One row per response, half of them right, in the format of `trainer generate`."""
    path = os.path.join(folder, "responses.jsonl")
    with open(path, "w") as file:
        for i in range(COUNT):
            text = "She has %d apples and buys %d more, which makes %d. " % (i, i + 1, 2 * i + 1)
            text = text * (2000 // len(text)) + "#### %d" % (i if i % 2 else i + 1)
            row = {"data_source": "openai/gsm8k", "responses": [text], "reward_model": {"ground_truth": str(i)}}
            file.write(json.dumps(row) + "\n")
    return path


def scored_per_second(path, options):
    result = subprocess.run([TRAINER, "eval", "data.path=" + path, *options], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"test_score/openai/gsm8k": 0.5}, result.stdout
    return float(re.search(r"scored in ([0-9.]+) s", result.stderr).group(1))


def throughput(folder):
    path, file = responses(folder), os.path.join(folder, "gsm8k_rule.py")
    with open(file, "w") as code:
        code.write(RULE)
    custom = "custom_reward_function.path=" + file
    ways = {
        "the rule of this program, 1 thread": ["reward.num_workers=1"],
        "the rule of this program, 2 threads": ["reward.num_workers=2"],
        "a Python file, 1 worker": [custom, "reward.num_workers=1"],
        "a Python file, 2 workers": [custom, "reward.num_workers=2"],
    }
    seconds = {name: [] for name in ways}
    in_python = []
    scope = {}
    exec(RULE, scope)
    rows = [json.loads(line) for line in open(path)]
    for _ in range(REPEATS):
        for name, options in ways.items():
            seconds[name].append(scored_per_second(path, options))
        start = time.perf_counter()
        for row in rows:
            scope["compute_score"]("openai/gsm8k", row["responses"][0], row["reward_model"]["ground_truth"], {})
        in_python.append(time.perf_counter() - start)
    plain = statistics.median(in_python)
    lines = ["| 10,000 responses of 2 kB | Seconds | Per second | Per call |", "|---|---:|---:|---:|"]
    for name, took in [*seconds.items(), ("for comparison: a Python loop over the same function", in_python)]:
        median = statistics.median(took)
        lines.append("| %s | %.3f (%.3f to %.3f) | %s | %.1f µs |" % (
            name, median, min(took), max(took), format(round(COUNT / median), ","), median / COUNT * 1e6))
    overhead = (statistics.median(seconds["a Python file, 1 worker"]) - plain) / COUNT * 1e6
    lines.append("")
    lines.append("These times include the start of the processes. A call through a worker costs %.0f µs more than the function itself." % overhead)
    return lines


def misbehaviour(folder):
    lines = ["| The file… | Exit code | State after step 1 | The same command afterwards |", "|---|---:|---|---|"]
    messages, whole = [], None
    for does, title, options in [("nothing", "behaves", []), *CASES]:
        run = os.path.join(folder, does)

        def train(does):
            return subprocess.run([
                TRAINER, "--config", "ppo_trainer.yaml", "data.train_batch_size=8", "data.val_max_samples=32",
                "actor_rollout_ref.rollout.n=4", "actor_rollout_ref.actor.ppo_mini_batch_size=4",
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8", "trainer.total_training_steps=3", "trainer.save_freq=1",
                "trainer.test_freq=-1", "trainer.val_before_train=false", "trainer.logger=[file]", "reward.num_workers=2",
                "trainer.default_local_dir=" + run, "custom_reward_function.path=tests/data/rewards/misbehaves.py",
                "+custom_reward_function.reward_kwargs.does=" + does,
                "+custom_reward_function.reward_kwargs.since=" + os.path.join(run, "global_step_1"), *options,
            ], capture_output=True, text=True)

        first = train(does)
        weights = lambda step: open(os.path.join(run, "global_step_%d/actor/huggingface/model.safetensors" % step), "rb").read()
        if whole is None:
            whole = (weights(1), weights(3))
            continue
        message = first.stderr[first.stderr.find("error:"):] if "error:" in first.stderr else ""
        message = message.replace(run, "RUN").strip()
        message = re.sub(r'\("[^"]*"\)', "(…)", message)
        message = re.sub(r'File "[^"]*/([^/"]+)"', r'File "…/\1"', message)
        message = message.split("\nthe state after")[0]
        again = train("nothing")
        assert again.returncode == 0, again.stderr
        intact = "whole" if weights(1) == whole[0] else "CHANGED"
        after = "ends as an undisturbed run" if weights(3) == whole[1] else "OTHER WEIGHTS"
        lines.append("| %s | %d | %s | %s |" % (title, first.returncode, intact, after))
        messages += ["%s:" % title.capitalize(), "", "```text", message, "```", ""] if message else []
    slow = subprocess.run([
        TRAINER, "--config", "ppo_trainer.yaml", "custom_reward_function.path=tests/data/rewards/slow.py", "reward.start_timeout=2",
        "trainer.default_local_dir=" + os.path.join(folder, "slow"),
    ], capture_output=True, text=True)
    message = re.sub(r'File "[^"]*/([^/"]+)"', r'File "…/\1"', slow.stderr.strip())
    lines.append("| takes minutes to load | %d | not begun | |" % slow.returncode)
    messages += ["Takes minutes to load:", "", "```text", message, "```"]
    return [*lines, "", "The messages:", "", *messages]


def main():
    with tempfile.TemporaryDirectory() as folder:
        text = ["# Rewards: cost, and files that misbehave", "",
                "<!-- Written by scripts/bench/bench_rewards.py. -->", "",
                "Measured on %d cores. 5 repeats in turn, median (least to most)." % os.cpu_count(), "", "## Time", ""]
        text += throughput(folder)
        text += ["", "## Files that misbehave", "",
                 "A run has three steps, saved after each. From the second step on, the file misbehaves as the first column says. “Whole”: the",
                 "checkpoint of step 1 has the same bytes as that of an undisturbed run. Without a message, the run is an undisturbed one.", ""]
        text += misbehaviour(folder)
    with open("docs/benchmarks/rewards.md", "w") as page:
        page.write("\n".join(text) + "\n")


main()
