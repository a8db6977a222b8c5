#!/usr/bin/env bash
# Functions, their results, loops and a shell inside the words of another program.
# env: MODE=fast
join() {
    local IFS="$1" word
    shift
    echo "$*"
}
pick() {
    local mode=${1:?mode} size
    case $mode in
        fast|quick) size=8 ;;
        slow*) size=64 ;;
        *) return 1 ;;
    esac
    printf '%s\n' "$size"
}
add() { OVERRIDES+=("$@"); }
OVERRIDES=()
files=()
for part in {1..3}; do
    files+=("'/data/part-$(printf '%02d' "$part").parquet'")
done
add data.train_files="[$(join , "${files[@]}")]"
add "data.train_batch_size=$(pick "${MODE:-slow}")"
i=0
until (( i >= 2 )); do
    ((i++)) || true
done
for ((j = 0; j < 3; j++)); do
    [ $j -eq 1 ] && continue
    i=$((i + j))
done
pick nothing || add trainer.total_epochs=$i
NAME=$(basename /models/Tiny-1B.tar.gz .tar.gz)
LOWER=${NAME,,}
CMD="python3 -m verl.trainer.main_ppo algorithm.adv_estimator=rloo"
if [[ $NAME =~ ^Tiny-([0-9]+)B$ && -n ${BASH_REMATCH[1]} ]]; then
    add trainer.experiment_name="${LOWER//-/_}_${BASH_REMATCH[1]}"
fi
run() { bash -c "cd /tmp && $* trainer.nnodes=1"; }
run $CMD "${OVERRIDES[@]}"
