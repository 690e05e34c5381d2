#!/usr/bin/env python3
"""Scores requests with an export of a DLRMv4 model (`hstu export`), in NumPy and double precision.

    python3 examples/score_numpy.py EXPORT --events events.csv --requests requests.csv > scores.csv

The tables are those of `hstu predict`: user, item, time (seconds), action (the sum of its bits) of events; user, time,
item of requests. The scores are those of `hstu predict` but for the rounding of fp32. docs/model.md has the formulas,
docs/predict.md the files. Ids are whole numbers; context columns are not read.
"""

import argparse
import csv
import json
import math
import pathlib
import sys
import tomllib

import numpy as np

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "I64": np.int64}
    tensors = json.loads(data[8:begin])
    tensors.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data[begin + t["data_offsets"][0] : begin + t["data_offsets"][1]], types[t["dtype"]]
        ).reshape(t["shape"])
        for name, t in tensors.items()
    }


def philox(key, low, high):
    c, k = [low & M32, low >> 32, high & M32, high >> 32], [key & M32, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & M32, (a >> 32) ^ c[3] ^ k[1], a & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def xxh64(words):
    """XXH64, seed 0, of whole numbers of 64 bits."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotate(x, n):
        return ((x << n) | (x >> (64 - n))) & M64

    def mix(sum, word):
        return rotate((sum + word * p2) & M64, 31) * p1 & M64

    words = [word & M64 for word in words]
    size, hash = 8 * len(words), p5
    if size >= 32:
        sums = [(p1 + p2) & M64, p2, 0, -p1 & M64]
        while len(words) >= 4:
            sums, words = [mix(s, w) for s, w in zip(sums, words[:4], strict=True)], words[4:]
        hash = sum(rotate(s, n) for s, n in zip(sums, (1, 7, 12, 18), strict=True)) & M64
        for s in sums:
            hash = ((hash ^ mix(0, s)) * p1 + p4) & M64
    hash = (hash + size) & M64
    for word in words:
        hash = (rotate(hash ^ mix(0, word), 27) * p1 + p4) & M64
    for shift, factor in ((33, p2), (29, p3), (32, 1)):
        hash = (hash ^ hash >> shift) * factor & M64
    return hash


class Table:
    """Rows by id: zeros outside of the table, initial values for ids that training has not seen."""

    def __init__(self, folder, info):
        tensors = read_safetensors(folder / "tables" / f"{info['name']}.safetensors")
        self.trained = dict(zip(tensors["ids"].tolist(), tensors["rows"], strict=True))
        self.rows, self.dim, self.key = info["rows"], info["dim"], int(info["key"], 16)

    def __getitem__(self, id):
        if not 0 <= id < self.rows:
            return np.zeros(self.dim)
        if id not in self.trained:
            words = [w for c in range((self.dim + 3) // 4) for w in philox(self.key, id, c)][: self.dim]
            self.trained[id] = np.array([2 * (w >> 8) * 2.0**-24 - 1 for w in words], np.float32) * np.float32(
                1 / math.sqrt(self.rows)
            )
        return self.trained[id].astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


class Model:
    def __init__(self, folder):
        self.config = tomllib.loads((folder / "model.toml").read_text())
        self.dataset = json.loads((folder / "dataset/manifest.json").read_text())
        if self.config["model"]["kind"] != "dlrmv4":
            sys.exit(f"{folder}: expected a model of kind dlrmv4, found {self.config['model']['kind']}")
        tables = json.loads((folder / "weights/manifest.json").read_text())["tables"]
        self.tables = {info["name"]: Table(folder / "weights", info) for info in tables}
        self.w = {k: v.astype(np.float64) for k, v in read_safetensors(folder / "weights/dense.safetensors").items()}
        self.attributes = {
            name: np.load(folder / f"dataset/attribute_{name}.npy") for name in self.dataset["attributes"]
        }
        wanted = self.config["features"]["actions"]
        self.bits = [a["bit"] for a in self.dataset["actions"] if not wanted or a["name"] in wanted]

    def norm(self, x, name, epsilon=1e-5):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"] + self.w[name + ".bias"]

    def mlp(self, x, name):
        h = self.linear(x, name + ".0")
        return self.norm(self.linear(h * sigmoid(self.norm(h, name + ".swish")), name + ".1"), name + ".norm")

    def attribute(self, name, item):
        column = self.attributes[name]
        return int(column[item]) if 0 <= item < len(column) else 0

    def attribute_rows(self, item):
        names = [a["name"] for a in self.config["features"].get("attributes", [])]
        return [self.tables[name][self.attribute(name, item)] for name in names]

    def history(self, events):
        """Of a user's earlier (time, item, action), oldest first, those that the model sees."""
        data, bit = self.config["data"], {a["name"]: a["bit"] for a in self.dataset["actions"]}
        pools = [bit[p] for p in data["pools"] or self.dataset["pools"]]
        events = events[-data["scan_limit"] :]
        longest = length = data["history_length"]
        if data["history_strategy"] == "interleaved":
            cap = max(1, length // len(pools))
            longest = cap * len(pools)
            kept = {n for pool in pools for n in [n for n, e in enumerate(events) if e[2] & pool][-cap:]}
        else:
            kept = {n for n, e in enumerate(events) if any(e[2] & pool for pool in pools)}
        room = self.config["model"]["max_sequence"] - 1 - len(self.config["features"]["context"])
        return [events[n] for n in sorted(kept)][-min(longest, room) :]

    def context_id(self, feature, user, time, item):
        values = {"user": user, "item": item, "hour": time % 86400 // 3600, "weekday": time % 604800 // 86400}
        ids = [values[k] if k in values else self.attribute(k, item) for k in feature["keys"]]
        return xxh64(ids) % feature["rows"] if feature["hashed"] else ids[0]

    def tokens(self, user, time, query, item, history):
        m, w, context = self.config["model"], self.w, self.config["features"]["context"]
        scale, x = math.sqrt(m["dim"]), []
        for c, feature in enumerate(context):
            row = self.tables[feature["name"]][self.context_id(feature, user, time, item)]
            x.append(scale * (row @ w["preprocessor.contextual.weight"][c] + w["preprocessor.contextual.bias"][c]))
        for event_item, action in [(i, a) for _, i, a in history] + [(item, None)]:
            content = self.mlp(self.tables["item"][event_item], "preprocessor.content")
            rows = self.attribute_rows(event_item)
            if rows:
                content = content + self.mlp(np.concatenate(rows), "preprocessor.additional")
            table = w["preprocessor.action.table"]
            bits = (
                w["preprocessor.action.target"][0]
                if action is None
                else np.concatenate([table[j] if action & bit else 0 * table[j] for j, bit in enumerate(self.bits)])
            )
            x.append(scale * (content + self.mlp(bits, "preprocessor.action")))
        size, contexts = len(x), len(context)
        places = [n if n < contexts else size - 1 - n + contexts for n in range(size)]
        ages = [query - t for t in [0] * contexts + [t for t, _, _ in history] + [query]]
        buckets = [int(min(math.sqrt(max(age, 1e-6) / 60), m["time_buckets"])) for age in ages]
        return np.array(x) + w["encoder.position"][np.minimum(places, m["positions"] - 1)] + w["encoder.time"][buckets]

    def layer(self, x, name, divisor):
        heads, width = self.config["model"]["heads"], self.config["model"]["head_dim"]
        u, v, q, k = np.split(self.linear(self.norm(x, name + ".input_norm", 1e-6), name + ".uvqk"), 4, axis=1)

        def by_head(a):
            return a.reshape(len(a), heads, width).transpose(1, 0, 2)

        weights = np.tril(silu(by_head(q) @ by_head(k).transpose(0, 2, 1) / math.sqrt(width))) / divisor
        o = (weights @ by_head(v)).transpose(1, 0, 2).reshape(len(x), heads * width)
        gate = silu(u)
        y = np.concatenate([gate, o, gate * self.norm(o, name + ".output_norm", 1e-6)], axis=1)
        return x + y @ self.w[name + ".output.weight"]

    def score(self, user, time, item, events):
        m, history = self.config["model"], self.history(events)
        query = history[-1][0] if m["query_time"] == "last_event" and history else time
        x = self.tokens(user, time, query, item, history)
        divisor = m["max_sequence"] if m["attention_scale"] == "max_sequence" else len(x)
        for i in range(m["layers"]):
            x = self.layer(x, f"layers.{i}", divisor)
        pi = m["circle_constant"]
        angles = [2 * pi * (query // 3600 % 24) / 24, 2 * pi * (query // 86400 % 7) / 7]
        clock = [f(angle) for angle in angles for f in (math.cos, math.sin)]
        user_row = self.norm(self.linear(np.concatenate([x[-1], clock]), "postprocessor.linear"), "postprocessor.norm")
        candidate = self.mlp(np.concatenate([self.tables["item"][item], *self.attribute_rows(item)]), "item")
        h = self.linear(user_row * candidate, "head.0")
        return sigmoid(self.linear(h * sigmoid(self.norm(h, "head.swish")), "head.1"))[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=pathlib.Path)
    parser.add_argument("--events", required=True)
    parser.add_argument("--requests", required=True)
    words = parser.parse_args()
    model, users = Model(words.export), {}
    with open(words.events, newline="") as file:
        for row in csv.DictReader(file):
            users.setdefault(int(row["user"]), []).append((int(row["time"]), int(row["item"]), int(row["action"])))
    for events in users.values():
        events.sort(key=lambda event: event[0])  # stable: equal times keep their order
    print("request,user,item,score")
    with open(words.requests, newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            user, time, item = int(row["user"]), int(row["time"]), int(row["item"])
            earlier = [event for event in users.get(user, []) if event[0] < time]
            print(f"{number},{user},{item},{model.score(user, time, item, earlier):.9g}")


if __name__ == "__main__":
    main()
