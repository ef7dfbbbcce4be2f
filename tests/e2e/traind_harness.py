"""Runs the real traind, traind-worker and trainctl in a folder of their own, on a tiny model.

The model is the seeded Llama of tests/golden/weights/tinyllama with the byte tokenizer of
tests/golden/bytetok. Every wait is for a condition, with a deadline that only a hang reaches.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("TRAIND_BIN_DIR", os.path.join(TOP, "build", "dev", "bin"))
DEADLINE = 90  # seconds


def wait_until(condition, what, deadline=DEADLINE):
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)  # polls the condition
    raise AssertionError(f"not within {deadline} s: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_tiny_model(folder):
    shutil.copytree(os.path.join(TOP, "tests/golden/weights/tinyllama"), folder)
    for name in os.listdir(os.path.join(TOP, "tests/golden/bytetok")):
        shutil.copy(os.path.join(TOP, "tests/golden/bytetok", name), folder)


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write((row if isinstance(row, str) else json.dumps(row)) + "\n")


def completion_rows(count):
    return [{"prompt": f"What is {i}?", "completion": f" It is {i * 7 % 10}."} for i in range(count)]


class Daemon:
    """A traind process and the folder it works in."""

    def __init__(self, folder, env=None, extra=""):
        self.folder = folder
        self.socket = os.path.join(folder, "traind.sock")
        self.log_path = os.path.join(folder, "traind.log")
        self.metrics_port = free_port()
        self.config = os.path.join(folder, "traind.conf")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f'state_dir: "{folder}/state"\nlisten_unix: "{self.socket}"\n'
                       f'metrics_address: "127.0.0.1:{self.metrics_port}"\n'
                       f'allowed_roots: "{folder}"\nallowed_roots: "{TOP}"\nworker_threads: 1\n{extra}\n')
        self.process = None
        self.start(env)

    def start(self, env=None):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([os.path.join(BIN, "traind"), "--config", self.config],
                                            stderr=log, stdout=log, env={**os.environ, **(env or {})})
        wait_until(self.answers, f"traind answers; log: {self.log_path}")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"traind ended with {self.process.returncode}:\n{self.log()}")
        return self.ctl("server", "info", check=False).returncode == 0

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def ctl(self, *arguments, check=True, timeout=DEADLINE):
        done = subprocess.run([os.path.join(BIN, "trainctl"), "--server", f"unix:{self.socket}", *arguments],
                              capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"trainctl {arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
                                 f"\ndaemon log:\n{self.log()[-4000:]}")
        return done

    def job(self, name):
        return json.loads(self.ctl("--output", "json", "job", "get", name).stdout)

    def events(self, name):
        """All events of an ended job."""
        out = self.ctl("--output", "json", "job", "watch", name).stdout
        return [json.loads(line) for line in out.splitlines() if line.strip()]

    def wait_for_state(self, name, *states):
        return wait_until(lambda: (job := self.job(name))["state"] in states and job,
                          f"{name} is {states}; now {self.job(name)['state']}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("traind did not stop on SIGTERM") from None


class TraindTest(unittest.TestCase):
    """A test with a folder, a tiny model, and daemons that are stopped at the end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="traind-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.model = os.path.join(self.folder, "model")
        make_tiny_model(self.model)

    def start_daemon(self, env=None, extra=""):
        daemon = Daemon(self.folder, env, extra)
        self.addCleanup(self.clean_up, daemon)
        return daemon

    def clean_up(self, daemon):
        """Ends what still runs, so that no worker outlives its test."""
        if daemon.process.poll() is None:
            for job in json.loads(daemon.ctl("--output", "json", "job", "list").stdout).get("jobs", []):
                if job["state"] in ("QUEUED", "STARTING", "RUNNING", "CANCELLING"):
                    daemon.ctl("job", "cancel", job["name"], check=False)
                    daemon.wait_for_state(job["name"], "CANCELLED", "SUCCEEDED", "FAILED")
            daemon.stop()

    def write_job(self, rows=None, name="job.json", **spec):
        """A job file of 12 updates on the tiny model; `spec` overrides its parts."""
        write_rows(os.path.join(self.folder, "train.jsonl"), rows or completion_rows(24))
        job = {
            "base_model": {"path": self.model},
            "dataset": {"train": [{"path": os.path.join(self.folder, "train.jsonl")}]},
            "lora": {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"},
            "training": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 1,
                         "learning_rate": 1e-2, "num_train_epochs": 2},
        }
        job.update(spec)
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job, file)
        return path

    def submit(self, daemon, path, *arguments):
        out = daemon.ctl("--output", "json", "submit", path, *arguments).stdout
        return json.loads(out)["name"]

    def assert_dense(self, events):
        numbers = [int(event["sequence"]) for event in events if int(event.get("sequence", 0)) > 0]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
