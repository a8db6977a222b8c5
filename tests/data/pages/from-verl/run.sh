#!/usr/bin/env bash
# A script of verl with settings of its environment and arguments.
set -euxo pipefail

NNODES=${NNODES:-1}
MODEL_PATH=${MODEL_PATH:-data/arithmetic/model}
GPUS=${1:-8}
OUT=${2:-checkpoints/verl}
shift $(($# < 2 ? $# : 2))

train_files="['data/arithmetic/train.parquet']"
test_files="['data/arithmetic/test.parquet']"

# Responses are sampled in groups.
group=5
batch=256


# The launch.
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files="$train_files" \
    data.val_files="$test_files" \
    data.train_batch_size=$batch \
    actor_rollout_ref.model.path="$MODEL_PATH" \
    actor_rollout_ref.rollout.n=$group \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64 \
    trainer.default_local_dir="$OUT" \
    trainer.n_gpus_per_node=$GPUS \
    trainer.nnodes=$NNODES "$@"
