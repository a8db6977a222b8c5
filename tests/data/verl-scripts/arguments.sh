#!/bin/bash
# Arguments by position and by name.
# args: 4 /out --lr 2e-6 --name=x trainer.save_freq=5 'trainer.project_name=a b'
set -x
if [ "$#" -lt 2 ]; then
    echo "Usage: $0 <devices> <folder> [overrides]"
    exit 1
fi
devices=$1
save=${2%/}
shift 2
lr=1e-6
while [[ $# -gt 0 ]]; do
    case "$1" in
        --lr) lr="$2"; shift 2 ;;
        --name=*) name="${1#*=}"; shift ;;
        *) break ;;
    esac
done
torchrun --standalone --nnodes=1 --nproc_per_node=$devices \
     -m verl.trainer.fsdp_sft_trainer \
    data.train_files=$HOME/data/train.parquet \
    data.max_length=256 \
    optim.lr=$lr \
    model.partial_pretrain=/models/tiny \
    trainer.default_local_dir=$save/"$name" \
    trainer.total_epochs=2 "$@"
