"""Logs with one fault each. A fault is a function of the lines of a good log that returns those of a bad one."""

import json

TOKEN = ":::MLLOG "


def read(line):
    return json.loads(line[len(TOKEN) :])


def write(event):
    return TOKEN + json.dumps(event)


def changed(lines, key, change, only=None):
    """The lines with change(event) applied to those of the key, or to one of them by number."""
    result, count = [], 0
    for line in lines:
        event = read(line)
        if event["key"] == key:
            if only is None or count == only:
                change(event)
                line = write(event)
            count += 1
        result.append(line)
    assert count > 0, key
    return result


def value(key, new):
    return lambda lines: changed(lines, key, lambda event: event.update(value=new))


def one_value(key, only, new):
    return lambda lines: changed(lines, key, lambda event: event.update(value=new), only)


def metadata(key, only=None, **new):
    return lambda lines: changed(lines, key, lambda event: event["metadata"].update(new), only)


def without(key):
    return lambda lines: [line for line in lines if read(line)["key"] != key]


def without_member(key, member):
    return lambda lines: changed(lines, key, lambda event: event["metadata"].pop(member))


def twice(key, new=None):
    def fault(lines):
        result = []
        for line in lines:
            result.append(line)
            event = read(line)
            if event["key"] == key:
                event["value"] = event["value"] if new is None else new
                result.append(write(event))
        return result

    return fault


def moved(key, before):
    """The line of one key in front of that of another one."""

    def fault(lines):
        line = next(line for line in lines if read(line)["key"] == key)
        rest = [other for other in lines if other is not line]
        at = next(i for i, other in enumerate(rest) if read(other)["key"] == before)
        return [*rest[:at], line, *rest[at:]]

    return fault


def at_time(key, change):
    return lambda lines: changed(lines, key, lambda event: event.update(time_ms=change(event["time_ms"])))


def text(find, replace, count=1):
    def fault(lines):
        whole = "\n".join(lines)
        assert find in whole, find
        return whole.replace(find, replace, count).split("\n")

    return fault


def extra(line):
    return lambda lines: [*lines[:-1], line, lines[-1]]


def point(key, new, **of_metadata):
    return write(
        {
            "namespace": "",
            "time_ms": 1,
            "event_type": "POINT_IN_TIME",
            "key": key,
            "value": new,
            "metadata": {"file": "a.cc", "lineno": 1, **of_metadata},
        }
    )


def after_start(minutes):
    def fault(lines):
        start = next(read(line)["time_ms"] for line in lines if read(line)["key"] == "init_start")
        return at_time("init_stop", lambda _: start + round(minutes * 60000))(lines)

    return fault


EXACTLY_ONE = [
    "submission_org",
    "submission_platform",
    "submission_division",
    "submission_benchmark",
    "init_stop",
    "run_start",
    "run_stop",
    "train_samples",
    "eval_samples",
    "lowest_numerical_precision_in_linear",
    "lowest_numerical_precision_in_attn",
    "lowest_numerical_precision_in_comm",
    "tensor_parallelism",
    "pipeline_parallelism",
    "context_parallelism",
    "expert_parallelism",
    "micro_batch_size",
    "config_filename",
    "gradient_accumulation_steps",
    "global_batch_size",
    "max_sequence_length",
    "opt_name",
    "opt_base_learning_rate",
    "opt_adam_beta_1",
    "opt_adam_beta_2",
    "opt_adam_epsilon",
    "opt_weight_decay",
    "opt_gradient_clip_norm",
    "opt_sparse_name",
    "opt_sparse_base_learning_rate",
    "opt_learning_rate_warmup_steps",
    "opt_learning_rate_warmup_start_lr",
    "eval_every_data_pct",
]

# Name, fault, whether the log still complies.
FAULTS = [
    ("nothing is wrong", lambda lines: lines, True),
    *((f"{key} is missing", without(key), False) for key in EXACTLY_ONE),
    ("cache_clear is missing", without("cache_clear"), False),
    ("init_start is missing", without("init_start"), False),
    ("no evaluation", without("eval_accuracy"), False),
    ("no block", lambda lines: without("block_stop")(without("block_start")(lines)), False),
    ("no block_stop", without("block_stop"), False),
    ("evaluations without start and stop", lambda lines: without("eval_stop")(without("eval_start")(lines)), True),
    ("seed is missing, which another tool checks", without("seed"), True),
    ("an empty organization", value("submission_org", ""), False),
    ("organization null", value("submission_org", None), True),
    ("an empty platform", value("submission_platform", ""), False),
    ("a division with a capital", value("submission_division", "Closed"), False),
    ("another benchmark", value("submission_benchmark", "dlrm_v4_hstu"), False),
    ("a benchmark with other rules", value("submission_benchmark", "flux1"), False),
    ("bf16 instead of bfloat16", value("lowest_numerical_precision_in_attn", "bf16"), False),
    ("fp16 on the wire", value("lowest_numerical_precision_in_comm", "fp16"), True),
    ("no tensor parallelism is 0", value("tensor_parallelism", 0), False),
    ("a fraction of parallelism", value("context_parallelism", 1.5), False),
    ("parallelism as a text", value("expert_parallelism", "1"), False),
    ("parallelism as a truth value", value("pipeline_parallelism", True), True),
    ("parallelism 2.0", value("tensor_parallelism", 2.0), True),
    ("micro batch null", value("micro_batch_size", None), False),
    ("an empty config_filename", value("config_filename", ""), False),
    ("accumulation 0", value("gradient_accumulation_steps", 0), False),
    ("accumulation 0.5", value("gradient_accumulation_steps", 0.5), True),
    ("a batch as a text", value("global_batch_size", "8192"), False),
    ("a batch that is another one", value("global_batch_size", 16384), False),
    ("batch 0", value("global_batch_size", 0), False),
    ("train_samples of a part", value("train_samples", 2290835422), False),
    ("train_samples as a float", value("train_samples", 2290835423.0), True),
    ("eval_samples without the last batch", value("eval_samples", 2056192), False),
    ("a shorter sequence", value("max_sequence_length", 2048), False),
    ("another optimizer", value("opt_name", "AdamW"), False),
    ("beta 2 through float32", value("opt_adam_beta_2", 0.9990000128746033), False),
    ("beta 1 0.9", value("opt_adam_beta_1", 0.9), False),
    ("beta 1 as a text", value("opt_adam_beta_1", "0.95"), False),
    ("epsilon 1e-7", value("opt_adam_epsilon", 1e-7), False),
    ("weight decay", value("opt_weight_decay", 0.01), False),
    ("weight decay as an integer 0", value("opt_weight_decay", 0), True),
    ("no clipping", value("opt_gradient_clip_norm", 0), False),
    ("another row optimizer", value("opt_sparse_name", "Adagrad"), False),
    ("a sparse rate of its own", value("opt_sparse_base_learning_rate", 1.1e-6), False),
    (
        "both rates above the band",
        lambda lines: value("opt_base_learning_rate", 1.6e-6)(value("opt_sparse_base_learning_rate", 1.6e-6)(lines)),
        False,
    ),
    (
        "both rates at the end of the band",
        lambda lines: value("opt_base_learning_rate", 1.5e-6)(value("opt_sparse_base_learning_rate", 1.5e-6)(lines)),
        True,
    ),
    ("the rate null", value("opt_base_learning_rate", None), False),
    ("a short warm-up", value("opt_learning_rate_warmup_steps", 4000), False),
    ("a warm-up from above 0", value("opt_learning_rate_warmup_start_lr", 1e-8), False),
    ("an evaluation each 0.5 %", value("eval_every_data_pct", 0.005), False),
    ("the rate in front of the batch", moved("opt_base_learning_rate", "global_batch_size"), False),
    (
        "the sparse rate in front of the dense one",
        moved("opt_sparse_base_learning_rate", "opt_base_learning_rate"),
        False,
    ),
    ("the batch behind the first evaluation", moved("eval_accuracy", "global_batch_size"), False),
    ("init_stop in front of init_start", moved("init_stop", "init_start"), False),
    ("run_start in front of init_stop", moved("run_start", "init_stop"), False),
    ("run_stop in front of run_start", moved("run_stop", "run_start"), False),
    ("a block in front of run_start", moved("block_start", "run_start"), False),
    ("init_start again behind run_start", moved("block_start", "init_stop"), False),
    ("the division behind init_stop", moved("init_stop", "submission_division"), False),
    ("29.9 minutes of initialisation", after_start(29.9), True),
    ("30 minutes of initialisation", after_start(30), False),
    ("run_stop without a status", without_member("run_stop", "status"), False),
    ("run_stop aborted complies", metadata("run_stop", status="aborted"), True),
    ("an evaluation off the grid", metadata("eval_accuracy", 1, samples_count=57344000 + 8192), False),
    ("the first evaluation too early", metadata("eval_accuracy", 0, samples_count=57344000 - 2293760), False),
    ("the first evaluation too late", metadata("eval_accuracy", 0, samples_count=57344000 + 2293760), False),
    ("counts as floats", metadata("eval_accuracy", 0, samples_count=57344000.0), True),
    ("counts as texts", metadata("eval_accuracy", 0, samples_count="57344000"), False),
    ("an evaluation without a count", without_member("eval_accuracy", "samples_count"), False),
    ("a block without a count", without_member("block_start", "samples_count"), False),
    ("a block with a negative count", metadata("block_start", 0, samples_count=-1), False),
    (
        "a block with epochs alone",
        lambda lines: metadata("block_start", epoch_count=1, first_epoch_num=0)(
            without_member("block_start", "samples_count")(lines)
        ),
        True,
    ),
    ("a block with an epoch_count of 0", metadata("block_start", epoch_count=0, first_epoch_num=0), False),
    ("block_stop without a count", without_member("block_stop", "samples_count"), False),
    ("the target is not reached", value("eval_accuracy", 0.7499), False),
    ("an AUC above 1", one_value("eval_accuracy", 1, 1.01), False),
    ("an AUC that is null", one_value("eval_accuracy", 0, None), False),
    ("an AUC that is NaN", one_value("eval_accuracy", 0, float("nan")), False),
    ("a loss that is NaN in a key without rules", value("train_loss", float("nan")), True),
    (
        "a bare nan, which is no JSON",
        text('"key": "train_loss", "value"', '"key": "train_loss", "value": nan, "was"'),
        False,
    ),
    ("a key twice with one value", twice("opt_weight_decay"), True),
    ("a key twice with two values", twice("opt_weight_decay", 0.1), False),
    ("train_samples twice after a resume", twice("train_samples", 1000), False),
    ("the header twice after a resume", twice("init_stop"), True),
    ("a line that was cut", lambda lines: [*lines[:-1], lines[-1][:60]], False),
    ("a line without metadata", text(', "metadata"', ', "data"'), False),
    ("a time that is a text", text('"time_ms": 1', '"time_ms": "x1'), False),
    ("a time in quotes", lambda lines: changed(lines, "seed", lambda event: event.update(time_ms="17")), True),
    ("an unknown key", extra(point("my_own_key", {"any": [1, 2]})), True),
    ("text in front of a line", lambda lines: ["[rank 0] " + lines[0], *lines[1:]], True),
    ("two lines in one, the first is lost", lambda lines: [lines[0] + " " + lines[1], *lines[2:]], False),
    ("lines of other programs", lambda lines: ["hello", *lines, "MLLOG"], True),
    ("a carriage return at each end", lambda lines: [line + "\r" for line in lines], True),
    ("a byte of Latin-1", text('"value": "example"', '"value": "\xe9xample"'), True),
    ("an empty log", lambda lines: ["nothing"], False),
    (
        "the open division with its own values",
        lambda lines: value("submission_division", "open")(
            value("opt_adam_beta_1", 0.9)(value("opt_name", "Muon")(lines))
        ),
        True,
    ),
    (
        "the open division 100 minutes of initialisation",
        lambda lines: after_start(100)(value("submission_division", "open")(lines)),
        True,
    ),
    (
        "the open division above the band",
        lambda lines: value("opt_sparse_base_learning_rate", 1.6e-6)(value("submission_division", "open")(lines)),
        False,
    ),
    (
        "the open division off the grid",
        lambda lines: metadata("eval_accuracy", 0, samples_count=4096)(value("submission_division", "open")(lines)),
        True,
    ),
    (
        "the open division with accumulation 0.5",
        lambda lines: value("gradient_accumulation_steps", 0.5)(value("submission_division", "open")(lines)),
        False,
    ),
]
