#!/usr/bin/env python3
"""Records every option of the commands of TRL and OpenRLHF that are converted here, with its default in each edition.

    pip download --no-deps -d FOLDER trl==0.11.4        # likewise every release named below
    python scripts/goldens/peer_options.py FOLDER

writes crates/convert/src/from_trl/options.tsv and crates/convert/src/from_openrlhf/options.tsv. The dataclasses of TRL and of transformers are
read as syntax trees; the parsers of OpenRLHF are built by argparse itself. Nothing else of the libraries is imported or run.
TRL and transformers are licensed under Apache-2.0, Copyright The HuggingFace Team; OpenRLHF under Apache-2.0, Copyright its authors.
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
# Editions of TRL, with the release of transformers that it was used with; a field of the later one that the first lacks is
# there, too: TRL 1.16 works with either.
TRL = {"0.11": ("0.11.4", ["4.45.2"]), "0.21": ("0.21.0", ["4.55.4"]), "1.16": ("1.16.0", ["5.23.0", "4.57.6"])}
SCRIPT = ("trl/scripts/utils.py", "ScriptArguments")
MODEL = ("trl/trainer/model_config.py", "ModelConfig")
MIXTURE = ("trl/scripts/utils.py", "DatasetMixtureConfig")
OLD_SFT = ("trl/commands/cli_utils.py", "SFTScriptArguments")
TRL_COMMANDS = {
    ("rloo", "0.11"): [("trl/trainer/rloo_config.py", "RLOOConfig"), MODEL],
    ("ppo", "0.11"): [("trl/trainer/ppov2_config.py", "PPOv2Config"), MODEL],
    ("sft", "0.11"): [OLD_SFT, ("trl/trainer/sft_config.py", "SFTConfig"), MODEL],
    ("rloo", "0.21"): [SCRIPT, ("trl/trainer/rloo_config.py", "RLOOConfig"), MODEL],
    ("ppo", "0.21"): [SCRIPT, ("trl/trainer/ppo_config.py", "PPOConfig"), MODEL],
    ("grpo", "0.21"): [("trl/scripts/grpo.py", "GRPOScriptArguments"), ("trl/trainer/grpo_config.py", "GRPOConfig"), MODEL],
    ("sft", "0.21"): [SCRIPT, ("trl/trainer/sft_config.py", "SFTConfig"), MODEL],
    ("rloo", "1.16"): [("trl/scripts/rloo.py", "RLOOScriptArguments"), ("trl/trainer/rloo_config.py", "RLOOConfig"), MODEL, MIXTURE],
    ("grpo", "1.16"): [("trl/scripts/grpo.py", "GRPOScriptArguments"), ("trl/trainer/grpo_config.py", "GRPOConfig"), MODEL, MIXTURE],
    ("sft", "1.16"): [SCRIPT, ("trl/trainer/sft_config.py", "SFTConfig"), MODEL, MIXTURE],
    ("dpo", "1.16"): [SCRIPT, ("trl/trainer/dpo_config.py", "DPOConfig"), MODEL, MIXTURE],
    ("reward", "1.16"): [SCRIPT, ("trl/trainer/reward_config.py", "RewardConfig"), MODEL, MIXTURE],
    ("kto", "1.16"): [SCRIPT, ("trl/trainer/kto_config.py", "KTOConfig"), MODEL, MIXTURE],
    ("orpo", "1.16"): [SCRIPT, ("trl/experimental/orpo/orpo_config.py", "ORPOConfig"), MODEL],
    ("cpo", "1.16"): [SCRIPT, ("trl/experimental/cpo/cpo_config.py", "CPOConfig"), MODEL],
    ("gkd", "1.16"): [SCRIPT, ("trl/experimental/gkd/gkd_config.py", "GKDConfig"), MODEL],
    ("online_dpo", "1.16"): [SCRIPT, ("trl/experimental/online_dpo/online_dpo_config.py", "OnlineDPOConfig"), MODEL],
}
BASES = {
    "OnPolicyConfig": "trl/trainer/utils.py",
    "_BaseConfig": "trl/trainer/base_config.py",
    "SFTConfig": "trl/trainer/sft_config.py",
    "ScriptArguments": "trl/scripts/utils.py",
    "TrainingArguments": "transformers/training_args.py",
}
# Defaults that are expressions, with their values.
EXPRESSIONS = {
    "default_optim": {"4": "adamw_torch", "5": "adamw_torch_fused"},
    "None if not is_torch_available() or is_torch_greater_or_equal_than_2_0 else 2": None,
    "factory:list": [],
    "factory:dict": {},
    "REQUIRED": None,
}

OPENRLHF = ["0.5.3", "0.9.10", "0.11.0", "0.11.2"]
OPENRLHF_COMMANDS = ["train_dpo", "train_kd", "train_kto", "train_ppo", "train_ppo_ray", "train_prm", "train_rm", "train_sft"]


class Library:
    """The files of a wheel."""

    def __init__(self, folder, name, version):
        [wheel] = folder.rglob(f"{name}-{version}-*.whl")
        self.archive = zipfile.ZipFile(wheel)
        self.names = {item.split("/purelib/")[-1]: item for item in self.archive.namelist()}
        self.version = version

    def read(self, path):
        return self.archive.read(self.names[path]).decode() if path in self.names else None


def dataclass(libraries, path, name, found):
    """The fields of a class and of those it inherits from, as {name: (kind, default)}."""
    source = next((library, text) for library in libraries if (text := library.read(path)))
    [node] = [node for node in ast.parse(source[1]).body if isinstance(node, ast.ClassDef) and node.name == name]
    for base in node.bases:
        if ast.unparse(base) in BASES:
            dataclass(libraries, BASES[ast.unparse(base)], ast.unparse(base), found)
    for item in node.body:
        if isinstance(item, ast.AnnAssign):
            if item.target.id.startswith("_") or item.target.id == "config":
                continue
            found[item.target.id] = (kind(ast.unparse(item.annotation)), default(item.value, source[0].version))
    return found


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
        found = EXPRESSIONS[text]
        return found[version[0]] if isinstance(found, dict) and found else found


def kind(annotation):
    """How the option is read: flag, int, float, list, tree (JSON or YAML), text."""
    parts = annotation.removeprefix("Optional[").rstrip("]").replace(" ", "")
    first = annotation.replace(" ", "").removeprefix("Optional[").removeprefix("Union[")
    if parts.split("|")[0] == "bool":
        return "flag"
    if first.lower().startswith(("list[", "tuple[")):
        return "list"
    if "dict" in first.lower():
        return "tree"
    for word in ("int", "float"):
        if parts.split("|")[0] == word and "str" not in parts:
            return word
    return "list" if "list[str" in parts.lower() else "text"


def trl(folder):
    table = {}
    for (command, edition), classes in TRL_COMMANDS.items():
        version, companions = TRL[edition]
        found = {}
        for companion in reversed(companions):
            libraries = [Library(folder, "trl", version), Library(folder, "transformers", companion)]
            for path, name in classes:
                dataclass(libraries, path, name, found)
        for name, (how, value) in found.items():
            table.setdefault((command, name), {})[edition] = (how, value)
    return table


def openrlhf(folder):
    table = {}
    for version in OPENRLHF:
        library = Library(folder, "openrlhf", version)
        for command in OPENRLHF_COMMANDS:
            text = library.read(f"openrlhf/cli/{command}.py")
            if text is None:
                continue
            [body] = [node.body for node in ast.parse(text).body if isinstance(node, ast.If)]
            start = next(i for i, node in enumerate(body) if "ArgumentParser()" in ast.unparse(node))
            end = next(i for i, node in enumerate(body) if "parse_args()" in ast.unparse(node))
            names = {"argparse": argparse, "datetime": datetime.datetime}
            exec(compile(ast.Module(body[start:end], []), command, "exec"), names)
            for action in names["parser"]._actions[1:]:
                for option in action.option_strings:
                    how, value = action_kind(action), action.default
                    value = list(value) if isinstance(value, tuple) else value
                    if isinstance(value, str) and re.fullmatch(r"[a-z]+_\d{4}T\d\d:\d\d", value):
                        value = "???"
                    if isinstance(value, float) and math.isinf(value):
                        value = ".inf"
                    table.setdefault((command, option.removeprefix("--")), {})[version] = (how, value)
    return table


def action_kind(action):
    if action.nargs == 0:
        return "flag" if action.const else "unflag"
    if action.nargs is not None:
        return "list"
    return {int: "int", float: "float"}.get(action.type, "text")


def write(path, editions, table):
    lines = ["\t".join(["command", "option", "kind", *editions])]
    for (command, option), found in sorted(table.items()):
        how = list(found.values())[-1][0]
        cells = [json.dumps(found[edition][1]) if edition in found else "-" for edition in editions]
        lines.append("\t".join([command, option, how, *cells]))
    path.write_text("\n".join(lines) + "\n")
    print(path, len(lines) - 1, "options")


def main():
    folder = pathlib.Path(sys.argv[1])
    write(ROOT / "crates/convert/src/from_trl/options.tsv", list(TRL), trl(folder))
    write(ROOT / "crates/convert/src/from_openrlhf/options.tsv", OPENRLHF, openrlhf(folder))


if __name__ == "__main__":
    main()
