// Every differentiable op once, as a case: what tests check and benchmarks time.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/loss/binary_cross_entropy.h"
#include "hstu/loss/cross_entropy.h"
#include "hstu/ops/action_rows.h"
#include "hstu/ops/activation.h"
#include "hstu/ops/attention.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/mlp.h"
#include "hstu/ops/norm.h"
#include "hstu/ops/rms_norm.h"
#include "hstu/ops/rotary.h"

namespace hstu::testing {

struct OpCase {
  std::string name;
  std::vector<Tensor> inputs;  // differentiated one by one
  std::function<Variable(Tape&, const std::vector<Variable>&)> run;
  // Of each input: 'a', an activation; 'c', one whose gradient is not wanted; 'w', a weight, read in the type
  // of activations; 's', kept in the type of sums.
  std::string roles = {};

  friend std::ostream& operator<<(std::ostream& out, const OpCase& c) { return out << c.name; }
};

// Sizes of a case: small for finite differences, a training step's for timing.
struct CaseSize {
  std::int64_t samples = 5, tokens_per_sample = 7, width = 6, hidden = 8, heads = 2, head_dim = 3;
};

// Normal numbers, a pure function of the seed.
inline Tensor random_tensor(Shape shape, DType type, std::uint64_t seed) {
  RandomStream random{seed};
  Tensor tensor = Tensor::empty(shape, type);
  with_float_type(type, [&]<typename T>() {
    for (std::int64_t i = 0; i < tensor.size(); ++i)
      tensor.mutable_data<T>()[i] = static_cast<T>(random.normal());
  });
  return tensor;
}

// f of each element.
template <typename Function>
Tensor map(Tensor tensor, const Function& f) {
  with_float_type(tensor.dtype(), [&]<typename T>() {
    std::transform(tensor.data<T>(), tensor.data<T>() + tensor.size(), tensor.mutable_data<T>(),
                   [&](T v) { return static_cast<T>(f(static_cast<double>(v))); });
  });
  return tensor;
}

// Rows 0 .. n - 1, some repeated, some (-1) missing.
inline Tensor random_index(std::int64_t tokens, std::int64_t n, std::uint64_t seed) {
  RandomStream random{seed};
  std::vector<std::int32_t> index;
  for (std::int64_t t = 0; t < tokens; ++t) {
    index.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(n + 1))) - 1);
  }
  return ops::row_index(index);
}

// Names of rows for dropout.
inline Tensor random_names(std::int64_t rows, std::uint64_t seed) {
  RandomStream random{seed};
  Tensor names = Tensor::empty({rows}, DType::i64);
  for (std::int64_t r = 0; r < rows; ++r)
    names.mutable_data<std::int64_t>()[r] = static_cast<std::int64_t>(random.bits());
  return names;
}

// Labels in [0, bound).
inline Tensor random_labels(std::int64_t rows, std::int64_t bound, std::uint64_t seed) {
  RandomStream random{seed};
  Tensor labels = Tensor::empty({rows}, DType::i64);
  for (std::int64_t r = 0; r < rows; ++r) {
    labels.mutable_data<std::int64_t>()[r] =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
  }
  return labels;
}

// Samples of 0, 1, 2, ... times the step, the last ones longest; queries are the last `queries` tokens, or
// all (-1).
struct JaggedShape {
  ops::AttentionShape attention;
  std::int64_t tokens = 0, queries = 0;
};
inline JaggedShape jagged_shape(const CaseSize& size, std::int64_t queries, DType type,
                                const Context& context) {
  std::vector<std::int64_t> offsets{0}, query_offsets{0};
  Tensor scale = Tensor::empty({size.samples}, accumulator_of(type));
  for (std::int64_t b = 0; b < size.samples; ++b) {
    const std::int64_t tokens = 2 * b * size.tokens_per_sample / std::max<std::int64_t>(1, size.samples - 1);
    offsets.push_back(offsets.back() + tokens);
    query_offsets.push_back(query_offsets.back() + (queries < 0 ? tokens : std::min(queries, tokens)));
    with_float_type(scale.dtype(), [&]<typename T>() {
      scale.mutable_data<T>()[b] = static_cast<T>(1.0 / static_cast<double>(b + 1));
    });
  }
  ops::AttentionShape shape;
  shape.heads = size.heads;
  shape.head_dim = size.head_dim;
  shape.alpha = 0.7;
  shape.sample_scale = scale.copy(context);
  shape.offsets = Tensor::from({size.samples + 1}, offsets).copy(context);
  if (queries >= 0) shape.query_offsets = Tensor::from({size.samples + 1}, query_offsets).copy(context);
  return {shape, offsets.back(), query_offsets.back()};
}

// Of operations that the host alone has: attention with a bias and hidden keys, by SiLU and by softmax with
// dropout.
inline std::vector<OpCase> host_op_cases(const CaseSize& size = {}) {
  std::vector<OpCase> cases;
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    JaggedShape jagged = jagged_shape(size, -1, DType::f64, host_context());
    const std::int64_t w = size.heads * size.head_dim, t = jagged.tokens,
                       softmax = score == ScoreFunction::softmax;
    std::vector<std::int64_t> times;
    RandomStream random{11};
    for (std::int64_t i = 0; i < 2 * t; ++i) times.push_back(static_cast<std::int64_t>(random.below(50)));
    ops::AttentionShape& shape = jagged.attention;
    shape.score = score;
    shape.mask.hidden_period = 3;
    shape.bias.thresholds = Tensor::from<std::int64_t>({2}, {4, 20});
    shape.bias.query_time = Tensor::from<std::int64_t>({t}, std::vector(times.begin(), times.begin() + t));
    shape.bias.key_time = Tensor::from<std::int64_t>({t}, std::vector(times.begin() + t, times.end()));
    if (softmax != 0) shape.dropout = {0.3, 17, random_names(t, 12)};
    const std::int64_t tables = softmax != 0 ? size.heads : 1;
    cases.push_back({softmax != 0 ? "attention_softmax_bias" : "attention_silu_bias",
                     {random_tensor({t, w}, DType::f64, 1), random_tensor({t, w}, DType::f64, 2),
                      random_tensor({t, w}, DType::f64, 3), random_tensor({tables, 5}, DType::f64, 4),
                      random_tensor({tables, 3}, DType::f64, 5)},
                     [shape](Tape& tape, const std::vector<Variable>& v) {
                       ops::AttentionShape with_tables = shape;
                       with_tables.bias.position_table = v[3];
                       with_tables.bias.time_table = v[4];
                       return ops::attention(tape, v[0], v[1], v[2], with_tables);
                     }});
  }
  return cases;
}

// Sizes of an MLP.
struct MlpSize {
  std::int64_t rows, in, hidden, out;
  bool is_normalised;  // has the last norm
  bool adds = false;
};
inline OpCase mlp_case(std::string name, DType type, const MlpSize& s) {
  std::vector<Shape> shapes{{s.rows, s.in}, {s.in, s.hidden},  {s.hidden}, {s.hidden},
                            {s.hidden},     {s.hidden, s.out}, {s.out}};
  if (s.is_normalised) shapes.insert(shapes.end(), {{s.out}, {s.out}});
  if (s.adds) shapes.push_back({s.rows, s.out});
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(random_tensor(shape, type, inputs.size() + 1));
  return {std::move(name), inputs,
          [s](Tape& t, const std::vector<Variable>& v) {
            return ops::mlp(t, v[0],
                            {v[1], v[2], v[3], v[4], v[5], v[6], s.is_normalised ? v[7] : Variable(),
                             s.is_normalised ? v[8] : Variable()},
                            1e-5, s.adds ? v.back() : Variable());
          },
          std::string(s.is_normalised ? "awssswsss" : "awsssws") + (s.adds ? "a" : "")};
}

// What the operations read beside their inputs is on the context's device; the inputs are on the host.
inline std::vector<OpCase> op_cases(DType type, const CaseSize& s = {},
                                    const Context& context = host_context()) {
  const std::int64_t tokens = s.samples * s.tokens_per_sample, n = s.width, h = s.hidden,
                     w = s.heads * s.head_dim;
  const auto x = [type](Shape shape, std::uint64_t seed) { return random_tensor(shape, type, seed); };
  using Inputs = const std::vector<Variable>&;
  std::vector<OpCase> cases;
  cases.push_back({"linear", {x({tokens, n}, 1), x({n, h}, 2), x({h}, 3)}, [](Tape& t, Inputs v) {
                     return ops::linear(t, v[0], v[1], v[2]);
                   }});
  // A head: the product that gives dx is as deep as the result has columns.
  cases.push_back({"linear_to_eight", {x({tokens, h}, 1), x({h, 8}, 2), x({8}, 3)}, [](Tape& t, Inputs v) {
                     return ops::linear(t, v[0], v[1], v[2]);
                   }});
  cases.push_back(
      {"linear_columns", {x({tokens, n}, 1), x({n, 4 * h}, 2), x({4 * h}, 3)}, [h](Tape& t, Inputs v) {
         return ops::linear_columns(t, v[0], v[1], v[2], {{h, 2 * h}, {3 * h, 4 * h}});
       }});
  // relu of sums that are a half or a quarter away from 0. Two products read one relu.
  const auto signs = [&](Shape shape, std::uint64_t seed) {
    return map(x(shape, seed), [](double v) { return v < 0 ? -1.0 : 1.0; });
  };
  const auto constants = [&](double value) { return map(x({h}, 1), [=](double) { return value; }); };
  cases.push_back({"linear_relu",
                   {signs({tokens, n}, 1), signs({n, h}, 2), constants(0.5), signs({h, h}, 3),
                    constants(0.25), x({h, 8}, 4)},
                   [](Tape& t, Inputs v) {
                     const ops::LinearInput first = ops::linear_relu(t, v[0], v[1], v[2]),
                                            second = ops::linear_relu(t, first, v[3], v[4]);
                     const Variable y = ops::linear(t, second, v[5], {});
                     return ops::add(t, y, ops::linear(t, first, v[5], {}));
                   }});
  cases.push_back(
      {"linear_gelu", {x({tokens, n}, 1), x({n, h}, 2), x({h}, 3), x({h, 2 * h}, 4)}, [h](Tape& t, Inputs v) {
         return ops::linear_columns(t, ops::linear_gelu(t, v[0], v[1], v[2]), v[3], {}, {{h, 2 * h}});
       }});
  // One gelu is read by two products, one of which has two ranges of columns.
  cases.push_back(
      {"linear_gelu_twice", {x({tokens, n}, 1), x({n, h}, 2), x({h, 2 * h}, 3)}, [h](Tape& t, Inputs v) {
         const ops::LinearInput gelu = ops::linear_gelu(t, v[0], v[1], {});
         const Variable y = ops::linear_columns(t, gelu, v[2], {}, {{0, h / 2}, {h, h + h / 2}});
         return ops::add(t, y, ops::linear_columns(t, gelu, v[2], {}, {{0, h / 2 * 2}}));
       }});
  cases.push_back({"linear_residual",
                   {x({tokens, h}, 1), x({h, n}, 2), x({tokens, n}, 3)},
                   [](Tape& t, Inputs v) { return ops::linear_residual(t, v[0], v[1], {}, v[2]); }});
  cases.push_back({"biased_linear_residual",
                   {x({tokens, h}, 1), x({h, n}, 2), x({n}, 3), x({tokens, n}, 4)},
                   [](Tape& t, Inputs v) { return ops::linear_residual(t, v[0], v[1], v[2], v[3]); }});
  cases.push_back({"grouped_linear",
                   {x({3 * s.samples, n}, 1), x({3, n, h}, 2), x({3, h}, 3)},
                   [](Tape& t, Inputs v) { return ops::grouped_linear(t, v[0], v[1], v[2]); }});
  cases.push_back({"layer_norm", {x({tokens, h}, 1), x({h}, 2), x({h}, 3)}, [](Tape& t, Inputs v) {
                     return ops::layer_norm(t, v[0], v[1], v[2], 1e-5);
                   }});
  cases.push_back({"swish_layer_norm", {x({tokens, h}, 1), x({h}, 2), x({h}, 3)}, [](Tape& t, Inputs v) {
                     return ops::swish_layer_norm(t, v[0], v[1], v[2], 1e-5);
                   }});
  cases.push_back(mlp_case("mlp", type, {tokens, n, h, w, true}));
  cases.push_back(mlp_case("mlp_without_norm", type, {tokens, n, h, w, false}));
  cases.push_back(mlp_case("mlp_with_addend", type, {tokens, n, h, w, true, true}));
  cases.push_back(
      {"gate", {x({tokens, w}, 1), x({tokens, w}, 2), x({w}, 3), x({w}, 4)}, [](Tape& t, Inputs v) {
         return ops::gate(t, ops::GateForm::concat, v[0], v[1], v[2], v[3], 1e-6, {0.3, 17, {}});
       }});
  cases.push_back(
      {"gate_product", {x({tokens, w}, 1), x({tokens, w}, 2), x({w}, 3), x({w}, 4)}, [](Tape& t, Inputs v) {
         return ops::gate(t, ops::GateForm::product, v[0], v[1], v[2], v[3], 1e-6, {0.3, 17, {}});
       }});
  for (const std::int64_t queries : {-1, 1}) {
    const JaggedShape jagged = jagged_shape(s, queries, type, context);
    cases.push_back({queries < 0 ? "attention" : "attention_last_query",
                     {x({jagged.queries, w}, 1), x({jagged.tokens, w}, 2), x({jagged.tokens, w}, 3)},
                     [shape = jagged.attention](Tape& t, Inputs v) {
                       return ops::attention(t, v[0], v[1], v[2], shape);
                     }});
  }
  // With dropout GPUs compute pair by pair, without it on tensor cores where the head size lets them.
  for (const auto& [name, queries, rate] : {std::tuple{"attention_softmax", -1, 0.3},
                                            {"attention_softmax_last_query", 1, 0.3},
                                            {"attention_softmax_without_dropout", -1, 0.0}}) {
    JaggedShape jagged = jagged_shape(s, queries, type, context);
    jagged.attention.score = ScoreFunction::softmax;
    jagged.attention.dropout = {rate, 17, random_names(jagged.queries, 12).copy(context)};
    cases.push_back({name,
                     {x({jagged.queries, w}, 1), x({jagged.tokens, w}, 2), x({jagged.tokens, w}, 3)},
                     [shape = jagged.attention](Tape& t, Inputs v) {
                       return ops::attention(t, v[0], v[1], v[2], shape);
                     }});
  }
  for (const ScoreFunction score : {ScoreFunction::silu, ScoreFunction::softmax}) {
    JaggedShape jagged = jagged_shape(s, -1, type, context);
    jagged.attention.score = score;
    jagged.attention.mask.hidden_period = 4, jagged.attention.mask.hidden_phase = 3;
    jagged.attention.dropout = {0.3, 17, random_names(jagged.queries, 12).copy(context)};
    cases.push_back({score == ScoreFunction::silu ? "attention_hidden" : "attention_softmax_hidden",
                     {x({jagged.queries, w}, 1), x({jagged.tokens, w}, 2), x({jagged.tokens, w}, 3)},
                     [shape = jagged.attention](Tape& t, Inputs v) {
                       return ops::attention(t, v[0], v[1], v[2], shape);
                     }});
  }
  // As in a layer: the operations read columns of one variable, and each gives a part of its gradient.
  const JaggedShape every = jagged_shape(s, -1, type, context);
  cases.push_back(
      {"gated_attention",
       {x({every.tokens, 4 * w}, 1), x({w}, 2), x({w}, 3)},
       [shape = every.attention, w](Tape& t, Inputs v) {
         const Variable uvqk = ops::multiply(t, v[0], v[0]);
         const Variable o = ops::attention(t, {uvqk, 2 * w, w}, {uvqk, 3 * w, w}, {uvqk, w, w}, shape);
         return ops::gate(t, ops::GateForm::concat, {uvqk, 0, w}, o, v[1], v[2], 1e-6, {});
       }});
  // The other form of a layer: attention reads SiLU of a product, of columns in another order.
  cases.push_back(
      {"silu_attention",
       {x({every.tokens, n}, 1), x({n, 4 * w}, 2), x({4 * w}, 3)},
       [shape = every.attention, w](Tape& t, Inputs v) {
         const auto [y, silu] = ops::linear_silu(t, v[0], v[1], v[2], {{0, w}, {2 * w, 4 * w}}, 0);
         return ops::attention(t, {y, w, w, silu, w}, {y, 2 * w, w, silu, 2 * w}, {y, 0, w, silu, 0}, shape);
       }});
  const Tensor first = random_index(tokens, s.samples, 5).copy(context),
               second = random_index(tokens, 2, 6).copy(context),
               names = random_names(tokens, 7).copy(context);
  cases.push_back(
      {"gather_sum", {x({s.samples, n}, 1), x({2, n}, 2)}, [first, second, names](Tape& t, Inputs v) {
         return ops::gather_sum(t, {{v[0], first, 1.5}, {v[1], second, 1}, {v[0], second, 0.5}},
                                {0.25, 9, names});
       }});
  cases.push_back(
      {"gather_columns", {x({s.samples, n}, 1), x({2, h}, 2)}, [first, second](Tape& t, Inputs v) {
         return ops::gather_columns(t, {{v[0], first}, {v[1], second}, {v[0], first}});
       }});
  cases.push_back({"gather_blocks", {x({s.samples, n}, 1), x({2, n}, 2)}, [first, second](Tape& t, Inputs v) {
                     return ops::gather_blocks(t, {{v[0], first}, {v[1], second}, {v[0], first}});
                   }});
  cases.push_back({"add", {x({tokens, n}, 1), x({tokens, n}, 2)}, [](Tape& t, Inputs v) {
                     return ops::add(t, v[0], v[1]);
                   }});
  cases.push_back({"multiply", {x({tokens, n}, 1), x({tokens, n}, 2)}, [](Tape& t, Inputs v) {
                     return ops::multiply(t, v[0], v[1]);
                   }});
  cases.push_back({"concat_columns", {x({tokens, n}, 1), x({tokens, h}, 2)}, [](Tape& t, Inputs v) {
                     return ops::concat_columns(t, {v[0], v[1]});
                   }});
  cases.push_back({"concat_rows", {x({tokens, n}, 1), x({s.samples, n}, 2)}, [](Tape& t, Inputs v) {
                     return ops::concat_rows(t, {v[0], v[1]});
                   }});
  const Tensor actions = Tensor::from<std::uint8_t>({4}, {0, 1, 5, 6}).copy(context),
               bits = Tensor::from<std::uint8_t>({3}, {1, 2, 4}).copy(context);
  cases.push_back({"action_rows", {x({3, 4}, 1), x({1, 12}, 2)}, [actions, bits](Tape& t, Inputs v) {
                     return ops::action_rows(t, v[0], v[1], actions, bits);
                   }});
  for (const auto& [name, activation] : kernels::kActivations) {
    cases.push_back({std::string(name), {x({tokens, n}, 1)}, [activation = activation](Tape& t, Inputs v) {
                       return ops::activate(t, v[0], activation);
                     }});
  }
  cases.push_back({"dropout", {x({tokens, n}, 1)}, [names](Tape& t, Inputs v) {
                     return ops::dropout(t, v[0], {0.25, 9, names});
                   }});
  cases.push_back({"l2_normalise", {x({tokens, h}, 1)}, [](Tape& t, Inputs v) {
                     return ops::l2_normalise(t, v[0], 1e-6);
                   }});
  cases.push_back({"rms_norm", {x({tokens, h}, 1), x({h}, 2)}, [](Tape& t, Inputs v) {
                     return ops::rms_norm(t, v[0], v[1], 1e-5);
                   }});
  // Two of three heads' columns, then those of the other one.
  const Tensor positions = random_index(tokens, 50, 10).copy(context);
  cases.push_back(
      {"rotary", {x({tokens, 6 * s.head_dim}, 1)}, [positions, d = 2 * s.head_dim](Tape& t, Inputs v) {
         const Variable turned = ops::rotary(t, {v[0], d, 2 * d}, positions, d, 100);
         return ops::concat_columns(t, {turned, ops::rotary(t, {v[0], 0, d}, positions, d, 9)});
       }});
  cases.push_back({"recomputed", {x({tokens, n}, 1), x({n, n}, 2), x({n}, 3)}, [](Tape& t, Inputs v) {
                     return t.recompute(
                         [&t, v] { return ops::multiply(t, ops::linear(t, v[0], v[1], v[2]), v[0]); });
                   }});
  // The losses have the type of sums; as activations they can be added like the results of other cases.
  const Tensor masks = random_labels(tokens, 1 << 3, 8).copy(context),
               classes = random_labels(tokens, n, 9).copy(context);
  cases.push_back({"multi_task_cross_entropy", {x({tokens, 3}, 1)}, [masks](Tape& t, Inputs v) {
                     const Variable loss = loss::multi_task_cross_entropy(t, v[0], {masks}, 0.1);
                     return ops::convert(t, loss, v[0].value().dtype());
                   }});
  cases.push_back({"multi_class_cross_entropy", {x({tokens, n}, 1)}, [classes](Tape& t, Inputs v) {
                     const Variable loss = loss::multi_class_cross_entropy(t, v[0], {classes}, 0.1);
                     return ops::convert(t, loss, v[0].value().dtype());
                   }});
  std::vector<float> factors;  // 0 to 1.5
  for (std::int64_t i = 0; i < tokens; ++i) factors.push_back(static_cast<float>(i % 4) / 2);
  const Tensor weights = Tensor::from<float>({tokens}, factors).copy(context),
               zeros = Tensor::zeros({tokens}, DType::f32, context);
  cases.push_back({"weighted_multi_task", {x({tokens, 3}, 1)}, [masks, weights](Tape& t, Inputs v) {
                     const Variable loss = loss::multi_task_cross_entropy(t, v[0], {masks, weights}, 0.1);
                     return ops::convert(t, loss, v[0].value().dtype());
                   }});
  cases.push_back({"weighted_multi_class", {x({tokens, n}, 1)}, [classes, weights](Tape& t, Inputs v) {
                     const Variable loss = loss::multi_class_cross_entropy(t, v[0], {classes, weights}, 0.1);
                     return ops::convert(t, loss, v[0].value().dtype());
                   }});
  cases.push_back({"weighted_binary", {x({tokens}, 1)}, [zeros, weights](Tape& t, Inputs v) {
                     const Variable loss = loss::binary_cross_entropy(t, v[0], zeros, weights, 0.1);
                     return ops::convert(t, loss, v[0].value().dtype());
                   }});
  const std::map<std::string, std::string> roles{
      {"linear", "aws"},           {"linear_to_eight", "aws"}, {"linear_relu", "awswsw"},
      {"linear_columns", "aws"},   {"linear_gelu", "awsw"},    {"linear_gelu_twice", "aww"},
      {"linear_residual", "awa"},  {"grouped_linear", "aws"},  {"layer_norm", "ass"},
      {"swish_layer_norm", "ass"}, {"gate", "aass"},           {"gate_product", "aass"},
      {"gated_attention", "ass"},  {"silu_attention", "aws"},  {"action_rows", "ww"},
      {"recomputed", "aws"},       {"rms_norm", "as"},         {"biased_linear_residual", "awsa"}};
  for (OpCase& c : cases) {
    if (c.roles.empty())
      c.roles = roles.contains(c.name) ? roles.at(c.name) : std::string(c.inputs.size(), 'a');
  }
  return cases;
}

}  // namespace hstu::testing
