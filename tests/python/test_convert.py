"""hstu.convert: bits that go out as they came in, and scores that are those of the other program's formulas."""

import shutil

import models
import numpy as np
import pytest

import hstu
from hstu import convert

HEADS = 2
TRAIN_NOTHING = {"dense_optimizer.learning_rate": 0, "sparse_optimizer.learning_rate": 0, "training.max_steps": 1}
TABLES = """
[data]
history_strategy = "last_n"
pools = ["listen_plus", "like", "skip"]
[features]
item_rows = {items}
{more}
[[features.context]]
name = "uid"
keys = ["user"]
hashed = false
rows = {users}
[[features.context]]
name = "hour"
keys = ["hour"]
hashed = false
rows = 24
[model]
kind = "dlrmv4"
"""


def same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        assert np.array(found[name]).tobytes() == np.array(value).tobytes(), name


@pytest.fixture(scope="module")
def sizes(dataset):
    return {"items": int(dataset.items.max()) + 1, "users": int(dataset.users.max()) + 1,
            "artists": int(dataset["attribute_artist_id"].max()) + 1}  # fmt: skip


def begin(folder, start, text, settings, sizes, more=""):
    """A run that has learnt nothing beyond what it began with."""
    config = folder / f"{start.path.name}.toml"
    config.write_text(TABLES.replace('kind = "dlrmv4"\n', text).format(more=more, **sizes))
    said = []
    run = hstu.train(config, output=folder / f"{start.path.name}.run", warm_start=start.path, progress=said.append,
                     set={**settings, **TRAIN_NOTHING, **start.settings})  # fmt: skip
    report = "\n".join(said)
    assert "warm start" in report and "initial value" not in report and "not used" not in report, report
    return run


def history_of(dataset, user):
    """The last sixteen events that pools have: items, times and actions."""
    events, bits = dataset.user(user), dataset.action_bits
    pools = bits["listen_plus"] | bits["like"] | bits["skip"]
    return [column[(events.actions & pools) > 0][-16:] for column in (events.items, events.times, events.actions)]


@pytest.fixture(scope="module")
def users(dataset):
    return [int(user) for user in dataset.users[:6]]


def test_dlrmv4_goes_in_and_out_and_has_its_scores(folder, dataset, settings, sizes, users, request_of):
    rows = {"item_id": sizes["items"], "artist_id": sizes["artists"], "uid": sizes["users"], "hour": 24}
    state = models.dlrmv4(rows, contexts=2)
    start = convert.from_dlrmv4(state, folder / "dlrmv4", heads=HEADS)
    assert start.rows["item"] == sizes["items"] and not start.filled and not start.unused
    assert len(start.matched) == len(convert.read(start.path).dense) == len(state) - 7
    attribute = 'actions = ["listen_plus", "like", "skip"]\n[[features.attributes]]\nname = "artist_id"\nrows = {}'
    run = begin(folder, start, "", settings, sizes, attribute.format(sizes["artists"]))
    same_bits(convert.to_dlrmv4(run), state)
    bits, artists = dataset.action_bits, dataset["attribute_artist_id"]
    order = [bits[name] for name in ("listen_plus", "like", "skip")]
    with hstu.Scorer(run) as scorer:
        for user in users:
            items, times, actions = history_of(dataset, user)
            encoded = sum(((actions & bit) > 0) * (1 << j) for j, bit in enumerate(order))
            request = request_of(user, items=[3, 50])
            contexts = [("uid", user), ("hour", request.time // 3600 % 24)]
            history = items, artists[items], encoded, times
            expected = [models.dlrmv4_score(state, HEADS, item, artists[item], contexts, history, int(times[-1]))
                        for item in request.items]  # fmt: skip
            np.testing.assert_allclose(scorer.score(request), expected, atol=1e-6)


def test_dlrmv4_without_attributes_and_contexts_goes_in_and_out(folder, settings, sizes):
    state = models.dlrmv4({"item_id": sizes["items"]}, contexts=0, attributes=0)
    start = convert.from_dlrmv4(state, folder / "bare", heads=HEADS)
    unused = [name for name in state if "_additional_embedding_mlp" in name]
    assert start.unused == unused and len(unused) == 8
    config = folder / "bare.toml"
    config.write_text('[features]\nactions = ["listen_plus", "like", "skip"]\ncontext = []\n')
    run = hstu.train(config, output=folder / "bare.run", warm_start=start.path, progress=None,
                     set={**settings, **TRAIN_NOTHING, **start.settings})  # fmt: skip
    same_bits(convert.to_dlrmv4(run), {name: value for name, value in state.items() if name not in unused})


def test_ranking_gr_goes_in_and_out_and_has_its_scores(folder, dataset, settings, sizes, users, request_of):
    rows = {"video": sizes["items"], "uid": sizes["users"], "hour": 24, "act": 128}
    state = models.recsys(rows, "fused")
    tables = {"video": "item", "act": "action"}
    start = convert.from_recsys_examples(state, folder / "gr", heads=HEADS, tables=tables)
    kind = 'contextual_mask = false\nattention_divisor = 32\nlabels = ["listen_plus", "like"]\n'
    run = begin(folder, start, kind, settings, sizes)
    back = {ours: theirs for theirs, ours in tables.items()}
    same_bits(convert.to_recsys_examples(run, tables=back, replicated=["action"]), state)
    embedding = {n.split(".")[-2]: v for n, v in state.items() if ".embeddings." in n and n.endswith("weight")}
    flat = "_embedding_collection._data_parallel_embedding_collection.embeddings.act_weights"
    embedding["act"] = state[flat].reshape(128, -1)
    with hstu.Scorer(run) as scorer:
        for user in users:
            items, _, actions = history_of(dataset, user)
            request = request_of(user, items=[3, 50])
            contexts = np.stack([embedding["uid"][user], embedding["hour"][request.time // 3600 % 24]])
            for found, item in zip(scorer.score(request), request.items):
                tokens = np.empty((2 * len(items) + 1, contexts.shape[1]), np.float32)
                tokens[0::2] = embedding["video"][np.append(items, item)]
                tokens[1::2] = embedding["act"][actions]
                np.testing.assert_allclose(found, models.recsys_scores(state, HEADS, tokens, contexts, 32), atol=1e-6)


def by_head(state):
    """The native or debug layers of fused ones: rows by head, and then U, V, Q and K."""
    result = {}
    for name, value in state.items():
        if name.endswith("_linear_uvqk_weight"):
            parts = value.T.reshape(4, HEADS, -1, value.shape[0])
            value = np.stack([parts[part, head] for head in range(HEADS) for part in range(4)]).reshape(value.T.shape)
        elif name.endswith("_linear_uvqk_bias"):
            parts = value.reshape(4, HEADS, -1)
            value = np.stack([parts[part, head] for head in range(HEADS) for part in range(4)]).ravel()
        elif name.endswith("_linear_proj_weight"):
            value = np.ascontiguousarray(value.T)
        for linear in ("_linear_uvqk", "_linear_proj"):
            name = name.replace(f"{linear}_", f"{linear}.")
        result[name] = value
    return result


@pytest.mark.parametrize("layer", ["native", "debug"])
def test_layers_of_other_layouts_are_those_of_fused_ones(folder, layer):
    tables = {"video": "item"}
    fused = models.recsys({"video": 6, "act": 5}, "fused")
    other = by_head(fused)
    if layer == "native":
        other = {name.replace("_output_layernorm_", "_output_ln_dropout_mul."): v for name, v in other.items()}
    state = {**other, "_hstu_block._attention_layers.0._linear_uvqk._extra_state": np.zeros(3, np.uint8)}
    start = convert.from_recsys_examples(state, folder / layer, heads=HEADS, tables=tables)
    assert start.unused == ["_hstu_block._attention_layers.0._linear_uvqk._extra_state"]
    expected = convert.from_recsys_examples(fused, folder / f"{layer}.fused", heads=HEADS, tables=tables)
    same_bits(convert.read(start.path).dense, convert.read(expected.path).dense)
    weights = convert.read(start.path)
    weights.config = {"model": {"heads": HEADS}}
    same_bits(convert.to_recsys_examples(weights, layer=layer, tables={"item": "video"}, replicated=["act"]), other)


def test_a_model_without_affine_norms_and_biases_has_those_that_change_nothing(folder):
    state = models.recsys({"video": 6}, "debug", head=(2,))
    left = {name: value for name, value in state.items() if not name.endswith(("_layernorm_bias", "_layernorm_weight"))
            and not name.endswith("uvqk.bias") and name != "_mlp._mlp.0.bias"}  # fmt: skip
    start = convert.from_recsys_examples(left, folder / "plain", heads=HEADS, tables={"video": "item"})
    dense = convert.read(start.path).dense
    assert len(start.filled) == 11 and "layers.1.uvqk.bias" in start.filled and "head.0.bias" in str(start)
    assert (dense["layers.0.output_norm.weight"] == 1).all() and not dense["layers.1.uvqk.bias"].any()


def test_retrieval_goes_in_and_out(folder, dataset, settings, sizes):
    state = models.recsys({"video": sizes["items"]}, "fused", width=12, head=(), positions=8192)
    start = convert.from_recsys_examples(state, folder / "retrieval.in", heads=HEADS, tables={"video": "item"})
    config = folder / "retrieval.in.toml"
    config.write_text(f"[features]\nitem_rows = {sizes['items']}\n")
    data = shutil.copytree(dataset.path, folder / "retrieval.data")  # which gets an index of its own
    values = {**settings, **TRAIN_NOTHING, "data.path": data, "data.min_history": 1, **start.settings}
    run = hstu.train(config, output=folder / "retrieval.out", warm_start=start.path, progress=None, set=values)
    same_bits(convert.to_recsys_examples(run, tables={"item": "video"}), state)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s.update({"_item_embedding_mlp.2.bias": np.zeros(5, np.float32)}),
         r"_item_embedding_mlp.2.bias: expected the shape \(12\), which is \(D\), found \(5,\).*D = 12 \(of _hstu"),
        (lambda s: s.update({"_item_embedding_mlp.0.weight": np.zeros((9, 17), np.float32)}),
         r"_item_embedding_mlp.0.weight: expected the shape \(9, 16\), which is \(Q, E \+ X\), found \(9, 17\)"),
        (lambda s: s.pop("_item_embedding_mlp.2.bias"), "missing: _item_embedding_mlp.2.bias"),
        (lambda s: s.update({"_new": np.zeros(1)}), r"left over: _new.*allow="),
        (lambda s: s.update({"_item_embedding_mlp.2.bias": np.full(12, 1e300)}), "float32 does not have"),
        (lambda s: s.update({"_hstu_transducer._output_postprocessor._units_per_period": np.ones((1, 2))}), "24"),
        (lambda s: s.pop("_embedding_collection.embeddings.item_id.weight"), "no table is our item"),
        (lambda s: s.update({"_embedding_collection.embeddings.uid.weight": np.ones((2, 5))}),
         r"table uid.*8.*\(2, 5\)"),
    ],
)  # fmt: skip
def test_what_is_another_model_is_named(folder, change, text):
    state = models.dlrmv4({"item_id": 5, "artist_id": 4, "uid": 3}, 1)
    change(state)
    with pytest.raises(ValueError, match=text):
        convert.from_dlrmv4(state, folder / "none", heads=HEADS)
    assert not (folder / "none").exists()


def test_wrong_heads_and_unknown_tables_are_named(folder):
    state = models.recsys({"video": 6, "a": 5, "b": 4}, "fused")
    with pytest.raises(ValueError, match=r"_linear_uvqk_weight: expected the shape \(12, 4 H d\).*H = 3 \(given\)"):
        convert.from_recsys_examples(state, folder / "none", heads=3, tables={"video": "item"})
    retrieval = models.recsys({"video": 6}, "fused", head=())
    with pytest.raises(ValueError, match=r"_position_embeddings_weight: expected the shape \(8192, D\), .* \(40, 12\)"):
        convert.from_recsys_examples(retrieval, folder / "none", heads=HEADS, tables={"video": "item"})
    name = "_embedding_collection._data_parallel_embedding_collection.embeddings."
    state[name + "b/c_weights"] = state.pop(name + "b_weights")
    with pytest.raises(ValueError, match="32 values of 2 tables: give replicated_rows, the rows of b, c"):
        convert.from_recsys_examples(state, folder / "none", heads=HEADS, tables={"video": "item"})
    options = {"heads": HEADS, "tables": {"video": "item"}, "replicated_rows": {"b": 3, "c": 1}}
    start = convert.from_recsys_examples(state, folder / "cut", **options)
    assert convert.read(start.path).tables["c"].rows.tobytes() == state[name + "b/c_weights"][24:].tobytes()
    with pytest.raises(hstu.Error, match="cut"):
        convert.from_recsys_examples(state, folder / "cut", **options)


def test_rows_that_training_never_saw_have_their_initial_values(run):
    weights = convert.read(run)
    whole = weights.whole("user_x_hour")
    assert whole.shape == (24000, 32) and len(weights.tables["user_x_hour"].ids) < 24000
    untrained = hstu.train(
        "quickstart.toml",
        output=run.path.with_name("untrained"),
        progress=None,
        set={"data.path": run.config["data"]["path"], **TRAIN_NOTHING, "training.batch_size": 16},
    )
    kept = convert.read(untrained).tables["user_x_hour"]
    assert len(kept.ids) > 0
    assert weights.descriptions["user_x_hour"]["key"] == convert.read(untrained).descriptions["user_x_hour"]["key"]
    weights.tables["user_x_hour"] = convert.Rows(np.empty(0, np.int64), np.empty((0, 32), np.float32))
    assert weights.whole("user_x_hour")[kept.ids].tobytes() == np.array(kept.rows).tobytes()


def test_exports_have_the_same_weights_as_their_run(run, exported):
    ours, theirs = convert.read(run), convert.read(exported)
    same_bits(ours.dense, theirs.dense)
    assert ours.whole("user").tobytes() == theirs.whole("user").tobytes()
    with pytest.raises(ValueError, match="heads"):
        convert.to_dlrmv4(convert.Weights(ours.dense, {}, {}, {}))


def test_dynamic_tables_go_in_and_out(folder):
    state = models.recsys({"video": 6}, "fused")
    table = "_embedding_collection._model_parallel_embedding_collection.embeddings.video.weight"
    ids = np.array([9, 2, 1 << 40, 5])
    rows = models.values(4, 8)
    dump = folder / "dump/model._embedding_collection._model_parallel_embedding_collection"
    convert.write_dynamicemb({"video": convert.Rows(ids, rows)}, dump, ranks=2)
    assert np.fromfile(dump / "video_emb_keys.rank_1.world_size_2", "<i8").tolist() == [9, 5]
    state[table] = np.zeros((1, 1), np.float32)
    with pytest.raises(ValueError, match="dynamicemb=FOLDER"):
        convert.from_recsys_examples(state, folder / "none", heads=HEADS, tables={"video": "item"})
    start = convert.from_recsys_examples(state, folder / "dynamic", heads=HEADS, tables={"video": "item"},
                                         dynamicemb=folder / "dump")  # fmt: skip
    kept = convert.read(start.path).tables["item"]
    order = np.argsort(ids)
    assert kept.ids.tolist() == ids[order].tolist() and kept.rows.tobytes() == rows[order].tobytes()
    convert.to_dynamicemb(start.path, folder / "again", tables={"item": "video"}, ranks=2)
    same_bits(vars(convert.read_dynamicemb(folder / "again")["video"]), vars(convert.read_dynamicemb(dump)["video"]))
    (dump / "video_emb_keys.rank_0.world_size_2").unlink()
    with pytest.raises(ValueError, match=r"ranks 0 to 1, found ranks \[1\]"):
        convert.from_dynamicemb(dump, folder / "none")
    (dump / "video_emb_keys.rank_0.world_size_2").write_bytes(bytes(8))
    with pytest.raises(ValueError, match="video_emb_values.rank_1.* 16 values are no rows of 2 keys and the width 16"):
        convert.from_dynamicemb(dump, folder / "none")
    with pytest.raises(FileNotFoundError, match="TABLE_emb_keys"):
        convert.from_dynamicemb(folder / "dynamic", folder / "none")
