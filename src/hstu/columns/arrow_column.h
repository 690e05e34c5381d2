// One Arrow array as a RawColumn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hstu/columns/column_source.h"

namespace arrow {
class Array;
class DataType;
}  // namespace arrow

namespace hstu {

// Whether to_raw_column() can convert arrays of the type.
bool is_readable(const arrow::DataType& type);

// Whether arrays of the type become texts.
bool is_text_type(const arrow::DataType& type);

// Columns of 16 bytes, and what they are as texts: "0b8bb3a1-6c1b-4ad6-a0f8-6e9f1c6f4f5e".
bool is_uuid(const arrow::DataType& type);
std::string uuid_text(const std::uint8_t* bytes);

// Of an Arrow timestamp: 1 to 10^9.
std::int64_t units_per_second(const arrow::DataType& timestamp);

// Lists, and the first element of each; null for empty lists and null.
bool is_list(const arrow::DataType& type);
std::shared_ptr<arrow::Array> first_elements(const arrow::Array& lists);

// `place` names file and column in errors. Throws Error if a value does not fit into 64 bits signed.
RawColumn to_raw_column(const std::string& name, const arrow::Array& array, const std::string& place);

}  // namespace hstu
