"""Running our trainer: a step's settings as a YAML file, and its rows."""
import os
import pathlib

from .process import Run, read_rows

# Settings of `--dtype` in addition to the device.
DTYPE = {name: [f"actor_rollout_ref.model.dtype={name}"] for name in ("float32", "bfloat16")}


def binary(path):
    path = pathlib.Path(path).resolve()
    if not os.access(path, os.X_OK):
        raise SystemExit(f"--trainer {path} is no program; build one with `cargo build --release`")
    return path


def environment(threads):
    """This process's environment, with the number of threads, and without variables that redirect metrics."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("VERL_FILE_LOGGER")}
    return {**env, "RAYON_NUM_THREADS": str(threads)} if threads else env


def step_settings(folder, model, tokenizer, data, prompts, samples, longest_prompt, tokens, micro, steps, device, dtype="float32",
                  init="pretrained", beta=0.05, lr=1e-5):
    """RLOO with the KL in the reward, on responses of a fixed length, without validation."""
    device = "cuda:0" if device == "cuda" else device
    return [
        "--config", "ppo_trainer.yaml", "algorithm.adv_estimator=rloo",
        f"algorithm.use_kl_in_reward={str(beta != 0).lower()}", *([f"algorithm.kl_ctrl.kl_coef={beta}"] if beta else []),
        f"data.train_files={data}", f"data.val_files={data}", "data.val_max_samples=1", f"data.tokenizer={tokenizer}",
        "data.shuffle=false", f"data.train_batch_size={prompts}", f"data.max_prompt_length={longest_prompt}",
        f"data.max_response_length={tokens}", "data.truncation=left",
        f"actor_rollout_ref.model.path={model}", f"actor_rollout_ref.model.init={init}",
        f"actor_rollout_ref.rollout.n={samples}", "actor_rollout_ref.rollout.ignore_eos=true",
        f"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu={micro}",
        *([f"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu={micro}"] if beta else []),
        f"actor_rollout_ref.actor.ppo_mini_batch_size={prompts}",
        f"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={micro}",
        f"actor_rollout_ref.actor.optim.lr={lr}", "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
        "actor_rollout_ref.actor.optim.weight_decay=0.0",
        f"trainer.total_training_steps={steps}", "trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_freq=null",
        "trainer.logger=[file]", "trainer.resume_mode=disable", f"trainer.device={device}", f"trainer.default_local_dir={folder}",
        *DTYPE[dtype],
    ]


def forget(folder):
    """Removes the record of an earlier run in a folder; a new run would keep it and use another folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("run.json", "metrics.jsonl"):
        (folder / name).unlink(missing_ok=True)


def run(trainer, folder, settings, threads, timeout, cwd=None):
    """The rows of a run and its peak memory in GiB."""
    forget(folder)
    done = Run([trainer, *settings], folder / "log.txt", environment(threads), cwd).wait(timeout)
    return [row["data"] for row in read_rows(folder / "metrics.jsonl")], done.peak_gib


def phase_seconds(row):
    """Seconds of each phase of a step, from its row."""
    time = lambda *phases: sum(row.get(f"timing_s/{phase}", 0.0) for phase in phases)  # noqa: E731
    return {"step": time("step"), "generation": time("gen"), "log_probs": time("old_log_prob", "ref"),
            "update": time("update_actor")}


def log_prob_passes(row):
    return sum(f"timing_s/{phase}" in row for phase in ("old_log_prob", "ref"))
