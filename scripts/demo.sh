#!/usr/bin/env bash
# Trains a LoRA adapter of SmolLM2-135M on WordNet definitions through a daemon of its own, and
# prints what came of it. Needs `make build`. Leaves the adapter and nothing running.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

bin=$PWD/build/release/bin
demo=$PWD/build/demo
server=unix:$demo/traind.sock

prepare_files() {
  say "Preparing the model and the rows in build/demo"
  mkdir -p "$demo/models" "$demo/data"
  ln -sf "$TRAIND_SMOLLM2_GGUF" "$demo/models/SmolLM2-135M-Instruct.Q4_1.gguf"
  python3 scripts/make_define_words.py "$demo/data"
  cp deploy/examples/define-words.json "$demo/define-words.json"
  cat >"$demo/traind.conf" <<CONF
state_dir: "$demo/state"
listen_unix: "$demo/traind.sock"
metrics_address: ""
allowed_roots: "$demo"
allowed_roots: "$(dirname "$TRAIND_SMOLLM2_GGUF")"
CONF
}

start_daemon() {
  say "Starting traind (log: build/demo/traind.log)"
  "$bin/traind" --config "$demo/traind.conf" 2>"$demo/traind.log" &
  daemon=$!
  trap stop_daemon EXIT
  for _ in $(seq 100); do
    "$bin/trainctl" --server "$server" server info >/dev/null 2>&1 && return
    kill -0 "$daemon" 2>/dev/null || { cat "$demo/traind.log" >&2; die "traind did not start"; }
    sleep 0.1
  done
  die "traind does not answer; see build/demo/traind.log"
}

stop_daemon() {
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
}

job="define-words-$(date +%s)"
prepare_files
start_daemon
say "trainctl submit define-words.json --watch"
"$bin/trainctl" --server "$server" submit "$demo/define-words.json" --job-id "$job" --watch
"$bin/trainctl" --server "$server" --output json job get "jobs/$job" >"$demo/job.json"
"$bin/trainctl" --server "$server" --output json job watch "jobs/$job" >"$demo/events.jsonl"
python3 scripts/demo_table.py "$demo/job.json" "$demo/events.jsonl"
