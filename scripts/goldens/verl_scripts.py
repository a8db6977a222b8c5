"""Records the words that bash passes to the trainers which scripts launch: tests/golden/verl-scripts/scripts.jsonl.

    python scripts/goldens/verl_scripts.py tests/data/verl-scripts OUT

Each `*.sh` below the folder is run by bash in an empty folder, with nothing in PATH but bash, a few programs that only print
(`dirname`, `date`, `sed`), and stubs: a stub writes its words to a file and succeeds. `# args: …` and `# env: NAME=VALUE …` in a
script are its arguments and environment. A line of OUT has the script's name, its text, `args`, `env` and `launches`, the words
of each call of a trainer of verl. `$HOME` is /home/user, and the working folder reads /repo.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

PRINT = "bash sh dirname basename date seq tr cut sed wc cat head tail readlink realpath env expr sort uniq xargs echo".split()
STUBS = """python python3 torchrun uv ray pip nvidia-smi npu-smi accelerate nohup srun sbatch tee mkdir rm cp mv ln wget curl git
    sleep huggingface-cli hf ssh docker timeout sudo""".split()
STUB = """#!{bash}
printf '%s\\0' "$#" "${{0##*/}}" "$@" >> {record}
"""
# Every program outside the list is a stub, too.
NOT_FOUND = """command_not_found_handle() {{ printf '%s\\0' "$(($# - 1))" "$@" >> {record}; }}
"""


def calls(record):
    """Returns the words of the calls in a record: each is its number of arguments, its program and its arguments."""
    words = record.read_text().split("\0")[:-1] if record.exists() else []
    found = []
    while words:
        count = int(words[0]) + 1
        found.append(words[1 : 1 + count])
        words = words[1 + count :]
    return found


def given(text, name):
    lines = [line.removeprefix(f"# {name}:") for line in text.splitlines() if line.startswith(f"# {name}:")]
    return shlex.split(" ".join(lines))


def is_launch(words):
    return any("verl" in word and "main" in word or ".sft_trainer" in word or "_sft_trainer" in word for word in words[:40])


def launches(path):
    text = path.read_text()
    env = dict(pair.split("=", 1) for pair in given(text, "env"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record, programs, work = folder / "record", folder / "bin", folder / "repo"
        programs.mkdir()
        work.mkdir()
        bash = shutil.which("bash")
        for program in PRINT:
            (programs / program).symlink_to(shutil.which(program))
        for program in STUBS:
            (programs / program).write_text(STUB.format(bash=bash, record=record))
            (programs / program).chmod(0o755)
        (folder / "start").write_text(NOT_FOUND.format(record=record))
        around = {"PATH": str(programs), "HOME": "/home/user", "BASH_ENV": str(folder / "start"), "TZ": "UTC", **env}
        shutil.copy(path, work / path.name)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([bash, path.name, *given(text, "args")], cwd=work, env=around, timeout=60, **quiet)
        found = [[word.replace(str(work), "/repo") for word in words] for words in calls(record) if is_launch(words)]
    return {"script": path.name, "text": text, "args": given(text, "args"), "env": env, "launches": found}


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    rows = [launches(path) for path in sorted(folder.glob("*.sh"))]
    empty = [row["script"] for row in rows if not row["launches"]]
    if empty:
        sys.exit(f"no launch in {empty}")
    out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(f"{len(rows)} scripts")


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C.UTF-8"
    main()
