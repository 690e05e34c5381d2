#include "hstu/batching/bad_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(BadIds, AddUpByFeatureAndKeepTheFirst) {
  BadIds bad(OnBadId::count, {{"item", 10}, {"artist", 10}, {"clean", 10}});
  bad.add(std::vector<BadIdCount>{{"item", 3, 10, 1, 100}, {"artist", 1, -1, 2, 200}});
  bad.add(std::vector<BadIdCount>{{"item", 2, 12, 3, 300}});
  EXPECT_EQ(bad.features()[0].count, 5);
  EXPECT_EQ(bad.features()[0].first_id, 10);
  EXPECT_EQ(bad.features()[0].first_sample, "the sample of user 1 at event 100");
  EXPECT_EQ(bad.features()[1].count, 1);
  EXPECT_EQ(bad.features()[2].count, 0);
}

TEST(BadIds, ErrorModeNamesFeatureIdAndSample) {
  BadIds bad(OnBadId::error, {{"album_id", 100}});
  EXPECT_NO_THROW(bad.add({}));
  try {
    bad.add(std::vector<BadIdCount>{{"album_id", 1, 100, 17, 4001}});
    FAIL() << "a bad id was accepted";
  } catch (const UsageError&) {
    FAIL() << "a bad id in the data is a failed run, not a wrong command";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("album_id"), HasSubstr("id 100 "), HasSubstr("user 17 at event 4001")));
  }
}

}  // namespace
}  // namespace hstu
