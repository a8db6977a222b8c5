# words: --model_name_or_path team/start-1b --limit 7 --learning_rate 4e-6 --no_flip --dataset_name team/pairs
# expect: model.path=team/start-1b
# expect: data.train_files=hf://datasets/team/pairs/train
# expect: optim.lr=4e-6
# expect: algorithm.beta=0.3
# expect: data.max_length=207
# expect: data.train_batch_size=6
from dataclasses import dataclass

from datasets import load_dataset
from trl import DPOConfig, DPOTrainer, ModelConfig, ScriptArguments, TrlParser


@dataclass
class Own(ScriptArguments):
    limit: int = 5
    flip: bool = True


@dataclass
class Training(DPOConfig):
    learning_rate: float = 1e-6
    per_device_train_batch_size: int = 6


def main(own, training, model):
    training.max_length = 200 + own.limit
    if not own.flip:
        training.beta = 0.3
    rows = load_dataset(own.dataset_name, name=own.dataset_config)
    DPOTrainer(model.model_name_or_path, args=training, train_dataset=rows[own.dataset_train_split]).train()


if __name__ == "__main__":
    main(*TrlParser((Own, Training, ModelConfig)).parse_args_and_config())
