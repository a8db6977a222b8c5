# Loops that end only in a real run, before the launch on a cluster.
#% from-verl
#% code 0
#% recipe train_batch_size: 48
#% said waits.sh:10: this loop ends only in a real run
watch_over() {
    while true; do sleep 60; [[ -f ENDED ]] && exit 1; done
}
watch_over &
until false; do echo "waiting for the head"; sleep 2; done
srun --overlap --nodes=1 --ntasks=1 --gpus=8 -w "$(scontrol show hostnames | head -n1)" --container-image=verl.sqsh \
    bash -c "source .venv/bin/activate && python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \
        actor_rollout_ref.rollout.n=4 data.train_files=/data/a.parquet data.val_files=/data/b.parquet \
        data.train_batch_size=48 actor_rollout_ref.actor.ppo_mini_batch_size=48 actor_rollout_ref.model.path=/models/tiny \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
        actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8"
