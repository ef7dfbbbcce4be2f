"""The main path: submit, train, read loss and metrics, download the adapter."""
import hashlib
import json
import os
import subprocess
import unittest
import urllib.request

from traind_harness import TOP, TraindTest, completion_rows, wait_until, write_rows


class TrainTest(TraindTest):
    def test_submit_trains_and_exports_an_adapter(self):
        daemon = self.start_daemon()
        write_rows(os.path.join(self.folder, "eval.jsonl"), completion_rows(5))
        path = self.write_job(
            dataset={"train": [{"path": "train.jsonl"}], "eval": [{"path": "eval.jsonl"}]},
            sample_prompts=[{"messages": [{"role": "user", "content": "What is 3?"}], "max_new_tokens": 4}])
        name = self.submit(daemon, path)
        job = daemon.wait_for_state(name, "SUCCEEDED", "FAILED")
        self.assertEqual(job["state"], "SUCCEEDED", job)
        self.assertEqual(int(job["plan"]["total_steps"]), 12)
        events = daemon.events(name)
        self.assert_dense(events)
        self.assertEqual([int(e["step"]["step"]) for e in events if "step" in e], list(range(1, 13)))
        losses = [e["step"]["loss"] for e in events if "step" in e]
        self.assertLess(losses[-1], losses[0])
        evals = [e["eval"]["loss_token"] for e in events if "eval" in e]
        self.assertLess(evals[-1], evals[0])
        self.assertEqual(len([e for e in events if "sample" in e]), 2)
        files = os.listdir(job["adapter_path"])
        for expected in ("adapter_model.safetensors", "adapter_config.json", "tokenizer.json"):
            self.assertIn(expected, files)

    def test_download_is_verified_and_complete(self):
        daemon = self.start_daemon()
        name = self.submit(daemon, self.write_job())
        daemon.wait_for_state(name, "SUCCEEDED")
        listed = json.loads(daemon.ctl("--output", "json", "checkpoint", "list", name).stdout)["checkpoints"]
        self.assertEqual(listed[-1]["name"], f"{name}/checkpoints/adapter")
        target = os.path.join(self.folder, "downloaded")
        daemon.ctl("checkpoint", "download", f"{name}/checkpoints/adapter", "--to", target)
        for file in listed[-1]["files"]:
            with open(os.path.join(target, file["path"]), "rb") as handle:
                self.assertEqual(hashlib.sha256(handle.read()).hexdigest(), file["sha256"])

    def test_metrics_show_the_running_job(self):
        daemon = self.start_daemon()
        name = self.submit(daemon, self.write_job(training={"max_steps": 100000, "save_strategy": "no",
                                                            "per_device_train_batch_size": 1}))
        daemon.wait_for_state(name, "RUNNING")

        def scrape():
            with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=10) as answer:
                text = answer.read().decode()
            return text if "traind_train_loss{" in text else None

        text = wait_until(scrape, "the loss is in /metrics")
        self.assertIn('traind_jobs{', text)
        self.assertRegex(text, r"traind_gpu_memory_used_bytes\{[^}]*\} [1-9]")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                                 text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_every_example_trains_a_tiny_model(self):
        daemon = self.start_daemon()
        folder = os.path.join(TOP, "deploy", "examples")
        examples = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        self.assertGreaterEqual(len(examples), 3)
        for example in examples:
            with self.subTest(example):
                job = daemon.wait_for_state(self.submit(daemon, self.tiny_version(folder, example)),
                                            "SUCCEEDED", "FAILED")
                self.assertEqual(job["state"], "SUCCEEDED", job)

    def tiny_version(self, folder, example):
        """The example with the tiny model, a few rows in its format, and few updates."""
        with open(os.path.join(folder, example), encoding="utf-8") as file:
            job = json.load(file)
        spec = job.get("spec", job)
        spec["base_model"]["path"] = self.model
        for part in ("train", "eval"):
            for number, entry in enumerate(spec["dataset"].get(part, [])):
                entry["path"] = os.path.join(self.folder, f"{example}.{part}.{number}.jsonl")
                write_rows(entry["path"], self.rows_for(example, entry))
        spec.setdefault("training", {}).update(max_steps=2, per_device_train_batch_size=2)
        path = os.path.join(self.folder, "tiny-" + example)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job, file)
        return path

    @staticmethod
    def rows_for(example, entry):
        if entry.get("format") == "text" or "text" in example:
            return [{"text": f"Row {i} of a text."} for i in range(8)]
        if entry.get("format") == "prompt_completion":
            return completion_rows(8)
        return [{"messages": [{"role": "user", "content": f"{i}?"},
                              {"role": "assistant", "content": f"{i}!"}]} for i in range(8)]


if __name__ == "__main__":
    unittest.main()
