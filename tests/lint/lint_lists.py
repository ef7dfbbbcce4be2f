#!/usr/bin/env python3
"""Lists that stand in two places agree: error reasons, log events, metrics, job fields, fault points."""
import os
import re
import subprocess
import sys

from lint_common import TOP, Findings, product_files, read, tracked


def find_all(pattern, paths):
    found = {}
    for path in paths:
        text = read(path)
        for match in re.finditer(pattern, text):
            found.setdefault(match.group(1), (path, text.count("\n", 0, match.start()) + 1))
    return found


def compare(findings, what, in_code, document):
    text = read(document) if os.path.exists(os.path.join(TOP, document)) else ""
    for name, (path, line) in sorted(in_code.items()):
        if f"`{name}`" not in text:
            findings.add(path, line, f"{what} `{name}` is not in {document}")


def main():
    findings = Findings("lists")
    product = product_files()
    reasons = find_all(r"(?m)^  ([A-Z][A-Z0-9_]+) = [1-9]\d*;", ["proto/traind/v1/error_reason.proto"])
    compare(findings, "reason", reasons, "docs/errors.md")
    events = find_all(r'\bLog\(\s*LogLevel::k\w+,\s*"([a-z_]+\.[a-z_]+)"', product)
    compare(findings, "log event", events, "docs/logging.md")
    metrics = find_all(r'"(traind_[a-z0-9_]+|grpc_server_[a-z0-9_]+)"',
                       [p for p in product if p.startswith("server/metrics/")])
    compare(findings, "metric", metrics, "docs/metrics.md")
    faults = find_all(r'FaultPoint\("([a-z_.]+)"\)', product)
    compare(findings, "fault point", faults, "docs/testing.md")
    generated = subprocess.run([sys.executable, "scripts/generate_job_spec_doc.py", "--check"], cwd=TOP,
                               capture_output=True, text=True)
    if generated.returncode:
        findings.add("docs/job-spec.md", 1, generated.stdout.strip() or generated.stderr.strip())
    for path in tracked("docs/decisions/*.md"):
        if not re.match(r"docs/decisions/\d{4}-[a-z0-9-]+\.md$", path):
            findings.add(path, 1, "decision records are named NNNN-title.md")
    return findings.report()


if __name__ == "__main__":
    sys.exit(main())
