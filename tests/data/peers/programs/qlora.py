# expect: model.path=team/start-1b
# expect: model.lora_rank=8
# expect: model.load_in_4bit=true
# expect: model.bnb_4bit_use_double_quant=true
import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

four_bit = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_compute_dtype=torch.bfloat16,
    bnb_4bit_use_double_quant=True,
)
model = AutoModelForCausalLM.from_pretrained("team/start-1b", quantization_config=four_bit, device_map="auto")
trainer = SFTTrainer(
    model=model,
    args=SFTConfig(output_dir="out"),
    train_dataset=load_dataset("team/chats", split="train"),
    peft_config=LoraConfig(r=8, task_type="CAUSAL_LM"),
)
trainer.train()
