"""A script whose loop is Hugging Face's Trainer (pip install transformers accelerate).

    stoker plan examples/scripts/trainer.py --gpu a100-40gb -- --per_device_train_batch_size 8 --bf16 true --output_dir out
"""

import torch
from transformers import BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> dict:
        words = torch.randint(1000, (128,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": index % 2}


if __name__ == "__main__":
    arguments, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    model = BertForSequenceClassification(BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024))
    Trainer(model=model, args=arguments, train_dataset=Sentences()).train()
