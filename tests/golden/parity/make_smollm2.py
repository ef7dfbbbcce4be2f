#!/usr/bin/env python3
"""Makes ../smollm2/reference.json: SmolLM2-135M-Instruct (GGUF, Q4_1) by Transformers in fp32.

Usage: make_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf
Needs the environment of `make parity` (requirements.txt beside this file). Output: the ids of a
paragraph, its negative log-likelihood as it stands and with its words shuffled, and the greedy
answer to a chat question.
"""
import hashlib
import json
import math
import pathlib
import random
import sys

import torch
import transformers

PARAGRAPH = (
    "The Roman Empire was the state that ruled the Mediterranean and much of Europe, Western Asia "
    "and North Africa. The Romans conquered most of this during the Republic, and it was ruled by "
    "emperors following Octavian's assumption of effective sole rule in 27 BC. The western empire "
    "collapsed in 476 AD, but the eastern empire lasted until the fall of Constantinople in 1453.")
QUESTION = "What is the capital of Italy?"


def nll(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    logprobs = torch.log_softmax(logits[:-1], -1)
    return float(-logprobs[range(len(ids) - 1), ids[1:]].sum())


def text_case(model, tokenizer, text):
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    total = nll(model, ids)
    return {"text": text, "ids": ids, "nll_sum": total, "targets": len(ids) - 1,
            "perplexity": math.exp(total / (len(ids) - 1))}


def greedy(model, tokenizer):
    prompt = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False,
                             attention_mask=torch.ones(1, len(ids), dtype=torch.long))
    answer = out[0, len(ids):].tolist()
    stop = answer.index(2)
    return {"prompt_ids": ids, "stop_ids": [2], "answer_ids": answer[:stop],
            "answer": tokenizer.decode(answer[:stop])}


def main():
    path = pathlib.Path(sys.argv[1])
    arguments = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**arguments)
    model = transformers.AutoModelForCausalLM.from_pretrained(dtype=torch.float32, **arguments)
    model.eval()
    words = PARAGRAPH.split()
    random.Random(0).shuffle(words)
    result = {
        "made_by": "tests/golden/parity/make_smollm2.py",
        "versions": {m.__name__: m.__version__ for m in (torch, transformers)},
        "gguf_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "paragraph": text_case(model, tokenizer, PARAGRAPH),
        "shuffled": text_case(model, tokenizer, " ".join(words)),
        "chat": greedy(model, tokenizer)}
    out = pathlib.Path(__file__).parent.parent / "smollm2" / "reference.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
