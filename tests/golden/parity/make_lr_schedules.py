#!/usr/bin/env python3
"""Makes ../lr_schedules.json: learning rates of 200 updates by transformers.get_scheduler.

Needs the environment of `make parity` (requirements.txt beside this file).
"""
import json
import pathlib

import torch
import transformers

TOTAL, PEAK = 200, 3e-4


def rates(name, warmup):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=PEAK)
    scheduler = transformers.get_scheduler(name, optimizer, num_warmup_steps=warmup,
                                           num_training_steps=TOTAL)
    values = []
    for _ in range(TOTAL):
        values.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return values


def main():
    schedules = [
        {"lr_scheduler_type": name, "warmup_steps": warmup, "rates": rates(name, warmup)}
        for name in ("linear", "cosine", "constant", "constant_with_warmup") for warmup in (0, 13)]
    result = {"made_by": "tests/golden/parity/make_lr_schedules.py",
              "versions": {m.__name__: m.__version__ for m in (torch, transformers)},
              "peak": PEAK, "total_steps": TOTAL, "schedules": schedules}
    path = pathlib.Path(__file__).parent.parent / "lr_schedules.json"
    path.write_text(json.dumps(result, separators=(",", ":")).replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
