"""What survives: a killed daemon, a killed worker, a full disk, a cancel."""
import json
import os
import signal
import subprocess
import unittest

from traind_harness import BIN, TraindTest, wait_until

LONG = {"max_steps": 400, "per_device_train_batch_size": 4, "learning_rate": 1e-3, "save_strategy": "steps",
        "save_steps": 50}


def worker_pids(folder):
    """Worker processes of this test's daemon: their command line names its state folder."""
    pids = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read().split(b"\0")
        except OSError:
            continue
        if command and command[0].endswith(b"traind-worker") and any(folder.encode() in part for part in command):
            pids.append(int(entry))
    return pids


class RecoveryTest(TraindTest):
    def steps(self, daemon, name):
        return int(daemon.job(name).get("progress", {}).get("step", 0))

    def test_kill_9_of_the_daemon_loses_and_repeats_no_step(self):
        daemon = self.start_daemon()
        name = self.submit(daemon, self.write_job(training=LONG))
        watcher = subprocess.Popen(
            [os.path.join(BIN, "trainctl"), "--server", f"unix:{daemon.socket}", "--output", "json", "job", "watch",
             name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watcher.kill)
        wait_until(lambda: self.steps(daemon, name) >= 5, "5 updates")
        workers = worker_pids(self.folder)
        self.assertEqual(len(workers), 1)
        daemon.kill()
        self.assertEqual(worker_pids(self.folder), workers)
        daemon.start()
        job = daemon.wait_for_state(name, "SUCCEEDED", "FAILED")
        self.assertEqual(job["state"], "SUCCEEDED", job)
        self.assertTrue(job["attempt"]["name"].endswith("/attempts/1"))
        events = daemon.events(name)
        self.assert_dense(events)
        self.assertEqual([int(e["step"]["step"]) for e in events if "step" in e], list(range(1, 401)))
        out, err = watcher.communicate(timeout=60)
        watched = [json.loads(line) for line in out.splitlines() if line.strip()]
        self.assert_dense(watched)
        self.assertEqual(len([e for e in watched if "step" in e]), 400, err)

    def test_a_killed_worker_resumes_from_its_checkpoint(self):
        daemon = self.start_daemon()
        name = self.submit(daemon, self.write_job(training=LONG))
        wait_until(lambda: self.steps(daemon, name) >= 60, "60 updates")
        os.kill(worker_pids(self.folder)[0], signal.SIGKILL)
        job = daemon.wait_for_state(name, "SUCCEEDED", "FAILED")
        self.assertEqual(job["state"], "SUCCEEDED", job)
        self.assertTrue(job["attempt"]["name"].endswith("/attempts/2"))
        self.assertGreaterEqual(int(job["attempt"]["start_step"]), 50)
        events = daemon.events(name)
        self.assert_dense(events)
        second = [int(e["step"]["step"]) for e in events if "step" in e and e["attempt"] == 2]
        self.assertEqual(second, list(range(int(job["attempt"]["start_step"]) + 1, 401)))

    def test_a_full_disk_fails_the_job_and_keeps_the_checkpoint_before(self):
        daemon = self.start_daemon(env={"TRAIND_FAULT": "checkpoint.after_weights:enospc@3"})
        name = self.submit(daemon, self.write_job(training=dict(LONG, max_steps=200)))
        job = daemon.wait_for_state(name, "FAILED", "SUCCEEDED")
        self.assertEqual(job["state"], "FAILED")
        self.assertIn("DISK_FULL", json.dumps(job["error"]))
        listed = json.loads(daemon.ctl("--output", "json", "checkpoint", "list", name).stdout)["checkpoints"]
        self.assertEqual([int(c["step"]) for c in listed], [50, 100])
        daemon.ctl("checkpoint", "download", listed[-1]["name"], "--to", os.path.join(self.folder, "saved"))

    def test_cancel_leaves_no_process(self):
        daemon = self.start_daemon()
        name = self.submit(daemon, self.write_job(training=dict(LONG, max_steps=1000000)))
        daemon.wait_for_state(name, "RUNNING")
        daemon.ctl("job", "cancel", name)
        daemon.wait_for_state(name, "CANCELLED")
        self.assertEqual(worker_pids(self.folder), [])
        again = daemon.ctl("job", "cancel", name)
        self.assertEqual(again.returncode, 0)
        daemon.ctl("job", "delete", name)
        self.assertEqual(daemon.ctl("job", "get", name, check=False).returncode, 5)

    def test_a_queued_job_says_why_and_runs_after_the_first(self):
        daemon = self.start_daemon()
        first = self.submit(daemon, self.write_job(training=dict(LONG, max_steps=1000000)))
        daemon.wait_for_state(first, "RUNNING")
        second = self.submit(daemon, self.write_job(name="second.json"))
        waiting = wait_until(lambda: (job := daemon.job(second)).get("pending_reason") and job, "a reason")
        self.assertIn("1 of 1", waiting["pending_reason"])
        daemon.ctl("job", "cancel", first)
        self.assertEqual(daemon.wait_for_state(second, "SUCCEEDED", "FAILED")["state"], "SUCCEEDED")


if __name__ == "__main__":
    unittest.main()
