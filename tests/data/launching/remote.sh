# A terminal on another machine, and a container there.
#% from-trl
#% code 0
#% recipe lr: 3e-5
ssh trl@node "tmux new-session -d -s trl 'cd /root/trl && docker run --rm --gpus all trl/image \
    accelerate launch --num_processes 1 --config_file trl.yaml -m trl.scripts.sft --model_name_or_path m \
    --dataset_name rows.jsonl --learning_rate 3e-5'"
