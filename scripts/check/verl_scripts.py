"""Coverage of verl's scripts: from-verl, then a dry run of the recipe with a small model and its data instead of theirs.

    python scripts/check/verl_scripts.py TRAINER SCRIPTS.jsonl

SCRIPTS.jsonl has a script per line, written by scripts/goldens/verl_scripts.py. Prints how many recipes are complete, how many of
them pass `--dry-run`, and for the others how often each reason occurs. Open values of a recipe are set to 1.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN, TEST = ROOT / "data/arithmetic/train.parquet", ROOT / "data/arithmetic/test.parquet"
COMMON = ["trainer.logger=[console]", "trainer.device=cpu"]
MODELS = ["actor_rollout_ref.model.path=model", "critic.model.path=model", "reward_model.model.path=reward_model"]
# Evaluation has no dry run.
INSTEAD = {
    "": [*MODELS, f"data.train_files={TRAIN}", f"data.val_files={TEST}", *COMMON],
    "sft": ["model.path=model", "data.train_files=sft.jsonl", "data.val_files=sft.jsonl", *COMMON],
    "generate": ["model.path=model", f"data.path={TEST}", "data.output_path=out.parquet", "trainer.device=cpu"],
    "eval": None,
}


def small(folder):
    """Writes a small model that takes prompts of any length, a reward model, and a conversation for supervised fine-tuning."""
    for name in ["model", "reward_model"]:
        shutil.copytree(ROOT / "data/arithmetic" / name, folder / name)
        config = json.loads((folder / name / "config.json").read_text())
        (folder / name / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 1 << 20}))
    template = "{% for message in messages %}{{ message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    path = folder / "model/tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": template}))
    turns = [{"role": "user", "content": "1+2="}, {"role": "assistant", "content": "3"}]
    row = {"messages": turns, "question": "1+2=", "answer": "3", "extra_info": {"question": "1+2=", "answer": "3"}}
    (folder / "sft.jsonl").write_text((json.dumps(row) + "\n") * 600)


def run(trainer, script, folder):
    """Returns the result of the script: `whole` or `part` of it is in the recipe, whether a dry run passes, and the reasons
    why not."""
    path, recipe = folder / "script.sh", folder / "recipe.yaml"
    path.write_text(script["text"])
    recipe.unlink(missing_ok=True)
    around = {**os.environ, "HOME": "/home/user", "NO_COLOR": "1"}
    variables = [f"{name}={value}" for name, value in script["env"].items()]
    words = [trainer, "from-verl", f"@{path}", "--output", str(recipe), *variables, "--", *script["args"]]
    done = subprocess.run(words, cwd=folder, env=around, capture_output=True, text=True)
    if not recipe.exists():
        return "refused", False, [done.stderr.strip().splitlines()[0]]
    reasons = re.findall(r"in the way, \d+\. (.*)", done.stderr)
    words = done.stdout.split()
    subcommand = words[1] if words[1] in INSTEAD else ""
    if INSTEAD[subcommand] is None:
        return "whole" if done.returncode == 0 else "part", done.returncode == 0, reasons
    plan = "--dry-run" if subcommand == "generate" else "--dry-run=plan"
    dry = [trainer, *([subcommand] if subcommand else []), "--config", str(recipe), plan, *INSTEAD[subcommand]]
    opened = {name: "1" for name in re.findall(r"\$\{oc\.env:(\w+)\}", recipe.read_text())}
    tried = subprocess.run(dry, cwd=folder, env={**opened, **around}, capture_output=True, text=True)
    if tried.returncode != 0:
        reasons += [f"dry run: {line}" for line in tried.stderr.strip().splitlines() if line.startswith(("error", "`", "no "))][:3]
    return "whole" if done.returncode == 0 else "part", tried.returncode == 0, reasons


def main():
    trainer, scripts = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).read_text().splitlines()
    counts, why = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        small(pathlib.Path(name))
        for line in scripts:
            script = json.loads(line)
            end, passes, reasons = run(trainer, script, pathlib.Path(name))
            counts[f"{end}, {'passes' if passes else 'fails'} the dry run"] += 1
            why.update({re.sub(r"=.*?: ", ": ", reason) for reason in reasons})
            if "-v" in sys.argv:
                print(script["script"], end, passes, reasons)
    for name, count in counts.most_common():
        print(f"{count:4} {name}")
    print("the reasons, with the number of scripts that each concerns")
    for reason, count in why.most_common():
        print(f"{count:4} {reason}")


if __name__ == "__main__":
    main()
