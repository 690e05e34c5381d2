"""The names and shapes of two other programs' models, beside ours. docs/convert.md has them as tables.

Those of July 2026: generative-recommenders db1bf8f, recsys-examples 43465ae.
"""

from __future__ import annotations

from hstu.convert_layout import Group, Pair, mlp

DLRMV4_TABLE = r"_embedding_collection\.embeddings\.(.+)\.weight$"
DLRMV4_LAYER = r"(?:_hstu_transducer\._stu_module\._stu_layers|layers)\.(\d+)\."
# Buffers that say how the model was built, and the values that ours has.
DLRMV4_PERIODS = {
    "_hstu_transducer._output_postprocessor._period_units": [[3600.0, 86400.0]],
    "_hstu_transducer._output_postprocessor._units_per_period": [[24.0, 7.0]],
}
DLRMV4_ADDITIONAL = "_hstu_transducer._input_preprocessor._additional_embedding_mlp"
DLRMV4_ACTIONS = "_hstu_transducer._input_preprocessor._action_encoder._combined_action_weights"


def both(ours: str, theirs: str, letters: str, fill: bool = False) -> list[Pair]:
    """Weight and bias of a norm."""
    values = (1.0, 0.0) if fill else (None, None)
    joint = "_" if theirs.endswith(("_layernorm", "_norm")) else "."
    return [Pair(f"{ours}.{x}", theirs + joint + x, (letters,), "same", value)
            for x, value in zip(("weight", "bias"), values)]  # fmt: skip


def dlrmv4(layers: int) -> list[Group]:
    """DlrmHSTU with its ContextualPreprocessor and TimestampLayerNormPostprocessor.

    C contexts, E width of tables, D of tokens, F and Q hidden, X of all attributes, b actions of A, H heads of d.
    """
    inner = "_hstu_transducer."
    before = inner + "_input_preprocessor."
    encoder = inner + "_positional_encoder."
    actions = before + "_action_encoder."
    groups = [
        Group([Pair("encoder.position", encoder + "_position_embeddings_weight", ("P", "D")),
               Pair("encoder.time", encoder + "_timestamp_embeddings_weight", ("K + 1", "D"))]),
        Group(mlp("preprocessor.content", before + "_content_embedding_mlp", ("E", "F", "D"))),
        Group(mlp("preprocessor.additional", DLRMV4_ADDITIONAL, ("X", "F", "D")), True, {"X": 0}),
        Group([Pair("preprocessor.action.table", actions + "_action_embedding_table", ("b", "A")),
               Pair("preprocessor.action.target", actions + "_target_action_embedding_table", ("1", "b A")),
               *mlp("preprocessor.action", before + "_action_embedding_mlp", ("b A", "F", "D"))]),
        Group([Pair("preprocessor.contextual.weight", before + "_batched_contextual_linear_weights", ("C", "E", "D")),
               Pair("preprocessor.contextual.bias", before + "_batched_contextual_linear_bias", ("C", "D"))],
              True, {"C": 0}),
    ]  # fmt: skip
    for i in range(layers):
        theirs, ours = f"{inner}_stu_module._stu_layers.{i}.", f"layers.{i}."
        groups.append(Group([
            *both(ours + "input_norm", theirs + "_input_norm", "D"),
            Pair(ours + "uvqk.weight", theirs + "_uvqk_weight", ("D", "4 H d")),
            Pair(ours + "uvqk.bias", theirs + "_uvqk_beta", ("4 H d",)),
            *both(ours + "output_norm", theirs + "_output_norm", "H d"),
            Pair(ours + "output.weight", theirs + "_output_weight", ("3 H d", "D")),
        ]))  # fmt: skip
    after, head = inner + "_output_postprocessor.", "_multitask_module._prediction_module."
    groups += [
        Group([Pair("postprocessor.linear.weight", after + "_time_feature_combiner.weight", ("D + 4", "D"),
                    "transposed"),
               Pair("postprocessor.linear.bias", after + "_time_feature_combiner.bias", ("D",)),
               Pair("postprocessor.norm.weight", after + "_layer_norm.weight", ("D",)),
               Pair("postprocessor.norm.bias", after + "_layer_norm.bias", ("D",))]),
        Group(mlp("item", "_item_embedding_mlp", ("E + X", "Q", "D"))),
        Group([Pair("head.0.weight", head + "0.weight", ("D", "Q"), "transposed"),
               Pair("head.0.bias", head + "0.bias", ("Q",)),
               Pair("head.swish.weight", head + "1.weight", ("Q",)),
               Pair("head.swish.bias", head + "1.bias", ("Q",)),
               Pair("head.1.weight", head + "2.weight", ("Q", "1"), "transposed"),
               Pair("head.1.bias", head + "2.bias", ("1",))]),
    ]  # fmt: skip
    return groups


RECSYS_TABLE = r"_embedding_collection\._(?:model|data)_parallel_embedding_collection\.embeddings\.(.+)\.weight$"
# Replicated tables are one flat parameter after sharding: FIRST/SECOND_weights, rows of the first, then the second.
RECSYS_FLAT = r"_embedding_collection\._data_parallel_embedding_collection\.embeddings\.(.+)_weights$"
RECSYS_LAYER = r"(?:_hstu_block\._attention_layers|layers)\.(\d+)\."
RECSYS_HEAD = r"(?:_mlp\._mlp|head)\.(\d+)\."
RETRIEVAL_POSITIONS = 8192  # rows of the position table of our preset nvidia
RECSYS_LAYERS = ("fused", "native", "debug")  # HSTULayerType
# Transformer Engine's own state, and the sums of metrics.
RECSYS_ALLOW = ("*._extra_state", "_metric_module.*")


def relu_mlp(ours: str, theirs: str) -> list[Pair]:
    pairs = []
    for j, rows in enumerate(("E", "D")):
        pairs += [Pair(f"{ours}.{j}.weight", f"{theirs}.{2 * j}.weight", (rows, "D"), "transposed"),
                  Pair(f"{ours}.{j}.bias", f"{theirs}.{2 * j}.bias", ("D",))]  # fmt: skip
    return pairs


def recsys(layers: int, head: int, layer: str) -> list[Group]:
    """RankingGR, or RetrievalGR with head = 0. head: linear layers; layer: of RECSYS_LAYERS."""
    before = "_hstu_block._preprocessor."
    groups = [
        Group([Pair("encoder.position", before + "_positional_encoder._position_embeddings_weight", ("P", "D"))]),
        Group(relu_mlp("preprocessor.item", before + "_item_mlp._mlp"), True),
        Group(relu_mlp("preprocessor.contextual", before + "_contextual_mlp._mlp"), True),
    ]
    for i in range(layers):
        theirs, ours = f"_hstu_block._attention_layers.{i}.", f"layers.{i}."
        if layer == "fused":
            linear = [Pair(ours + "uvqk.weight", theirs + "_linear_uvqk_weight", ("D", "4 H d")),
                      Pair(ours + "uvqk.bias", theirs + "_linear_uvqk_bias", ("4 H d",)),
                      Pair(ours + "output.weight", theirs + "_linear_proj_weight", ("H d", "D"))]  # fmt: skip
        else:
            linear = [
                Pair(ours + "uvqk.weight", theirs + "_linear_uvqk.weight", ("D", "4 H d"), "heads"),
                Pair(ours + "uvqk.bias", theirs + "_linear_uvqk.bias", ("4 H d",), "heads", 0.0),
                Pair(ours + "output.weight", theirs + "_linear_proj.weight", ("H d", "D"), "transposed"),
            ]
        norm = theirs + ("_output_ln_dropout_mul" if layer == "native" else "_output_layernorm")
        groups.append(Group([*both(ours + "input_norm", theirs + "_input_layernorm", "D", fill=True), *linear,
                             *both(ours + "output_norm", norm, "H d", fill=layer != "fused")]))  # fmt: skip
    for j in range(head):
        rows, columns = ("D" if j == 0 else f"h{j - 1}"), f"h{j}"
        groups.append(
            Group(
                [
                    Pair(f"head.{j}.weight", f"_mlp._mlp.{2 * j}.weight", (rows, columns), "transposed"),
                    Pair(f"head.{j}.bias", f"_mlp._mlp.{2 * j}.bias", (columns,), fill=0.0),
                ]
            )
        )
    return groups
