#!/usr/bin/env python3
"""Every element of the public protos has a comment; fields begin with their behaviour (AIP-203)."""
import re
import sys

from lint_common import Findings, read, tracked

BEHAVIOUR = ("Identifier.", "Required.", "Optional.", "Output only.", "Immutable.", "Input only.")
FIELD = re.compile(r"^\s*(repeated |optional |map<[^>]+> )?[\w.<>, ]+ \w+ = \d+;")
ENUM_VALUE = re.compile(r"^\s*[A-Z][A-Z0-9_]* = \d+;")
ELEMENT = re.compile(r"^\s*(message|enum|service|rpc) \w+")


def main():
    findings = Findings("protos")
    for path in tracked("proto/traind/v1/*.proto"):
        lines = read(path).splitlines()
        for number, line in enumerate(lines, 1):
            is_value, is_field = ENUM_VALUE.match(line), FIELD.match(line)
            if not (is_value or is_field or ELEMENT.match(line)):
                continue
            if "//" in line:
                findings.add(path, number, "trailing comment; write it above")
            first, at = None, number - 2
            while at >= 0 and lines[at].strip().startswith("//"):
                first, at = lines[at].strip()[2:].strip(), at - 1
            if first is None:
                findings.add(path, number, "no comment")
            elif is_field and not is_value and not first.startswith(BEHAVIOUR):
                findings.add(path, number, f"the comment must begin with one of {BEHAVIOUR}")
    return findings.report()


if __name__ == "__main__":
    sys.exit(main())
