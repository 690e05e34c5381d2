"""State dictionaries of generative-recommenders' DLRMv4 and of recsys-examples' models with random values, and their
forward passes in NumPy for one sample: written from what those programs compute, not from hstu.convert."""

import numpy as np

GENERATOR = np.random.default_rng(1)


def values(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32) * np.float32(0.3)


def linear(name, inputs, outputs):
    return {f"{name}.weight": values(outputs, inputs), f"{name}.bias": values(outputs)}


def norm(name, width, joint="."):
    return {f"{name}{joint}weight": 1 + values(width), f"{name}{joint}bias": values(width)}


def swish_mlp(name, inputs, hidden, outputs):
    return {**linear(f"{name}.0", inputs, hidden), **norm(f"{name}.1", hidden),
            **linear(f"{name}.2", hidden, outputs), **norm(f"{name}.3", outputs)}  # fmt: skip


def dlrmv4(rows, contexts, attributes=1, width=8, dim=12, heads=2, head_dim=5, layers=2, hidden=7, head=9, bits=3):
    """rows: of each table by its name, item_id, artist_id and contexts."""
    inner = "_hstu_transducer._input_preprocessor."
    wide = heads * head_dim
    state = {f"_embedding_collection.embeddings.{name}.weight": values(n, width) for name, n in rows.items()}
    if contexts:
        state[inner + "_batched_contextual_linear_weights"] = values(contexts, width, dim)
        state[inner + "_batched_contextual_linear_bias"] = values(contexts, dim)
    state[inner + "_action_encoder._combined_action_weights"] = np.array([1 << bit for bit in range(bits)])
    state[inner + "_action_encoder._action_embedding_table"] = values(bits, 8)
    state[inner + "_action_encoder._target_action_embedding_table"] = values(1, 8 * bits)
    state.update(swish_mlp(inner + "_content_embedding_mlp", width, hidden, dim))
    state.update(swish_mlp(inner + "_additional_embedding_mlp", attributes * width, hidden, dim))
    state.update(swish_mlp(inner + "_action_embedding_mlp", 8 * bits, hidden, dim))
    state["_hstu_transducer._positional_encoder._position_embeddings_weight"] = values(40, dim)
    state["_hstu_transducer._positional_encoder._timestamp_embeddings_weight"] = values(61, dim)
    for i in range(layers):
        layer = f"_hstu_transducer._stu_module._stu_layers.{i}."
        state.update({layer + "_uvqk_weight": values(dim, 4 * wide), layer + "_uvqk_beta": values(4 * wide),
                      layer + "_output_weight": values(3 * wide, dim)})  # fmt: skip
        state.update({**norm(layer + "_input_norm", dim, "_"), **norm(layer + "_output_norm", wide, "_")})
    after = "_hstu_transducer._output_postprocessor."
    state.update({**linear(after + "_time_feature_combiner", dim + 4, dim), **norm(after + "_layer_norm", dim)})
    state[after + "_period_units"] = np.array([[3600, 86400]], np.float32)
    state[after + "_units_per_period"] = np.array([[24, 7]], np.float32)
    state.update(swish_mlp("_item_embedding_mlp", (1 + attributes) * width, head, dim))
    task = "_multitask_module._prediction_module."
    return {**state, **linear(task + "0", dim, head), **norm(task + "1", head), **linear(task + "2", head, 1)}


def recsys(rows, layer, width=8, dim=12, heads=2, head_dim=5, layers=2, head=(7, 2), positions=40):
    """head=(): RetrievalGR. rows: of each table; the last is replicated, and so one flat parameter."""
    block = "_hstu_block._preprocessor."
    wide = heads * head_dim
    collection = "_embedding_collection._{}_parallel_embedding_collection.embeddings.{}"
    *sharded, flat = rows
    state = {collection.format("model", f"{name}.weight"): values(rows[name], width) for name in sharded or [flat]}
    if sharded:
        state[collection.format("data", f"{flat}_weights")] = values(rows[flat] * width)
    state[block + "_positional_encoder._position_embeddings_weight"] = values(positions, dim)
    if head:
        for mlp in ("_item_mlp", "_contextual_mlp"):
            state.update({**linear(f"{block}{mlp}._mlp.0", width, dim), **linear(f"{block}{mlp}._mlp.2", dim, dim)})
    for i in range(layers):
        name = f"_hstu_block._attention_layers.{i}."
        state.update(norm(name + "_input_layernorm", dim, "_"))
        output = (name + "_output_ln_dropout_mul", ".") if layer == "native" else (name + "_output_layernorm", "_")
        state.update(norm(output[0], wide, output[1]))
        if layer == "fused":
            state[name + "_linear_uvqk_weight"] = values(dim, 4 * wide)
            state[name + "_linear_uvqk_bias"] = values(4 * wide)
            state[name + "_linear_proj_weight"] = values(wide, dim)
        else:
            state.update(linear(name + "_linear_uvqk", dim, 4 * wide))
            state[name + "_linear_proj.weight"] = values(dim, wide)
    for j, outputs in enumerate(head):
        state.update(linear(f"_mlp._mlp.{2 * j}", head[j - 1] if j else dim, outputs))
    return state


def apply_linear(state, name, x):
    return x @ state[f"{name}.weight"].T.astype(float) + state[f"{name}.bias"]


def apply_norm(x, weight, bias, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * weight + bias


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def apply_swish(state, name, x):
    return x * sigmoid(apply_norm(x, state[f"{name}.weight"], state[f"{name}.bias"]))


def apply_swish_mlp(state, name, x):
    x = apply_linear(state, f"{name}.2", apply_swish(state, f"{name}.1", apply_linear(state, f"{name}.0", x)))
    return apply_norm(x, state[f"{name}.3.weight"], state[f"{name}.3.bias"])


def attention(q, k, v, divisor):
    """Causal, (S, H, d)."""
    scores = silu(np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])) / divisor
    return np.einsum("hij,jhd->ihd", np.tril(scores), v).reshape(len(q), -1)


def dlrmv4_score(state, heads, item, artist, contexts, history, last_time):
    """contexts: (table, id) in order. history: items, artists, actions and times."""
    items, artists, actions, times = history
    inner = "_hstu_transducer._input_preprocessor."
    embedding = {n.split(".")[2]: v for n, v in state.items() if n.startswith("_embedding_collection.")}
    both = np.append(items, item), np.append(artists, artist)
    x = apply_swish_mlp(state, inner + "_content_embedding_mlp", embedding["item_id"][both[0]])
    x = x + apply_swish_mlp(state, inner + "_additional_embedding_mlp", embedding["artist_id"][both[1]])
    encoder = inner + "_action_encoder."
    seen = (actions[:, None] & state[encoder + "_combined_action_weights"]) > 0
    seen = (seen[:, :, None] * state[encoder + "_action_embedding_table"]).reshape(len(items), -1)
    seen = np.concatenate([seen, state[encoder + "_target_action_embedding_table"]])
    x = x + apply_swish_mlp(state, inner + "_action_embedding_mlp", seen)
    linear = state[inner + "_batched_contextual_linear_weights"].astype(float)
    first = [embedding[name][id] @ linear[c] for c, (name, id) in enumerate(contexts)]
    first = np.stack(first) + state[inner + "_batched_contextual_linear_bias"]
    x, count = np.concatenate([first, x]) * np.sqrt(x.shape[1]), len(contexts)
    token_times = np.concatenate([np.zeros(count), times, [last_time]])
    place = np.arange(len(x))
    place = np.where(place < count, place, len(x) - 1 - place + count)
    position = state["_hstu_transducer._positional_encoder._position_embeddings_weight"]
    time = state["_hstu_transducer._positional_encoder._timestamp_embeddings_weight"]
    bucket = np.minimum(np.sqrt(np.maximum(last_time - token_times, 1e-6) / 60), len(time) - 1).astype(int)
    x = x + position[np.minimum(place, len(position) - 1)] + time[bucket]
    layers = sum(name.endswith("_uvqk_beta") for name in state)
    for i in range(layers):
        p = {n.rsplit(".", 1)[1]: v.astype(float) for n, v in state.items() if f"_stu_layers.{i}." in n}
        z = apply_norm(x, p["_input_norm_weight"], p["_input_norm_bias"], 1e-6) @ p["_uvqk_weight"] + p["_uvqk_beta"]
        u, v, q, k = (part.reshape(len(x), heads, -1) for part in np.split(z, 4, 1))
        u, o = silu(u.reshape(len(x), -1)), attention(q, k, v, len(x))
        gated = u * apply_norm(o, p["_output_norm_weight"], p["_output_norm_bias"], 1e-6)
        x = x + np.concatenate([u, o, gated], 1) @ p["_output_weight"]
    angles = [last_time // 3600 % 24 / 24 * 2 * 3.14, last_time // 86400 % 7 / 7 * 2 * 3.14]
    clock = [f(angle) for angle in angles for f in (np.cos, np.sin)]
    after = "_hstu_transducer._output_postprocessor."
    user = apply_linear(state, after + "_time_feature_combiner", np.append(x[-1], clock))
    user = apply_norm(user, state[after + "_layer_norm.weight"], state[after + "_layer_norm.bias"])
    candidate = np.append(embedding["item_id"][item], embedding["artist_id"][artist])
    joint = user * apply_swish_mlp(state, "_item_embedding_mlp", candidate)
    task = "_multitask_module._prediction_module."
    hidden = apply_swish(state, task + "1", apply_linear(state, task + "0", joint))
    return sigmoid(apply_linear(state, task + "2", hidden))


def recsys_scores(state, heads, tokens, contexts, divisor):
    """tokens: rows of items and actions in turn, the candidate last; contexts: rows. The head's probabilities."""

    def mlp(name, x):
        name = f"_hstu_block._preprocessor.{name}._mlp."
        return apply_linear(state, name + "2", np.maximum(apply_linear(state, name + "0", x), 0))

    x = np.concatenate([mlp("_contextual_mlp", contexts), mlp("_item_mlp", tokens)])
    position = state["_hstu_block._preprocessor._positional_encoder._position_embeddings_weight"]
    x = x * np.sqrt(x.shape[1]) + position[np.minimum(np.arange(len(x)), len(position) - 1)]
    for i in range(sum(name.endswith("_linear_uvqk_bias") for name in state)):
        p = {n.rsplit(".", 1)[1]: v.astype(float) for n, v in state.items() if f"_attention_layers.{i}." in n}
        z = apply_norm(x, p["_input_layernorm_weight"], p["_input_layernorm_bias"])
        z = silu(z @ p["_linear_uvqk_weight"] + p["_linear_uvqk_bias"])
        u, v, q, k = (part.reshape(len(x), heads, -1) for part in np.split(z, 4, 1))
        o = apply_norm(attention(q, k, v, divisor), p["_output_layernorm_weight"], p["_output_layernorm_bias"])
        x = x + u.reshape(len(x), -1) * o @ p["_linear_proj_weight"]
    y = x[-1] / np.linalg.norm(x[-1])
    head = [name for name in state if name.startswith("_mlp._mlp.") and name.endswith("weight")]
    for j, name in enumerate(head):
        y = apply_linear(state, name.rsplit(".", 1)[0], y if j == 0 else np.maximum(y, 0))
    return sigmoid(y)
