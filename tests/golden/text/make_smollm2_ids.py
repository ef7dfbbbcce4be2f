"""Writes smollm2_ids.json: token ids of the SmolLM2 GGUF's vocabulary.

Usage: make_smollm2_ids.py MODEL.gguf, with transformers 5.24.0, which converts the vocabulary.
"""

import json
import pathlib
import sys

from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

TEXTS = [
    "", "Hello world", "  two  spaces and a tab\t.", "12345 + 678.90 = 13023.90", "naïve café 😀 中文 العربية",
    "<|im_start|>user\nHi<|im_end|>\n", "don't we'll I'M", "line\n\n\nbreaks\r\nand \u00a0 \u2028 spaces",
    "def f(x):\n    return x ** 2  # ok\n", "<|endoftext|><repo_name>x", "A" * 50, "ﬁ ½ ① Å \U0001F468‍👩‍👧",
]
MESSAGES = [{"role": "user", "content": "What is the capital of Italy?"}]


def main():
    path = pathlib.Path(sys.argv[1])
    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    # The conversion takes GPT-2's rules alone; the model's own tokenizer.json splits digits off first.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    golden = {
        "texts": [{"text": text, "ids": tokenizer(text, add_special_tokens=False)["input_ids"]}
                  for text in TEXTS],
        "messages": MESSAGES,
        "prompt_ids": tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True,
                                                    return_dict=False),
    }
    lines = json.dumps(golden, ensure_ascii=False, indent=None, separators=(",", ":"))
    pathlib.Path(__file__).with_name("smollm2_ids.json").write_text(lines + "\n")


main()
