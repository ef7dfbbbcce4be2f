#!/usr/bin/env bash
# Configures and builds one preset. Usage: build.sh PRESET [TARGET ...]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
preset=${1:?usage: build.sh PRESET [TARGET ...]}
shift
say "Building the $preset preset"
mkdir -p build
cmake --preset "$preset" -DTRAIND_LIBTORCH_DIR="$LIBTORCH_DIR" \
  -DTRAIND_CARGO_TARGET_DIR="$TRAIND_CACHE/cargo-target" >"build/$preset-configure.log" 2>&1 ||
  { tail -n 20 "build/$preset-configure.log" >&2; die "configuring failed; see build/$preset-configure.log"; }
cmake --build --preset "$preset" ${@:+--target "$@"}
