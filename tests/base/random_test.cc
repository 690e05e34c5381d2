#include "hstu/base/random.h"

#include <gmock/gmock.h>

namespace hstu {
namespace {

using testing::ElementsAre;

// The known answers that the Random123 distribution gives for philox4x32-10.
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_THAT(philox(0, 0, 0), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(philox(~0ull, ~0ull, ~0ull), ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(DeriveKey, DiffersByPurposeAndBySeed) {
  EXPECT_EQ(derive_key(1, "dropout"), derive_key(1, "dropout"));
  EXPECT_NE(derive_key(1, "dropout"), derive_key(1, "table"));
  EXPECT_NE(derive_key(1, "dropout"), derive_key(2, "dropout"));
}

TEST(UnitInterval, NeverReachesOne) {
  EXPECT_LT(to_unit_float(~0u), 1.0f);
  EXPECT_LT(to_unit_double(~0u, ~0u), 1.0);
  EXPECT_EQ(to_unit_float(0), 0.0f);
}

}  // namespace
}  // namespace hstu
