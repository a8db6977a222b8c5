# A program whose name and keys do not show what it is, and a backslash at the very end.
#% from-verl --as fsdp_sft_trainer
#% code 0
#% recipe train_batch_size: 16
#% said tune.py is not a program of verl, and is converted as fsdp_sft_trainer
torchrun --standalone --nnodes=1 --nproc_per_node=2 \
    tune.py data.train_files=/data/a.parquet data.val_files=/data/b.parquet \
    data.train_batch_size=16 data.micro_batch_size_per_gpu=4 model.trust_remote_code=true \