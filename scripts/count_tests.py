#!/usr/bin/env python3
"""Sums JUnit files into one line: `N passed, N failed, N skipped`. A missing file is a failure."""
import sys
import xml.etree.ElementTree as ET


def main(paths):
    passed = failed = skipped = 0
    for path in paths:
        try:
            suites = list(ET.parse(path).getroot().iter("testsuite"))
        except (OSError, ET.ParseError) as error:
            print(f"no test results in {path}: {error}", file=sys.stderr)
            failed += 1
            continue
        for suite in suites:
            tests = int(suite.get("tests", 0))
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            off = int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
            passed, failed, skipped = passed + tests - bad - off, failed + bad, skipped + off
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
