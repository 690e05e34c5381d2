// weight.npy: the weight of each event, f32, not negative and finite. While a log is sorted, the weights are
// an integer column of their bits (EventTable::context).
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "hstu/base/checksum.h"
#include "hstu/base/files.h"
#include "hstu/dataset/integer_column.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/mapped_column.h"

namespace hstu {

inline std::int64_t weight_bits(float weight) {
  return std::bit_cast<std::uint32_t>(weight);
}
inline float weight_of_bits(std::int64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

// Writes the file while the events come. Throws Error naming the file that cannot be written.
class WeightWriter {
 public:
  explicit WeightWriter(const Path& path);
  void append(const IntegerColumn& bits);
  ColumnInfo close();

 private:
  OutputFile file_;
  Checksum checksum_;
  std::int64_t count_ = 0;
};

// `file`, kWeightFile, as a column of the bits. Throws Error naming it, like open_integers.
MappedColumn open_weights(const Path& folder, const Manifest& manifest, const std::string& file);

}  // namespace hstu
