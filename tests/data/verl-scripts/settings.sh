#!/usr/bin/env bash
# A launcher of launchers: settings by device, by machine and by backend; a job that is submitted.
set -euo pipefail
BACKEND=${BACKEND:-vllm}
NNODES=${WORLD_SIZE:-1}
PORT=${MASTER_PORT:-$(( 29500 + RUN ))}
# env: RUN=3
DEVICE=${DEVICE:-$(python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu)}
mkdir -p logs/"$BACKEND" && cd "$(dirname "${BASH_SOURCE[0]}")"
case "$DEVICE" in
    gpu) batch=64; EXTRA=(trainer.device=cuda) ;;
    npu)
        batch=16
        EXTRA=(
            actor_rollout_ref.actor.use_torch_compile=False
        )
        ;;
    *) echo "unknown $DEVICE" >&2; exit 1 ;;
esac
if [ -z "${NGPUS:-}" ] && ! [[ "$BACKEND" == sglang* ]]; then
    NGPUS=8
elif (( NNODES > 1 )); then
    NGPUS=4
else
    NGPUS=1
fi
entry="recipe.dapo.main_dapo"
[[ $BACKEND == vllm ]] && entry="verl.trainer.main_ppo"
{ (( NGPUS == 8 )) || exit 3; } && EXTRA+=("actor_rollout_ref.rollout.name=$BACKEND")
ray job submit --address="http://localhost:$PORT" --runtime-env=env.yaml --no-wait -- \
    env A=1 python3 -m "$entry" --config-name=ppo_trainer \
    algorithm.adv_estimator=grpo \
    data.train_batch_size=$batch \
    actor_rollout_ref.actor.ppo_mini_batch_size=$(( batch / 2 )) \
    trainer.n_gpus_per_node=$NGPUS trainer.nnodes=$NNODES \
    trainer.experiment_name="${BACKEND}_$(date +%Y%m%d_%H%M%S)" \
    "${EXTRA[@]}"
