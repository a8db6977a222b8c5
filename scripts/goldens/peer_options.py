#!/usr/bin/env python3
"""Records every option of the commands of TRL and OpenRLHF that are converted here, with its default in every release.

    pip download --no-deps -d FOLDER trl==0.11.4        # likewise every release, and the releases of transformers named below
    python scripts/goldens/peer_options.py FOLDER

writes crates/convert/src/from_trl/options.tsv and crates/convert/src/from_openrlhf/options.tsv from all wheels in the folder. The dataclasses of
TRL and of transformers are read as syntax trees; the parsers of OpenRLHF are built by argparse itself. Nothing else of the libraries is
imported or run. TRL and transformers are licensed under Apache-2.0, Copyright The HuggingFace Team; OpenRLHF under Apache-2.0, Copyright its
authors.
"""

import argparse
import ast
import datetime
import json
import math
import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Releases of transformers since a release of TRL: of its time, then an earlier one that works too, whose further options count.
TRANSFORMERS = {
    "0.11.4": ["4.44.2"], "0.12.2": ["4.46.3"], "0.13.0": ["4.47.1"], "0.14.0": ["4.48.3"], "0.15.0": ["4.49.0"], "0.16.0": ["4.50.3"],
    "0.17.0": ["4.51.3"], "0.18.0": ["4.52.4"], "0.19.0": ["4.53.3"], "0.21.0": ["4.55.4"], "0.22.0": ["4.56.2"], "0.24.0": ["4.57.1"],
    "0.28.0": ["5.0.0", "4.57.1"], "1.1.0": ["5.6.0", "4.57.1"], "1.6.0": ["5.12.0", "4.57.1"], "1.10.0": ["5.18.0", "4.57.1"],
    "1.16.0": ["5.24.0", "4.57.1"],
}
TRL = "a2po cpo dpo gkd gold grpo iw_opd kto online_dpo orpo ppo reward rloo sdft sdpo sft tpo".split()
OPENRLHF = "train_dpo train_kd train_kto train_ppo train_ppo_ray train_prm train_rm train_sft".split()
# Defaults that are expressions, with their values; a dict is by the first number of the version of transformers.
EXPRESSIONS = {
    "default_optim": {"4": "adamw_torch", "5": "adamw_torch_fused"},
    "None if not is_torch_available() or is_torch_greater_or_equal_than_2_0 else 2": None,
    "factory:list": [],
    "factory:dict": {},
    "FDivergenceType.REVERSE_KL": "reverse_kl",
    "REQUIRED": None,
}
LISTS = {"report_to", "optim_target_modules", "reward_clip_range", "debug"}
TEXTS = {"include_num_input_tokens_seen", "dataset_config", "fsdp"}


def order(version):
    return [int(part) for part in version.replace("post", "").split(".")]


class Library:
    """The files of a wheel, and the classes of its Python files."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)
        self.names = {item.split("/purelib/")[-1]: item for item in self.archive.namelist()}
        self.version = path.name.split("-")[1]

    def tree(self, path):
        return ast.parse(self.archive.read(self.names[path]))

    def classes(self, pattern):
        """{(path, class name): node} of the files whose path matches."""
        files = [path for path in self.names if re.search(pattern, path)]
        return {(path, node.name): node for path in files for node in self.tree(path).body if isinstance(node, ast.ClassDef)}


def wheels(folder, name):
    found = [Library(path) for path in folder.rglob(f"{name}-*.whl")]
    return sorted(found, key=lambda library: order(library.version))


def trl_release(library, companions):
    """{command: {option: (kind, default)}} of one release of TRL."""
    commands = {}
    own = library.classes(r"^trl/.*(_config|scripts/\w+|cli_utils|utils)\.py$")
    for companion in reversed(companions):
        known = {**companion.classes(r"^transformers/training_args\.py$"), **own}

        def find(name, near=""):
            places = [path for path, known_name in known if known_name == name]
            best = min(places, key=lambda path: (path != near, "experimental" in path, len(path)), default=None)
            return best and (best, known[best, name])

        def fields(name, near=""):
            path, node = find(name, near) or ("", None)
            found = {}
            for base in node.bases if node else []:
                found.update(fields(ast.unparse(base).split(".")[-1], path))
            for item in node.body if node else []:
                if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_") and not (name == "TrainingArguments" and item.target.id == "framework"):
                    found[item.target.id] = (kind(item.target.id, ast.unparse(item.annotation)), default(item.value, companion.version))
            return found

        for path, name in own:
            stem = re.fullmatch(r".*/(\w+)_config\.py", path)
            if not stem or not name.endswith("Config") or "TrainingArguments" not in ancestors(name, path, find):
                continue
            command = stem[1].removesuffix("v2")
            if command == "ppo" and stem[1] == "ppo" and any("ppov2_config" in other for other, _ in own):
                continue
            script = next((found for place, found in own if place == f"trl/scripts/{command}.py" and found.endswith("ScriptArguments")), None)
            script = script or (f"{command.upper()}ScriptArguments" if find(f"{command.upper()}ScriptArguments") else "ScriptArguments")
            for part, near in ((script, ""), (name, path), ("ModelConfig", ""), ("DatasetMixtureConfig", "")):
                commands.setdefault(command, {}).update(fields(part, near))
    return commands


def ancestors(name, path, find):
    found = find(name, path)
    bases = [ast.unparse(base).split(".")[-1] for base in found[1].bases] if found else []
    return set(bases).union(*(ancestors(base, found[0], find) for base in bases))


def default(node, version):
    if isinstance(node, ast.Call):
        words = {word.arg: word.value for word in node.keywords}
        if "default" in words:
            node = words["default"]
        else:
            factory = words.get("default_factory")
            if isinstance(factory, ast.Lambda):
                return ast.literal_eval(factory.body)
            return EXPRESSIONS[f"factory:{ast.unparse(factory)}" if factory else "REQUIRED"]
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except ValueError:
        text = ast.unparse(node)
        if "__file__" in text:
            return "???"
        found = EXPRESSIONS.get(text)
        return found[version[0]] if isinstance(found, dict) and found else found


def kind(name, annotation):
    """How the option is read: flag, int, float, list, tree (JSON or YAML), text."""
    if name in TEXTS or name in LISTS:
        return "text" if name in TEXTS else "list"
    parts = annotation.removeprefix("Optional[").rstrip("]").replace(" ", "")
    first = annotation.replace(" ", "").removeprefix("Optional[").removeprefix("Union[")
    if parts.split("|")[0] == "bool":
        return "flag"
    if first.lower().startswith(("list[", "tuple[")):
        return "list"
    if "dict" in first.lower() or name.endswith(("_kwargs", "_config")) or name == "deepspeed":
        return "tree"
    for word in ("int", "float"):
        if parts.split("|")[0] == word and "str" not in parts:
            return word
    return "list" if "list[str" in parts.lower() else "text"


def openrlhf_release(library):
    """{command: {option: (kind, default)}} of one release of OpenRLHF."""
    commands = {}
    for path in library.names:
        name = re.fullmatch(r"openrlhf/cli/(\w+)\.py", path)
        if not name or name[1] == "__init__":
            continue
        commands[name[1]] = {}
        for body in [node.body for node in library.tree(path).body if isinstance(node, ast.If) and name[1] in OPENRLHF]:
            start = next(i for i, node in enumerate(body) if "ArgumentParser()" in ast.unparse(node))
            end = next(i for i, node in enumerate(body) if "parse_args()" in ast.unparse(node))
            names = {"argparse": argparse, "datetime": datetime.datetime}
            exec(compile(ast.Module(body[start:end], []), name[1], "exec"), names)
            for action in names["parser"]._actions[1:]:
                value = list(action.default) if isinstance(action.default, tuple) else action.default
                if isinstance(value, str) and re.fullmatch(r"[a-z_]+_\d{4}T\d\d:\d\d", value):
                    value = "???"
                if isinstance(value, float) and math.isinf(value):
                    value = ".inf"
                for option in action.option_strings:
                    commands[name[1]][option.removeprefix("--")] = (action_kind(action), value)
    return commands


def action_kind(action):
    if action.nargs == 0:
        return "flag" if action.const else "unflag"
    if action.nargs is not None:
        return "list"
    return {int: "int", float: "float"}.get(action.type, "text")


def grouped(releases, supported):
    """Groups releases in a row with the same options of the supported commands and the same commands."""
    groups = []
    for version, commands in releases:
        state = (set(commands), {command: commands[command] for command in supported if command in commands})
        if groups and groups[-1][1] == state:
            groups[-1][0].append(version)
        else:
            groups.append(([version], state))
    return groups


def histories(states, releases):
    """The changes of an option: [(commands, cells)]. `states`: {command: per release None without the command, False without the
    option, or the default as JSON}. Commands that agree wherever both exist share a row."""
    merged = []
    for command, own in sorted(states.items()):
        for names, joint in merged:
            if all(a is None or b is None or a == b for a, b in zip(joint, own)):
                joint[:] = [b if a is None else a for a, b in zip(joint, own)]
                names.append(command)
                break
        else:
            merged.append(([command], list(own)))
    for names, joint in merged:
        cells, now = [], False
        for release, state in zip(releases, joint):
            if state is not None and state != now:
                cells.append(release if state is False else f"{release}={state}")
                now = state
        yield names, cells


def write(path, groups, supported):
    releases = [names[0] for names, _ in groups]
    lines = ["\t".join(["releases", *(" ".join(names) for names, _ in groups)])]
    for command in sorted(set().union(*(commands for _, (commands, _) in groups))):
        has = [command in commands for _, (commands, _) in groups]
        turns = [release for i, release in enumerate(releases) if has[i] != (i > 0 and has[i - 1])]
        lines.append("\t".join(["command", command, *turns]))
    rows = []
    for option in sorted({option for _, (_, table) in groups for options in table.values() for option in options}):
        kinds = {}
        for command in supported:
            own = [table[command].get(option, False) if command in table else None for _, (_, table) in groups]
            if newest := next((one for one in reversed(own) if one), None):
                kinds.setdefault(newest[0], {})[command] = [json.dumps(one[1]) if one else one for one in own]
        for how, states in kinds.items():
            rows += [(option, names, "\t".join([" ".join(names), option, how, *cells])) for names, cells in histories(states, releases)]
    path.write_text("\n".join(lines + [row for *_, row in sorted(rows)]) + "\n")
    print(path, len(rows), "rows")


def main():
    folder = pathlib.Path(sys.argv[1])
    companions = {library.version: library for library in wheels(folder, "transformers")}
    releases = []
    for library in wheels(folder, "trl"):
        since = max((version for version in TRANSFORMERS if order(version) <= order(library.version)), key=order)
        releases.append((library.version, trl_release(library, [companions[version] for version in TRANSFORMERS[since]])))
    write(ROOT / "crates/convert/src/from_trl/options.tsv", grouped(releases, TRL), TRL)
    releases = [(library.version, openrlhf_release(library)) for library in wheels(folder, "openrlhf")]
    write(ROOT / "crates/convert/src/from_openrlhf/options.tsv", grouped(releases, OPENRLHF), OPENRLHF)


if __name__ == "__main__":
    main()
