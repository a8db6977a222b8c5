#!/usr/bin/env bash
# Options as text, a program's output that steers, `~`, files that the script writes, a loop over launches.
# env: backend=fsdp PYTHONPATH=/p
set -xeuo pipefail
mode=${mode:-spmd}
if [ "$mode" = "spmd" ]; then
  ENTRYPOINT=${ENTRYPOINT:-"-m verl.trainer.sft_trainer"}
  COMMAND="torchrun --standalone --nnodes=${NNODES:-1} --nproc-per-node=${NUM_GPUS:-1} ${ENTRYPOINT}"
else
  COMMAND="python -m verl.trainer.sft_trainer_ray"
fi
DATASET_DIR=${DATASET_DIR:-~/data/gsm8k_sft}
ckpts_home=${ckpts_home:-~/verl/test/sft-${backend}}
SCRIPT_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export PYTHONPATH="$SCRIPT_DIR:$PYTHONPATH"
device_name=$(python3 - <<'EOF'
print("x")
EOF
)
extra=()
if [ "$device_name" == "npu" ]; then
    extra+=(data.seed="4")
fi
name=$(nvidia-smi --query-gpu=gpu_name --format=csv,noheader -i 0)
if   [[ $name == *"H200"* ]]; then attention=flash_attention_3
elif [[ $name == *"B200"* || $name == *"B300"* ]]; then attention=flash_attention_2
else attention=eager
fi
ENGINE_CONFIG="\
    engine=${backend} \
    model.path=/m \
    optim.betas="[0.9,0.95]" \
    optim.lr=1e-5"
cat > options.sh <<EOF
train_bsz=\$((128 * ${NUM_GPUS:-1}))
experiment=$(basename "${MODEL_ID:-Qwen/Qwen2.5-0.5B}")
EOF
source options.sh
total=$(((128)))
for seed in 1 2; do
    $COMMAND \
        data.train_files="${DATASET_DIR}"/train.parquet \
        data.train_batch_size=$train_bsz \
        ${ENGINE_CONFIG} \
        "${extra[@]}" \
        +model.override_config.attn_implementation=$attention \
        trainer.test_freq=after_each_epoch \
        trainer.logger=['console','file'] \
        trainer.total_training_steps=$((total + 10#08)) \
        trainer.seed=$seed \
        trainer.experiment_name="${experiment,,}-${seed}" \
        trainer.default_local_dir="${ckpts_home}" \

        # trainer.max_ckpt_to_keep=1 \
done
rm -rf "${ckpts_home:?}/*"
