// include/hstu/attention.h on top of attention_cuda.h: translates structures, and exceptions into messages.
#include "hstu/attention.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

#include "hstu/attention/attention_cuda.h"
#include "hstu/base/c_interface.h"
#include "hstu/base/error.h"

namespace {

using hstu::AttentionProblem;
using hstu::AttentionRows;

// 0, or 1 with the message kept.
template <typename Body>
int guarded(const Body& body) {
  return hstu::succeeds(body) ? 0 : 1;
}

AttentionRows rows_of(const hstu_rows* rows, const char* name) {
  hstu::check(rows != nullptr, "attention: {} is NULL, expected the address of an hstu_rows", name);
  return {rows->data, rows->row_stride, rows->head_stride};
}

AttentionProblem problem_of(const hstu_attention_problem* p) {
  hstu::check(p != nullptr, "attention: the problem is NULL");
  hstu::check(p->size == sizeof(hstu_attention_problem),
              "attention: the problem has {} bytes, this library's has {}: call "
              "hstu_attention_problem_init first, and compile with this library's hstu/attention.h",
              p->size, sizeof(hstu_attention_problem));
  int type = 0;  // as a number: C allows any value, and C++ may not load one that is no hstu_type
  static_assert(sizeof type == sizeof p->type);
  std::memcpy(&type, &p->type, sizeof type);
  hstu::check(type >= HSTU_BF16 && type <= HSTU_FP32,
              "attention: type: expected HSTU_BF16, HSTU_FP16 or HSTU_FP32, found {}", type);
  AttentionProblem result;
  result.type = static_cast<hstu::AttentionType>(type);
  result.samples = p->samples, result.tokens = p->tokens, result.queries = p->queries;
  result.heads = p->heads, result.head_dim = p->head_dim, result.longest = p->longest;
  result.q = rows_of(&p->q, "q"), result.k = rows_of(&p->k, "k"), result.v = rows_of(&p->v, "v");
  result.offsets = p->offsets, result.query_offsets = p->query_offsets;
  result.contexts = p->contexts, result.targets = p->targets, result.sample_scale = p->sample_scale;
  result.mask = {p->window_left, p->window_right, p->target_group};
  result.alpha = static_cast<double>(p->alpha), result.scale = static_cast<double>(p->scale);
  result.deterministic = p->deterministic != 0;
  result.bias = {.position_table = p->position_table,
                 .time_table = p->time_table,
                 .tables = p->bias_tables,
                 .positions = p->positions,
                 .buckets = p->buckets,
                 .thresholds = p->thresholds,
                 .query_time = p->query_time,
                 .key_time = p->key_time};
  check_attention_on_gpu(result);
  return result;
}

bool is_empty(const AttentionProblem& p) {
  return p.tokens == 0 || p.samples == 0;
}

void check_data(const AttentionProblem& p, const char* name, const void* data) {
  hstu::check(is_empty(p) || data != nullptr, "attention: {} has no data: it is NULL, expected device memory",
              name);
}

// An output that a launch writes.
AttentionRows output_of(const AttentionProblem& p, const hstu_rows* rows, const char* name,
                        std::int64_t count) {
  const AttentionRows result = rows_of(rows, name);
  check_output(p, name, result, count);
  check_data(p, name, result.data);
  return result;
}

// What a launch needs beyond a valid description, as far as it can be checked without a device.
hstu::AttentionScratch launch_scratch(const AttentionProblem& p, void* workspace, std::int64_t bytes) {
  hstu::check(is_empty(p) || p.offsets != nullptr,
              "attention: offsets is NULL, {} numbers in device memory are needed", p.samples + 1);
  check_data(p, "q", p.q.data);
  check_data(p, "k", p.k.data);
  check_data(p, "v", p.v.data);
  const hstu::AttentionScratch scratch{workspace, bytes};
  check_scratch(scratch, 0);
  return scratch;
}

}  // namespace

void hstu_attention_problem_init(hstu_attention_problem* problem) {
  if (problem == nullptr) return;
  const AttentionProblem defaults;
  *problem = {};
  problem->size = sizeof(hstu_attention_problem);
  problem->window_left = defaults.mask.left, problem->window_right = defaults.mask.right;
  problem->target_group = defaults.mask.target_group;
  problem->alpha = defaults.alpha, problem->scale = defaults.scale;
  problem->bias_tables = 1;
}

const char* hstu_attention_error() {
  return hstu::last_error().c_str();
}

int hstu_attention_workspace(const hstu_attention_problem* problem, int64_t* forward_bytes,
                             int64_t* backward_bytes) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    const auto bytes =
        hstu::cuda::attention_workspace(p, choose_attention(p, hstu::cuda::attention_device()));
    if (forward_bytes != nullptr) *forward_bytes = bytes.forward;
    if (backward_bytes != nullptr) *backward_bytes = bytes.backward;
  });
}

int hstu_attention_explain(const hstu_attention_problem* problem, char* text, size_t size) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    hstu::check(text != nullptr || size == 0, "attention: text is NULL, its size is {}", size);
    const hstu::AttentionRoute route = choose_attention(p, hstu::cuda::attention_device());
    const std::string line =
        "forward " + to_string(route.forward) + ", backward " + to_string(route.backward) + ": " + route.why;
    if (size == 0) return;
    const std::size_t kept = std::min(size - 1, line.size());
    std::memcpy(text, line.data(), kept);
    text[kept] = 0;
  });
}

int hstu_attention_check(const hstu_attention_problem* problem, void* stream) {
  return guarded(
      [&] { hstu::cuda::check_attention_lists(problem_of(problem), static_cast<CUstream_st*>(stream)); });
}

int hstu_attention_forward(const hstu_attention_problem* problem, const hstu_rows* o, void* workspace,
                           int64_t workspace_bytes, void* stream) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    const hstu::AttentionScratch scratch = launch_scratch(p, workspace, workspace_bytes);
    const AttentionRows to = output_of(p, o, "o", p.query_rows());
    hstu::cuda::attention_forward(p, hstu::cuda::attention_device(), to, scratch,
                                  static_cast<CUstream_st*>(stream));
  });
}

int hstu_attention_backward(const hstu_attention_problem* problem, const hstu_rows* d_o, const hstu_rows* dq,
                            const hstu_rows* dk, const hstu_rows* dv, void* workspace,
                            int64_t workspace_bytes, void* stream) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    const hstu::AttentionScratch scratch = launch_scratch(p, workspace, workspace_bytes);
    hstu::AttentionGradients g;
    g.d_o = rows_of(d_o, "d_o");
    check_input(p, "d_o", g.d_o);
    check_data(p, "d_o", g.d_o.data);
    g.dq = output_of(p, dq, "dq", p.query_rows());
    g.dk = output_of(p, dk, "dk", p.tokens);
    g.dv = output_of(p, dv, "dv", p.tokens);
    g.d_position_table = problem->d_position_table, g.d_time_table = problem->d_time_table;
    hstu::cuda::attention_backward(p, hstu::cuda::attention_device(), g, scratch,
                                   static_cast<CUstream_st*>(stream));
  });
}
