// TensorBoard's event records: the protobuf message "Event" in the framing of TFRecord files, limited to
// scalars. Formats: tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hstu {

// CRC-32C (Castagnoli, reflected, as in RFC 3720 appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

// The first event of every file. Times are seconds since 1970.
std::string version_event(double wall_time);

// One event with a value for each tag.
std::string scalars_event(double wall_time, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars);

// Length, masked checksum of the length, the event, masked checksum of the event.
std::string framed(std::string_view event);

}  // namespace hstu
