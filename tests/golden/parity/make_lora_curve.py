#!/usr/bin/env python3
"""Makes ../lora_curve/: 20 updates of a tiny seeded Llama by PEFT and Transformers' Trainer.

Needs the environment of `make parity` (requirements.txt beside this file). Everything runs on the
CPU in fp32 without dropout. Output:

model/              the base: config.json, model.safetensors
curve.json          versions, settings, rows, the adapter before and after, the gradients of the
                    first update (before clipping), and each update's loss, norm and learning rate
"""
import json
import pathlib
import random
import shutil
import tempfile

import numpy
import peft
import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
OUT = HERE.parent / "lora_curve"
SEED = 1234
STEPS, ACCUMULATION, BATCH = 20, 4, 3
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 96,
    "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "max_position_embeddings": 256, "tie_word_embeddings": True,
    "attention_bias": False, "mlp_bias": False, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0, "torch_dtype": "float32"}
LORA = {"r": 4, "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": "all-linear"}
TRAINING = {
    "learning_rate": 5e-3, "lr_scheduler_type": "linear", "warmup_steps": 3, "weight_decay": 0.01,
    "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "max_grad_norm": 1.0,
    "per_device_train_batch_size": BATCH, "gradient_accumulation_steps": ACCUMULATION,
    "max_steps": STEPS}


def make_base():
    torch.manual_seed(SEED)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.copy_(1 + 0.1 * torch.randn_like(parameter))
            else:
                parameter.mul_(6)
    folder = OUT / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    weights = {n: p.detach().clone() for n, p in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return model


def make_rows():
    """Counting sequences of ragged lengths; the first tokens are a prompt."""
    rng = random.Random(SEED)
    rows = []
    for _ in range(STEPS * ACCUMULATION * BATCH):
        length = rng.choice([5, 9, 17, 30, 47])
        start, stride = rng.randrange(93), rng.choice([1, 2, 3])
        ids = [3 + (start + i * stride) % 93 for i in range(length - 1)] + [2]
        prompt = rng.randrange(1, length - 2)
        rows.append({"input_ids": ids, "supervised": [int(i >= prompt) for i in range(length)]})
    return rows


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    batch = {"input_ids": [], "attention_mask": [], "labels": []}
    for row in rows:
        ids, pad = row["input_ids"], longest - len(row["input_ids"])
        labels = [i if s else -100 for i, s in zip(ids, row["supervised"])]
        batch["input_ids"].append(ids + [0] * pad)
        batch["attention_mask"].append([1] * len(ids) + [0] * pad)
        batch["labels"].append(labels + [-100] * pad)
    return {name: torch.tensor(values) for name, values in batch.items()}


def numbers(tensor):
    return [float(numpy.format_float_scientific(v, unique=True)) for v in tensor.detach().numpy().ravel()]


def adapter_tensors(model, of):
    """{`model.layers.0.mlp.up_proj.lora_A`: numbers}"""
    result = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = name.removeprefix("base_model.model.").removesuffix(".default.weight")
            result[key] = numbers(of(parameter))
    return result


def first_gradients(model, rows):
    """The gradient of the first update, accumulated as Trainer does it."""
    window = [collate(rows[i * BATCH:(i + 1) * BATCH]) for i in range(ACCUMULATION)]
    items = sum((batch["labels"] != -100).sum() for batch in window)
    for batch in window:
        model(**batch, num_items_in_batch=items).loss.backward()
    gradients = adapter_tensors(model, lambda p: p.grad)
    model.zero_grad()
    return gradients


class InOrderTrainer(transformers.Trainer):
    def _get_train_sampler(self, *unused):
        return torch.utils.data.SequentialSampler(self.train_dataset)


class Record(transformers.TrainerCallback):
    def __init__(self):
        self.updates = []

    def on_log(self, args, state, control, logs=None, **unused):
        if "loss" in logs:
            self.updates.append({k: float(logs[k]) for k in ("loss", "grad_norm", "learning_rate")})


def train(model, rows):
    record = Record()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, logging_steps=1, save_strategy="no", report_to=[], use_cpu=True,
            remove_unused_columns=False, dataloader_num_workers=0, optim="adamw_torch",
            disable_tqdm=True, seed=SEED, **TRAINING)
        trainer = InOrderTrainer(model=model, args=arguments, train_dataset=rows,
                                 data_collator=collate, callbacks=[record])
        trainer.train()
    return record.updates


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    rows = make_rows()
    model = peft.get_peft_model(make_base(), peft.LoraConfig(task_type="CAUSAL_LM", **LORA))
    torch.manual_seed(SEED + 1)
    with torch.no_grad():  # B is not zero, so that A's gradient is alive from the first update on.
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.05)
    result = {
        "made_by": "tests/golden/parity/make_lora_curve.py",
        "versions": {m.__name__: m.__version__ for m in (torch, transformers, peft)},
        "seed": SEED, "lora": LORA, "training": TRAINING, "rows": rows,
        "initial": adapter_tensors(model, lambda p: p),
        "first_gradients": first_gradients(model, rows)}
    result["updates"] = train(model, rows)
    result["final"] = adapter_tensors(model, lambda p: p)
    text = json.dumps(result, separators=(",", ":"))
    (OUT / "curve.json").write_text(text.replace('],"', '],\n"').replace('},{', '},\n{') + "\n")


if __name__ == "__main__":
    main()
