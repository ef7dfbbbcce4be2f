#!/usr/bin/env python3
"""Prints the demo's result from a job and its events. Usage: demo_table.py JOB.json EVENTS.jsonl"""
import json
import sys
import textwrap


def load(job_path, events_path):
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    with open(events_path, encoding="utf-8") as file:
        return job, [json.loads(line) for line in file if line.strip()]


def answer(samples, last):
    """The first line of the first or the last answer."""
    text = samples[-1 if last else 0]["answer"].strip() if samples else ""
    return text.splitlines()[0] if text else "-"


def main():
    job, events = load(*sys.argv[1:3])
    evals = [event["eval"] for event in events if "eval" in event]
    samples = [event["sample"] for event in events if "sample" in event]
    steps = [event["step"] for event in events if "step" in event]
    before, after = evals[0]["loss"], evals[-1]["loss"]
    tokens = sum(int(step["tokens"]) for step in steps)
    seconds = sum(int(step["tokens"]) / step["tokens_per_second"] for step in steps)
    peak = max(int(step["peak_memory_bytes"]) for step in steps)
    rows = [
        ("held-out loss before", f"{before:.3f}"),
        ("held-out loss after", f"{after:.3f}   ({100 * (after - before) / before:+.1f} %)"),
        ("prompt", samples[0]["prompt"] if samples else "-"),
        ("answer before", answer(samples, last=False)),
        ("answer after", answer(samples, last=True)),
        ("training", f"{len(steps)} updates, {tokens} tokens, {seconds:.0f} s"),
        ("tokens per second", f"{tokens / seconds:.0f}"),
        ("peak memory", f"{peak / 2**30:.2f} GiB"),
        ("adapter", job["adapter_path"]),
    ]
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(textwrap.fill(value, 100, initial_indent=f"  {name:<{width}}  ",
                            subsequent_indent=" " * (width + 4), break_long_words=False))
    return 0 if job["state"] == "SUCCEEDED" else 1


if __name__ == "__main__":
    sys.exit(main())
