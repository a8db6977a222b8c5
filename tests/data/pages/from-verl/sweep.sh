#!/usr/bin/env bash
for lr in 1e-6 3e-6 1e-5; do
    python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=5 \
        data.train_files=data/arithmetic/train.parquet data.val_files=data/arithmetic/test.parquet \
        actor_rollout_ref.model.path=data/arithmetic/model \
        actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64 \
        actor_rollout_ref.actor.optim.lr=$lr
done
