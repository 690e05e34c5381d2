"""./dev mlperf smoke and run, on generated events with a small model: mlperf_verbs_test.py BUILD"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
# The benchmark's configuration with the sizes of a test.
SMALL = """data.history_length=16 data.min_history=0 model.embedding_dim=8 model.dim=8 model.layers=1 model.heads=1
  model.head_dim=8 model.preprocessor_hidden=8 model.head_hidden=8 model.max_sequence=64 training.batch_size=4
  device=host precision=fp32 submission.organization=test submission.platform=test"""


def verb(*words, succeeds=True):
    """./dev mlperf WORDS, with the programs of BUILD in place of a build of its own."""
    script = 'cd "$1"; build() { :; }; source tools/mlperf-verbs; program=$2/hstu; mlperf "${@:3}"'
    done = subprocess.run(
        ["bash", "-euc", "called_from=$PWD; " + script, "bash", ROOT, BUILD, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == succeeds, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def events(run, name):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == name]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(
            [
                BUILD / "hstu",
                "generate",
                "yambda",
                "--users",
                "20",
                "--days",
                "302",
                "--items",
                "200",
                "--seed",
                "1",
                "--output",
                folder / "events",
            ],
            check=True,
            capture_output=True,
        )
        subprocess.run(
            [BUILD / "hstu", "prepare", "yambda", "--input", folder / "events", "--output", folder / "data"],
            check=True,
            capture_output=True,
        )
        small = [word for key in SMALL.split() for word in ("--set", key)]
        verb("smoke", folder / "data", folder / "smoke", *small)
        end = events(folder / "smoke", "end")[0]
        assert end["step"] == 20 and end["reason"] == "completed", end

        brief = [*small, "--set", "training.max_steps=3", "--set", "submission.rules=stand_in"]
        said = verb("run", folder / "data", folder / "run", *brief)
        assert "RESULT,dlrmv4," in said, said
        log = (folder / "run" / "mlperf" / "result_0.txt").read_text()
        assert '"key": "run_stop"' in log and '"key": "submission_org", "value": "test"' in log, log

        launched = folder / "launched"
        verb("run", folder / "data", launched, "--launch", "env TEST=1", *brief)
        log = (launched / "mlperf" / "result_0.txt").read_text()
        assert '"key": "cache_clear", "value": false' in log, log
        assert "usage" in verb("sprint", succeeds=False)


if __name__ == "__main__":
    main()
