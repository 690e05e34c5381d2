"""tools/scale on two ranks of this machine's processors, at tiny sizes.

python3 tests/tools/scale_test.py BUILD      BUILD has hstu and hstu-prepare
"""

import json
import pathlib
import runpy
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "scale"
CASES = [
    "dlrm/weak/1",
    "dlrm/weak/2",
    "fixed/profile/2",
    "zipf/none/2",
    "backend/prefetch/2",
    "resume/*",
    "killed/2",
    "fixed/tensor2/2",
    "long/2",
]


def run(build, folder, *words):
    command = [sys.executable, TOOL, "--bin", build, "--tiny", "--device", "host", "--ranks", "2", "--output", folder]
    status = subprocess.run([*command, *words], stdout=subprocess.DEVNULL, check=False).returncode
    return status, json.loads((folder / "scale.json").read_text())["cases"]


def test_cases(build, folder):
    status, cases = run(build, folder, *(word for case in CASES for word in ("--only", case)))
    assert status == 0, {name: case.get("error") for name, case in cases.items()}
    assert len(cases) == len(CASES), list(cases)
    for name in (
        "dlrm/weak/1",
        "dlrm/weak/2",
        "zipf/none/2",
        "backend/prefetch/2",
        "resume/2to1",
        "fixed/tensor2/2",
        "long/2",
    ):
        low, middle, high = cases[name]["step_ms"]
        assert 0 < low <= middle <= high, cases[name]
        assert cases[name]["samples_per_s"] > 0, cases[name]
    assert cases["dlrm/weak/2"]["samples"] == 2 * cases["dlrm/weak/1"]["samples"], cases["dlrm/weak/2"]
    ranks = cases["fixed/profile/2"]["profile"]
    count, _ = ranks["rank 1"]["collectives"]["all-reduce: check of the update"]
    assert round(count, 6) == 1, ranks
    svg = (folder / "scale.svg").read_text()
    assert "one host only" in svg and "DLRMv4" in svg, svg


def test_a_case_that_fails_is_recorded_and_the_next_one_begins(build, folder):
    status, cases = run(build, folder, "--only", "fixed/weak/*", "--set", "training.batch_size=-1")
    assert status == 1, cases
    assert list(cases) == ["fixed/weak/1", "fixed/weak/2"], cases
    assert all("training.batch_size" in case["error"] for case in cases.values()), cases


def test_no_case_begins_after_the_limit_of_time(build, folder):
    status, cases = run(build, folder, "--only", "fixed/weak/1", "--seconds", "1")
    assert status == 1 and cases["fixed/weak/1"]["error"] == "no time was left", cases


def test_exposed_time_is_that_beside_no_work():
    exposed_ms = runpy.run_path(str(TOOL))["exposed_ms"]
    assert exposed_ms([(0, 4), (3, 6)], [(1, 2), (5, 9)]) == 4
    assert exposed_ms([], [(0, 1)]) == 0


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    test_exposed_time_is_that_beside_no_work()
    tests = [
        test_cases,
        test_a_case_that_fails_is_recorded_and_the_next_one_begins,
        test_no_case_begins_after_the_limit_of_time,
    ]
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(build, pathlib.Path(folder))


if __name__ == "__main__":
    main()
