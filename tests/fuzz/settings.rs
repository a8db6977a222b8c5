//! Settings: YAML, overrides, interpolations, and scripts that launch verl.

use std::sync::Arc;

use burnish::agent::config::{loops, tools, users};
use burnish::config::yaml_file::YamlFile;
use burnish::config::{Node, Origin, Tree, YamlSource};
use burnish::convert::from_verl::{VerlSource as Script, convert};
use burnish::convert::shell::{ShellEnv, read as read_script};
use burnish::hydra::{interpolation, overrides, yaml};

use crate::{Target, files};

const YAML_WORDS: &[&str] = &[
    "- ",
    "? ",
    ": ",
    "&a ",
    "*a",
    "<<: *a",
    "|\n",
    ">-\n",
    "---\n",
    "...\n",
    "!!int ",
    "\t",
    "\n  ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "#",
    "%YAML 1.2\n",
    "${",
    "}",
    "${now:%Y}",
    "???",
    "~",
    "defaults:\n  - ",
    "@",
    "\u{feff}",
    "\u{85}",
    "é",
];

pub(crate) fn yaml() -> Target {
    Target {
        name: "yaml",
        seeds: || [files("recipes", &[".yaml"]), files("tests/data/hydra", &[".yaml"])].concat(),
        words: YAML_WORDS,
        cases: 400,
        read: |input, _| {
            let Ok(text) = String::from_utf8(input.to_vec()) else { return };
            _ = Tree::parse("fuzz.yaml", text.clone()).map(|tree| tree.to_yaml());
            let Ok(node) = yaml::parse(&Arc::new(YamlSource { name: "fuzz.yaml".into(), text })) else { return };
            let (_, problems) = interpolation::resolve(&node);
            problems.iter().for_each(|problem| drop(problem.to_string()));
        },
    }
}

pub(crate) fn agent_lists() -> Target {
    Target {
        name: "agent_lists",
        seeds: || files("tests/data/agents", &[".yaml"]),
        words: YAML_WORDS,
        cases: 400,
        read: |input, _| {
            let Ok(text) = String::from_utf8(input.to_vec()) else { return };
            let Ok(file) = YamlFile::parse("fuzz.yaml", text) else { return };
            let value = file.value();
            let wrong = [tools(value).err(), users(value).err(), loops(value).err()];
            for one in wrong.into_iter().flatten() {
                drop(file.wrong(&one.key, one.message).to_string());
            }
        },
    }
}

fn node(text: &str) -> Node {
    yaml::parse(&Arc::new(YamlSource { name: "tree.yaml".into(), text: text.into() })).unwrap()
}

const TREE: &str = "a: {b: 1, c: [1, 2, {d: x}], e: '${a.b}'}\nf: '${a.c[2].d} ${oc.env:HOME,none}'\ng: '${oc.select:a.z,5}'\n";

pub(crate) fn overrides() -> Target {
    Target {
        name: "overrides",
        seeds: || {
            let texts = [
                "a.b=2",
                "+a.new=[1,2,{x: y}]",
                "++a.b='quo\\'ted'",
                "~a.b",
                "~a.c=[1, 2, {d: x}]",
                "f=${a.b}",
                "a.c=range(1,10,2)",
                "a.b=1e-6",
                "a.b=int('7')",
                "a.e=\"${oc.decode:'[1,2]'}\"",
                "a@b=c",
                "a.b=",
                "a.b=null",
                "a.c=sort(3,1,2)",
            ];
            texts.map(|text| text.as_bytes().to_vec()).to_vec()
        },
        words: &[
            "=",
            "+",
            "++",
            "~",
            "@",
            ".",
            "[",
            "]",
            "{",
            "}",
            "(",
            ")",
            ",",
            ":",
            "\\",
            "'",
            "\"",
            "${",
            "}",
            "range(",
            "sort(",
            "choice(",
            "glob(",
            "interval(",
            "shuffle(",
            "json_str(",
            "int(",
            " ",
            "\t",
            "\u{0}",
            "é",
        ],
        cases: 2_000,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let mut root = node(TREE);
            match overrides::parse(text).and_then(|parsed| parsed.apply(&mut root)) {
                Ok(()) => drop(interpolation::resolve(&root)),
                Err(problem) => drop(problem.to_string()),
            }
        },
    }
}

pub(crate) fn interpolations() -> Target {
    Target {
        name: "interpolations",
        seeds: || {
            let texts = [
                "${a.b}",
                "x ${a.c[0]} y",
                "${a.c[2].d}",
                "${oc.env:HOME}",
                "${oc.env:NONE,default}",
                "${oc.select:a.b,1}",
                "${f}",
                "${oc.decode:'[1, 2]'}",
                "${oc.create:{x: 1}}",
                "${oc.dict.keys:a}",
                "${now:%Y-%m-%d}",
                "${a.${g}}",
                "\\${a}",
                "${.b}",
                "${..a.b}",
                "${hydra:runtime.cwd}",
            ];
            texts.map(|text| text.as_bytes().to_vec()).to_vec()
        },
        words: &[
            "${",
            "}",
            "\\",
            "$",
            "{",
            ":",
            ",",
            ".",
            "..",
            "[",
            "]",
            "'",
            "\"",
            "oc.env:",
            "oc.select:",
            "oc.decode:",
            "oc.create:",
            "oc.dict.values:",
            "oc.deprecated:",
            "now:",
            "a",
            "a.b",
            "f",
            "%Y",
            "%",
            " ",
            "é",
        ],
        cases: 2_000,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            _ = interpolation::text(&node(TREE), text, &Origin::Override(Arc::from("fuzz")))
                .map_err(|problem| problem.to_string());
        },
    }
}

const SCRIPTS: [&str; 3] = [
    "set -x\nMODEL=${MODEL:-/models/m}\nN=$((2 * 4))\npython3 -m verl.trainer.main_ppo \\\n    algorithm.adv_estimator=grpo \\\n    \
     data.train_files=\"$HOME/data/train.parquet\" \\\n    actor_rollout_ref.model.path=\"$MODEL\" \\\n    trainer.n_gpus_per_node=$N $@\n",
    "#!/bin/bash\n# a comment\nexport A='x y'\nif [ -z \"$A\" ]; then\n  B=1\nelse\n  B=2\nfi\nfor i in 1 2; do echo $i; done\n\
     torchrun --standalone -m verl.trainer.fsdp_sft_trainer data.train_files=$A data.max_length=$B > log.txt 2>&1\n",
    "OVERRIDES=(\n  data.train_batch_size=8\n  \"trainer.project_name=p q\"\n)\nOVERRIDES+=(trainer.nnodes=1)\ncat <<EOF\ntext $HOME\nEOF\n\
     function f() { echo \"$1\"; }\npython -m verl.trainer.main_ppo \"${OVERRIDES[@]}\" \"${X:+y}\" ${A%.*} ${A##*/}\n",
];

/// Scripts that make long texts of short ones. The words are builtins with sizes from a thousand to more than a 64-bit number.
pub(crate) fn growing_scripts() -> Target {
    Target {
        name: "growing_scripts",
        seeds: || {
            [
                "x=$(printf '%01000d' 0)\ny=$(seq -s, 1 9999)\nset -- $(seq 1 999)\nfor i in {1..40}; do\n  echo $x >> f\ndone\nprog $x\n",
                "f() {\n  z=$(echo \"$@\" | sed 's/1/11/g')\n  a+=($z)\n  if [ $1 ]; then f $z; fi\n}\nf $(seq 1 100)\n",
                "read -a b <<< \"$(seq 1 1000)\"\nwhile read l; do x+=$l; done < f\ncat <<E\n# $x ${x//0/$y}\nE\n",
            ]
            .map(|script| script.as_bytes().to_vec())
            .to_vec()
        },
        words: &[
            "1000",
            "1000000",
            "1000000000",
            "9223372036854775807",
            "-9223372036854775808",
            "99999999999999999999999",
            "$(seq 1 9999)",
            "$(seq -s $x 1 9999)",
            "$(seq -w 1 1000000000)",
            "$(printf '%1000d' 1)",
            "$(printf '%s\\n' $y $y)",
            " | tr 0-9 'a-\u{10ffff}'",
            " | tr -d '!-\u{10ffff}'",
            " | sed 's/./&&/g'",
            " | sed -E 's/(.*)/\\1\\1/'",
            "${x//?/$y}",
            "${x/#/$x}",
            "${x^^}",
            "${x@Q}",
            "${@:1:1000}",
            "${#y}",
            "\"$@\"",
            "$y$y$y$y",
            "{1..1000}",
            "{a,b}{c,d}{1..100}",
            "{1..9223372036854775807..1000}",
            "set -- \"$@\" \"$@\"\n",
            "x=$x$x\n",
            "x+=$y\n",
            "y=$(cat f f)\n",
            "a=(\"${a[@]}\" \"${a[@]}\")\n",
            "a[1000000000]=$x\n",
            "declare -A m; m[$x]=$y\n",
            "[[ $x =~ (.*)(.*)(.*) ]]\n",
            "eval \"$x\"\n",
            "for i in $y; do\n",
            "while true; do\n",
            "done\n",
            "( ",
            " )",
            "$(f)",
            "cat <<E\n#$($($(${${\nE\n",
            "prog $x $y \"$@\"\n",
            " >> f\n",
            " < f\n",
        ],
        cases: 300,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            _ = read_script(text, &ShellEnv::for_text("fuzz.sh"), &|_| false).map_err(|error| error.message);
        },
    }
}

pub(crate) fn verl_scripts() -> Target {
    Target {
        name: "verl_scripts",
        seeds: || {
            [SCRIPTS.map(|script| script.as_bytes().to_vec()).to_vec(), files("tests/data/verl-scripts", &[".sh"])].concat()
        },
        words: &[
            "\"",
            "'",
            "\\",
            "\\\n",
            "$",
            "${",
            "}",
            "$(",
            ")",
            "`",
            "$((",
            "))",
            "<<EOF\n",
            "EOF\n",
            "<<'",
            ";",
            "&&",
            "||",
            "|",
            "&",
            "if ",
            "then\n",
            "fi\n",
            "for x in ",
            "do\n",
            "done\n",
            "case x in\n",
            "esac\n",
            "function ",
            "{ ",
            "} ",
            "[[ ",
            " ]]",
            "[ ",
            " ]",
            "=(",
            "+=",
            "@script.sh",
            "#",
            ">",
            "2>&1",
            "\n",
            "\r\n",
            "python3 -m verl.trainer.main_ppo ",
        ],
        cases: 300,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let environment = |name: &str| (name == "HOME").then(|| "/home/user".to_owned());
            let env = ShellEnv {
                arguments: &["8".to_owned(), "out dir".to_owned()],
                variable: &environment,
                ..ShellEnv::for_text("fuzz.sh")
            };
            let script = Script { text, edition: None, program: None, env };
            _ = convert(&script).map_err(|error| error.to_string());
        },
    }
}
