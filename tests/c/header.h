// What header.c, which is C, tells to the tests.
#pragma once

#include "hstu/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

// A problem that every GPU computes, without memory: offsets and data are NULL.
hstu_attention_problem usual_problem(void);

// The name of a default that is not the header's; "" when all are.
const char* wrong_default(void);

// Lines "field offset size" of hstu_attention_problem and hstu_rows; the first is "Problem" and its size.
void layout_of_structures(char* text, size_t size);

#ifdef __cplusplus
}
#endif
