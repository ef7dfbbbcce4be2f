"""What the lints share: the files of the tree and the form of a finding. Run from the top folder."""
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRODUCT = ("common/", "server/", "worker/", "client/")


def tracked(*patterns):
    out = subprocess.run(["git", "-C", TOP, "ls-files", "--", *patterns], check=True,
                         capture_output=True, text=True).stdout
    return [path for path in out.splitlines() if os.path.exists(os.path.join(TOP, path))]


def product_files():
    return [path for path in tracked("*.h", "*.cc") if path.startswith(PRODUCT)]


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


class Findings:
    def __init__(self, lint):
        self.lint, self.lines = lint, []

    def add(self, path, line, text):
        self.lines.append(f"{path}:{line}: {text}")

    def report(self):
        for line in self.lines:
            print(line)
        print(f"{self.lint}: {len(self.lines)} findings")
        return 1 if self.lines else 0
