#!/usr/bin/env python3
"""Writes the field tables of docs/job-spec.md from the comments of the protos: one truth.

Usage: generate_job_spec_doc.py [--check]      (--check: only say whether the file is up to date)
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(TOP, "docs", "job-spec.md")
BEGIN, END = "<!-- fields: begin (made by scripts/generate_job_spec_doc.py) -->", "<!-- fields: end -->"
# (title, proto file, message); in the order of a job file.
MESSAGES = [
    ("The job", "job", "Job"), ("`resources`", "job", "Resources"),
    ("`spec`", "training_spec", "TrainingSpec"), ("`spec.base_model`", "training_spec", "BaseModel"),
    ("`spec.dataset`", "training_spec", "Dataset"),
    ("`spec.dataset.train[]` and `eval[]`", "training_spec", "DataFile"),
    ("`spec.lora`", "training_spec", "LoraConfig"),
    ("`spec.training`", "training_spec", "TrainingArguments"),
    ("`spec.parallelism`", "training_spec", "Parallelism"),
    ("`spec.sample_prompts[]`", "training_spec", "SamplePrompt"),
    ("`spec.sample_prompts[].messages[]`", "training_spec", "ChatMessage"),
    ("`spec.output`", "training_spec", "OutputOptions"),
]
FIELD = re.compile(r"^  (?:optional |repeated )?(map<[^>]+>|[\w.]+) (\w+) = \d+;")


def message_body(text, name):
    return re.search(rf"^message {name} {{\n(.*?)^}}", text, re.M | re.S).group(1)


def fields(body):
    comment, depth = [], 0
    for line in body.splitlines():
        if depth == 0 and line.strip().startswith("//"):
            comment.append(line.strip()[2:].strip())
        elif depth == 0 and (match := FIELD.match(line)):
            yield match.group(2), match.group(1), " ".join(comment)
            comment = []
        else:
            comment = []
        depth += line.count("{") - line.count("}")


def section(title, proto, message):
    with open(os.path.join(TOP, "proto", "traind", "v1", proto + ".proto"), encoding="utf-8") as file:
        body = message_body(file.read(), message)
    rows = [f"### {title}", "", "| field | type | meaning |", "|---|---|---|"]
    for name, kind, comment in fields(body):
        if comment.startswith(("Output only.", "Identifier.")):
            continue
        comment = re.sub(r"\b(Optional|Immutable)\. ", "", comment).replace("|", "\\|")
        rows.append(f"| `{name}` | {kind.split('.')[-1]} | {comment} |")
    return "\n".join(rows) + "\n"


def main():
    with open(DOCUMENT, encoding="utf-8") as file:
        old = file.read()
    tables = "\n".join(section(*entry) for entry in MESSAGES)
    head, rest = old.split(BEGIN)
    new = f"{head}{BEGIN}\n\n{tables}\n{END}{rest.split(END)[1]}"
    if "--check" in sys.argv:
        if new != old:
            print("docs/job-spec.md is not up to date; run scripts/generate_job_spec_doc.py")
            return 1
        return 0
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
