# A user's program around verl's trainer, with more keys and a server.
#% from-verl
#% code 1
#% recipe adv_estimator: grpo
#% recipe 'n': 8
#% said tidepool.trainer.main_ppo is not a program of verl, and is converted as main_ppo
#% said tidepool.tool_url=http://…:5000/observe: verl does not have this key; tidepool.trainer.main_ppo itself may read it
#% said tidepool.max_calls=4: verl does not have this key
host=$(hostname -I | awk '{print $1}')
python -m tidepool.servers.tools --port 5000 --types verl,python &
server=$!
PYTHONUNBUFFERED=1 python3 -m tidepool.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=/data/tide/train.parquet data.val_files=/data/tide/test.parquet \
    data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.model.path=/models/tiny actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \
    tidepool.tool_url=http://$host:5000/observe +tidepool.max_calls=4
kill -9 $server
