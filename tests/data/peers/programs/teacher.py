# expect: model.path=team/small
# expect: teacher.path=other/large
# expect: algorithm.loss_type=uld
# expect: algorithm.uld_crossentropy_weight=0.5
# expect: data.train_files=hf://datasets/team/chats/train
from datasets import load_dataset
from trl.experimental.gold import GOLDConfig, GOLDTrainer

settings = GOLDConfig(use_uld_loss=True, lmbda=0.0, uld_crossentropy_weight=0.5)
trainer = GOLDTrainer("team/small", "other/large", settings, train_dataset=load_dataset("team/chats", split="train"))
trainer.train()
