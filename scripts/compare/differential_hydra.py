#!/usr/bin/env python3
"""Compares `trainer config show --untyped` with Hydra itself on generated configurations.

    pip install hydra-core==1.3.8 omegaconf==2.3.1
    python scripts/compare/differential_hydra.py target/release/trainer --seed 1 --count 600

Every case is a folder of YAML files and a list of overrides, made from the seed. Both sides must return the same values with
the same types, or both must fail. Intended differences are in DELIBERATE, and are checked too. `--freeze FILE` writes a small
sample with Hydra's results, for tests/config/hydra.rs.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field

import hydra
import omegaconf
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

ENVIRONMENT = {"TZ": "UTC", "SET_NUMBER": "7", "SET_TEXT": "a b"}
FAILS = "fails"


@dataclass
class Case:
    feature: str
    files: dict
    overrides: list = field(default_factory=list)
    name: str = "main"


# The results of each side.


def write(folder, files):
    for path, text in files.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("FOLDER", folder))


def by_hydra(case, folder):
    try:
        with initialize_config_dir(config_dir=folder, version_base=None):
            config = compose(case.name, overrides=[o.replace("FOLDER", folder) for o in case.overrides])
            return OmegaConf.to_container(config, resolve=True), ""
    except (Exception, RecursionError) as error:
        return FAILS, f"{type(error).__name__}: {error}"


class Loader(yaml.SafeLoader):
    """Parses the output of `trainer`, where strings are quoted if they look like another type."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern in [
    ("null", r"null"),
    ("bool", r"true|false"),
    ("int", r"-?[0-9]+"),
    ("float", r"-?[0-9]+\.[0-9]+(e-?[0-9]+)?|-?[0-9]+e-?[0-9]+|-?\.inf|\.nan"),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), None)
Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(node.value.replace(".inf", "inf").replace(".nan", "nan")))


def by_trainer(trainer, case, folder):
    where = ["--config-path", folder, "--config-name", case.name]
    overrides = [o.replace("FOLDER", folder) for o in case.overrides]
    command = [trainer, "config", "show", "--untyped", "--format", "yaml", *where, *overrides]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return yaml.load(done.stdout, Loader), ""
    if done.returncode < 0 or "panicked" in done.stderr or not done.stderr.strip():
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stderr}")
    return FAILS, done.stderr


def typed(value):
    """A value that equals another only if all types are equal, too. Keys are strings."""
    if isinstance(value, dict):
        return {json.dumps(key) if isinstance(key, (bool, int, float)) else str(key): typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return (type(value).__name__, repr(value))


# Intended differences: files, overrides, Hydra's result, trainer's result, and the reason.

LARGE = "an integer beyond 64 bits is refused, not kept"
IN_TEXT = "what oc.create and oc.dict.values make is put into a longer text with its values, not with references"
DASH = "a lone `-` between brackets must be in quotes, as YAML 1.2 has it"
PACKAGE_HEADER = "`# @package _group_` means the group's own package, as in Hydra 1.1; since 1.2 it is a key of that name"
ONE = {"main.yaml": "a: 1\n"}
DELIBERATE = [
    (LARGE, {"main.yaml": f"a: {2**70}\n"}, [], {"a": 2**70}, FAILS),
    (LARGE, ONE, [f"a={2**70}"], {"a": 2**70}, FAILS),
    ("sort() and shuffle() belong to sweeps, which are refused", ONE, ["a=sort([2,1])"], {"a": [1, 2]}, FAILS),
    ("json_str() of Hydra 1.4 is there already", ONE, ["a=json_str([x,1])"], FAILS, {"a": '["x", 1]'}),
    ("keys are texts: `yes` stays `yes`", {"main.yaml": "yes: 1\n"}, [], {True: 1}, {"yes": 1}),
    ("keys are texts: 1 and true are not equal", ONE, ["+b={1: x, true: y}"], {"a": 1, "b": {1: "y"}}, {"a": 1, "b": {"1": "x", "true": "y"}}),
    ("no key is there twice, whatever its type", {"main.yaml": "1: 2\n1: 3\n"}, [], {1: 3}, FAILS),
    ("tags have no meaning", {"main.yaml": "a: !!str 5\n"}, [], {"a": "5"}, FAILS),
    ("tabs may separate, as YAML has it", {"main.yaml": "a:\tb\n"}, [], FAILS, {"a": "b"}),
    ("a file is a mapping", {"main.yaml": "defaults: [db: x]\n", "db/x.yaml": "- 1\n"}, [], {"db": [1]}, FAILS),
    ("a file is a mapping", {"main.yaml": "defaults: [db: x]\n", "db/x.yaml": "word\n"}, [], {"db": {"word": None}}, FAILS),
    (
        PACKAGE_HEADER,
        {"main.yaml": "defaults: [db: x]\n", "db/x.yaml": "# @package _group_\na: 1\n"}, [], {"_group_": {"a": 1}}, {"db": {"a": 1}},
    ),
    (
        "`_here_` may be followed by more",
        {"main.yaml": "defaults: [db@_here_.q: x]\n", "db/x.yaml": "a: 1\n"}, [], {"_here_": {"q": {"a": 1}}}, {"q": {"a": 1}},
    ),
    (
        "the package of `../group` is the group, without empty names for the dots",
        {"main.yaml": "defaults: [a: x]\n", "a/x.yaml": "defaults: [../b: y]\n", "b/y.yaml": "k: 1\n"},
        [], {"a": {"": {"": {"": {"b": {"k": 1}}}}}}, {"a": {"b": {"k": 1}}},
    ),
    (
        "the option of `../group@package` can be chosen elsewhere, under the name of the group",
        {"main.yaml": "defaults: [a: x]\n", "a/x.yaml": "defaults: [../b@b: y]\n", "b/y.yaml": "k: 1\n", "b/z.yaml": "k: 2\n"},
        ["b@a.b=z"], FAILS, {"a": {"b": {"k": 2}}},
    ),
    (
        "`- ${group}_name` counts from the folder of its file once, not twice",
        {"main.yaml": "defaults: [u: k]\n", "u/k.yaml": "defaults: [s: x, '${u/s}_z']\n", "u/s/x.yaml": "a: 1\n", "u/x_z.yaml": "b: 1\n"},
        [], FAILS, {"u": {"s": {"a": 1}, "b": 1}},
    ),
    ("Hydra's own settings are ignored, and reported", ONE, ["hydra.nope=1"], FAILS, {"a": 1}),
    (
        IN_TEXT,
        {"main.yaml": "m: {x: 1}\na: v ${oc.dict.values:m}\n"}, [], {"m": {"x": 1}, "a": "v ['${m.x}']"}, {"m": {"x": 1}, "a": "v [1]"},
    ),
    (
        IN_TEXT,
        {"main.yaml": "m:\n  x: ${n}\nn: 1\na: v ${oc.create:${m}}\n"}, [],
        {"m": {"x": 1}, "n": 1, "a": "v {'x': '${n}'}"}, {"m": {"x": 1}, "n": 1, "a": "v {'x': 1}"},
    ),
    (DASH, {"main.yaml": "a: [-, 1]\n"}, [], {"a": ["-", 1]}, FAILS),
    ("the version of Python is unknown", {"main.yaml": "a: ${python_version:major}\n"}, [], {"a": "3"}, FAILS),
    ("`oc.deprecated` cannot warn", {"main.yaml": "a: 1\nb: ${oc.deprecated:a}\n"}, [], {"a": 1, "b": 1}, FAILS),
]


# The generators: each makes one case of its feature.

NAMES = ["alpha", "beta", "gamma", "delta"]
SCALARS = """0 1 -1 +5 007 1_000 1__0 _1 1_ 0o17 0x1F 0b11 00 -0 1. .5 5.5 -.5 +.5 1e3 1E6 1e-6 1e+6 1.5e3 .5e3 1_0.5 1e 1e5x e5 1.2.3
  1_0e1 00.5 08 010 inf -inf +inf Inf .inf -.INF nan NaN .nan -nan true True TRUE tRuE false no No yes YES on off Off y n null Null
  NULL nULL None ~ ??? abc a-b a_b a.b a/b a:b a+b a%b a*b a|b a?b a@b $a a$b 1a 12:30 1:30:45 1:75 2024-01-01 http://x/y?z=1
  /abs/path ./rel ~/home a=b a,b a#b a;b a!b a&b a^b a<b (a) [ ] { } ' \\" é -- - + . .. $ ${ ${} } a\\,b a\\=b a\\ b a\\:b \\\\ \\[x\\]
  9223372036854775807 -9223372036854775808 1e400 -1e400 1e-400 0.1 123456789.123456789 1e16 123456789012345680.0 0.0001 0.00001""".split()


def quoted(r, text):
    quote = r.choice("'\"")
    return quote + text.replace("\\" + quote, quote).replace(quote, "\\" + quote) + quote


def value(r, depth=2):
    """A value of the override grammar that is probably valid."""
    kind = r.choice(["scalar"] * 5 + ["quoted"] * 3 + ["list", "dict"] * depth + ["cast"])
    space = r.choice(["", "", " "])
    if kind == "scalar":
        return r.choice(["1", "-2.5", "1e-6", "1_000", "true", "False", "null", "word", "a b", "x/y.z", "10:20", "inf", "None", "007", "a\\,b", "\\(x\\)"])
    if kind == "quoted":
        return quoted(r, r.choice(["", "a,b", "it's", '"x"', "1", "true", "a\\\\", "[1]", "#!;", "é", " padded ", "a: b", "null"]))
    if kind == "list":
        return f"[{space}" + f"{space},{space}".join(value(r, depth - 1) for _ in range(r.randrange(4))) + f"{space}]"
    if kind == "dict":
        keys = r.sample(["a", "b", "key-1", "x.y", "9", "a b"], r.randrange(4))
        return f"{{{space}" + f",{space}".join(f"{key}{space}:{space}{value(r, depth - 1)}" for key in keys) + f"{space}}}"
    return f"{r.choice(['int', 'float', 'str', 'bool'])}({space}{value(r, depth - 1)}{space})"


def soup(r):
    """Tokens in any order, mostly invalid."""
    tokens = SCALARS + ["[", "]", "{", "}", ",", ":", " ", "'", '"', "\\", "(", ")", "=", "int(", "str(", "${a}", "${.b}", "a:", "k: v", "\\'", "\\\\'", "choice(1,2)", "range(3)", "foo(1)"]
    return "".join(r.choice(tokens) for _ in range(r.randrange(1, 6)))


def override_values(r):
    text = r.choice([lambda r: r.choice(SCALARS), value, value, value, soup])(r)
    spaces = r.choice(["", "", "", " ", "  "])
    return Case("override values", {"main.yaml": "a: 1\nb: two\nx: {y: 0}\n"}, [f"x.y={spaces}{text}{r.choice(['', '', '', ' '])}"])


BASE = """
int: 1
text: word
none: null
open: ???
list: [1, two, {deep: 3}]
map: {one: 1, two: {three: 3, four: [4]}}
empty: {}
alias: ${map}
nothing: ${none}
follows: ${map.two.three}
"""
KEYS = """int text none open list list.0 list.2.deep list.5 list.x map map.one map.two map.two.three map.two.four map.two.four.0 map.new
  empty empty.new alias alias.one alias.new nothing follows follows.x int.x none.x new new.deep.er map.two.three.x -bad a..b a. $dollar
  a-b.c-d list[0] map.one[x] 5 map.5 spa\u00e7o map:one""".split()


def override_sets(r):
    def one():
        sign = r.choice(["", "", "", "+", "+", "++", "++", "~"])
        key = r.choice(KEYS)
        if sign == "~" and r.random() < 0.5:
            return f"~{key}"
        simple = ["1", "1.0", "2", "word", "null", "true", "???", "", "[]", "[7]", "{}", "{one: 5}", "{new: 6}", "{two: {three: 9}}", "{two: 8}"]
        simple += ["${int}", "'${map}'", "x_${int}", "${.text}", "[1, two, {deep: 3}]", "{one: ???}"]
        return f"{sign}{key}={r.choice(simple)}"

    return Case("override sets", {"main.yaml": BASE}, [one() for _ in range(r.choice([1, 1, 1, 2, 3, 4]))])


def yaml_scalars(r):
    digits = "".join(r.choice("0123456789_.eE+-:x") for _ in range(r.randrange(1, 7)))
    plain = [r.choice(SCALARS) for _ in range(r.choice([1, 1, 2, 4]))] + [r.choice([digits, r.choice(SCALARS)])]
    forms = [lambda t: t, lambda t: t, lambda t: t, lambda t: "'" + t.replace("'", "''") + "'", lambda t: json.dumps(t), lambda t: f"[{t}, 1]"]
    forms += [lambda t: f"{{x: {t}}}", lambda t: f"|\n  {t}\n", lambda t: f">-\n  {t}\n  more\n", lambda t: f"{t} # comment", lambda t: f"\n  - {t}\n  - {t}"]
    lines = [f"k{index}: {r.choice(forms)(text)}\n" for index, text in enumerate(plain)]
    extras = ["k0: again\n", "base: &b {x: 1}\nuse: {<<: *b, y: 2}\n", "anchored: &a [1]\nalias: *a\n", "? q\n: 1\n", "null: 1\n", "---\n", "a: b: c\n", "empty:\n", "nested:\n  deep:\n  - 1\n  -\n"]
    return Case("YAML", {"main.yaml": "".join(lines) + "".join(r.sample(extras, r.choice([0, 0, 1])))})


def interpolations(r):
    keys = ["a", "b", "c", "m", "m.x", "m.y", "m.n.z", "l.0", "l.1", "l[1]", "m[x]", "none", "open", "number", "flag", "nope", "m.nope", "number.x", "l.x", "m", "l", "pick"]

    def reference(depth):
        key = r.choice(keys)
        kind = r.randrange(12)
        if kind < 5:
            return "${" + r.choice(["", "", "", " "]) + key + r.choice(["", "", " "]) + "}"
        if kind == 5:
            return "${" + r.choice([".x", ".y", "..number", "..m.y", "...number", ".n.z", ".0", "..l[0]"]) + "}"
        if kind == 6 and depth:
            return r.choice(["${m.${pick}}", "${${pick_key}}", "${m[${pick}]}", "${${number}}", "${m.${nope}}", "${m.${flag}}", "${m${pick}}"])
        if kind == 7:
            name = r.choice(["SET_NUMBER", "SET_TEXT", "NOT_SET"])
            return "${oc.env:" + name + r.choice(["", ",", ",null", ",5", ",a b", ",'q, r'", ',"${number}"', ",${m.x}", ",[1,a]", ",{k: true}", ",true", ", x ", ",1e-6", ",a,b"]) + "}"
        if kind == 8:
            target = r.choice(["m.x", ".x", "nope", "m.nope", "none", "open", "number.x", "m", "..number", "l.0", "nope.nope", "flag"])
            return "${oc.select:" + target + r.choice(["", ",null", ",{}", ",[]", ",'q'", ",5", ",${number}", ",a.b", ", x y", ",[a, 'b,c', {k: 1.5}]", ",{a: null}"]) + "}"
        if kind == 9:
            text = r.choice(["'1'", "'1.5'", "'[1, a]'", "'{k: [true]}'", "\"'q'\"", "'null'", "null", "5", "${oc.env:SET_NUMBER}", "'${m.x}'", "' 5'", "'a b'", "'[a'", "'a,b'", "${none}", "'1_0'", "'${oc.env:SET_TEXT}'"])
            return "${oc.decode:" + text + "}"
        if kind == 10:
            return "${" + r.choice(["oc.create:{a: 1, b: [x]}", "oc.create:[1,2]", "oc.create:${m}", "oc.create:'k: 5'", "oc.dict.keys:m", "oc.dict.values:m", "oc.dict.keys:.n", "oc.dict.keys:number", "oc.dict.values:nope", "oc.create:5", "oc.create:null"]) + "}"
        return r.choice(["${now:%Y-%m-%d}", "${hydra:job.name}", "${nope:1}", "${oc.env}", "${oc.env:}", "${}", "${a", "${a b}", "${.}", "${a..b}", "${a:b}", "${'a'}", "${oc.env:SET_NUMBER", "${a.}", "${ns.f:x}"])

    def text():
        kind = r.randrange(6)
        if kind < 3:
            return reference(1)
        if kind == 3:
            return r.choice(["p_", "", "\\\\", "$"]) + reference(1) + r.choice(["_s", " end", "\\", "$", "/" + reference(0)])
        return r.choice(["\\${a}", "\\\\${a}", "\\\\\\${a}", "x\\${a", "$ {a}", "$a", "\\$", "{a}", "a\\\\b", "\\\\"]) + r.choice(["", reference(0)])

    config = {
        "a": text(), "b": r.choice([text(), "plain"]), "c": r.choice([text(), 3]), "number": 5, "flag": True, "none": None, "open": "???",
        "pick": "x", "pick_key": "number",
        "m": {"x": r.choice(["mx", 1.5, text()]), "y": r.choice([1, "${.x}", "${..number}", "${number}", 1e-6]), "n": {"z": r.choice([text(), None, 1e16])}},
        "l": [r.choice(["l0", text(), "${.1}"]), r.choice([2, "${..number}", {"k": 1}])],
    }
    overrides = [r.choice(["b=${a}", "+new=${m.x}", "b='${m.x}-${number}'", "b=[${a},${number}]", "b={k: ${number}}", "m.x=${.y}", "+m.n.w=${..x}", "b='\\${a}'"])] if r.random() < 0.2 else []
    return Case("interpolation", {"main.yaml": yaml.safe_dump(config, sort_keys=False, default_style=None)}, overrides)


def merges(r):
    def tree(depth):
        if depth == 0 or r.random() < 0.3:
            return r.choice([1, "t", None, "???", [1], [], {}, "${base.m}", "${base.s}", "${nope}", True, [{"a": 1}]])
        return {name: tree(depth - 1) for name in r.sample(NAMES, r.randrange(1, 4))}

    files = {f"f{index}.yaml": yaml.safe_dump({name: tree(2) for name in r.sample(NAMES, 2)}) for index in range(3)}
    base = "base: {m: {alpha: 10, beta: {gamma: 11}}, s: scalar}\n"
    order = r.sample(["f0", "f1", "f2"], r.choice([1, 2, 2, 3])) + ["_self_"]
    r.shuffle(order)
    if r.random() < 0.2:
        order.remove("_self_")
    own = yaml.safe_dump({r.choice(NAMES): tree(2)}) if r.random() < 0.5 else ""
    return Case("merging", {"base.yaml": base, **files, "main.yaml": f"defaults: [base, {', '.join(order)}]\n{own}"})


def composition(r):
    options = {
        "db": ["mysql", "pg"], "server": ["apache", "nginx"], "server/site": ["fb", "g"], "opt": ["adam", "sgd"],
        "mysql_opt": ["fast"], "db/engine": ["inno", "isam"],
    }
    headers = [""] * 12 + ["# @package _global_\n", "# @package foo\n", "# @package foo.bar\n", "# a comment\n# @package no\n", "\n#   @package   x\n"]
    if r.random() < 0.1:
        headers.append("# @package a b\n")
    packages = ["", "", "", "", "@pkg", "@a.b", "@_here_", "@_global_", "@_global_.g", "@_group_", "@x._group_"]

    def entry(group, inside=""):
        names = options[group]
        name = r.choice(names + names + [f"[{names[0]}, {names[1]}]" if len(names) > 1 else names[0], "null"])
        name = r.choice([name] * 40 + ["missing", "???", "7", "${db}_x"])
        written = group[len(inside) + 1:] if inside and group.startswith(inside + "/") else r.choice(["/", "/", ""]) + group if inside else r.choice(["", "", "", "/"]) + group
        return f"  - {r.choice([''] * 8 + ['optional '])}{written}{r.choice(packages)}: {name}\n"

    def defaults(groups, inside="", files=()):
        lines = [entry(group, inside) for group in groups] + [f"  - {file}\n" for file in files]
        r.shuffle(lines)
        if r.random() < 0.7:
            lines.insert(r.choice([0, len(lines)]), "  - _self_\n")
        if r.random() < 0.15:
            group = r.choice(list(options))
            written = r.choice(["", "/", "/"]) + group
            line = f"  - override {written}{r.choice(packages[:6])}: {r.choice(options[group] + ['null', 'missing'])}\n"
            lines.insert(r.choice([len(lines)] * 4 + [0]), line)
        return "defaults:\n" + "".join(lines) if lines else ""

    files = {}
    for group, names in options.items():
        for name in names:
            inner = ""
            if group == "server" and r.random() < 0.4:
                inner = defaults(["server/site"], "server")
            elif group == "db" and r.random() < 0.4:
                inner = defaults([r.choice(["db/engine", "opt"])], "db")
            body = r.choice([f"name: {name}\n", f"name: {name}\nport: {r.randrange(9)}\n", f"name: {name}\nup: ${{.name}}\n"])
            files[f"{group}/{name}.yaml"] = r.choice(headers) + inner + r.choice([body, body, body, ""])
    others = ["extra", "db/mysql", "/opt/adam", "opt/sgd@q", "server/nginx@_here_", "extra@e.f"] * 2 + ["nope"]
    files["extra.yaml"] = r.choice(headers) + (defaults(["opt"]) if r.random() < 0.3 else "") + "extra: true\n"
    groups = r.sample(["db", "server", "opt", "server/site"], r.randrange(4))
    late = r.choice([""] * 5 + ["  - opt@late: ${opt}\n", "  - ${db}_opt: fast\n", "  - mysql_opt@q: ${nope}\n", "  - db/engine: ${db}\n", "  - ex${opt}\n"])
    main = defaults(groups, "", r.sample(others, r.choice([0, 0, 1, 1, 2])))
    if late and "override" not in main:
        main = (main or "defaults:\n  - _self_\n") + late
    files["main.yaml"] = r.choice([""] * 8 + headers) + main + r.choice(["", "own: 1\n", "own: 1\ndb: {name: mine}\n"])
    override = ["db=pg", "db=nope", "db=null", "db=[pg,mysql]", "server=nginx", "+opt=sgd", "+opt@o.p=sgd", "opt@pkg=sgd", "~db", "~db=mysql", "~server", "++db=pg"]
    override += ["server/site=g", "db@pkg=pg", "db@_global_=pg", "+own=2", "own=2", "db.name=x", "+db.new=1", "db={name: y}", "+nogroup@x=y", "extra=false", "db/engine=isam", "opt=${db}"]
    return Case("composition", files, r.sample(override, r.choice([0, 0, 0, 1, 1, 2])))


def verl_like(r):
    """The shapes that verl's own configurations have."""
    files = {
        "main.yaml": "defaults:\n  - model_engine: dp\n  - actor@arr.actor: ${model_engine}_actor\n  - ref@arr.ref: ${model_engine}_ref\n  - model@arr.model: hf\n"
        "  - critic: ${model_engine}_critic\n  - reward@reward\n  - _self_\ntrainer:\n  n: 8\n  lr: 1e-6\n  name: run_${arr.actor.strategy}\n",
        "model_engine/dp.yaml": "# @package _global_\nmodel_engine: dp\n",
        "model_engine/mg.yaml": "# @package _global_\nmodel_engine: mg\n",
        "actor/actor.yaml": "defaults:\n  - ../optim@optim: adam\n  - _self_\nsize: ${oc.select:arr.model.size,null}\nkl: ${oc.select:algo.kl,false}\nextra: ${oc.select:algo.extra,{}}\nnames: ${oc.select:.x,[]}\ntwice: ${.size}\n",
        "actor/dp_actor.yaml": "defaults:\n  - ../engine@fsdp: fsdp\n  - actor\n  - _self_\nstrategy: fsdp\n",
        "actor/mg_actor.yaml": "defaults:\n  - actor\n  - _self_\nstrategy: megatron\noptim: {lr: 1e-5}\n",
        "ref/dp_ref.yaml": "strategy: ${arr.actor.strategy}\nlog: ${..actor.size}\n",
        "ref/mg_ref.yaml": "strategy: other\n",
        "critic/dp_critic.yaml": "defaults: [../optim@optim: adam, _self_]\noptim: {lr: 1e-5}\nname: ${oc.select:trainer.none,\"crit, ic\"}\n",
        "critic/mg_critic.yaml": "name: mg\n",
        "optim/adam.yaml": "lr: 1e-6\nbetas: [0.9, 0.999]\n_target_: x.y.Adam\n",
        "engine/fsdp.yaml": "offload: false\nsize: -1\n",
        "model/hf.yaml": "size: 7\npath: ~/models/x\noverride_config: {}\n",
        "reward.yaml": "name: ???\nmodule: {path: null, name: null}\n",
        "user.yaml": "defaults: [main, _self_]\ntrainer: {n: 4}\nhydra:\n  searchpath: ['file://FOLDER/more']\n",
        "more/critic/far_critic.yaml": "name: far\n",
    }
    override = ["model_engine=mg", "model_engine=none", "critic=mg_critic", "critic=far_critic", "actor@arr.actor=mg_actor", "arr.actor.optim.lr=1", "arr.model.size=9"]
    override += ["+arr.model.override_config.attn=eager", "arr.model.override_config.attn=eager", "trainer.n=abc", "reward.name=naive", "+algo.kl=true", "++algo.extra={a: 1}"]
    override += ["trainer.name='x,y'", "trainer.name=x,y", "~arr.ref", "~arr.actor.size", "arr.actor.optim.betas.0=0.5", "trainer.logger=[console]", "+trainer.logger=['console', \"wandb\"]"]
    override += ["hydra.searchpath=[file://FOLDER/more]", "arr.actor.optim={lr: 3}", "critic.optim.lr=${trainer.lr}", "hydra.run.dir=x", "arr.ref=null", "trainer.none=1", "critic@critic=mg_critic"]
    return Case("verl's shapes", files, r.sample(override, r.randrange(5)), r.choice(["main", "main", "user", "user.yaml", "actor/dp_actor", "absent"]))


GENERATORS = [override_values, override_values, override_sets, override_sets, yaml_scalars, interpolations, interpolations, merges, composition, composition, verl_like]


def compared(trainer, generator, r):
    """One case with the results of both sides. Most cases that Hydra refuses are drawn again, so that at most half fail."""
    for _ in range(6):
        case = generator(r)
        with tempfile.TemporaryDirectory() as folder:
            write(folder, case.files)
            theirs, why = by_hydra(case, folder)
            if theirs == FAILS and r.random() < 0.85:
                continue
            return case, theirs, why, *by_trainer(trainer, case, folder)
    return compared(trainer, generator, r)


def known(case, theirs, message):
    """Which of the reasons in DELIBERATE a generated case differs for, if any."""
    text = " ".join([*case.files.values(), *case.overrides])
    if "does not fit in 64 bits" in message:
        return LARGE
    if "plain scalar cannot start with '-'" in message:
        return DASH
    if re.search(r"oc\.dict\.values|oc\.create:\$", text) and "'${" in str(theirs):
        return IN_TEXT
    return None


def as_json(value):
    """Values for the frozen sample; JSON has no infinity, so that is a marked string."""
    if isinstance(value, dict):
        return {json.dumps(key) if isinstance(key, (bool, int, float)) else str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    return value


def freeze(path, rows, size):
    """A sample with every feature, valid and invalid cases; the shortest first."""
    timeless = [row for row in rows if "now:" not in json.dumps(row[0].files) and "oc.env:SET" not in json.dumps([row[0].files, row[0].overrides])]
    chosen = []
    for feature in sorted({case.feature for case, _ in timeless}):
        for fails in [False, True]:
            group = [row for row in timeless if row[0].feature == feature and (row[1] == FAILS) == fails]
            group.sort(key=lambda row: len(json.dumps([row[0].files, row[0].overrides])))
            share = max(1, size // 14)
            half = group[len(group) // 4 :: max(1, len(group) // (2 * share))][:share]
            chosen += half
    cases = [
        {"files": case.files, "name": case.name, "overrides": case.overrides, **({"fails": True} if value == FAILS else {"value": as_json(value)})}
        for case, value in chosen
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases in {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--freeze")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.update(ENVIRONMENT)
    os.environ.pop("NOT_SET", None)

    wrong = 0
    for reason, files, overrides, hydra_says, trainer_says in DELIBERATE:
        case = Case("deliberate", files, overrides)
        with tempfile.TemporaryDirectory() as folder:
            write(folder, case.files)
            theirs, _ = by_hydra(case, folder)
            ours, message = by_trainer(args.trainer, case, folder)
        for who, said, expected in [("Hydra", theirs, hydra_says), ("trainer", ours, trainer_says)]:
            if said != expected if FAILS in (said, expected) else typed(said) != typed(expected):
                wrong += 1
                print(f"not as listed ({reason}): {who} returns {said} {message}")

    random_source = random.Random(args.seed)
    counts, reasons, rows = Counter(), Counter(), []
    for index in range(args.count):
        case, theirs, why, ours, message = compared(args.trainer, GENERATORS[index % len(GENERATORS)], random_source)
        same = theirs == ours if FAILS in (theirs, ours) else typed(theirs) == typed(ours)
        if same:
            counts[case.feature, "both fail" if theirs == FAILS else "same values"] += 1
            rows.append((case, theirs))
        elif reason := known(case, theirs, message):
            counts[case.feature, "deliberate"] += 1
            reasons[reason] += 1
        else:
            wrong += 1
            counts[case.feature, "DIFFERENT"] += 1
            print(f"--- case {index} ({case.feature}) of seed {args.seed}: {case.name} {case.overrides}")
            for path, text in case.files.items():
                print(f"  {path}: {text!r}")
            print(f"  Hydra:   {theirs} {why[:300]!r}\n  trainer: {ours} {message}")
    print(f"hydra-core {hydra.__version__}, omegaconf {omegaconf.__version__}, seed {args.seed}")
    columns = ["same values", "both fail", "deliberate", "DIFFERENT"]
    print(f"{'':18}" + "".join(f"{column:>13}" for column in columns))
    for feature in sorted({feature for feature, _ in counts}):
        print(f"{feature:18}" + "".join(f"{counts[feature, column]:13}" for column in columns))
    print(f"{'total':18}" + "".join(f"{sum(n for (_, c), n in counts.items() if c == column):13}" for column in columns))
    for reason, number in reasons.items():
        print(f"{number} × {reason}")
    print(f"{len(DELIBERATE)} deliberate differences, as listed" if not wrong else f"{wrong} unexplained")
    if args.freeze:
        freeze(args.freeze, rows, 60)
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
