"""Datasets, runs and commands."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hstu
from hstu.commands import _toml
from hstu.run import parse_toml


def test_columns_are_the_files_of_the_dataset_and_copy_nothing(dataset):
    assert isinstance(dataset.items, np.memmap) and not dataset.items.flags.writeable
    assert len(dataset.items) == len(dataset.times) == len(dataset.actions) == dataset.manifest["counts"]["events"]
    for u, user in enumerate(dataset.users):
        mine = slice(dataset.offsets[u], dataset.offsets[u + 1])
        events = dataset.user(int(user))
        assert (events.items == dataset.items[mine]).all() and (np.diff(events.times) >= 0).all()
        assert (events.actions == dataset.actions[mine] & 127).all()
        assert (events.contexts == dataset["context_is_organic"][mine]).all()
    assert len(dataset.user(10**9).items) == 0
    with pytest.raises(KeyError, match="it has action"):
        dataset["price"]


def test_anchors_are_the_events_that_can_be_predicted(dataset):
    anchors = dataset.anchors()
    assert sorted(anchors.training) == np.flatnonzero(dataset.actions & 128).tolist()
    assert anchors.offsets[-1] == len(anchors.training)


def test_texts_and_segments(folder):
    hstu.call("generate", "shop", events=2000, output=folder / "shop", format="csv", progress=None)
    header, *rows = (folder / "shop/events-00000.csv").read_text().splitlines(keepends=True)
    for day, lines in (("day-1", rows[:1500]), ("day-2", rows[1500:])):
        (folder / day).mkdir()
        (folder / day / "events-1.csv").write_text(header + "".join(lines))
    shop = hstu.prepare(
        "csv", schema=folder / "shop/schema.toml", input=folder / "day-1", output=folder / "days", progress=None
    )
    whole = hstu.prepare(
        "csv", schema=folder / "shop/schema.toml", input=folder / "shop", output=folder / "whole", progress=None
    )
    names = shop.names("item")
    assert [names.by_text[names[id]] for id in names] == names.ids.tolist() and len(names) == len(list(names))
    with pytest.raises(KeyError):
        names[1]
    hstu.call(
        "prepare", "csv", schema=folder / "shop/schema.toml", input=folder / "day-2", append=shop.path, progress=None
    )
    shop = hstu.Dataset(shop.path)
    assert len(shop.segments) == 1
    for user in whole.users.tolist():
        for found, expected in zip(shop.user(user), whole.user(user)):
            np.testing.assert_array_equal(found, expected)


def test_a_run_streams_what_it_says_and_is_a_table(run, said, dataset):
    assert any(line.startswith("train: ") for line in said) and any(line.startswith("model ") for line in said)
    assert run.config["training"]["batch_size"] == 16 and run.dataset.path == dataset.path
    assert run.metrics("train")["step"].tolist() == [5, 10, 15, 20]
    assert run.metrics("train")["loss"].dtype == np.float64
    assert list(run.checkpoints) == [10, 20] and run.best is None
    assert run.summary["reason"] == "completed" and run.summary["eval"]["auc"] == run.metrics()["auc"][-1]
    assert run.metrics("run")["tables.item.dim"].tolist() == [32]
    assert hstu.eval(run, progress=None)["auc"] == run.metrics()["auc"][-1]


def test_failures_are_exceptions_with_the_text_and_the_status(folder, settings, run):
    with pytest.raises(hstu.Error, match="unknown key.*max_step") as failure:
        hstu.train("quickstart.toml", output=folder / "x", set={"training.max_step": 1}, progress=None)
    assert failure.value.status == 2
    with pytest.raises(hstu.Error, match="none.csv") as failure:
        hstu.predict(run, requests=folder / "none.csv", output=folder / "x.csv", progress=None)
    assert failure.value.status == 1
    with pytest.raises(TypeError, match="output.*resume"):
        hstu.train("quickstart.toml", progress=None)


def test_settings_are_values_of_python_and_numpy(folder, settings):
    """Tables as TOML, numbers as numbers; a text is as it is typed behind --set."""
    values = {
        **settings, "training.max_steps": np.int64(1), "training.batch_size": np.array(8), "seed": "7",
        "dense_optimizer.learning_rate": np.float32(0.25), "tables.item.frozen": np.bool_(False),
        "sparse_optimizer": {"kind": "adam", "learning_rate": 1e-5, "epsilon": np.float64(0.5)},
        "features.actions": np.array(["listen_plus", "like"]), "model": {"layers": np.int32(1)},
        "tables.item.initial": {"kind": "constant", "value": True + 0.5}, "data.path": folder / 'a "b" \\ c',
    }  # fmt: skip
    (folder / 'a "b" \\ c').symlink_to(settings["data.path"])
    config = hstu.train("quickstart.toml", output=folder / "set", set=values, progress=None).config
    assert (config["training"]["max_steps"], config["training"]["batch_size"], config["seed"]) == (1, 8, 7)
    assert config["dense_optimizer"]["learning_rate"] == 0.25 and config["tables"]["item"]["frozen"] is False
    assert [config["sparse_optimizer"][key] for key in ("kind", "learning_rate", "epsilon")] == ["adam", 1e-5, 0.5]
    assert config["features"]["actions"] == ["listen_plus", "like"] and config["model"]["layers"] == 1
    assert config["tables"]["item"]["initial"]["value"] == 1.5
    assert config["data"]["path"] == str(values["data.path"])


def test_texts_inside_of_settings_keep_every_character():
    text = '"\\\n\t\x01\x7f\x85\u2028\U0001f600 = [{'
    written = _toml({"a.b": [text, Path("c"), (), {}], "\x7f": False}, "set: x")
    assert "\n" not in written
    assert parse_toml(f"x = {written}".encode(), "x") == {"x": {"a.b": [text, "c", [], {}], "\x7f": False}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "set: a.b: expected a number.*found NoneType: leave it out"),
        (float("nan"), "set: a.b: expected a finite number, found nan"),
        (np.float32("inf"), "set: a.b: expected a finite number, found inf"),
        ([1, None], r"set: a.b\[1\]: .*found NoneType"),
        ({"c": {"d": float("nan")}}, "set: a.b.c.d: expected a finite number"),
        ({1, 2}, "set: a.b: .*found set"),
        (b"text", "set: a.b: .*found bytes"),
        (1j, "set: a.b: .*found complex"),
        (np.datetime64("2026-01-01"), "set: a.b: .*found date"),
    ],
)
def test_settings_without_a_form_in_toml_are_named(folder, value, text):
    for call in (hstu.train, lambda *words, **options: hstu.call("train", *words, **options)):
        with pytest.raises((TypeError, ValueError), match=text):
            call("quickstart.toml", output=folder / "none", set={"training.max_steps": 1, "a.b": value}, progress=None)


def test_options_are_values_of_python_and_numpy(run, dataset):
    with pytest.raises(ValueError, match="threads: expected a finite number, found nan"):
        hstu.eval(run, threads=float("nan"), progress=None)
    with pytest.raises(TypeError, match="data: expected .*found Dataset"):
        hstu.eval(run, data=dataset, progress=None)
    assert "auc" in hstu.eval(run, threads=np.int64(1), row_stable=np.bool_(False), data=None, progress=None)


def wait_for_steps(run):
    """Until the run that begins there has made its first steps."""
    end = time.monotonic() + 60
    while not (run / "metrics.jsonl").exists() or '"train"' not in (run / "metrics.jsonl").read_text():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_interrupt_saves_the_run_and_resuming_it_ends_with_the_same_numbers(folder, settings, run):
    output = folder / "interrupted"

    def interrupt():
        wait_for_steps(output)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        hstu.train("quickstart.toml", output=output, set={**settings, "training.max_steps": 10**6}, progress=None)
    interrupted = hstu.Run(output)
    assert interrupted.summary["reason"] == "interrupted" and interrupted.checkpoints
    last = max(interrupted.checkpoints) + 5
    resumed = hstu.train(resume=interrupted, set={"training.max_steps": last}, progress=None)
    assert resumed.summary["reason"] == "completed" and max(resumed.checkpoints) == last


def test_ctrl_c_in_a_terminal_reaches_the_program_once(folder, settings):
    """The whole group gets SIGINT there; a program that got two would end without a checkpoint."""
    output = folder / "ctrl-c"
    values = {**settings, "data.path": str(settings["data.path"]), "training.max_steps": 10**6}
    script = f"import hstu; hstu.train('quickstart.toml', output={str(output)!r}, set={values!r})"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        stderr=subprocess.PIPE,
    ) as process:
        wait_for_steps(output)
        os.killpg(process.pid, signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert hstu.Run(output).summary["reason"] == "interrupted"


def test_a_failure_of_progress_ends_the_program(folder, settings):
    """As an interrupt does: the run is saved."""

    def fail(line):
        if line.startswith("device"):
            wait_for_steps(folder / "failed")
            raise RuntimeError("not this line")

    with pytest.raises(RuntimeError, match="not this line"):
        hstu.train(
            "quickstart.toml", output=folder / "failed", set={**settings, "training.max_steps": 10**6}, progress=fail
        )
    assert hstu.Run(folder / "failed").summary["reason"] == "interrupted"
