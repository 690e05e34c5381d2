"""What the tests of the wheel share: a dataset, a run and an export, made once by the package that is installed."""

import pytest

import hstu

# So small that a run takes half a second; `threads` leaves the other core to the tests.
SETTINGS = {
    "training.max_steps": 20, "metrics.every_steps": 5, "checkpoint.every_steps": 10, "training.batch_size": 16,
    "data.history_length": 16,
}  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hstu")


@pytest.fixture(scope="session")
def dataset(folder):
    hstu.call("generate", "yambda", output=folder / "events", users=40, days=12, items=100, seed=1, progress=None)
    return hstu.prepare(
        "yambda", input=folder / "events", output=folder / "dataset", test_days=0, min_history=0, progress=None
    )


@pytest.fixture(scope="session")
def settings(dataset):
    return {**SETTINGS, "data.path": dataset.path}


@pytest.fixture(scope="session")
def said():
    """The lines that the run of these tests said."""
    return []


@pytest.fixture(scope="session")
def run(folder, settings, said):
    return hstu.train("quickstart.toml", output=folder / "run", set=settings, progress=said.append)


@pytest.fixture(scope="session")
def exported(folder, run):
    return hstu.export(run, folder / "exported", progress=None)


@pytest.fixture(scope="session")
def request_of(dataset):
    """A request of a user of the dataset, with the user's events."""

    def make(user, items=None):
        return hstu.Request(user=user, time=int(dataset.times.max()) + 1, items=items, events=dataset.user(user))

    return make
