#!/usr/bin/env python3
"""Who may include whom: docs/architecture.md section 3, checked over every `#include "…"`."""
import re
import sys

from lint_common import Findings, product_files, read

COMMON = {"common/status", "common/os", "common/log", "common/names", "common/modelspec",
          "common/jobspec"}
TRAIN_PARTS = {f"worker/{part}" for part in
               ("text", "data", "model", "lora", "objective", "optim", "device", "checkpoint", "export")}
PROTO = {"traind/v1", "google/rpc"}

# module -> modules (and proto packages) that its files may include.
ALLOWED = {
    "common/status": PROTO,
    "common/os": {"common/status"},
    "common/log": set(),
    "common/names": {"common/status"},
    "common/modelspec": {"common/status", "common/os"},
    "common/jobspec": COMMON | PROTO,
    "server/config": COMMON | PROTO | {"traind/config/v1"},
    "server/jobs": COMMON | PROTO | {"traind/storage/v1", "traind/worker/v1"},
    "server/scheduler": COMMON | PROTO | {"server/jobs"},
    "server/store": COMMON | PROTO | {"server/jobs", "traind/storage/v1"},
    "server/events": COMMON | PROTO | {"server/jobs"},
    "server/launcher": COMMON | PROTO | {"traind/worker/v1"},
    "server/metrics": COMMON | PROTO | {"server/jobs"},
    "server/artifacts": COMMON | PROTO | {"server/jobs", "server/store"},
    "server/supervisor": COMMON | PROTO | {"server/launcher", "server/controller", "traind/worker/v1"},
    "server/controller": COMMON | PROTO | {"server/jobs", "server/scheduler", "server/store",
                                           "server/supervisor", "server/events", "server/metrics",
                                           "server/artifacts", "server/launcher",
                                           "traind/storage/v1", "traind/worker/v1"},
    "server/api": COMMON | PROTO | {"server/controller", "server/store", "server/events",
                                    "server/artifacts", "server/jobs", "server/config",
                                    "server/metrics"},
    "server/daemon": COMMON | PROTO | {"server/"} | {"traind/config/v1", "traind/worker/v1"},
    "worker/session": COMMON | PROTO | {"traind/worker/v1", "worker/trainer"},
    "worker/trainer": COMMON | PROTO | TRAIN_PARTS,
    "client/cli": COMMON | PROTO | {"client/"},
    "client/output": COMMON | PROTO,
    "client/rpc": COMMON | PROTO,
    "client/cmd": COMMON | PROTO | {"client/"},
    "server": {"server/daemon", "server/config"} | COMMON,
    "worker": {"worker/"} | COMMON | PROTO | {"traind/worker/v1"},
    "client": {"client/"} | COMMON,
}
for part in TRAIN_PARTS:
    ALLOWED[part] = COMMON | TRAIN_PARTS - {"worker/checkpoint", "worker/export"}
ALLOWED["worker/export"] = COMMON | TRAIN_PARTS
ALLOWED["worker/checkpoint"] = COMMON | TRAIN_PARTS
ALLOWED["worker/text"] = {"common/status", "common/os", "common/modelspec", "worker/text/hftext"}

# Headers that only some folders may see.
RESTRICTED = [
    (re.compile(r"<sqlite3\.h>"), {"server/store"}),
    (re.compile(r'[<"](torch|ATen|c10)/'), {"worker/"}),
    (re.compile(r'[<"]prometheus/'), {"server/metrics", "server/daemon"}),
    (re.compile(r'[<"]CLI/'), {"client/", "server/main.cc", "server/daemon", "worker/main.cc"}),
]
PURE = ("server/jobs/", "server/scheduler/")
IMPURE = re.compile(r"absl::Now\(|std::chrono|std::thread|<thread>|<random>|absl::Mutex|std::mutex|"
                    r"std::random|<chrono>|<fstream>|common/os/|absl/random")
INCLUDE = re.compile(r'^\s*#include\s+([<"][^>"]+[>"])', re.M)


def module_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def allowed(module, target):
    return any(target == name or target.startswith(name.rstrip("/") + "/")
               for name in ALLOWED.get(module, set()) | {module})


def check_file(path, findings):
    text, module = read(path), module_of(path)
    for match in INCLUDE.finditer(text):
        include = match.group(1)
        line = text.count("\n", 0, match.start(1)) + 1
        for pattern, owners in RESTRICTED:
            if pattern.search(include) and not any(path.startswith(owner) for owner in owners):
                findings.add(path, line, f"{include} may be included only in {sorted(owners)}")
        target = "/".join(include.strip('<>"').split("/")[:-1])
        if re.match(r"(common|server|worker|client)/", target) or target.startswith(("traind/", "google/rpc")):
            if not allowed(module, target):
                findings.add(path, line, f"{module} may not include {target}")
    sees_torch = re.search(r'#include [<"](torch|ATen|c10)/', text)
    sees_proto = re.search(r'#include [<"](google/protobuf|grpc|traind/)', text)
    if sees_torch and sees_proto:
        findings.add(path, 1, "LibTorch and Protobuf or gRPC headers in one file")
    if path.startswith(PURE):
        for match in IMPURE.finditer(text):
            findings.add(path, text.count("\n", 0, match.start()) + 1,
                         f"`{match.group(0)}` in a pure module")


def main():
    findings = Findings("layers")
    for path in product_files():
        check_file(path, findings)
    return findings.report()


if __name__ == "__main__":
    sys.exit(main())
