"""tools/recipe on a small log, with two seeds and two variants.

python3 tests/tools/recipe_test.py BUILD      BUILD has hstu and hstu-prepare
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ["training.epochs=2", "data.history_length=8", "model.embedding_dim=8", "model.heads=1", "model.layers=1"]


def write_log(folder):
    """Twenty users who walk along thirty items: the next item is the one after the latest."""
    draw = random.Random(1)
    with (folder / "Beauty.txt").open("w") as items, (folder / "Beauty_time.txt").open("w") as times:
        for user in range(1, 21):
            first = draw.randrange(20)
            print(user, *range(first + 1, first + 11), file=items)
            print(user, *(1000000000 + 86400 * (step // 2) for step in range(10)), file=times)


def recipe(*words):
    command = [sys.executable, ROOT / "tools" / "recipe", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_seeds_and_variants(build, folder):
    write_log(folder)
    words = [
        "beauty",
        "--data",
        folder,
        "--output",
        folder / "out",
        "--bin",
        build,
        "--device",
        "host",
        "--seeds",
        "2",
        "--variants",
        "base,ties-shuffled",
        *(word for key in TINY for word in ("--set", key)),
    ]
    done = recipe(*words)
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "out" / "recipe.json").read_text())
    assert list(results) == ["base", "ties-shuffled"], results
    for runs in results.values():
        assert len(runs) == 2 and all(one["parts"]["tied"]["n"] == 20 for one in runs), runs
    # Without shuffling, the pairs of the log say every next item that anybody had.
    assert results["base"][0]["baselines"]["markov"]["hr@10"] > results["base"][0]["baselines"]["popularity"]["hr@10"]
    assert "| base | " in done.stdout and "| markov | " in done.stdout, done.stdout
    again = recipe(*words)
    assert again.stdout == done.stdout, again.stderr
    assert "0 to go" in again.stderr and " eval " not in again.stderr, again.stderr


def test_rows_with_ratings_and_filters(build, folder):
    with (folder / "ratings_Books.csv").open("w") as rows:
        for user in range(20):
            for step in range(4 if user == 0 else 6):
                rows.write(f"A{user},000{(user + step) % 8},5.0,{1000000000 + 60 * step}\n")
        rows.write("A1,rare,1.0,1000000000\n")
    done = recipe(
        "books-meta",
        "--data",
        folder,
        "--output",
        folder / "books",
        "--bin",
        build,
        "--device",
        "host",
        "--seeds",
        "1",
        *(word for key in TINY for word in ("--set", key)),
    )
    assert done.returncode == 0, done.stderr
    parts = json.loads((folder / "books" / "recipe.json").read_text())["base"][0]["parts"]
    assert parts["not_tied"]["n"] == 19, parts


def test_mistakes(folder):
    unknown = recipe("beauty", "--data", folder, "--output", folder / "x", "--variants", "base,none")
    assert unknown.returncode == 2 and "there is no none" in unknown.stderr, unknown.stderr
    other = recipe("beauty", "--data", folder, "--output", folder / "x", "--variants", "large")
    assert other.returncode == 2 and "seen-kept" in other.stderr, other.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_seeds_and_variants(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        test_rows_with_ratings_and_filters(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        test_mistakes(pathlib.Path(folder))


if __name__ == "__main__":
    main()
