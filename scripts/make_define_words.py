#!/usr/bin/env python3
"""Makes train and held-out rows "Define the noun X" -> gloss from WordNet (Debian's wordnet-base).

Usage: make_define_words.py OUT_DIR [--train 300] [--eval 40] [--seed 7]
Writes OUT_DIR/define.train.jsonl and OUT_DIR/define.eval.jsonl; a word is in only one of them.
"""
import argparse
import json
import os
import random
import sys

SOURCE = "/usr/share/wordnet/data.noun"
LONGEST_GLOSS = 90  # characters; keeps rows near 50 tokens


def read_nouns(path):
    """Yields (word, gloss) of single lower-case words, the first gloss of each word."""
    seen = set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(" "):  # the licence
                continue
            fields, gloss = line.rstrip().split(" | ", 1)
            word = fields.split()[4]
            gloss = gloss.split(";")[0].strip()
            if word.isalpha() and word.islower() and word not in seen and 10 < len(gloss) <= LONGEST_GLOSS:
                seen.add(word)
                yield word, gloss


def row(word, gloss):
    return {"messages": [{"role": "user", "content": f'Define the noun "{word}".'},
                         {"role": "assistant", "content": gloss}]}


def write(path, rows):
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        for word, gloss in rows:
            file.write(json.dumps(row(word, gloss), ensure_ascii=False) + "\n")
    os.replace(path + ".tmp", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out_dir")
    parser.add_argument("--train", type=int, default=300)
    parser.add_argument("--eval", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if not os.path.exists(SOURCE):
        sys.exit(f"{SOURCE} is missing; install wordnet-base")
    nouns = list(read_nouns(SOURCE))
    chosen = random.Random(options.seed).sample(nouns, options.train + options.eval)
    os.makedirs(options.out_dir, exist_ok=True)
    write(os.path.join(options.out_dir, "define.train.jsonl"), chosen[:options.train])
    write(os.path.join(options.out_dir, "define.eval.jsonl"), chosen[options.train:])


if __name__ == "__main__":
    main()
