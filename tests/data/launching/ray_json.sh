# Ray's own options hold the names of libraries.
#% from-openrlhf
#% code 0
#% recipe train_files: /data/mine/rows.jsonl
#% recipe 'n': 4
set -x
read -r -d '' training <<EOF
openrlhf.cli.train_ppo_ray
   --pretrain m --remote_rm_url http://127.0.0.1:5000/get
   --prompt_data /data/mine/rows.jsonl --input_key prompt
   --rollout_batch_size 16 --train_batch_size 16 --n_samples_per_prompt 4 --advantage_estimator reinforce
EOF
ray job submit --address="http://127.0.0.1:8265" \
    --runtime-env-json='{"working_dir": "/openrlhf", "pip": "/openrlhf/requirements.txt"}' \
    -- python3 -m $training
