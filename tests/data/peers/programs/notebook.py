# expect: model.path=team/start-1b
# expect: model.lora_rank=16
# expect: model.load_in_4bit=true
# expect: model.bnb_4bit_use_double_quant=true
# expect: data.train_batch_size=8
# expect: trainer.total_training_steps=30
# expect: optim.lr=0.0002
# unread: changed by .map
# note: bf16
!pip install unsloth
%matplotlib inline
from datasets import load_dataset
from trl import SFTTrainer
from transformers import TrainingArguments
from unsloth import FastLanguageModel, is_bfloat16_supported

max_seq_length = 2048
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="team/start-1b", max_seq_length=max_seq_length, dtype=None
)
model = FastLanguageModel.get_peft_model(model, r=16, lora_alpha=16, lora_dropout=0, bias="none", random_state=3407)
dataset = load_dataset("team/chats", split="train").map(lambda rows: {"text": rows["chat"]}, batched=True)
trainer = SFTTrainer(
    model=model,
    tokenizer=tokenizer,
    train_dataset=dataset,
    dataset_text_field="text",
    max_seq_length=max_seq_length,
    args=TrainingArguments(
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        max_steps=30,
        learning_rate=2e-4,
        bf16=is_bfloat16_supported(),
        output_dir="outputs",
    ),
)
trainer.train()
