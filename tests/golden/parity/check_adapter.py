#!/usr/bin/env python3
"""Loads an adapter that the worker wrote in PEFT and compares the logits.

Without arguments: tests/golden/adapter (a test compares the writer with it byte for byte) on
tests/golden/weights/tinyllama. Else: check_adapter.py ADAPTER BASE, such as a job's adapter folder
and its base model. Checks that PEFT finds every tensor in the file and nothing else, that the
adapter changes the logits, and that the logits are those of the base with W + scaling B A merged by
hand. The golden logits of the worker's test are written to tests/golden/adapter/logits.json if they
are not there, else compared.
"""
import json
import math
import pathlib
import sys
import tempfile

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.trainer_callback import TrainerState

GOLDEN = pathlib.Path(__file__).parents[1]
TOLERANCE = 1e-4
IDS = [1, 114, 111, 118, 118, 121, 2]


def load(adapter, base):
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    tuned = PeftModel.from_pretrained(model, adapter)
    tuned.eval()
    return tuned


def check_names(tuned, adapter):
    """PEFT, saving again, must write the very tensors of the file."""
    written = load_file(adapter / "adapter_model.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        tuned.save_pretrained(folder)
        saved = load_file(pathlib.Path(folder) / "adapter_model.safetensors")
        config = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
    assert saved.keys() == written.keys(), saved.keys() ^ written.keys()
    for name, tensor in written.items():
        assert torch.equal(tensor, saved[name]), name
    ours = json.loads((adapter / "adapter_config.json").read_text())
    for key, value in ours.items():
        peft_value = sorted(config[key]) if key == "target_modules" else config[key]
        assert peft_value == value, (key, value, config[key])


def merged_logits(adapter, base, ids):
    """The base's logits with scaling B A added to its weights without PEFT."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    r, alpha = config["r"], config["lora_alpha"]
    scaling = alpha / math.sqrt(r) if config["use_rslora"] else alpha / r
    tensors = load_file(adapter / "adapter_model.safetensors")
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, a in tensors.items():
            if not name.endswith(".lora_A.weight"):
                continue
            module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            b = tensors[name.replace("lora_A", "lora_B")]
            weights[module + ".weight"] += scaling * (b @ a)
        return model(ids).logits


def compare(what, left, right):
    worst = (left - right).abs().max().item()
    print(f"{what}: max abs difference {worst:.2e} (tolerance {TOLERANCE:.0e})")
    assert worst <= TOLERANCE, what


def check(adapter, base):
    tuned = load(adapter, base)
    check_names(tuned, adapter)
    ids = torch.tensor([IDS])
    with torch.no_grad():
        logits = tuned(ids).logits
        with tuned.disable_adapter():
            plain = tuned(ids).logits
    change = (logits - plain).abs().max().item()
    assert change > 10 * TOLERANCE, f"the adapter changes nothing ({change})"
    compare("PEFT against merged by hand", logits, merged_logits(adapter, base, ids))
    return logits[0]


def check_golden():
    logits = check(GOLDEN / "adapter", GOLDEN / "weights" / "tinyllama")
    path = GOLDEN / "adapter" / "logits.json"
    if not path.exists():
        values = [[round(x, 7) for x in row] for row in logits.tolist()]
        path.write_text(json.dumps({"input_ids": IDS, "logits": values}) + "\n")
    compare("PEFT against logits.json", logits,
            torch.tensor(json.loads(path.read_text())["logits"]))


def check_trainer_state(folder):
    state = TrainerState.load_from_json(str(folder / "trainer_state.json"))
    print(f"{folder}: Transformers reads trainer_state.json, global_step {state.global_step}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        folder = pathlib.Path(sys.argv[1])
        check(folder, sys.argv[2])
        if (folder / "trainer_state.json").exists():
            check_trainer_state(folder)
    else:
        check_golden()
