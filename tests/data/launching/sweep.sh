# Rounds of a loop.
#% from-verl --launch 3
#% code 0
#% recipe 'n': 8
#% recipe experiment_name: n8
for n in 2 4 8; do
    python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=$n \
        data.train_files=/data/a.parquet data.val_files=/data/b.parquet data.train_batch_size=48 \
        actor_rollout_ref.actor.ppo_mini_batch_size=48 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
        actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 actor_rollout_ref.model.path=/models/tiny \
        trainer.save_freq=0 trainer.experiment_name=n$n
done
