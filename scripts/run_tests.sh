#!/usr/bin/env bash
# Runs the tests of one preset and ends with `N passed, N failed, N skipped`.
# Usage: run_tests.sh PRESET [CTEST ARGUMENT ...]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
preset=${1:?usage: run_tests.sh PRESET [CTEST ARGUMENT ...]}
shift
results=$PWD/build/$preset/test-results.xml
rm -f "$results"
status=0
ctest --preset "$preset" --output-junit "$results" "$@" || status=$?
python3 scripts/count_tests.py "$results"
exit "$status"
