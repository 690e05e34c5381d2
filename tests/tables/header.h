// What header.c, which is C, tells to the tests.
#pragma once

#include "hstu/tables.h"

#ifdef __cplusplus
extern "C" {
#endif

// The name of a default that is not the header's; "" when all are.
const char* wrong_table_default(void);

#ifdef __cplusplus
}
#endif
