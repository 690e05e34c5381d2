// Files with lines of ids as typed columns.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hstu/columns/column_source.h"

namespace hstu {

// The number of an id in plain digits, without leading zeros, from 0 to 2^63 - 2; nothing for other texts.
std::optional<std::int64_t> plain_id(std::string_view text);

// The columns user, item and, if the format is timed, time: one row for each event, in the order of the file.
// Throws UsageError for another column; while reading, Error naming file, line, field and value.
std::unique_ptr<ColumnSource> open_sequences(const Path& file, std::span<const std::string> columns,
                                             const SequenceFormat& format, std::int64_t batch_rows);

}  // namespace hstu
