/* The header in a plain C11 program. */
#include "tables/header.h"

#include <string.h>

#define WRONG(field, expected) \
  if (o.field != (expected)) return #field

const char* wrong_table_default(void) {
  hstu_table_options o;
  memset(&o, 0xa5, sizeof o);
  hstu_table_options_init(&o);
  WRONG(size, sizeof(hstu_table_options));
  if (strcmp(o.name, "table") != 0) return "name";
  WRONG(rows, 0);
  WRONG(dim, 0);
  WRONG(seed, 1);
  if (strcmp(o.optimizer, "rowwise_adagrad") != 0) return "optimizer";
  WRONG(epsilon, 1e-8);
  WRONG(beta1, 0.9);
  WRONG(beta2, 0.999);
  WRONG(weight_decay, 0.01);
  if (strcmp(o.initial, "uniform") != 0) return "initial";
  WRONG(bound, 0);
  WRONG(mean, 0);
  WRONG(deviation, 0.01);
  WRONG(value, 0);
  WRONG(capacity, 0);
  if (strcmp(o.evict, "never") != 0) return "evict";
  WRONG(half_life, 1000);
  WRONG(admit_after, 0);
  WRONG(ttl, 0);
  return "";
}
