"""The wheel itself: its name, its programs, what it needs and what it has for programs in C."""

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import hstu
from hstu.tree import TREE

WHEEL = os.environ["HSTU_WHEEL"]


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, **options).stdout


def test_the_platform_of_its_name_is_what_auditwheel_finds():
    platform = Path(WHEEL).stem.split("-")[-1]
    found = output(sys.executable, "-m", "auditwheel", "show", WHEEL)
    assert f'platform tag: "{platform}"' in " ".join(found.split())


def test_the_package_is_the_installed_one_and_needs_numpy_alone():
    assert "site-packages" in hstu.__file__
    needed = [line for line in metadata.requires("hstu") if "python_version" not in line]
    assert [line.split(">")[0] for line in needed] == ["numpy"]
    modules = output(sys.executable, "-c", "import hstu, sys; hstu.Scorer; print('torch' in sys.modules)")
    assert modules == "False\n"


def test_programs_run_without_an_environment():
    scripts = Path(sys.executable).parent
    assert output(scripts / "hstu", "--version", env={}).startswith(f"hstu {hstu.__version__} ")
    assert "Parquet" in output(scripts / "hstu-prepare", "--help", env={})
    assert str(TREE / "share/hstu/configs") in output(scripts / "hstu", "doctor", env={})


def test_a_program_in_c_links_the_library_of_the_wheel(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source = Path(__file__).resolve().parents[2] / "examples/score_c.c"
    output(
        "cc",
        source,
        "-I",
        TREE / "include",
        "-o",
        tmp_path / "score",
        "-L",
        TREE / "lib",
        "-l:libhstu_score.so.0",
        f"-Wl,-rpath,{TREE}/lib",
    )
    found = subprocess.run([tmp_path / "score", tmp_path], check=False, capture_output=True, text=True, timeout=60)
    assert found.returncode == 1 and "is not a run" in found.stderr
