"""TRL's RLOOTrainer with a clock. The benchmarks run it in turn with our trainer, each time in a separate process.

    python scripts/bench/bench_trl.py SETTINGS.json       (pip install torch transformers trl)

The settings come from `DEFAULTS` and `REQUIRED`. Appends a JSON line to `out` after each step: seconds of its phases and the
generated responses; and {"step": N, "accuracy": …} for each greedy evaluation, if any. At the end come versions and
memory.
"""
import json
import os
import sys
import time

REQUIRED = {"model", "tokenizer", "data", "out", "prompts", "samples", "tokens", "steps"}
DEFAULTS = {
    "device": "cpu", "threads": 0, "seed": 42, "micro": 0,
    # The dtype of the weights; `autocast` computes in bfloat16 over them, which is TRL's default.
    "dtype": "float32", "autocast": False,
    "lr": 1e-5, "lr_scheduler": "constant", "weight_decay": 0.0, "grad_clip": 1.0, "beta": 0.0, "temperature": 1.0,
    "shuffle": False, "fixed_length": False, "gradient_checkpointing": False,
    # {"data": FILE, "every": STEPS}: greedy accuracy before the first step and after every STEPS.
    "evaluate": None,
}


def settings(path):
    given = json.load(open(path))
    wrong = (set(given) - REQUIRED - set(DEFAULTS)) | (REQUIRED - set(given))
    if wrong:
        sys.exit(f"{path}: unknown or missing settings: {', '.join(sorted(wrong))}")
    return {**DEFAULTS, **given}


S = settings(sys.argv[1])
for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("ACCELERATE_DISABLE_RICH", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if S["threads"]:
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(S["threads"])
if S["device"] == "cpu":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import datasets  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import trl  # noqa: E402
from benchlib import inputs  # noqa: E402

if S["threads"]:
    torch.set_num_threads(S["threads"])
CUDA = S["device"] == "cuda"


def now():
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


class Rows:
    """Writes the file of rows, line by line."""

    def __init__(self, path):
        self.file = open(path, "w")

    def add(self, **row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


class Clock(transformers.TrainerCallback):
    """Seconds of the parts of a step. The trainer's methods are wrapped; the pass of log-probabilities counts only without
    gradient, since the update calls the same method."""

    def __init__(self, rows):
        self.rows = rows
        self.reset()

    def reset(self):
        self.seconds = dict.fromkeys(("generation", "log_probs", "rollout"), 0.0)
        self.tokens = {"prompt_tokens": 0, "response_tokens": 0}
        self.start = now()

    def watch(self, trainer):
        self.time(trainer, "_generate_single_turn", "generation")
        self.time(trainer, "_get_per_token_logps_and_entropies", "log_probs", unless=torch.is_grad_enabled)
        self.time(trainer, "_generate_and_score_completions", "rollout")
        generate = trainer._generate

        def counted(*args, **kwargs):
            result = generate(*args, **kwargs)
            self.tokens["prompt_tokens"] += sum(map(len, result[0]))
            self.tokens["response_tokens"] += sum(map(len, result[1]))
            return result

        trainer._generate = counted

    def time(self, trainer, method, phase, unless=lambda: False):
        inner = getattr(trainer, method)

        def timed(*args, **kwargs):
            if unless():
                return inner(*args, **kwargs)
            start = now()
            result = inner(*args, **kwargs)
            self.seconds[phase] += now() - start
            return result

        setattr(trainer, method, timed)

    def on_step_begin(self, args, state, control, **kwargs):
        self.reset()

    def on_step_end(self, args, state, control, **kwargs):
        step = now() - self.start
        seconds = {"step": step, "generation": self.seconds["generation"], "log_probs": self.seconds["log_probs"],
                   "update": step - self.seconds["rollout"]}
        self.rows.add(step=state.global_step, seconds=seconds, **self.tokens)


class Accuracy(transformers.TrainerCallback):
    """Greedy responses to the evaluation's prompts, all in one batch, and the share of right ones."""

    def __init__(self, rows, tokenizer):
        self.rows, self.tokenizer = rows, tokenizer
        problems = inputs.read(S["evaluate"]["data"])
        self.truths = [row["reward_model"]["ground_truth"] for row in problems]
        texts = [tokenizer.apply_chat_template(row["prompt"], tokenize=False, add_generation_prompt=True) for row in problems]
        self.batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
        self.batch.pop("token_type_ids", None)

    @torch.no_grad()
    def measure(self, model, step):
        start, training = now(), model.training
        model.eval()
        batch = {name: tensor.to(model.device) for name, tensor in self.batch.items()}
        ids = model.generate(**batch, do_sample=False, max_new_tokens=S["tokens"], pad_token_id=self.tokenizer.pad_token_id)
        model.train(training)
        texts = self.tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1]:], skip_special_tokens=True)
        right = sum(text.strip() == truth for text, truth in zip(texts, self.truths))
        self.rows.add(step=step, accuracy=right / len(texts), seconds={"evaluation": now() - start})

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self.measure(model, 0)

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % S["evaluate"]["every"] == 0 or state.global_step == state.max_steps:
            self.measure(model, state.global_step)


def exact(prompts, completions, reward_model, **_):
    """1 if the response, without white space around it, is the row's ground truth: our scorer `burnish/arithmetic`."""
    text = lambda completion: completion if isinstance(completion, str) else completion[0]["content"]  # noqa: E731
    return [float(text(completion).strip() == row["ground_truth"]) for completion, row in zip(completions, reward_model)]


def config():
    rollout = S["prompts"] * S["samples"]
    micro = S["micro"] or rollout
    fixed = {"min_new_tokens": S["tokens"]} if S["fixed_length"] else {}
    return trl.RLOOConfig(
        output_dir=os.path.splitext(S["out"])[0] + "_trl", report_to="none", save_strategy="no", disable_tqdm=True,
        logging_strategy="no", max_steps=S["steps"], seed=S["seed"], use_cpu=not CUDA, bf16=S["autocast"], fp16=False,
        gradient_checkpointing=S["gradient_checkpointing"], per_device_train_batch_size=micro, gradient_accumulation_steps=rollout // micro,
        num_generations=S["samples"], max_completion_length=S["tokens"], temperature=S["temperature"], top_p=1.0, top_k=0,
        generation_kwargs=fixed, learning_rate=S["lr"], lr_scheduler_type=S["lr_scheduler"], warmup_steps=0,
        weight_decay=S["weight_decay"], max_grad_norm=S["grad_clip"], optim="adamw_torch", beta=S["beta"],
        shuffle_dataset=S["shuffle"], remove_unused_columns=False,
        model_init_kwargs={"dtype": S["dtype"], "attn_implementation": "sdpa", "device_map": {"": 0 if CUDA else "cpu"}},
    )


def main():
    rows = Rows(S["out"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(S["tokenizer"], padding_side="left", truncation_side="left")
    keep = ("prompt", "reward_model")
    data = datasets.Dataset.from_list([{name: row[name] for name in keep} for row in inputs.read(S["data"])])
    clock = Clock(rows)
    callbacks = [clock] + ([Accuracy(rows, tokenizer)] if S["evaluate"] else [])
    trainer = trl.RLOOTrainer(model=S["model"], reward_funcs=[exact], args=config(), train_dataset=data, processing_class=tokenizer,
                              callbacks=callbacks)
    clock.watch(trainer)
    if CUDA:
        torch.cuda.reset_peak_memory_stats()
    trainer.train()
    rows.add(end={"trl": trl.__version__, "transformers": transformers.__version__, "torch": torch.__version__,
                  "threads": torch.get_num_threads(), "parameters": sum(p.numel() for p in trainer.model.parameters()),
                  "device_gib": torch.cuda.max_memory_allocated() / 2**30 if CUDA else None})


if __name__ == "__main__":
    main()
