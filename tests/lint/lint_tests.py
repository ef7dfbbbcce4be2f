#!/usr/bin/env python3
"""No silent loss of tests: every _test.cc is built, none is switched off."""
import os
import re
import sys

from lint_common import Findings, read, tracked

OFF = [
    (re.compile(r"\bDISABLED_"), "a disabled test"),
    (re.compile(r"^\s*//\s*(TEST|EXPECT|ASSERT)", re.M), "a test or check inside a comment"),
    (re.compile(r"TEST(_F|_P)?\([^)]*\)\s*\{\s*return;"), "a test that returns at once"),
    (re.compile(r"\bsleep_for\(|\babsl::SleepFor\("), "a sleep: wait for a condition instead"),
]
# Reviewed: a sleep that polls a condition with a deadline, or that is what the test is about.
SLEEP_ALLOWED = re.compile(r"poll|deadline|until", re.I)


def main():
    findings = Findings("tests")
    for path in tracked("tests/**_test.cc"):
        folder = os.path.dirname(path)
        lists = [os.path.join(parent, "CMakeLists.txt")
                 for parent in (folder, os.path.dirname(folder)) if parent]
        name = os.path.basename(path)
        if not any(os.path.exists(l) and name in read(l) for l in lists):
            findings.add(path, 1, "is in no CMakeLists.txt")
    for path in tracked("tests/*.cc", "tests/*.h"):
        text = read(path)
        for pattern, what in OFF:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                near = "\n".join(text.splitlines()[max(0, line - 6):line])
                if "sleep" in what and SLEEP_ALLOWED.search(near):
                    continue
                findings.add(path, line, what)
        for match in re.finditer(r"GTEST_SKIP\(\)(.*)", text):
            if not re.search(r"#\d+|not available", match.group(0)):
                findings.add(path, text.count("\n", 0, match.start()) + 1, "a skip without a reason")
    return findings.report()


if __name__ == "__main__":
    sys.exit(main())
