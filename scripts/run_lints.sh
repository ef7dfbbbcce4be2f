#!/usr/bin/env bash
# Runs every lint and ends with `N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
mkdir -p build
results=build/lint-results.xml
passed=0 failed=0

run() {
  local name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); say "lint $name failed"; fi
}

check_format() {
  git ls-files -z '*.h' '*.cc' | xargs -0 clang-format-16 --dry-run -Werror
}

for lint in tests/lint/lint_[a-z]*.py; do
  [ "$lint" = tests/lint/lint_common.py ] || run "$(basename "$lint" .py)" python3 "$lint"
done
run format check_format
cat >"$results" <<XML
<testsuite name="lint" tests="$((passed + failed))" failures="$failed" errors="0" skipped="0"/>
XML
python3 scripts/count_tests.py "$results"
