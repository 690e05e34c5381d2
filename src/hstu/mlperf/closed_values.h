// The values that the closed division of MLPerf Training 6.1 fixes, as keys of a configuration.
#pragma once

#include <string_view>

namespace hstu {

// One line each, "KEY = VALUE" as TOML writes it. The configuration configs/yambda-5b-mlperf.toml has them.
inline constexpr std::string_view kClosedValues = R"(data.history_length = 4086
data.history_strategy = "interleaved"
data.pools = ["listen_plus", "like", "skip"]
data.scan_limit = 20000
data.same_second = true
data.min_history = 4086
data.anchor_stride = 1
data.window_seconds = 86400
data.shuffle_fraction = 0.0
data.negatives.per_positive = 0
features.item_rows = 9390624
features.actions = ["listen_plus", "like", "skip"]
features.attributes[0].key = ""
features.attributes[0].name = "artist_id"
features.attributes[0].rows = 1293395
features.attributes[1].key = ""
features.attributes[1].name = "album_id"
features.attributes[1].rows = 3367692
features.context[0].name = "uid"
features.context[0].keys = ["user"]
features.context[0].rows = 1000001
features.context[0].hashed = false
features.context[1].name = "user_x_artist"
features.context[1].keys = ["user", "artist_id"]
features.context[1].rows = 100000000
features.context[1].hashed = true
features.context[2].name = "user_x_album"
features.context[2].keys = ["user", "album_id"]
features.context[2].rows = 40000000
features.context[2].hashed = true
features.context[3].name = "user_x_hour"
features.context[3].keys = ["user", "hour"]
features.context[3].rows = 24000000
features.context[3].hashed = true
features.context[4].name = "item_x_hour"
features.context[4].keys = ["item", "hour"]
features.context[4].rows = 40000000
features.context[4].hashed = true
features.context[5].name = "artist_x_hour"
features.context[5].keys = ["artist_id", "hour"]
features.context[5].rows = 32000000
features.context[5].hashed = true
features.context[6].name = "user_x_is_organic"
features.context[6].keys = ["user", "is_organic"]
features.context[6].rows = 2000000
features.context[6].hashed = true
features.context[7].name = "user_x_artist_x_hour"
features.context[7].keys = ["user", "artist_id", "hour"]
features.context[7].rows = 40000000
features.context[7].hashed = true
model.kind = "dlrmv4"
model.embedding_dim = 512
model.dim = 512
model.layers = 3
model.heads = 4
model.head_dim = 128
model.preprocessor_hidden = 256
model.head_hidden = 512
model.action_dim = 8
model.positions = 8192
model.time_buckets = 2048
model.max_sequence = 4096
model.input_dropout = 0.2
model.layer_dropout = 0.1
model.loss_weight = 0.2
model.attention_scale = "longest_in_batch"
model.query_time = "last_event"
model.circle_constant = 3.14
training.epochs = 1
training.max_steps = 0
training.first_window = 0
training.windows = 0
training.drop_last = true
dense_optimizer.kind = "adam"
dense_optimizer.beta1 = 0.95
dense_optimizer.beta2 = 0.999
dense_optimizer.epsilon = 1e-08
dense_optimizer.weight_decay = 0.0
dense_optimizer.max_gradient_norm = 1.0
dense_optimizer.adam_starts_at_t2 = true
sparse_optimizer.kind = "rowwise_adagrad"
sparse_optimizer.epsilon = 1e-08
schedule.warmup_steps = 24000
schedule.warmup_start = 0.0
schedule.warmup_from_zero_step = true
schedule.decay = "none"
evaluation.holdout_windows = 1
evaluation.holdout_first_window = 299
evaluation.holdout_fraction = 0.0
evaluation.holdout_seconds = 0
evaluation.holdout_last = 0
evaluation.split = ""
evaluation.train_user_fraction = 1.0
evaluation.at_start = false
evaluation.next_window = false
evaluation.every_windows = 0
evaluation.every_data_fraction = 0.001
evaluation.target_auc = 0.75
evaluation.patience = 0
evaluation.negatives = 0
evaluation.max_samples = 0
warm_start.checkpoint = ""
)";

}  // namespace hstu
