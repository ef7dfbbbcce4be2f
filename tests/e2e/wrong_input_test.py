"""Wrong inputs: what a user sees for each, word for word where it matters."""
import json
import os
import socket
import subprocess
import unittest

from traind_harness import BIN, TraindTest, completion_rows


class WrongInputTest(TraindTest):
    def refused(self, daemon, path, *words):
        """Submitting fails at once with all the words."""
        done = daemon.ctl("submit", path, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)

    def fails(self, daemon, path, reason, *words):
        """Submitting works, the job fails with the reason and all the words in its message."""
        job = daemon.wait_for_state(self.submit(daemon, path), "FAILED", "SUCCEEDED")
        self.assertEqual(job["state"], "FAILED", job)
        self.assertEqual(job["error"]["details"][0]["reason"], reason, job["error"])
        for word in words:
            self.assertIn(word, job["error"]["message"])
        self.assertTrue(job["attempt"]["name"].endswith("/attempts/1"), "a user's error is not retried")

    def test_fields_are_refused_all_at_once_before_anything_is_queued(self):
        daemon = self.start_daemon()
        path = self.write_job(lora={"r": 0}, training={"per_device_train_batch_size": 0, "learning_rate": -1})
        self.refused(daemon, path, "lora.r: must be in [1, 4096]; got 0",
                     "training.per_device_train_batch_size: must be in [1, 65536]; got 0",
                     "training.learning_rate: must be a finite number in [0, inf); got -1")
        listed = json.loads(daemon.ctl("--output", "json", "job", "list").stdout or "{}")
        self.assertEqual(listed.get("jobs", []), [])

    def test_a_learning_rate_that_is_not_a_number(self):
        daemon = self.start_daemon()
        self.refused(daemon, self.write_job(training={"learning_rate": float("nan")}), "job.json", "NaN")
        self.refused(daemon, self.write_job(training={"learning_rate": "NaN"}), "training.learning_rate", "number")

    def test_an_unknown_field_is_refused_with_its_neighbour(self):
        daemon = self.start_daemon()
        self.refused(daemon, self.write_job(training={"learning_rat": 1e-4}), "learning_rat", "learning_rate")

    def test_a_missing_model_folder_and_a_missing_dataset(self):
        daemon = self.start_daemon()
        missing = os.path.join(self.folder, "nowhere")
        self.refused(daemon, self.write_job(base_model={"path": missing}), missing)
        path = self.write_job(dataset={"train": [{"path": "nowhere.jsonl"}]})
        self.refused(daemon, path, os.path.join(self.folder, "nowhere.jsonl"))

    def test_an_unreadable_file(self):
        daemon = self.start_daemon()
        folder = os.path.join(self.folder, "dataset.jsonl")
        os.mkdir(folder)
        self.refused(daemon, self.write_job(dataset={"train": [{"path": folder}]}), folder)

    def test_a_path_outside_the_allowed_roots(self):
        daemon = self.start_daemon()
        self.refused(daemon, self.write_job(dataset={"train": [{"path": "/etc/passwd"}]}), "/etc/passwd", "allowed")

    def test_a_config_without_weights(self):
        daemon = self.start_daemon()
        os.remove(os.path.join(self.model, "model.safetensors"))
        self.fails(daemon, self.write_job(), "MODEL_INVALID", "model.safetensors")

    def test_an_unknown_architecture(self):
        daemon = self.start_daemon()
        config = os.path.join(self.model, "config.json")
        with open(config, encoding="utf-8") as file:
            text = json.load(file)
        text.update(architectures=["RwkvForCausalLM"], model_type="rwkv")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(text, file)
        self.fails(daemon, self.write_job(), "MODEL_INVALID", "rwkv", "llama")

    def test_an_empty_dataset(self):
        daemon = self.start_daemon()
        path = self.write_job()
        open(os.path.join(self.folder, "train.jsonl"), "w", encoding="utf-8").close()
        self.fails(daemon, path, "DATASET_INVALID", "train.jsonl")

    def test_row_7_is_not_json(self):
        daemon = self.start_daemon()
        rows = completion_rows(10)
        rows[6] = "{not json"
        self.fails(daemon, self.write_job(rows=rows), "DATASET_INVALID", "train.jsonl line 7")

    def test_all_rows_without_a_supervised_token(self):
        daemon = self.start_daemon()
        rows = [{"prompt": "a long prompt " * 20, "completion": " x"}] * 3
        path = self.write_job(rows=rows, dataset={"train": [{"path": "train.jsonl"}], "max_length": 16})
        self.fails(daemon, path, "NO_SUPERVISED_TOKENS", "3")

    def test_target_modules_that_match_nothing_list_what_exists(self):
        daemon = self.start_daemon()
        self.fails(daemon, self.write_job(lora={"target_modules": ["query_key_value"]}),
                   "TARGET_MODULES_NOT_FOUND", "query_key_value", "q_proj", "down_proj")

    def test_a_second_daemon_on_the_same_state_folder(self):
        daemon = self.start_daemon()
        second = subprocess.run([os.path.join(BIN, "traind"), "--config", daemon.config], capture_output=True,
                                text=True, timeout=60, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("STATE_DIR_LOCKED", second.stderr)
        self.assertIn(str(daemon.process.pid), second.stderr)

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            config = os.path.join(self.folder, "taken.conf")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f'state_dir: "{self.folder}/other"\nlisten_unix: "{self.folder}/other.sock"\n'
                           f'metrics_address: "127.0.0.1:{port}"\n')
            done = subprocess.run([os.path.join(BIN, "traind"), "--config", config], capture_output=True,
                                  text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ADDRESS_IN_USE", done.stderr)
        self.assertIn(str(port), done.stderr)

    def test_the_daemon_goes_on_after_hostile_files(self):
        daemon = self.start_daemon()
        for name, text in (("dup.json", '{"base_model":{},"base_model":{}}'), ("nan.json", '{"priority": NaN}'),
                           ("cut.json", '{"spec": {'), ("bytes.json", None), ("list.json", "[]")):
            path = os.path.join(self.folder, name)
            with open(path, "wb") as file:
                file.write(b'{"display_name": "\xff\xfe"}' if text is None else text.encode())
            self.refused(daemon, path, name)
        job = daemon.wait_for_state(self.submit(daemon, self.write_job()), "SUCCEEDED", "FAILED")
        self.assertEqual(job["state"], "SUCCEEDED", job)


if __name__ == "__main__":
    unittest.main()
