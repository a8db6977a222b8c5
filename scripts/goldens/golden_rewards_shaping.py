"""Writes tests/golden/shaping.json: the results of verl's, TRL's and OpenRLHF's own code on random scores.

    pip download --no-deps verl==0.9.1 trl==1.16.0 trl==0.21.0 openrlhf==0.11.0   (one by one; unpack each archive)
    pip install torch numpy
    python scripts/goldens/golden_rewards_shaping.py VERL TRL TRL_0_21 OPENRLHF > tests/golden/shaping.json

Each argument is the folder that contains the package's folder. Functions, and statements outside functions, are extracted from
the files and run unchanged; the packages are not imported, so nothing else of theirs is needed.
"""

import ast
import asyncio
import collections
import json
import math
import pathlib
import sys
import types

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
VERL, TRL, TRL_OLD, OPENRLHF = (pathlib.Path(argument) for argument in sys.argv[1:5])
RANDOM = np.random.default_rng(20261121)
QUIET = types.SimpleNamespace(info=lambda *_: None)


def nodes(path, name):
    """The definition of this name."""
    found = [n for n in ast.walk(ast.parse(path.read_text())) if getattr(n, "name", None) == name]
    assert len(found) == 1, (path, name, len(found))
    return found[0]


def run(body, path, namespace):
    exec(compile(ast.fix_missing_locations(ast.Module(body, [])), str(path), "exec"), namespace)
    return namespace


def functions(path, *names, **namespace):
    """The functions of these names, without their decorators; they share a namespace."""
    found = [nodes(path, name) for name in names]
    for node in found:
        node.decorator_list = []
        for argument in ast.walk(node):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        node.returns = None
    space = run(found, path, {"torch": torch, "np": np, "logger": QUIET, **namespace})
    return [space[name] for name in names]


def statements(path, within, starts, **namespace):
    """Runs the first statement that starts so, for each of `starts`, inside the function `within`."""
    every = sorted((n for n in ast.walk(nodes(path, within)) if isinstance(n, ast.stmt)), key=lambda n: n.lineno)
    body = [next(n for n in every if ast.unparse(n).startswith(start)) for start in starts]
    return run(body, path, {"torch": torch, **namespace})


def plain(value):
    """Lists instead of tensors, None instead of NaN."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def scores(count, levels=None):
    drawn = RANDOM.normal(size=count) if levels is None else RANDOM.choice(levels, size=count)
    return [float(np.float32(score)) for score in drawn]


def overlong(case):
    [run_single] = functions(VERL / "verl/experimental/reward_loop/reward_manager/dapo.py", "run_single")
    buffer = types.SimpleNamespace(enable=True, len=case["len"], penalty_factor=case["penalty_factor"], log=True)

    async def one(score, length):
        width = case["max_resp_len"] + 8
        item = types.SimpleNamespace(
            batch={"responses": torch.zeros(width), "attention_mask": (torch.arange(width) < length).long()},
            non_tensor_batch={"data_source": "", "reward_model": {"ground_truth": ""}},
        )
        manager = types.SimpleNamespace(
            loop=asyncio.get_running_loop(),
            tokenizer=types.SimpleNamespace(decode=lambda *_, **__: ""),
            compute_score=lambda **_: score,
            is_async_reward_score=False,
            reward_router_address=None,
            overlong_buffer_cfg=buffer,
            max_resp_len=case["max_resp_len"],
        )
        return await run_single(manager, [item])

    results = [asyncio.run(one(s, n)) for s, n in zip(case["scores"], case["lengths"])]
    case["verl"] = [float(r["reward_score"]) for r in results]
    case["overlong_reward"] = [float(r["reward_extra_info"]["overlong_reward"]) for r in results]
    case["overlong"] = [float(r["reward_extra_info"]["overlong"]) for r in results]
    case["openrlhf"] = penalties(case, len=case["len"], factor=case["penalty_factor"])
    space = run([nodes(TRL / "trl/rewards/other_rewards.py", "_SoftOverlongPunishment")], "", {})
    case["trl"] = space["_SoftOverlongPunishment"](case["max_resp_len"], case["len"])([[0] * n for n in case["lengths"]])
    return case


def penalties(case, len=None, factor=1.0, coef=None):
    path = next(OPENRLHF.rglob("ppo_utils/length_penalty.py"))
    names = ("apply_overlong_penalty", "apply_stop_properly_penalty", "apply_length_penalties")
    apply = functions(path, *names)[-1]
    experience = types.SimpleNamespace(
        rewards=torch.tensor(case["scores"]),
        response_length=torch.tensor(case["lengths"]),
        truncated=torch.tensor([not ended for ended in case["ended"]]),
        info={},
    )
    reward = types.SimpleNamespace(overlong_buffer_len=len, overlong_penalty_factor=factor, stop_properly_penalty_coef=coef)
    rollout = types.SimpleNamespace(max_new_tokens=case["max_resp_len"])
    apply([experience], types.SimpleNamespace(reward=reward, rollout=rollout))
    return plain(experience.rewards)


def trl_original(case):
    args = types.SimpleNamespace(missing_eos_penalty=case["penalty"], normalize_reward=case["normalize"], reward_clip_range=case["clip"])
    starts = ["if args.missing_eos_penalty is not None:", "if args.normalize_reward:"]
    result = statements(
        TRL_OLD / "trl/trainer/rloo_trainer.py", "train", starts,
        args=args, self=types.SimpleNamespace(args=args),
        scores=torch.tensor(case["scores"]), contain_eos_token=torch.tensor(case["ended"]),
    )  # fmt: skip
    return {**case, "result": plain(result["scores"])}


TODAY = (TRL / "trl/trainer/rloo_trainer.py", "_generate_and_score_completions")


def combined(case):
    """TRL today: the weighted sum over functions, then the clip."""
    starts = ["unscorable_mask =", "rewards = (rewards_per_func", "rewards[unscorable_mask] =", "if self.reward_clip_range:"]
    trainer = types.SimpleNamespace(reward_weights=torch.tensor(case["weights"]), reward_clip_range=case["clip"])
    per_func = torch.tensor([[math.nan if r is None else r for r in row] for row in case["rewards"]])
    result = statements(*TODAY, starts, self=trainer, device="cpu", rewards_per_func=per_func)
    return {**case, "result": plain(result["rewards"])}


def normalized_advantages(case):
    [nanstd] = functions(TRL / "trl/trainer/utils.py", "nanstd")
    starts = ["if self.normalize_advantages:", "advantages = torch.nan_to_num("]
    values = torch.tensor([math.nan if a is None else a for a in case["advantages"]])
    trainer = types.SimpleNamespace(normalize_advantages=True)
    return {**case, "result": plain(statements(*TODAY, starts, self=trainer, advantages=values, nanstd=nanstd)["advantages"])}


def ragged(count):
    lengths = [int(n) for n in RANDOM.integers(0, 7, size=count)]
    values = [scores(n) for n in lengths]
    masks = [[float(m) for m in RANDOM.random(n) < 0.8] for n in lengths]
    return {"values": values, "masks": masks}


def whitened(case):
    names = ("masked_mean", "masked_var", "masked_whiten")
    trl = functions(TRL_OLD / "trl/core.py", *names)[-1]
    verl = functions(VERL / "verl/utils/torch_functional.py", "masked_sum", *names)[-1]
    width = max(map(len, case["values"]))
    values = torch.tensor([row + [9.0] * (width - len(row)) for row in case["values"]])
    mask = torch.tensor([row + [0.0] * (width - len(row)) for row in case["masks"]])
    lengths = [len(row) for row in case["values"]]
    rows = lambda table: [row[:n] for row, n in zip(plain(table * mask), lengths)]  # noqa: E731
    return {**case, "rewards_trl": rows(trl(values, mask.bool(), shift_mean=False)), "advantages_verl": rows(verl(values, mask))}


def filtered(case):
    """verl's core and OpenRLHF: which groups are kept."""
    groups = case["groups"]
    keys = {f"{uid}_{i}": value for uid, values in enumerate(groups) for i, value in enumerate(values)}
    fields = lambda keys_of, **_: {"extra_fields": [{"reward_extra_info": {"acc": keys[k]}} for k in keys_of]}  # noqa: E731
    queue = types.SimpleNamespace(kv_batch_get=lambda keys, **kwargs: fields(keys, **kwargs))
    path = VERL / "verl/trainer/ppo/v1/replay_buffer.py"
    [classify] = functions(
        path, "_dapo_filtered_keys",
        tq=queue, defaultdict=collections.defaultdict, Counter=collections.Counter, FILTER_GROUPS_REWARD_METRIC="reward",
    )  # fmt: skip
    buffer = types.SimpleNamespace(
        filter_groups_metric="acc",
        finished_keys={"train": {str(uid) for uid in range(len(groups))}},
        partitions={"train": dict.fromkeys(keys)},
        _dapo_classification_cache=collections.defaultdict(dict),
    )
    thrown = {int(uid) for uid in classify(buffer, "train")[0]}

    batches = iter([(list(range(len(groups))), None, None, False)])
    low, high = case["range"]
    ray = types.SimpleNamespace(wait=lambda refs, **_: (refs[:1], refs[1:]), get=lambda ref: [(ref, v) for v in groups[ref]])
    bar = types.SimpleNamespace(set_postfix=lambda *_: None, update=lambda: None)
    [generate] = functions(
        next(OPENRLHF.rglob("ppo_utils/samples_generator.py")), "_generate_vllm",
        ray=ray, tqdm=lambda *_, **__: bar, List=list, Experience=object,
        _collect_prompt_batch=lambda *_: next(batches, ([], None, None, False)),
    )  # fmt: skip
    sampler = types.SimpleNamespace(
        args=types.SimpleNamespace(algo=types.SimpleNamespace(dynamic_filtering_range=(low, high))),
        _dispatch_prompts_to_vllm=lambda prompts, *_, **__: list(prompts),
        _process_response_into_experience=lambda r: types.SimpleNamespace(group=r[0], scores=[torch.tensor(r[1])]),
    )
    accepted = generate(sampler, None, len(groups), True)[0]
    within = sorted({experience.group for experience in accepted})
    return {**case, "verl": [uid for uid in range(len(groups)) if uid not in thrown], "openrlhf": within}


class Batch(dict):
    batch_size = None


def reweighted(case):
    [resample] = functions(VERL / "verl/trainer/ppo/core_algos.py", "compute_pf_ppo_reweight_data")
    weights = []
    original = torch.multinomial
    torch.multinomial = lambda own, count, replacement: weights.append((own, count, replacement)) or torch.arange(count)
    batch = Batch(token_level_scores=torch.tensor(case["scores"])[:, None])
    resample(types.SimpleNamespace(batch=batch, non_tensor_batch={}, meta_info={}), case["method"], case["weight_pow"])
    torch.multinomial = original
    [(own, count, replacement)] = weights
    assert count == len(case["scores"]) and replacement
    return {**case, "weights": plain(own)}


def text_functions():
    space = run([nodes(TRL / "trl/rewards/format_rewards.py", "think_format_reward")], "", {"re": __import__("re")})
    pieces = ["<think>", "</think>", "\n", "so", "<think", "</think"]
    texts = ["", "<think>a</think>", "<think>\na\n</think>\nb", "\n<think>a</think>", "a<think>b</think>", "<think></think>"]
    texts += ["".join(RANDOM.choice(pieces, size=5)) for _ in range(20)]
    texts += ["<think>" + "".join(RANDOM.choice(pieces[1:], size=4)) for _ in range(10)]
    think = [{"text": text, "result": space["think_format_reward"]([[{"content": text}]])[0]} for text in texts]
    penalty = run([nodes(TRL / "trl/rewards/other_rewards.py", "_RepetitionPenalty")], "", {})["_RepetitionPenalty"]
    repetition = []
    for n, most in [(3, -1.0), (2, -0.5), (1, -1.0)]:
        for length in [0, 1, 2, 3, 9, 17]:
            ids = [int(i) for i in RANDOM.integers(0, 3, size=length)]
            repetition.append({"ids": ids, "ngram_size": n, "max_penalty": most, "result": penalty(n, most)([ids])[0]})
    return {"think_format": think, "repetition_penalty": repetition}


def sequences(count, longest):
    return {
        "scores": scores(count),
        "lengths": [int(n) for n in RANDOM.integers(0, longest + 1, size=count)],
        "ended": [bool(e) for e in RANDOM.random(count) < 0.6],
    }


goldens = {"source": "verl 0.9.1, trl 1.16.0 and 0.21.0, openrlhf 0.11.0; torch CPU float64", "seed": 20261121, **text_functions()}
goldens["overlong"] = [
    overlong({**sequences(12, longest), "max_resp_len": 20, "len": size, "penalty_factor": factor})
    for size, factor, longest in [(5, 1.0, 20), (20, 0.5, 20), (8, 1.0, 28)]
]
goldens["length_penalties"] = []
for size, coef in [(None, 0.5), (None, -0.5), (8, 0.0), (8, 0.25), (8, -1.0)]:
    case = {**sequences(10, 20), "max_resp_len": 20, "len": size, "penalty_factor": 1.5, "coef": coef}
    goldens["length_penalties"].append({**case, "result": penalties(case, size, 1.5, coef)})
goldens["trl_original"] = [
    trl_original({**sequences(8, 5), "penalty": penalty, "normalize": normalize, "clip": 0.8})
    for penalty, normalize in [(None, True), (1.0, False), (0.5, True)]
]
goldens["combined"] = []
for clip in [None, [-0.5, 0.75]]:
    drawn = [[r if RANDOM.random() < 0.6 else None for r in scores(3)] for _ in range(12)]
    goldens["combined"].append(combined({"rewards": [*drawn, [None] * 3], "weights": [1.0, 0.5, -2.0], "clip": clip}))
goldens["normalize_advantages"] = [
    normalized_advantages({"advantages": [a if RANDOM.random() < keep else None for a in scores(count)]})
    for count, keep in [(9, 1.0), (9, 0.7)]
] + [normalized_advantages({"advantages": [None, 2.0]}), normalized_advantages({"advantages": [1.5, 1.5, 1.5]})]
goldens["whitened"] = [whitened(ragged(count)) for count in (3, 8)]
goldens["filtered"] = [
    filtered({"groups": [scores(int(n), [0.0, 0.5, 1.0]) for n in RANDOM.integers(1, 4, size=12)], "range": bounds})
    for bounds in ([0.0, 1.0], [0.25, 0.6])
]
goldens["pf_ppo"] = [
    reweighted({"scores": scores(8, levels), "method": method, "weight_pow": power})
    for method, power in [("pow", 2.0), ("pow", 0.5), ("max_min", 2.0), ("max_random", 2.0)]
    for levels in (None, [-1.0, 0.0, 2.0], [0.0])
]
json.dump(goldens, sys.stdout)
print()
