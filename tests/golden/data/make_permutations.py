"""Writes permutations.json: what torch.randperm gives on the CPU (torch 2.11.0).

Long permutations are kept as their head and a checksum: the sum of position * value modulo 2^31 - 1.
"""

import json
import pathlib

import torch

CASES = [(0, 42), (1, 42), (2, 0), (3, 1), (10, 42), (10, 43), (33, 2**32 + 5), (100, 2**63 + 11),
         (1000, 42), (625, 7), (100000, 42), (1000003, 123456789)]
HEAD = 100


def main():
    cases = []
    for n, seed in CASES:
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()
        checksum = sum(i * value for i, value in enumerate(order)) % (2**31 - 1)
        cases.append({"n": n, "seed": seed, "head": order[:HEAD], "checksum": checksum})
    lines = ",\n".join(json.dumps(case) for case in cases)
    pathlib.Path(__file__).with_name("permutations.json").write_text(f"[\n{lines}\n]\n")


main()
