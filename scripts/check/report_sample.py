#!/usr/bin/env python3
"""Makes a report of invented runs, to view and test the page of `trainer report`.

    scripts/check/report_sample.py OUT.html [--runs 2] [--steps 400] [--kind ppo|agent|trl|sft|bare] [--state finished] [--no-samples] [--watch] [--json OUT.json]

The data has the format of the page's element `data`, which `trainer report` writes. Needs only Python.
"""
import argparse
import html
import json
import math
import pathlib
import random
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "crates/report/src/page"
# The order in which the scripts are joined; one scope holds them all.
# In the order of the program.
SCRIPTS = re.findall(r'"page/(\w+\.js)"', (PAGE.parent / "page.rs").read_text())
NAMES = ["grpo-arithmetic", "grpo-arithmetic-no-kl", "dapo-arithmetic"]
NONFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
VALIDATE_EVERY = 32
ACCURACY = "val-core/burnish/arithmetic/acc/mean@1"


def assemble(data):
    """The page with its data. Placeholders are filled in one pass, so that no text of the data is read as a placeholder."""
    parts = {
        "STYLE": (PAGE / "style.css").read_text(),
        "SCRIPT": "\n".join((PAGE / name).read_text() for name in SCRIPTS),
        "DATA": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "TITLE": html.escape(", ".join(run["name"] for run in data["runs"])),
        "CONNECT": "'self'" if data["watch"] else "'none'",
    }
    pieces = (PAGE / "index.html").read_text().split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))


def number(value):
    """The report's format: six significant digits, names for values that are not finite."""
    if value is None:
        return None
    if math.isnan(value):
        return "NaN"
    return NONFINITE.get(value) or float(f"{value:.6g}")


def policy_run(rng, steps, variant):
    """Series of a policy that learns arithmetic, step 0 being validation alone."""
    speed = [1.0, 1.6, 0.75][variant] * 5 / max(steps, 1)
    series, length = {}, steps + 1

    def put(name, value):
        series[name] = [None] + [number(value(t)) for t in range(1, length)]

    noise = lambda size: rng.gauss(0, size)
    learnt = [1 - math.exp(-speed * t) for t in range(length)]
    wander = [0.0]
    for _ in range(steps):
        wander.append(wander[-1] * 0.98 + noise(0.01))
    score = lambda t: min(1, max(0, 0.31 + 0.6 * learnt[t] + wander[t] + noise(0.03)))
    put("training/global_step", lambda t: t)
    put("training/epoch", lambda t: t // 32)
    entropy = lambda t: 0.05 + 1.1 * math.exp(-speed * t * 0.8) + abs(noise(0.02))
    put("actor/entropy", entropy)
    if variant != 1:
        put("actor/kl_loss", lambda t: 0.002 + 0.35 * learnt[t] ** 2 + abs(noise(0.012)))
        put("actor/kl_coef", lambda t: 0.001)
    put("actor/pg_loss", lambda t: noise(0.02) - 0.01)
    put("actor/ppo_kl", lambda t: math.nan if t == steps // 3 else abs(noise(4e-4)))
    put("actor/pg_clipfrac", lambda t: max(0, noise(0.004) + 0.008 * math.exp(-speed * t)))
    put("actor/pg_clipfrac_lower", lambda t: 0.0)
    put("actor/grad_norm", lambda t: math.inf if t in (steps // 2, steps // 2 + 1) else math.exp(noise(0.35)) * (1.9 - learnt[t]))
    put("actor/lr", lambda t: 1e-6 * min(1, t / 20) * (0.5 + 0.5 * math.cos(math.pi * t / length)))
    put("actor/skipped_updates", lambda t: 1.0 if t in (steps // 2, steps // 2 + 1) else 0.0)
    put("critic/score/mean", score)
    put("critic/score/max", lambda t: 1.0)
    put("critic/score/min", lambda t: 0.0 if t < steps * 0.9 else 0.1)
    for name, shift in (("rewards", -0.01), ("returns", 0.0), ("advantages", None)):
        put(f"critic/{name}/mean", lambda t: noise(1e-4) if shift is None else score(t) + shift)
        put(f"critic/{name}/max", lambda t: 2.4 + noise(0.2) if shift is None else 1.0)
        put(f"critic/{name}/min", lambda t: -2.4 + noise(0.2) if shift is None else shift)
    cut = lambda t: max(0, 0.22 * math.exp(-speed * t * 2) + (0.05 * learnt[t] if variant == 1 else 0) + noise(0.012))
    put("response_length/mean", lambda t: 180 - 70 * learnt[t] + 90 * learnt[t] ** 4 + noise(6))
    put("response_length/max", lambda t: 256)
    put("response_length/min", lambda t: 12 + rng.randrange(18))
    put("response_length/clip_ratio", cut)
    put("response/truncated_ratio", cut)
    for part, value in (("mean", 61.3), ("max", 88), ("min", 42), ("clip_ratio", 0)):
        put(f"prompt_length/{part}", lambda t: value + (rng.randrange(3) if value > 1 else 0))
    for part in ("mean", "max", "min"):
        put(f"num_turns/{part}", lambda t: 2)
    for part in ("p50", "p90", "p99", "max"):
        put(f"reward/remote/latency_ms/{part}", lambda t: 11 * math.exp(noise(0.3)))
    put("reward/abstained_ratio", lambda t: 0)
    for name in ("acc", "format", "brevity", "integer_format", "language"):
        put(f"reward/{name}/mean", lambda t: score(t) * 0.9)
    for name in ("mean", "min", "max", "std", "eff_sample_size", "seq_mean", "seq_max", "seq_min", "seq_std", "ratio_fraction_high", "ratio_fraction_low"):
        put(f"rollout_corr/rollout_is_{name}", lambda t: 1 + noise(0.01))
    for name in ("kl", "k3_kl", "log_ppl_diff", "chi2_token", "chi2_seq", "log_ppl_abs_diff", "ppl_ratio", "rollout_ppl", "training_ppl"):
        put(f"rollout_corr/{name}", lambda t: abs(noise(1e-5)) if name != "chi2_seq" or t != 7 else -math.inf)
    for name in ("mean", "max", "std"):
        put(f"training/rollout_probs_diff_{name}", lambda t: abs(noise(1e-4)))
    for proxy in ("proxy1_signal_strength", "proxy2_total_power", "proxy3_pure_noise", "expected_a_squared", "expected_w"):
        put(f"variance_proxy/{proxy}", lambda t: math.exp(noise(0.5)))
    seconds = {"gen": 2.1 - 0.7 * learnt[-1], "reward": 0.05, "old_log_prob": 0.42, "ref": 0.4, "adv": 0.004, "update_actor": 1.35}
    if variant == 1:
        del seconds["ref"]
    spent = [0.0] * length
    for phase, mean in seconds.items():
        taken = [0] + [mean * math.exp(noise(0.05)) * (1.25 - 0.35 * learnt[t] if phase == "gen" else 1) for t in range(1, length)]
        series[f"timing_s/{phase}"] = [None] + [number(x) for x in taken[1:]]
        spent = [a + b for a, b in zip(spent, taken)]
        if phase != "reward":
            put(f"timing_per_token_ms/{phase}", lambda t: taken[t] / 12)
    put("timing_s/tracking", lambda t: 0.0002 * math.exp(noise(0.2)))
    put("timing_s/step", lambda t: spent[t] + 0.06)
    put("perf/time_per_step", lambda t: spent[t] + 0.06)
    put("perf/total_num_tokens", lambda t: 14000 + rng.randrange(900))
    put("perf/throughput", lambda t: 14400 / (spent[t] + 0.06))
    put("perf/max_memory_allocated_gb", lambda t: 3.21)
    put("perf/cpu_memory_used_gb", lambda t: 1.9 + 0.0001 * t)

    def validate(name, value):
        series[name] = [number(value(t)) if t % VALIDATE_EVERY == 0 or t == steps else None for t in range(length)]

    validate(ACCURACY, lambda t: min(1, 0.3 + 0.64 * learnt[t] + noise(0.008)))
    validate("val-aux/burnish/arithmetic/reward/mean@1", lambda t: min(1, 0.3 + 0.62 * learnt[t] + noise(0.008)))
    validate("val-aux/burnish/arithmetic/response_length/mean@1", lambda t: 180 - 60 * learnt[t] + noise(2))
    validate("val-aux/num_turns/mean", lambda t: 2)
    series["timing_s/testing"] = [number(1.6 * math.exp(noise(0.1))) if t % VALIDATE_EVERY == 0 else None for t in range(length)]
    series["timing_s/save_checkpoint"] = [number(0.4) if t and t % 100 == 1 and t > 1 else None for t in range(length)]
    return list(range(length)), series


TRL = {"actor/lr": "lr", "actor/pg_loss": "loss/policy_avg", "critic/rewards/mean": "objective/rlhf_reward", "critic/score/mean": "objective/scores",
       "actor/pg_clipfrac": "policy/clipfrac_avg", "actor/entropy": "policy/entropy_avg", "actor/kl_loss": "objective/kl", "actor/ppo_kl": "policy/approxkl_avg"}


def supervised_run(rng, steps):
    series = {
        "train/loss": [1.9 * math.exp(-4 * t / steps) + 0.3 + rng.gauss(0, 0.03) for t in range(1, steps + 1)],
        "train/grad_norm": [math.exp(rng.gauss(0, 0.3)) for _ in range(steps)],
        "train/lr": [1e-4 * (1 - t / steps) for t in range(steps)],
        "train/global_tokens": [2384 for _ in range(steps)],
        "timing_s/step": [0.3 + rng.random() * 0.03 for _ in range(steps)],
        "perf/throughput": [7900 + rng.gauss(0, 200) for _ in range(steps)],
        "val/loss": [1.8 * math.exp(-4 * t / steps) + 0.32 if t % 25 == 0 else None for t in range(1, steps + 1)],
    }
    return list(range(1, steps + 1)), {name: [number(v) for v in values] for name, values in series.items()}


def sample(rng, step, kind, skill, prompt, hostile):
    a, b, sign = prompt
    answer = {"+": a + b, "-": a - b, "*": a * b}[sign]
    right = rng.random() < skill
    said = answer if right else answer + rng.choice([-10, -1, 1, 10, 2])
    long = rng.random() < 0.35 * (1 - skill)
    words = f"First I look at the task: {a} {sign} {b} = ?\nI take {a} and then {'add' if sign == '+' else 'subtract' if sign == '-' else 'multiply by'} {b}, digit by digit.\n"
    words += "Let me check this once more, and once more, because I am not sure. " * (3 if long else 0)
    words += "" if long else f"So the result is {said}.\n#### {said}"
    if hostile:
        words += '\n</script><img src=x onerror="window.hacked=1"> {{DATA}} <b>bold</b>'
    tokens, start = [], 0
    for i in range(1, len(words) + 1):
        if i == len(words) or words[i] in " \n#" or (words[i].isdigit() and i - start >= 1) or (words[i - 1].isdigit() and not words[i].isdigit()):
            tokens.append(words[start:i])
            start = i
    score = 0.0 if long else float(right)
    advantage = number((score - skill) / max(0.1, math.sqrt(skill * (1 - skill))))
    spread = lambda: number(advantage * (0.4 + 1.2 * rng.random()) * (-1 if rng.random() < 0.12 else 1))
    return {
        "step": step, "kind": kind, "prompt": f"Work out the following and end with #### and the number.\n{a} {sign} {b} =", "response": words, "score": score,
        "advantage": advantage if kind == "train" else None, "ground_truth": str(answer), "data_source": "burnish/arithmetic",
        "components": {"acc": score, "format": None if long else 1.0}, "finish": "length" if long else "stop", "tokens": tokens,
        "log_probs": [number(-abs(rng.gauss(0, 0.08 if rng.random() < 0.8 else 1.6))) for _ in tokens], "advantages": [spread() for _ in tokens] if kind == "train" else None,
    }


def conversation(one):
    """The sample as a conversation: a tool wrote the middle third of its tokens."""
    third = len(one["tokens"]) // 3
    parts = ["".join(one["tokens"][i * third : None if i == 2 else (i + 1) * third]) for i in range(3)]
    call = {"type": "function", "function": {"name": "calculator", "arguments": {"expression": one["prompt"].split("\n")[-1], "note": "</script><b>"}}}
    messages = [
        {"role": "system", "content": "You have tools."}, {"role": "user", "content": one["prompt"]}, {"role": "assistant", "content": parts[0], "tool_calls": [call]},
        {"role": "tool", "name": "calculator", "content": parts[1]}, {"role": "assistant", "reasoning_content": "Is that so?", "content": parts[2]},
    ]
    end = "length" if one["finish"] == "length" else "answer"
    sampled = [int(not third <= i < 2 * third) for i in range(len(one["tokens"]))]
    zeroed = {key: one[key] and [x * s for x, s in zip(one[key], sampled)] for key in ("log_probs", "advantages")}
    return {**one, **zeroed, "messages": messages, "asked": 2, "end": end, "num_turns": 4, "sampled": sampled}


def samples_of(seed, steps, every, variant, at_once=6):
    found = []
    for step in range(every, steps + 1, every):
        skill = 0.3 + 0.65 * (1 - math.exp(-[1.0, 1.6, 0.75][variant] * 5 * step / steps))
        for kind in ("train", "val"):
            if kind == "val" and (step // every) % 3:
                continue
            shared = random.Random(seed * 1000 + step)  # the prompts of a step are the same in every run
            prompts = [(shared.randrange(10, 99), shared.randrange(10, 99), shared.choice("+-*")) for _ in range(at_once)]
            rng = random.Random(f"{seed} {step} {kind} {variant}")
            found += [sample(rng, step, kind, skill, prompt, hostile=step == every and i == 1) for i, prompt in enumerate(prompts)]
    return found


def config_of(variant, kind):
    base = [
        ("algorithm.adv_estimator", ["grpo", "grpo", "dapo"][variant], "recipes/arithmetic/grpo.yaml:3"),
        ("algorithm.use_kl_in_reward", False, "default"), ("algorithm.gamma", 1.0, "default"), ("algorithm.lam", 1.0, "default"),
        ("actor_rollout_ref.actor.use_kl_loss", variant != 1, "recipes/arithmetic/grpo.yaml:12" if variant != 1 else "command line"),
        ("actor_rollout_ref.actor.kl_loss_coef", 0.001, "config/actor/actor.yaml:31"), ("actor_rollout_ref.actor.optim.lr", [1e-6, 2e-6, 1e-6][variant], "command line"),
        ("actor_rollout_ref.actor.clip_ratio_high", 0.28 if variant == 2 else 0.2, "command line" if variant == 2 else "default"),
        ("actor_rollout_ref.rollout.n", 8, "recipes/arithmetic/grpo.yaml:20"), ("data.train_batch_size", 64, "recipes/arithmetic/grpo.yaml:6"),
        ("data.train_files", ["data/arithmetic/train.jsonl"], "recipes/arithmetic/grpo.yaml:5"), ("trainer.logger", ["console", "file"], "default"),
        ("trainer.experiment_name", NAMES[variant], "command line"), ("reward.custom_reward_function.path", None, "default"),
        ("trainer.note", "</td><script>window.hacked=1</script>", "command line"),
    ]
    if kind == "sft":
        base = [("optim.lr", 1e-4, "command line"), ("data.train_batch_size", 32, "recipes/arithmetic/sft.yaml:4")]
    base += [(f"actor_rollout_ref.model.setting_{i}", i * 2, "config/model/model.yaml:%d" % (i + 3)) for i in range(60)]
    return [{"key": key, "value": value, "from": source} for key, value, source in base]


def run_of(kind, steps, every, variant, state, samples, seed):
    rng = random.Random(seed * 17 + variant)
    if kind == "bare":
        at, series = [1, 2, 3][:steps], {"critic/score/mean": [0.5, "NaN", 0.75][:steps]}
    else:
        at, series = supervised_run(rng, steps) if kind == "sft" else policy_run(rng, steps, variant)
    if kind == "trl":
        series = {TRL.get(name, name): values for name, values in series.items()}
    accuracy = [(v, t) for v, t in zip(series.get(ACCURACY, []), at) if v is not None]
    best = max(accuracy) if accuracy else None
    failed = state == "failed"
    return {
        "name": NAMES[variant], "dir": f"checkpoints/burnish/{NAMES[variant]}", "id": f"k{variant}x3v9q2"[:8], "state": state, "resumable": state not in ("finished", "running"),
        "error": "step 2000: the gradient of `layers.3.attention.query` is not finite; see trainer.on_nonfinite" if failed else None,
        "alarms": [{"name": "NaN", "step": at[len(at) // 2], "number": 41.5, "sentence": "the gradient norm is 41.5 times the usual", "remedy": "Lower the rate."}] if failed else [],
        "phase": "update_actor" if state in ("failed", "running", "killed") else None, "started": 1790000000 + 86400 * variant,
        "ended": None if state in ("running", "killed") else 1790000000 + 86400 * variant + int(4.2 * steps) + 60, "worked": int(4.2 * steps) + 60, "problems": [], "step": at[-1], "total_steps": at[-1] + (0 if state == "finished" else steps // 2),
        "device": "cpu, 2 threads", "model": "burnish-arithmetic 0.9M",
        "command": f"trainer --config recipes/arithmetic/grpo.yaml trainer.experiment_name={NAMES[variant]} actor_rollout_ref.actor.optim.lr=1e-6", "burnish": "0.1.0",
        "best": best and {"metric": ACCURACY, "value": best[0], "step": best[1]}, "metrics": {"steps": at, "series": series},
        "samples": [conversation(one) if kind == "agent" else one for one in samples_of(seed, steps, every, variant)] if samples and kind in ("ppo", "agent", "trl") else [], "config": config_of(variant, kind) if kind != "bare" else [],
    }


def make_data(runs=1, steps=400, kind="ppo", state="finished", samples=True, watch=False, seed=1):
    """The JSON value of the page; if there are several runs, the last has a third fewer steps."""
    shorter = lambda i: steps if i == 0 or steps < 9 or i + 1 < runs else steps * 2 // 3
    return {"version": 1, "generated": 1790100000, "watch": watch, "runs": [run_of(kind, shorter(i), max(1, steps // 25), i, state, samples, seed) for i in range(runs)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1, choices=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--kind", default="ppo", choices=["ppo", "agent", "trl", "sft", "bare"])
    parser.add_argument("--state", default="finished", choices=["running", "finished", "interrupted", "failed", "killed"])
    parser.add_argument("--no-samples", action="store_true")
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="write the data alone here too")
    given = parser.parse_args()
    data = make_data(given.runs, given.steps, given.kind, given.state, not given.no_samples, given.watch)
    given.out.write_text(assemble(data))
    if given.json:
        given.json.write_text(json.dumps(data))
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.2f} MB, {len(data['runs'])} runs, {max(len(run['metrics']['series']) for run in data['runs'])} series, {len(data['runs'][0]['metrics']['steps'])} steps")


if __name__ == "__main__":
    main()
