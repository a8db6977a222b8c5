#!/usr/bin/env python3
"""Loads the YAML files of verl's releases with `trainer config show`, and counts the errors.

    python scripts/compare/verl_files.py target/release/trainer 0.4.1 0.5.0 0.6.1 0.7.0 0.8.0 0.9.1

The releases are downloaded from PyPI; nothing of verl is imported or run.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile
import zipfile

KINDS = {"sft": "sft", "generation": "generate", "evaluation": "eval"}


def wheel(release, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"verl=={release}", "-d", folder]
    subprocess.run(command, check=True)
    return next(pathlib.Path(folder).glob(f"verl-{release}-*.whl"))


def main():
    trainer, releases = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    found = collections.defaultdict(list)
    for release in releases:
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(wheel(release, folder)) as archive:
                archive.extractall(folder, [name for name in archive.namelist() if name.startswith("verl/trainer/config/")])
            config = pathlib.Path(folder) / "verl/trainer/config"
            for file in sorted(config.glob("*.yaml")):
                text = file.read_text()
                # The others are parts of ppo_trainer.yaml.
                if "trainer:" not in text and "data:" not in text:
                    continue
                kind = next((kind for name, kind in KINDS.items() if file.stem.startswith(name)), "rl")
                command = [trainer, "config", "show", "--for", kind, "--config-path", config, "--config-name", file.stem]
                shown = subprocess.run(command, capture_output=True, text=True)
                blocks = [] if shown.returncode == 0 else shown.stderr.split("\n\n")
                problems = [block.splitlines()[0].removeprefix("error: ") for block in blocks if "problems with" not in block]
                for problem in problems or ["(nothing)"]:
                    found[problem].append(f"{release}/{file.stem}")
    for problem, files in sorted(found.items()):
        print(f"{len(files):3} {problem}\n    {', '.join(files)}")


main()
