#!/usr/bin/env bash
# Unpacks LibTorch and the two CUDA libraries that its CPU half links, from PyPI wheels.
# Usage: fetch_libtorch.sh TARGET_DIR     (nothing to do if TARGET_DIR is complete)
set -euo pipefail
target=${1:?usage: fetch_libtorch.sh TARGET_DIR}
[ -f "$target/.complete" ] && exit 0

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
echo "Fetching LibTorch 2.11.0 from PyPI (540 MB) ..." >&2
python3 -m pip download --quiet --no-deps --dest "$wheels" \
  torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 || {
  echo "fetch_libtorch.sh: pip could not fetch the wheels. Check the network and pip's index settings, then run this again." >&2
  exit 1
}
rm -rf "$target" && mkdir -p "$target"
for wheel in "$wheels"/*.whl; do
  unzip -q -o "$wheel" 'torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' 'torch/lib/libgomp*' \
    'torch/lib/libshm*' 'torch/include/*' 'nvidia/*' 'torch/LICENSE*' '*.dist-info/*LICENSE*' \
    -d "$target" 2>/dev/null || true
done
[ -f "$target/torch/lib/libtorch_cpu.so" ] || { echo "fetch_libtorch.sh: the torch wheel has no libtorch_cpu.so" >&2; exit 1; }
touch "$target/.complete"
