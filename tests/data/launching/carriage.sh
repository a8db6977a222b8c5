# Lines that end as on Windows.
#% from-trl
#% code 0
#% recipe lr: 3e-5
#% said read without the carriage returns
trl sft \
    --model_name_or_path m \
    --dataset_name rows.jsonl \
    --learning_rate 3e-5
