#!/usr/bin/env bash
# Makes a Python environment outside the tree with the pinned reference (5 GB, once), and compares:
# regenerated golden files must equal the committed ones, and adapters that the worker wrote must
# load in PEFT and give the worker's logits.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
python=$TRAIND_CACHE/parity/bin/python

make_environment() {
  if [ ! -x "$python" ] || ! "$python" -c 'import torch, peft, trl, gguf' 2>/dev/null; then
    say "Installing the reference into $TRAIND_CACHE/parity (5 GB)"
    python3 -m venv "$TRAIND_CACHE/parity"
    "$python" -m pip install --quiet -r tests/golden/parity/requirements.txt ||
      die "pip could not install tests/golden/parity/requirements.txt; check the network"
  fi
  "$python" -m pip freeze 2>/dev/null | grep -iE '^(torch|transformers|peft|trl)==' >&2
}

make_environment
for script in tests/golden/*/make_*.py tests/golden/parity/check_*.py; do
  say "$script"
  case $script in
    *smollm2*) "$python" "$script" "$TRAIND_SMOLLM2_GGUF" ;;
    *) "$python" "$script" ;;
  esac
done
git diff --stat --exit-code -- tests/golden || die "golden files changed; look at the difference above"
