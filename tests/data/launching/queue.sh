# A queue of work: the next number stands in a file, and a lock guards it.
#% from-verl
#% code 0
#% recipe experiment_name: first
#% said launches 2 times
#% said --launch 2: line 21, trainer.experiment_name=second
NAMES=(first second)
STATE=next.txt
echo 0 > $STATE
take() {
    (
        flock 200
        local at=$(cat $STATE)
        echo $((at + 1)) > $STATE
        echo $at
    ) 200> lock
}
while true; do
    at=$(take)
    if [ "$at" -ge ${#NAMES[@]} ]; then break; fi
    python3 -m verl.trainer.main_ppo trainer.experiment_name=${NAMES[$at]} algorithm.adv_estimator=grpo \
        actor_rollout_ref.rollout.n=4 data.train_files=/data/a.parquet data.val_files=/data/b.parquet \
        data.train_batch_size=48 actor_rollout_ref.actor.ppo_mini_batch_size=48 actor_rollout_ref.model.path=/models/tiny \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8
done
