//! Commands and files of options of TRL and OpenRLHF.

use burnish::convert::from_openrlhf::OPENRLHF;
use burnish::convert::from_trl::TRL;
use burnish::convert::peers::{FileAccess, PeerSource, convert};

use crate::{Target, files};

/// A command, as words between spaces; as a file of options, too.
pub(crate) fn peer_commands() -> Target {
    Target {
        name: "peer_commands",
        seeds: || {
            let mut seeds: Vec<Vec<u8>> = [
                "accelerate launch --num_processes 2 trl/scripts/grpo.py --model_name_or_path m --dataset_name d --beta 0.1 --num_generations 4",
                "python my_grpo.py --reward_funcs accuracy_reward a.b --lr_scheduler_kwargs {\"num_cycles\":2} --use_peft --own 1",
                "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --pretrain m --train_batch_size 8 --n_samples_per_prompt 2 --bf16",
            ]
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
            seeds.extend(files("tests/data/peers", &[".yaml"]));
            seeds
        },
        words: &[
            " --num_generations 0 ",
            " --per_device_train_batch_size 9223372036854775807 ",
            " --num_processes 1e30 ",
            " --config x.yaml ",
            " --reward_clip_range nan inf ",
            " --datasets {\"path\": 1} ",
            " --generation_kwargs {} ",
            " --no_shuffle_dataset ",
            " --warmup_steps -1 ",
            " --rollout.n_samples_per_prompt 0 ",
            " --data.max_len 0 --rollout.max_new_tokens 1 ",
            " -- ",
            " - ",
            "=",
            "trl sft ",
            "trl rloo ",
            "openrlhf.cli.train_sft ",
            "\0",
        ],
        cases: 300,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let file = |_: &str| Ok(text.to_string());
            let files = |_: &str| None;
            for peer in [&TRL, &OPENRLHF] {
                for (stage, options) in [(None, None), (peer.trainers.last().map(|trainer| trainer.name), Some("x.yaml"))] {
                    let source = PeerSource {
                        name: "command",
                        calls: vec![(1, text.split(' ').map(str::to_string).collect())],
                        unknowns: vec![],
                        options,
                        edition: None,
                        stage,
                        processes: None,
                        access: FileAccess { read: &file, files: &files },
                    };
                    _ = convert(peer, &source).map_err(|error| error.to_string());
                }
            }
        },
    }
}

/// Python programs of TRL.
pub(crate) fn peer_programs() -> Target {
    Target {
        name: "peer_programs",
        seeds: || files("tests/data/peers/programs", &[".py"]),
        words: &[
            "\nd['a'] = d\n",
            "x = [x, x]\n",
            "((((((((",
            "not not not ",
            "**kwargs",
            "\n  ",
            "if x:\n",
            "for x in x:\n",
            "f'{x}'",
            "lambda: ",
            "return ",
            "def f(x):\n f(x)\n",
            "= 1 << 99",
            "!pip\n",
            "trl.SFTTrainer(",
            "parse_args()",
            "'''",
            "\0",
        ],
        cases: 300,
        read: |input, _| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let file = |_: &str| Ok(text.to_string());
            let source = PeerSource {
                name: "command",
                calls: vec![(1, ["python", "train.py", "--limit", "3", "--rate=x"].map(String::from).to_vec())],
                unknowns: vec![],
                options: None,
                edition: None,
                stage: None,
                processes: None,
                access: FileAccess { read: &file, files: &|_| None },
            };
            _ = convert(&TRL, &source).map_err(|error| error.to_string());
        },
    }
}
