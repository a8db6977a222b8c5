# A user's script that takes verl's keys, with a group that verl does not have and further options.
#% from-verl
#% code 1
#% recipe train_batch_size: 32
#% said harbor/backend=verl: verl does not have this key; train.py itself may read it
#% said --seed 3: an option of train.py
#% said --config-name=harbor_trainer: this file is not verl's
set -euo pipefail
cd "$(dirname "$0")"
python -u train.py --config-name harbor_trainer --seed 3 harbor/backend=verl \
    data.train_batch_size=32 actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \
    critic.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.model.path=/models/tiny \
    data.train_files=/data/a.parquet data.val_files=/data/b.parquet "$@"
