/* The header in a plain C11 program. */
#include "c/header.h"

#include <stdio.h>
#include <string.h>

_Static_assert(HSTU_BF16 == 0 && HSTU_FP16 == 1 && HSTU_FP32 == 2, "numbers that programs may have stored");

hstu_attention_problem usual_problem(void) {
  hstu_attention_problem p;
  hstu_attention_problem_init(&p);
  p.samples = 4;
  p.tokens = 1000;
  p.heads = 2;
  p.head_dim = 64;
  const hstu_rows rows = {NULL, 3 * 128, 64};
  p.q = rows;
  p.k = rows;
  p.v = rows;
  return p;
}

#define WRONG(field, expected) \
  if (p.field != (expected)) return #field

const char* wrong_default(void) {
  hstu_attention_problem p;
  memset(&p, 0xa5, sizeof p);
  hstu_attention_problem_init(&p);
  WRONG(size, sizeof(hstu_attention_problem));
  WRONG(type, HSTU_BF16);
  WRONG(samples, 0);
  WRONG(tokens, 0);
  WRONG(queries, 0);
  WRONG(heads, 0);
  WRONG(head_dim, 0);
  WRONG(longest, 0);
  WRONG(q.data, NULL);
  WRONG(k.row_stride, 0);
  WRONG(v.head_stride, 0);
  WRONG(offsets, NULL);
  WRONG(query_offsets, NULL);
  WRONG(contexts, NULL);
  WRONG(targets, NULL);
  WRONG(sample_scale, NULL);
  WRONG(window_left, -1);
  WRONG(window_right, 0);
  WRONG(target_group, 1);
  WRONG(alpha, 1);
  WRONG(scale, 1);
  WRONG(deterministic, 0);
  WRONG(bias_tables, 1);
  WRONG(positions, 0);
  WRONG(buckets, 0);
  WRONG(position_table, NULL);
  WRONG(time_table, NULL);
  WRONG(thresholds, NULL);
  WRONG(query_time, NULL);
  WRONG(key_time, NULL);
  WRONG(d_position_table, NULL);
  WRONG(d_time_table, NULL);
  return "";
}

static void add_line(char* text, size_t size, const char* name, size_t offset, size_t bytes) {
  const size_t at = strlen(text);
  snprintf(text + at, size - at, "%s %zu %zu\n", name, offset, bytes);
}

#define FIELD(type, field) add_line(text, size, #field, offsetof(type, field), sizeof(((type*)0)->field))

void layout_of_structures(char* text, size_t size) {
  text[0] = 0;
  add_line(text, size, "Problem", 0, sizeof(hstu_attention_problem));
  FIELD(hstu_attention_problem, size);
  FIELD(hstu_attention_problem, type);
  FIELD(hstu_attention_problem, samples);
  FIELD(hstu_attention_problem, tokens);
  FIELD(hstu_attention_problem, queries);
  FIELD(hstu_attention_problem, heads);
  FIELD(hstu_attention_problem, head_dim);
  FIELD(hstu_attention_problem, longest);
  FIELD(hstu_attention_problem, q);
  FIELD(hstu_attention_problem, k);
  FIELD(hstu_attention_problem, v);
  FIELD(hstu_attention_problem, offsets);
  FIELD(hstu_attention_problem, query_offsets);
  FIELD(hstu_attention_problem, contexts);
  FIELD(hstu_attention_problem, targets);
  FIELD(hstu_attention_problem, sample_scale);
  FIELD(hstu_attention_problem, window_left);
  FIELD(hstu_attention_problem, window_right);
  FIELD(hstu_attention_problem, target_group);
  FIELD(hstu_attention_problem, alpha);
  FIELD(hstu_attention_problem, scale);
  FIELD(hstu_attention_problem, deterministic);
  FIELD(hstu_attention_problem, bias_tables);
  FIELD(hstu_attention_problem, positions);
  FIELD(hstu_attention_problem, buckets);
  FIELD(hstu_attention_problem, position_table);
  FIELD(hstu_attention_problem, time_table);
  FIELD(hstu_attention_problem, thresholds);
  FIELD(hstu_attention_problem, query_time);
  FIELD(hstu_attention_problem, key_time);
  FIELD(hstu_attention_problem, d_position_table);
  FIELD(hstu_attention_problem, d_time_table);
  add_line(text, size, "Rows", 0, sizeof(hstu_rows));
  FIELD(hstu_rows, data);
  FIELD(hstu_rows, row_stride);
  FIELD(hstu_rows, head_stride);
}
