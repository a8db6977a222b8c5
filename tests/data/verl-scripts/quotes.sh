#!/bin/bash
# Quotes, defaults inside them, here-documents, line continuations and words that split.
# env: RUN_ID=7
export ROOT="${ROOT:-"$HOME/my runs"}"
TEXT='an'"'"'other "one" word'
unset GONE
OPTIONS="
    data.train_batch_size=8 \
    data.max_prompt_length=64
    trainer.project_name='p'"
cat > note.txt <<EOF
$ROOT has ${#ROOT} letters: $(( ${#ROOT} > 3 ? 1 : 0 ))
python3 -m verl.trainer.main_ppo not.launched=true
EOF
cat <<'EOF'
$NOT_SET `never`
EOF
read -r FIRST SECOND <<< "algorithm.adv_estimator=reinforce_plus_plus trainer.total_epochs=3"
IFS=':' read -ra LIST <<< "a:b:c"
LR=$(echo "lr=1e-6,x" | cut -d, -f1 | cut -d= -f2)
STEM=$(echo "Model/Name-7B" | sed 's/.*\///' | tr 'A-Z' 'a-z' | tr - _)

python3 -m verl.trainer.main_ppo $OPTIONS \
    $FIRST $SECOND \
    actor_rollout_ref.model.path="${MODEL:-'$HOME/m'}" \
    actor_rollout_ref.actor.optim.lr=${LR} \
    ${GONE} ${GONE:+trainer.nnodes=3} "${RUN_ID:+trainer.nnodes=$RUN_ID}" \
    "trainer.experiment_name='${TEXT/\'/} \"${LIST[1]}\" $STEM'" \
    trainer.default_local_dir="${ROOT}"/'c k'/${RUN_ID:-0} \
    data.val_files=$GONE/val.parquet
