#!/usr/bin/env bash
# Overrides in arrays that are joined, extended, cut and looked up.
set -xeuo pipefail

MODEL=${MODEL:-/models/tiny}
declare -A LR=([small]=1e-5 [large]=1e-6)
SIZE=small
DATA=(
    algorithm.adv_estimator=grpo
    data.train_files="['$HOME/a.parquet', '$HOME/b c.parquet']" # two files
    data.train_batch_size=$((4 * 8))
)
ACTOR=(actor_rollout_ref.model.path="$MODEL" actor_rollout_ref.actor.optim.lr=${LR[$SIZE]})
ACTOR+=(actor_rollout_ref.actor.ppo_mini_batch_size=16)
ACTOR+=("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4")
ROLLOUT=([0]=actor_rollout_ref.rollout.n=4 [3]=actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4)
EXTRA=()
if [ "${#EXTRA[@]}" -eq 0 ]; then
    EXTRA+=(trainer.total_epochs="${#ACTOR[@]}")
fi
DROP=(x trainer.nnodes=2 trainer.project_name=cut y)
NAMES=(a b c)
IFS=,
JOINED="${NAMES[*]}"
unset IFS

python3 -m verl.trainer.main_ppo \
    "${DATA[@]}" \
    "${ACTOR[@]}" "${ROLLOUT[@]}" \
    "${EXTRA[@]}" "${DROP[@]:1:2}" ${EXTRA[@]+"${EXTRA[@]}"} \
    "trainer.experiment_name='$JOINED ${NAMES[-1]} ${NAMES[*]/#/n_}'" \
    trainer.logger='["console","file"]' \
    "$@" 2>&1 | tee run.log
