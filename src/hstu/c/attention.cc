// include/hstu/attention.h on top of attention.h: translates structures, and exceptions into messages.
#include "hstu/attention.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

#include "hstu/attention/attention.h"
#include "hstu/base/error.h"

namespace {

using hstu::AttentionProblem;
using hstu::AttentionRows;

std::string& last_error() {
  thread_local std::string text;
  return text;
}

// 0, or 1 with the message kept: nothing may be thrown into a program in another language.
template <typename Body>
int guarded(const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& e) {
    last_error() = e.what();
  } catch (...) {
    last_error() = "attention: an unknown failure";
  }
  return 1;
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
  int type = 0;  // as a number: C lets any stand there, and C++ may not load what is no hstu_type
  static_assert(sizeof type == sizeof p->type);
  std::memcpy(&type, &p->type, sizeof type);
  hstu::check(type >= HSTU_BF16 && type <= HSTU_FP32,
              "attention: type: expected HSTU_BF16, HSTU_FP16 or HSTU_FP32, found {}", type);
  AttentionProblem result;
  result.type = static_cast<hstu::AttentionType>(type);
  result.samples = p->samples, result.tokens = p->tokens, result.heads = p->heads;
  result.head_dim = p->head_dim, result.longest = p->longest;
  result.q = rows_of(&p->q, "q"), result.k = rows_of(&p->k, "k"), result.v = rows_of(&p->v, "v");
  result.offsets = p->offsets, result.contexts = p->contexts, result.targets = p->targets;
  result.sample_scale = p->sample_scale;
  result.mask = {p->window_left, p->window_right, p->target_group};
  result.alpha = p->alpha, result.scale = p->scale, result.deterministic = p->deterministic != 0;
  return result;
}

struct NamedRows {
  const char* name;
  AttentionRows rows;
};

// What a launch needs beyond what choose_attention looks at.
void check_launch(const AttentionProblem& p, std::initializer_list<NamedRows> others, const void* workspace,
                  std::int64_t workspace_bytes) {
  if (p.tokens == 0 || p.samples == 0) return;
  hstu::check(p.offsets != nullptr, "attention: offsets is NULL, {} numbers on the device are needed",
              p.samples + 1);
  const auto check_data = [](const NamedRows& named) {
    hstu::check(named.rows.data != nullptr, "attention: {} has no data: it is NULL, expected device memory",
                named.name);
  };
  for (const NamedRows& named : {NamedRows{"q", p.q}, NamedRows{"k", p.k}, NamedRows{"v", p.v}})
    check_data(named);
  for (const NamedRows& named : others) check_data(named);
  hstu::check(workspace != nullptr || workspace_bytes == 0,
              "attention: workspace is NULL, {} bytes are needed (hstu_attention_workspace)",
              workspace_bytes);
}

}  // namespace

void hstu_attention_problem_init(hstu_attention_problem* problem) {
  const AttentionProblem defaults;
  *problem = {};
  problem->size = sizeof(hstu_attention_problem);
  problem->window_left = defaults.mask.left, problem->window_right = defaults.mask.right;
  problem->target_group = defaults.mask.target_group;
  problem->alpha = defaults.alpha, problem->scale = defaults.scale;
}

const char* hstu_attention_error() {
  return last_error().c_str();
}

int hstu_attention_workspace(const hstu_attention_problem* problem, int64_t* forward_bytes,
                             int64_t* backward_bytes) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    const auto bytes = attention_workspace(p, choose_attention(p, hstu::attention_device()));
    if (forward_bytes != nullptr) *forward_bytes = bytes.forward;
    if (backward_bytes != nullptr) *backward_bytes = bytes.backward;
  });
}

int hstu_attention_explain(const hstu_attention_problem* problem, char* text, size_t size) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    hstu::check(text != nullptr || size == 0, "attention: text is NULL, its size is {}", size);
    const hstu::AttentionRoute route = choose_attention(p, hstu::attention_device());
    const std::string line =
        "forward " + to_string(route.forward) + ", backward " + to_string(route.backward) + ": " + route.why;
    if (size == 0) return;
    const std::size_t kept = std::min(size - 1, line.size());
    std::memcpy(text, line.data(), kept);
    text[kept] = 0;
  });
}

int hstu_attention_forward(const hstu_attention_problem* problem, const hstu_rows* o, void* workspace,
                           void* stream) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    const NamedRows to{"o", rows_of(o, "o")};
    const hstu::AttentionDevice device = hstu::attention_device();
    check_launch(p, {to}, workspace, attention_workspace(p, choose_attention(p, device)).forward);
    attention_forward(p, device, to.rows, workspace, static_cast<CUstream_st*>(stream));
  });
}

int hstu_attention_backward(const hstu_attention_problem* problem, const hstu_rows* d_o, const hstu_rows* dq,
                            const hstu_rows* dk, const hstu_rows* dv, void* workspace, void* stream) {
  return guarded([&] {
    const AttentionProblem p = problem_of(problem);
    const NamedRows from{"d_o", rows_of(d_o, "d_o")}, to_q{"dq", rows_of(dq, "dq")},
        to_k{"dk", rows_of(dk, "dk")}, to_v{"dv", rows_of(dv, "dv")};
    const hstu::AttentionDevice device = hstu::attention_device();
    check_launch(p, {from, to_q, to_k, to_v}, workspace,
                 attention_workspace(p, choose_attention(p, device)).backward);
    attention_backward(p, device, from.rows, to_q.rows, to_k.rows, to_v.rows, workspace,
                       static_cast<CUstream_st*>(stream));
  });
}
