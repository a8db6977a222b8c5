#!/bin/sh
# Goal:     iterative DPO on the small task in data/. In each round the model answers the training problems and its answers are
#           scored. The best and the worst answer to each problem form a pair. The model trains on the pairs, with itself as the
#           reference.
# Command:  recipes/arithmetic/iterative-dpo.sh [ROUNDS] [FOLDER]
# Result:   greedy accuracy on the test problems 55.7 %, then 89.6 %, 90.8 % and 93.9 % after three rounds
# Hardware: 2 CPU cores, two minutes
# Set TRAINER to the path of the program if it is not in PATH.
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3}
folder=${2:-outputs/arithmetic/iterative-dpo}
trainer=${TRAINER:-trainer}
test=data/arithmetic/test.parquet
if [ -e "$folder" ]; then
    echo "$folder exists: name another folder, or delete it" >&2
    exit 2
fi

# accuracy MODEL FOLDER: greedy accuracy on the test problems.
accuracy() {
    "$trainer" generate --config generation.yaml model.path="$1" data.path="$test" rollout.do_sample=false data.n_samples=1 \
        data.output_path="$2/test.parquet"
    "$trainer" eval --config evaluation.yaml data.path="$2/test.parquet"
}

model=data/arithmetic/model
accuracy "$model" "$folder/round-0"
for round in $(seq "$rounds"); do
    at=$folder/round-$round
    "$trainer" generate --config generation.yaml model.path="$model" data.path=data/arithmetic/train.parquet data.n_samples=4 \
        trainer.seed="$round" data.output_path="$at/responses.parquet"
    "$trainer" eval --config evaluation.yaml data.path="$at/responses.parquet" data.output_path="$at/scored.parquet"
    "$trainer" data select pairs --input "$at/scored.parquet" --output "$at/pairs.parquet"
    "$trainer" dpo --config recipes/arithmetic/dpo.yaml model.path="$model" data.train_files="$at/pairs.parquet" data.val_files=null \
        trainer.default_local_dir="$at/run" trainer.experiment_name="iterative-dpo-$round" trainer.total_epochs=1 \
        trainer.total_training_steps=null
    "$trainer" export "$at/run/global_step_$(cat "$at/run/latest_checkpointed_iteration.txt")" --output "$at/model"
    model=$at/model
    accuracy "$model" "$at"
done
