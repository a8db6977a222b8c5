"""Train a small reward model for the arithmetic task of data/: a LlamaForSequenceClassification with one label that gives about 1
to a right response and about 0 to a wrong one, like the task's rule.

    python scripts/make_reward_model.py FOLDER [STEPS]        (pip install torch transformers pyarrow)
    trainer --config ppo_trainer.yaml reward_model.enable=true reward_model.model.path=FOLDER reward_model.model.input_tokenizer=null

It reads prompt and response as the policy's tokens, the end token included. Right and wrong responses are made from the training
problems. In training every token of a response has a target: whether the response can still become right. A second head, which is
not saved, learns the next right token: a target at the last token alone is too little to learn addition. The error rates on
responses to the test problems are printed by kind, and are in reward_model.json next to the weights, which are float16. 1,500
steps take about five minutes on one CPU core; float32 sums differ from machine to machine, so the weights do too.
"""
import json
import pathlib
import random
import shutil
import sys
import time

import pyarrow.parquet
import torch
import transformers

DATA = pathlib.Path(__file__).parent.parent / "data" / "arithmetic"
BATCH, LONGEST, PEAK_LR, WARM_UP = 256, 8, 4e-3, 50
EOS = 2
# 0-9 are 4-13, then + - * = space newline. Letters stand for <pad>, <bos> and <unk>, which are invisible in a text.
IDS = {character: 4 + i for i, character in enumerate("0123456789+-*= \n")} | {"P": 0, "B": 1, "U": 3}
DIGITS = "0123456789"


def careless(truth, question):
    """The sum without the carry from the ones."""
    a, b = map(int, question.rstrip("=").split("+"))
    return str((a // 10 + b // 10) * 10 + (a % 10 + b % 10) % 10)


def replaced(text, rng):
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(DIGITS) + text[at + 1:]


def inserted(text, rng, characters):
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(characters) + text[at:]


def unseen(truth, question, rng):
    """Invisible tokens and white space in the beginning of a right response: policies find them."""
    text = truth[: rng.randrange(len(truth) + 1)]
    for _ in range(rng.randrange(1, 5)):
        text = inserted(text, rng, "PBUPBU \n")
    return text


# Typical wrong responses of a policy, and some that could be mistaken for right ones.
KINDS = {
    "right": lambda t, q, r: t,
    "careless": lambda t, q, r: careless(t, q),
    "near": lambda t, q, r: str(int(t) + r.choice([-20, -10, -9, -2, -1, 1, 2, 9, 10, 11, 20, 90, 100, -100])),
    "one digit": lambda t, q, r: replaced(t, r),
    "any number": lambda t, q, r: str(r.randrange(200)),
    "digit too much": lambda t, q, r: inserted(t, r, DIGITS),
    "digit missing": lambda t, q, r: (lambda at: t[:at] + t[at + 1:])(r.randrange(len(t))),
    "another character": lambda t, q, r: inserted(t, r, "+-*="),
    "unseen tokens": unseen,
    "spaces": lambda t, q, r: inserted(t, r, " \n"),
    "twice": lambda t, q, r: t + t,
    "question again": lambda t, q, r: (q + t)[: r.randrange(1, LONGEST + 1)],
    "noise": lambda t, q, r: "".join(r.choice(list(IDS)) for _ in range(r.randrange(LONGEST + 1))),
    "empty": lambda t, q, r: "",
}
WEIGHTS = [10, 4, 6, 6, 3, 2, 2, 2, 4, 1.5, 0.5, 0.5, 1, 0.3]


def fits(text, truth):
    """True if `text` is the beginning of a right response, ignoring white space around it."""
    begun = text.lstrip()
    return truth.startswith(begun) if begun == begun.rstrip() else begun.rstrip() == truth


def example(question, truth, rng, kind=None):
    """The ids of prompt and response, and for each token: whether the response is right so far (nan: ignored), and the id that
    should come next (-100: none)."""
    kind = kind or rng.choices(list(KINDS), WEIGHTS)[0]
    text = KINDS[kind](truth, question, rng)[:LONGEST]
    ids, good = [IDS[c] for c in question + text], [float("nan")] * len(question)
    following = [-100] * (len(question) - 1)
    for end in range(len(text) + 1):
        fit = fits(text[:end], truth)
        good += [float(fit)] * (end > 0)
        following.append(([IDS[c] for c in truth] + [EOS])[len(text[:end].strip())] if fit else -100)
    if len(text) < LONGEST:
        ids, good, following = ids + [EOS], good + [float(text.strip() == truth)], following + [-100]
    return ids, good, following


def batch(examples):
    def column(i, padding):
        width = max(len(example[i]) for example in examples)
        return torch.tensor([example[i] + [padding] * (width - len(example[i])) for example in examples])
    return column(0, 0), column(1, float("nan")), column(2, -100), torch.tensor([len(ids) - 1 for ids, *_ in examples])


def rows(name):
    table = pyarrow.parquet.read_table(DATA / f"{name}.parquet", columns=["extra_info", "reward_model"]).to_pylist()
    return [(row["extra_info"]["question"], row["reward_model"]["ground_truth"]) for row in table]


def judged(model, examples):
    """The scores of the examples, at their last tokens, and whether these are right."""
    ids, good, _, last = batch(examples)
    each = torch.arange(len(ids))
    with torch.no_grad():
        return model.score(model.model(input_ids=ids).last_hidden_state)[each, last, 0], good[each, last]


def main(folder, steps):
    torch.manual_seed(1)
    rng = random.Random(1)
    started = time.time()
    config = json.loads((DATA / "model" / "config.json").read_text())
    config.update(hidden_size=96, intermediate_size=256, head_dim=24)
    config.pop("architectures")
    model = transformers.LlamaForSequenceClassification(transformers.LlamaConfig(**config, num_labels=1))
    head = torch.nn.Linear(96, config["vocab_size"], bias=False)
    parameters = list(model.parameters()) + list(head.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=PEAK_LR, betas=(0.9, 0.98), weight_decay=0.01)
    factor = lambda step: min(step / WARM_UP, 1) * (1 - max(step - WARM_UP, 0) / (steps - WARM_UP + 1))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    train, test = rows("train"), rows("test")
    for step in range(1, steps + 1):
        ids, good, following, last = batch([example(*rng.choice(train), rng) for _ in range(BATCH)])
        hidden = model.model(input_ids=ids).last_hidden_state
        error = model.score(hidden)[:, :, 0] - good
        squared = error[~good.isnan()].square().mean()
        next_token = torch.nn.functional.cross_entropy(head(hidden[:, : following.shape[1]]).flatten(0, 1), following.flatten())
        (squared + 0.3 * next_token).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 0:
            wrong = (error[torch.arange(len(ids)), last].abs() > 0.5).float().mean()
            seconds = time.time() - started
            print(f"step {step}: squared error {squared:.4f}, next token {next_token:.3f}, wrong about {wrong:.4f}, {seconds:.0f} s", flush=True)

    # In the precision of the saved file, half the bytes.
    model = model.half().float()
    report = {}
    for kind in [None, *KINDS]:
        examples = [example(*row, rng, kind) for row in test * (1 if kind else 8)]
        score, right = judged(model, examples)
        wrong = ((score > 0.5) != (right > 0.5)).float().mean().item()
        report[kind or "all"] = {"examples": len(examples), "right": right.mean().item(), "wrong_about": wrong, "mean_score": score.mean().item()}
        print(f"{kind or 'all':18} {right.mean():7.2%} right, mean score {score.mean():7.4f}, wrong about {wrong:7.2%}")
    model.half().save_pretrained(folder)
    (folder / "reward_model.json").write_text(json.dumps({"steps": steps, "test": report}, indent=1) + "\n")
    for name in ["tokenizer.json", "tokenizer_config.json"]:
        shutil.copy(DATA / "model" / name, folder)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1500)
