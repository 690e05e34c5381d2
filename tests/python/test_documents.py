"""What the documents show runs as it is."""

import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parents[2]


def test_the_program_of_the_page_runs(tmp_path):
    program = re.search(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)[1]
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert re.search(r"\[\[0\.\d+\]", done.stdout), done.stdout


def test_the_notebook_runs(tmp_path):
    notebook = nbformat.read(ROOT / "examples/notebook/first-model.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    assert re.search(r"may buy:\n  0\.\d+  \w+", outputs[-1])
    assert any("train: " in text for text in outputs), "training streams what it says"
