#include "hstu/metrics/metric_name.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

TEST(MetricName, IsOneOfThoseThatAnEvaluationMeasures) {
  for (const char* name : {"", "auc", "gauc", "ne", "mrr", "ndcg@1", "recall@250"})
    EXPECT_NO_THROW(check_metric(name)) << name;
  for (const char* name : {"acu", "ndcg", "ndcg@", "ndcg@0", "ndcg@-1", "ndcg@x", "mrr@10", "calibration"})
    EXPECT_THROW(check_metric(name), UsageError) << name;
}

}  // namespace
}  // namespace hstu
