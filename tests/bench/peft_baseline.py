#!/usr/bin/env python3
"""PEFT on the rows of engine_bench, and the ratio of the two.

Usage: peft_baseline.py MODEL.gguf WORKLOADS.json WORKLOAD [STEPS]          PEFT alone
       peft_baseline.py --compare ENGINE_BENCH ROUNDS MODEL.gguf WORKLOADS.json WORKLOAD [STEPS]
The second form runs both in turn, ROUNDS times, since machines are noisy. Needs the environment of
`make parity`. fp32, padded, sdpa attention, no gradient checkpointing: PEFT's fastest on a CPU
without bf16 units.
"""
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time


def make_batch(lengths, vocab_size):
    import torch
    longest = max(lengths)
    ids = torch.zeros(len(lengths), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    labels = torch.full_like(ids, -100)
    for row, length in enumerate(lengths):
        values = (torch.arange(length) * 7919 + row * 104729 + 13) % vocab_size
        ids[row, :length] = values
        mask[row, :length] = 1
        labels[row, 1:length] = values[1:]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def run(gguf, workloads, workload, steps=5):
    import peft
    import torch
    import transformers
    batches = json.loads(pathlib.Path(workloads).read_text())[workload]
    path = pathlib.Path(gguf)
    base = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32)
    base.config.use_cache = False
    model = peft.get_peft_model(base, peft.LoraConfig(
        r=16, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=2e-4, weight_decay=0.0, fused=True)
    rates, cpu_ms, losses = [], [], []
    for step in range(int(steps) + 1):
        lengths = batches[step % len(batches)]
        batch = make_batch(lengths, base.config.vocab_size)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        loss = model(**batch, num_items_in_batch=(batch["labels"] != -100).sum()).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step > 0:
            rates.append(sum(lengths) / (time.perf_counter() - begin))
            cpu_ms.append(1e3 * (time.process_time() - cpu_begin) / sum(lengths))
        losses.append(loss.item())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"workload": workload, "tokens_per_second": statistics.median(rates),
                      "cpu_ms_per_token": statistics.median(cpu_ms), "peak_rss_mib": peak,
                      "losses": losses}))


def last_json_line(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def median_of(results, key):
    return statistics.median(result[key] for result in results)


def compare(bench, rounds, *arguments):
    ours, theirs = [], []
    for _ in range(int(rounds)):
        ours.append(last_json_line([bench, *arguments]))
        theirs.append(last_json_line([sys.executable, __file__, *arguments]))
    for name, results in (("engine", ours), ("PEFT", theirs)):
        rates = " ".join(f"{r['tokens_per_second']:.1f}" for r in results)
        cpu = " ".join(f"{r['cpu_ms_per_token']:.2f}" for r in results)
        print(f"{name}: {rates} tokens/s, {cpu} CPU ms a token, peak RSS "
              f"{max(r['peak_rss_mib'] for r in results)} MiB, "
              f"first loss {results[0]['losses'][0]:.6f}")
    clock = median_of(ours, "tokens_per_second") / median_of(theirs, "tokens_per_second")
    cpu = median_of(theirs, "cpu_ms_per_token") / median_of(ours, "cpu_ms_per_token")
    print(f"engine / PEFT: {clock:.2f} by the clock, {cpu:.2f} by CPU time")


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        compare(*sys.argv[2:])
    else:
        run(*sys.argv[1:])
