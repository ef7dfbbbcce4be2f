#!/usr/bin/env python3
"""Functions of at most 60 lines (a main of 40), lines of at most 100 columns, no open ends."""
import re
import subprocess
import sys

from lint_common import TOP, Findings, product_files, read, tracked

LIMIT, MAIN_LIMIT, COLUMNS = 60, 40, 100


def functions(paths):
    out = subprocess.run(["ctags", "--languages=C++", "--kinds-C++=f", "--fields=+ne", "-x",
                          "--_xformat=%N\t%F\t%n\t%e", *paths], cwd=TOP, check=True,
                         capture_output=True, text=True).stdout
    for row in out.splitlines():
        name, path, start, end = row.split("\t")
        if end.isdigit():
            yield name, path, int(start), int(end)


def main():
    findings = Findings("sizes")
    for name, path, start, end in functions(product_files()):
        limit = MAIN_LIMIT if name == "main" else LIMIT
        if end - start + 1 > limit:
            findings.add(path, start, f"{name} has {end - start + 1} lines; {limit} are allowed")
    for path in tracked("*.h", "*.cc", "*.proto", "*.rs"):
        for number, line in enumerate(read(path).splitlines(), 1):
            if len(line) > COLUMNS and "http" not in line and 'R"' not in line:
                findings.add(path, number, f"{len(line)} columns; {COLUMNS} are allowed")
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                findings.add(path, number, "an open end in the code; file an issue")
    return findings.report()


if __name__ == "__main__":
    sys.exit(main())
