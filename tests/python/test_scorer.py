"""hstu.Scorer, against `hstu predict`."""

import copy
import csv
import pickle
import threading

import numpy as np
import pytest
from forks import in_a_fork

import hstu


@pytest.fixture(scope="module")
def scorer(exported):
    with hstu.Scorer(exported, cache_bytes=1 << 20) as scorer:
        yield scorer


@pytest.fixture(scope="module")
def cases(folder, exported, dataset, request_of):
    """Requests, and the scores that hstu predict has for them, (items)."""
    requests = [request_of(int(user), items=[3, 1 + u, 50, 99]) for u, user in enumerate(dataset.users)]
    with open(folder / "requests.csv", "w") as file:
        file.write("user,time,item\n")
        file.writelines(f"{r.user},{r.time},{item}\n" for r in requests for item in r.items)
    hstu.predict(
        exported, data=dataset.path, requests=folder / "requests.csv", output=folder / "scores.csv", progress=None
    )
    with open(folder / "scores.csv", newline="") as file:
        scores = np.array([row["score"] for row in csv.DictReader(file)], np.float32).reshape(len(requests), -1)
    return list(zip(requests, scores))


def test_scores_are_those_of_predict_to_the_last_bit(scorer, cases):
    assert scorer.tasks == ["label"] and scorer.columns == ["is_organic"] and scorer.width == 0
    for scores, (_, expected) in zip(scorer.score([request for request, _ in cases]), cases):
        assert scores[:, 0].tobytes() == expected.tobytes()
    request, expected = cases[5]
    assert scorer.score(request).shape == (4, 1) and scorer.score(request).tobytes() == expected.tobytes()
    assert scorer.score([]) == []


def test_events_of_a_dataset_are_those_of_a_request(exported, dataset, cases):
    with hstu.Scorer(exported, data=dataset.path) as scorer:
        for request, expected in cases[:5]:
            bare = hstu.Request(request.user, request.time, request.items)
            assert scorer.score(bare).tobytes() == expected.tobytes()


def test_the_best_items_are_in_order_and_have_the_scores_of_score(scorer, cases, request_of):
    request = cases[3][0]
    items, scores = scorer.top(request, 3)
    assert scores.tolist() == sorted(cases[3][1].tolist(), reverse=True)[:3]
    assert scorer.score(request_of(request.user, items))[:, 0].tobytes() == scores.tobytes()
    everything = request_of(request.user)
    seen = set(everything.events.items.tolist())
    assert not seen & set(scorer.top([everything], 1000, exclude_seen=True)[0][0].tolist())
    of_action = set(everything.events.items[everything.events.actions & 1 != 0].tolist())
    found, others = (set(scorer.top(everything, 1000, exclude_seen=which)[0].tolist()) for which in (False, 1))
    assert 0 < len(of_action) < len(seen) and others == found - of_action


def test_threads_share_a_scorer_and_closing_waits_for_them(exported, cases):
    scorer, wrong, answered = hstu.Scorer(exported), [], [0] * 8
    begun = threading.Barrier(9)

    def ask(number):
        begun.wait()
        try:
            for i in range(10**6):
                request, expected = cases[(number + i) % len(cases)]
                if scorer.score(request).tobytes() != expected.tobytes():
                    wrong.append(request)
                answered[number] += 1
        except ValueError as error:
            assert str(error) == "the scorer is closed"

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    begun.wait()
    while min(answered) < 3:
        threading.Event().wait(0.01)
    scorer.close()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"user": 2**64}, "user: 18446744073709551616 does not fit into int64"),
        ({"user": 1.0}, "user: expected an integer, found 1.0"),
        ({"time": None}, "expected the time of the request"),
        ({"time": -(2**63) - 1}, "time: -9223372036854775809 does not fit into int64"),
        ({"items": []}, "items: expected at least one candidate"),
        ({"items": [1.5]}, "items: expected integers"),
        ({"items": [2**63]}, "items: a value does not fit"),
        ({"events": ([1, 2], [1], [1, 1])}, r"times: expected integers \(2,\)"),
        ({"events": ([1], [1])}, "events: expected items, times and actions, found 2 arrays"),
        ({"events": ([1], [1], [256])}, "actions: a value does not fit"),
        ({"contexts": [1, 2]}, r"contexts: expected integers \(1,\)"),
        ({"events": None}, "events"),
        ({"items": [1], "time": 2**61}, "requests\\[0\\]: time: .*2305843009213693952"),
    ],
)
def test_wrong_requests_are_named(scorer, cases, change, text):
    request = hstu.Request(**{**vars(cases[0][0]), **change})
    with pytest.raises(ValueError, match=text):
        scorer.score(request)


def test_no_candidates_are_not_all_items(scorer, cases):
    request = hstu.Request(**{**vars(cases[0][0]), "items": np.array([], np.int64)})
    with pytest.raises(ValueError, match="items: expected at least one candidate; None takes all items"):
        scorer.top(request, 3)
    with pytest.raises(ValueError, match="k: 18446744073709551618 does not fit into int64"):
        scorer.top(cases[0][0], 2**64 + 2)


def test_one_rule_for_k(scorer, cases, request_of):
    request = cases[3][0]
    for k in (0, -5):
        with pytest.raises(ValueError, match=f"k: expected at least 1, found {k}"):
            scorer.top(request, k)
    assert len(scorer.top(request, 2**63 - 1)[0]) == 4
    everything = scorer.top(request_of(request.user), 2**40)[0]
    assert len(everything) > 4 and len(scorer.top(request_of(request.user), 3)[0]) == 3


def test_items_without_a_row_are_counted_and_columns_of_numbers_have_no_codes(exported, cases, request_of):
    with hstu.Scorer(exported) as scorer:

        def counted(items):
            before = scorer.untrained_items
            scorer.score(request_of(cases[3][0].user, items=items))
            return scorer.untrained_items - before

        assert counted([10**9, 10**9 + 1]) == counted([10**9]) + 1
        with pytest.raises(ValueError, match="has numbers"):
            scorer.code("is_organic", "yes")
        with pytest.raises(ValueError, match="there is no context column 'store'"):
            scorer.code("store", "1")


def test_actions_that_exclude_are_bits(scorer, cases):
    user = hstu.Request(**{**vars(cases[0][0]), "items": None})
    every, some = scorer.top(user, 100, exclude_seen=True)[0], scorer.top(user, 100, exclude_seen=1)[0]
    assert set(every) <= set(some) <= set(scorer.top(user, 100)[0])
    assert np.array_equal(scorer.top(user, 100, exclude_seen=np.bool_(True))[0], every)
    for wrong in (-1, 256, 2**24):
        with pytest.raises(ValueError, match=f"exclude_seen: expected True, False or a sum .* found {wrong}"):
            scorer.top(user, 100, exclude_seen=wrong)


def test_options_that_do_not_fit_are_refused(exported):
    with pytest.raises(ValueError, match="cache_bytes: 18446744073709551616 does not fit into int64"):
        hstu.Scorer(exported, cache_bytes=2**64)
    with pytest.raises(ValueError, match="threads: 4294967296 does not fit into int32"):
        hstu.Scorer(exported, threads=2**32)


def test_memory_behind_no_cache_is_refused(exported):
    with pytest.raises(hstu.Error, match="4096 bytes of host memory are behind no cache"):
        hstu.Scorer(exported, cache_behind=4096)


def test_a_process_that_was_forked_opens_its_own_scorer(exported, cases):
    """A child has not the thread that computes, for which it would wait for ever."""
    request, expected = cases[0]
    scorer = hstu.Scorer(exported)
    assert scorer.score(request)[:, 0].tobytes() == expected.tobytes()

    def child():
        for call in (lambda: scorer.score(request), lambda: scorer.top(request, 1), lambda: scorer.vectors([request])):
            with pytest.raises(RuntimeError, match=r"opened this Scorer, and process \d+ was forked from it"):
                call()
        scorer.close()
        with hstu.Scorer(exported) as own:
            assert own.score(request)[:, 0].tobytes() == expected.tobytes()

    assert in_a_fork(child) == 0
    assert scorer.score(request)[:, 0].tobytes() == expected.tobytes()
    scorer.close()


def test_a_scorer_is_neither_copied_nor_pickled(scorer):
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a Scorer is not copied or pickled"):
            copied(scorer)


def test_vectors_of_users_find_the_items_of_predict(folder):
    """Retrieval: no candidates, and a catalogue that comes from the model and `data`."""
    hstu.call("generate", "shop", events=1000, output=folder / "clicks", format="csv", progress=None)
    clicks = hstu.prepare(
        "csv", schema=folder / "clicks/schema.toml", input=folder / "clicks", output=folder / "catalogue", progress=None
    )
    (folder / "retrieval.toml").write_text(hstu.call("config", "--template", "retrieval", "--for", clicks.path))
    run = hstu.train(
        folder / "retrieval.toml", output=folder / "retrieval", set={"training.max_steps": 2}, progress=None
    )
    users = clicks.users.tolist()
    hstu.call("export", run.path, vectors=folder / "vectors", progress=None)
    exported = {name: np.load(folder / f"vectors/{name}.npy") for name in ("users.f32", "user_ids.i64")}
    with hstu.Scorer(run, data=clicks.path) as scorer:
        vectors, found = scorer.vectors([hstu.Request(user) for user in [*users, 1]])
        assert found.tolist() == [True] * len(users) + [False] and not vectors[-1].any()
        assert exported["user_ids.i64"].tolist() == users and vectors[:-1].tobytes() == exported["users.f32"].tobytes()
        items, scores = scorer.top(hstu.Request(users[0]), 5)
        assert len(items) == 5 and (np.diff(scores) <= 0).all() and set(items) <= set(clicks.items)
        with pytest.raises(ValueError, match="ask for its top items"):
            scorer.score(hstu.Request(users[0], 1, items))


def test_what_is_no_model_is_named(folder, run):
    with pytest.raises(hstu.Error, match="nowhere"):
        hstu.Scorer(folder / "nowhere")
    with pytest.raises(hstu.Error, match="77"):
        hstu.Scorer(run, checkpoint=77)
