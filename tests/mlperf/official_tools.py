"""The official tools of MLPerf (deps/mlperf.txt), called in this process."""

import contextlib
import io
import logging
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import wheels

FOLDER = wheels.folder("mlperf")


def ensure_packages():
    wheels.use("mlperf", "pandas", "scipy", "yaml")


@contextlib.contextmanager
def silent():
    """What the tools log, as a text."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    before, root.handlers = root.handlers, [handler]
    root.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            yield text
    finally:
        root.handlers = before


def complies(log, config="training_6.1.0/common.yaml"):
    """The verdict of the compliance checker; a crash is a failure. Returns (verdict, text)."""
    from mlperf_logging.compliance_checker import mlp_compliance

    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker("training", "6.1.0", False, False)
    with silent() as text:
        try:
            valid = mlp_compliance.main(str(log), str(config), checker)[0]
        except Exception as error:  # noqa: BLE001
            return False, f"died: {error!r}"
    return bool(valid), text.getvalue()


def package(folder):
    """(whether the package checker found no errors, text)"""
    from mlperf_logging.package_checker import package_checker

    with silent() as text:
        try:
            package_checker.check_training_package(str(folder), "training", "6.1.0", *[False] * 5, "")
        except Exception as error:  # noqa: BLE001
            return False, f"died: {error!r}"
    return "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS !" in text.getvalue(), text.getvalue()


def convergence(folder, custom=None):
    """(verdict, message, factor of the score)"""
    from mlperf_logging.rcp_checker import rcp_checker

    with silent():
        try:
            with open(custom) if custom else contextlib.nullcontext() as rcps:
                return rcp_checker.check_directory(
                    str(folder), "training", "6.1.0", False, False, rcp_file=rcps, rcp_pass="pruned_rcps"
                )
        except Exception as error:  # noqa: BLE001
            return False, f"died: {error!r}", 1.0


def repository(folder):
    from mlperf_logging.repo_checker import repo_checker

    with silent() as text:
        repo_checker.run_checks(str(folder))
    return "ALL CHECKS PASSED" in text.getvalue()


def score(folder, csv):
    """The score that the summary has, in minutes."""
    import pandas
    from mlperf_logging.result_summarizer import result_summarizer

    with silent() as text:
        sys.argv = ["result_summarizer", str(folder), "training", "6.1.0", "--csv", str(csv)]
        result_summarizer.main()
    try:
        table = pandas.read_csv(csv)
    except OSError:
        raise AssertionError(text.getvalue()) from None
    return float(table["dlrmv4"].iloc[0])
