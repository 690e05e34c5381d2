#include "hstu/base/checksum.h"

#include <string_view>

#include <gtest/gtest.h>

namespace hstu {
namespace {

std::string checksum_of(std::string_view text) {
  return checksum(std::as_bytes(std::span(text)));
}

TEST(Checksum, IsXxh3Of128Bits) {
  EXPECT_EQ(checksum_of(""), "99aa06d3014798d86001c324468d497f");  // the published vector of no bytes
}

TEST(Checksum, DoesNotDependOnHowTheBytesWereCut) {
  const std::string text(5000, 'x');
  Checksum pieces;
  for (std::size_t i = 0; i < text.size(); i += 7) {
    pieces.add(text.data() + i, std::min<std::size_t>(7, text.size() - i));
  }
  EXPECT_EQ(pieces.text(), checksum_of(text));
  pieces.add("y", 1);
  EXPECT_NE(pieces.text(), checksum_of(text));
}

}  // namespace
}  // namespace hstu
