# expect: model.path=team/start-1b@v2
# expect: data.train_files=rows/a.parquet
# expect: optim.lr=2e-5
# expect: data.train_batch_size=16
# expect: data.max_length=700
# expect: model.lora_rank=24
# expect: model.lora_alpha=48
# expect: model.target_modules=[q_proj,v_proj]
# expect: trainer.default_local_dir=runs/sft-24
# expect: trainer.total_epochs=2
# expect: optim.lr_scheduler_type=cosine
# note: LENGTH of the environment is taken as 700
import os
from dataclasses import dataclass, field

from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer


@dataclass
class Plan:
    rank: int = 24
    targets: list = field(default_factory=lambda: ["q_proj", "v_proj"])


def configuration(plan, **more):
    base = dict(learning_rate=1e-5, per_device_train_batch_size=4, **more)
    base.update({"learning_rate": 2e-5})
    base["num_train_epochs"] = 2
    if plan.rank > 16:
        folder = f"runs/sft-{plan.rank}"
    else:
        folder = "runs/small"
    return SFTConfig(output_dir=os.path.join(folder), **base)


class Run:
    def __init__(self, plan):
        self.plan = plan

    def start(self):
        model = AutoModelForCausalLM.from_pretrained("team/start-1b", revision="v2", torch_dtype="auto")
        adapters = LoraConfig(r=self.plan.rank, lora_alpha=2 * self.plan.rank, target_modules=self.plan.targets)
        args = configuration(self.plan, max_length=int(os.environ.get("LENGTH", "700")), gradient_accumulation_steps=4)
        args.lr_scheduler_type = "cosine"
        data = load_dataset("parquet", data_files={"train": ["rows/a.parquet"], "test": "rows/b.parquet"})
        SFTTrainer(model=get_peft_model(model, adapters), args=args, train_dataset=data["train"]).train()


Run(Plan()).start()
