#!/usr/bin/env python3
"""Freezes the settings of three releases of verl, composed by Hydra itself: our editions of verl.

    pip install hydra-core
    python scripts/goldens/verl_defaults.py FOLDER            # with verl-0.4.1-*.whl, verl-0.7.0-*.whl and verl-0.9.1-*.whl

writes crates/config/src/compat/verl/EDITION.txt (verl's own YAML files without their comments, one after another),
crates/config/src/compat/editions.tsv (every key of every configuration, with its default verbatim) and
tests/golden/verl-defaults/resolved.tsv (the resolved values of defaults with `${...}`). Nothing of verl is imported or run. verl
is licensed under Apache-2.0, Copyright Bytedance Ltd. and its authors.
"""

import math
import pathlib
import sys
import tempfile
import zipfile

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

RELEASES = {"2025-06": "0.4.1", "2026-01": "0.7.0", "2026-08": "0.9.1"}
CONFIGS = ["evaluation", "generation", "ppo_megatron_trainer", "ppo_trainer", "sft_trainer", "sft_trainer_engine"]
FOLDER = "verl/trainer/config/"
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Keys of verl's main branch of January 2026 that were not yet in a release: scripts of that time use them.
AHEAD = {"2026-01": ROOT / "scripts/goldens/verl_main_2026_01.tsv"}


def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(FOLDER) and name.endswith(".yaml")]
        texts = {name.removeprefix(FOLDER): archive.read(name).decode() for name in names}
    return {name: bare(text) for name, text in sorted(texts.items()) if not name.startswith("_generated")}


def bare(text):
    """Removes comments and empty lines, except the header that names a package."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line and (not line.lstrip().startswith("#") or "@package" in line))


def composed(folder, config):
    with initialize_config_dir(str(folder), version_base=None):
        return compose(config)


def leaves(tree, above=""):
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def written(value):
    """A value on one line of YAML."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return ".inf" if math.isinf(value) else repr(value)
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, str):
        plain = value and "\t" not in value and ": " not in value and " #" not in value and value[0] not in "[{'\"&*!|>%@`"
        reads_same = plain and isinstance(yaml.safe_load(value), str) and not is_number(value)
        return value if reads_same or value == "???" else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(written(item) if not isinstance(item, str) else f'"{item}"' for item in value) + "]"
    return "{}" if value == {} else sys.exit(f"no default looks like {value!r}")


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def main():
    wheels = pathlib.Path(sys.argv[1])
    table, resolved = {}, {}
    for edition, release in RELEASES.items():
        (wheel,) = wheels.glob(f"verl-{release}-*.whl")
        pack = files(wheel)
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as whole:
            for name, text in pack.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(whole, [name for name in archive.namelist() if name.startswith(FOLDER)])
            for config in CONFIGS:
                if f"{config}.yaml" not in pack:
                    continue
                tree = composed(folder, config)
                assert tree == composed(pathlib.Path(whole) / FOLDER, config), f"{release}: {config} lost more than comments"
                defaults = dict(leaves(OmegaConf.to_container(tree)))
                values = dict(leaves(OmegaConf.to_container(tree, resolve=True)))
                for key, value in defaults.items():
                    table.setdefault((config, key), {})[edition] = written(value)
                for key, value in values.items():
                    if value != defaults.get(key):
                        resolved.setdefault((config, key), {})[edition] = written(value)
        text = "".join(f"=== {name.removesuffix('.yaml')}\n{text}" for name, text in pack.items())
        head = f"# The settings of verl {release}, Apache-2.0, without comments; scripts/goldens/verl_defaults.py writes this file.\n"
        (ROOT / f"crates/config/src/compat/verl/{edition}.txt").write_text(head + text)
    for edition, path in AHEAD.items():
        for line in path.read_text().splitlines():
            config, key, default = line.split("\t")
            table.setdefault((config, key), {}).setdefault(edition, default)
    write(ROOT / "crates/config/src/compat/editions.tsv", table)
    write(ROOT / "tests/golden/verl-defaults/resolved.tsv", resolved)


def write(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [[*key, *(defaults.get(edition, "-") for edition in RELEASES)] for key, defaults in sorted(table.items())]
    path.write_text("".join("\t".join(row) + "\n" for row in [["config", "key", *RELEASES], *rows]))


main()
