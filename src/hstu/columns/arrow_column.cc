#include "hstu/columns/arrow_column.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include <arrow/api.h>
#include <arrow/util/utf8.h>

#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"

namespace hstu {
namespace {

using arrow::Type;

constexpr std::int32_t kUuidBytes = 16;

bool is_bytes(Type::type id) {
  return id == Type::BINARY || id == Type::LARGE_BINARY;
}

bool is_text(Type::type id) {
  return id == Type::STRING || id == Type::LARGE_STRING || id == Type::STRING_VIEW || is_bytes(id);
}

// Old writers do not mark texts as UTF-8.
void check_utf8(const arrow::DataType& type, const std::vector<std::string>& texts,
                const std::string& place) {
  if (!is_bytes(type.id())) return;
  arrow::util::InitializeUTF8();
  for (const std::string& text : texts) {
    check(arrow::util::ValidateUTF8(text), "{}: expected texts in UTF-8, found bytes ({}) that are none: {}",
          place, type.ToString(), text.substr(0, 40));
  }
}

template <typename ArrowType, typename T>
void copy_values(const arrow::Array& array, std::vector<T>& to) {
  const auto* const values = static_cast<const arrow::NumericArray<ArrowType>&>(array).raw_values();
  to.assign(values, values + array.length());
}

// Calls body with the Arrow type of an integer array.
template <typename Body>
void with_integer_type(Type::type id, const Body& body) {
  switch (id) {
    case Type::INT8:
      return body(arrow::Int8Type{});
    case Type::INT16:
      return body(arrow::Int16Type{});
    case Type::INT32:
      return body(arrow::Int32Type{});
    case Type::INT64:
      return body(arrow::Int64Type{});
    case Type::UINT8:
      return body(arrow::UInt8Type{});
    case Type::UINT16:
      return body(arrow::UInt16Type{});
    case Type::UINT32:
      return body(arrow::UInt32Type{});
    default:
      return body(arrow::UInt64Type{});
  }
}

void copy_integers(const arrow::Array& array, std::vector<std::int64_t>& to) {
  with_integer_type(array.type_id(), [&](auto type) { copy_values<decltype(type)>(array, to); });
}

void check_unsigned_range(const arrow::Array& array, const std::string& place) {
  const auto& values = static_cast<const arrow::UInt64Array&>(array);
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (std::int64_t i = 0; i < values.length(); ++i) {
    check(values.IsNull(i) || values.Value(i) <= kLargest, "{}: expected integers below 2^63, found {}",
          place, values.Value(i));
  }
}

constexpr std::int64_t kSecondsPerDay = 86'400, kNanosecondsPerSecond = 1'000'000'000;

// Timestamps with a time zone count from 1970 in UTC; so do, by assumption, those without.
void copy_timestamps(const arrow::Array& array, RawColumn& column) {
  copy_values<arrow::TimestampType>(array, column.integers);
  const std::int64_t divisor = units_per_second(*array.type());
  if (divisor == 1) return;
  for (std::size_t i = 0; i < column.integers.size(); ++i) {
    std::int64_t& value = column.integers[i];
    const std::int64_t remainder = value % divisor, rest = remainder < 0 ? remainder + divisor : remainder;
    value = floor_divide(value, divisor);
    if (rest == 0 || array.IsNull(static_cast<std::int64_t>(i))) continue;
    column.nanoseconds.resize(column.integers.size());
    column.nanoseconds[i] = rest * (kNanosecondsPerSecond / divisor);
  }
}

void copy_dates(const arrow::Array& array, std::vector<std::int64_t>& to) {
  if (array.type_id() == Type::DATE32) {
    copy_values<arrow::Date32Type>(array, to);
    for (std::int64_t& value : to) value *= kSecondsPerDay;
  } else {
    copy_values<arrow::Date64Type>(array, to);
    for (std::int64_t& value : to) value = floor_divide(value, 1'000);
  }
}

// Decimals without places are integers; others are rounded to the nearest double.
void copy_decimals(const arrow::Array& array, const std::string& place, RawColumn& column) {
  const auto& values = static_cast<const arrow::Decimal128Array&>(array);
  const std::int32_t scale = static_cast<const arrow::Decimal128Type&>(*array.type()).scale();
  column.kind = scale == 0 ? RawColumn::Kind::kInteger : RawColumn::Kind::kReal;
  for (std::int64_t i = 0; i < values.length(); ++i) {
    const arrow::Decimal128 value =
        values.IsNull(i) ? arrow::Decimal128() : arrow::Decimal128(values.GetValue(i));
    if (scale != 0) {
      column.reals.push_back(value.ToDouble(scale));
      continue;
    }
    std::int64_t whole = 0;
    check(value.ToInteger(&whole).ok(), "{}: expected integers of 64 bits, found {}", place,
          value.ToIntegerString());
    column.integers.push_back(whole);
  }
}

template <typename StringArray>
std::vector<std::string> copy_texts(const arrow::Array& array) {
  const auto& typed = static_cast<const StringArray&>(array);
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < typed.length(); ++i)
    texts.emplace_back(typed.IsNull(i) ? "" : typed.GetView(i));
  return texts;
}

std::vector<std::string> copy_texts_of_any(const arrow::Array& array) {
  switch (array.type_id()) {
    case Type::STRING:
      return copy_texts<arrow::StringArray>(array);
    case Type::LARGE_STRING:
      return copy_texts<arrow::LargeStringArray>(array);
    case Type::BINARY:
      return copy_texts<arrow::BinaryArray>(array);
    case Type::LARGE_BINARY:
      return copy_texts<arrow::LargeBinaryArray>(array);
    default:
      return copy_texts<arrow::StringViewArray>(array);
  }
}

void copy_dictionary(const arrow::Array& array, const std::string& place, RawColumn& column) {
  const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
  copy_integers(*dictionary.indices(), column.integers);
  column.texts = copy_texts_of_any(*dictionary.dictionary());
  check_utf8(*dictionary.dictionary()->type(), column.texts, place);
}

template <typename StringArray>
void find_texts(const arrow::Array& array, RawColumn& column) {
  const auto& typed = static_cast<const StringArray&>(array);
  std::unordered_map<std::string_view, std::int64_t> known;
  column.integers.reserve(static_cast<std::size_t>(array.length()));
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    if (typed.IsNull(i)) {
      column.integers.push_back(-1);
      continue;
    }
    const std::string_view text = typed.GetView(i);
    const auto [entry, added] = known.emplace(text, static_cast<std::int64_t>(column.texts.size()));
    if (added) column.texts.emplace_back(text);
    column.integers.push_back(entry->second);
  }
}

// Texts that came one by one: their distinct values, and the index of each.
void copy_plain_texts_of_any(const arrow::Array& array, RawColumn& column) {
  switch (array.type_id()) {
    case Type::STRING:
      return find_texts<arrow::StringArray>(array, column);
    case Type::LARGE_STRING:
      return find_texts<arrow::LargeStringArray>(array, column);
    case Type::BINARY:
      return find_texts<arrow::BinaryArray>(array, column);
    case Type::LARGE_BINARY:
      return find_texts<arrow::LargeBinaryArray>(array, column);
    case Type::FIXED_SIZE_BINARY:
      find_texts<arrow::FixedSizeBinaryArray>(array, column);
      for (std::string& text : column.texts)
        text = uuid_text(reinterpret_cast<const std::uint8_t*>(text.data()));
      return;
    default:
      return find_texts<arrow::StringViewArray>(array, column);
  }
}

void copy_plain_texts(const arrow::Array& array, const std::string& place, RawColumn& column) {
  copy_plain_texts_of_any(array, column);
  check_utf8(*array.type(), column.texts, place);
}

template <typename ListArray>
std::shared_ptr<arrow::Array> first_of_each(const arrow::Array& array) {
  const auto& lists = static_cast<const ListArray&>(array);
  std::unique_ptr<arrow::ArrayBuilder> builder;
  arrow::Status status = arrow::MakeBuilder(arrow::system_memory_pool(), lists.values()->type(), &builder);
  for (std::int64_t i = 0; status.ok() && i < lists.length(); ++i) {
    const bool any = lists.IsValid(i) && lists.value_length(i) > 0;
    status = any ? builder->AppendArraySlice(*lists.values()->data(), lists.value_offset(i), 1)
                 : builder->AppendNull();
  }
  std::shared_ptr<arrow::Array> result;
  if (status.ok()) status = builder->Finish(&result);
  check(status.ok(), "cannot take the first elements of lists: {}", status.message());
  return result;
}

void copy_booleans(const arrow::Array& array, std::vector<std::int64_t>& to) {
  const auto& typed = static_cast<const arrow::BooleanArray&>(array);
  to.reserve(static_cast<std::size_t>(typed.length()));
  for (std::int64_t i = 0; i < typed.length(); ++i) to.push_back(typed.Value(i) ? 1 : 0);
}

// NaN is the null of other programs: no condition holds for it.
void mark_nan(RawColumn& column) {
  for (std::size_t i = 0; i < column.reals.size(); ++i) {
    if (!std::isnan(column.reals[i])) continue;
    column.nulls.resize(column.reals.size());
    column.nulls[i] = 1;
    column.reals[i] = 0;
  }
}

void mark_nulls(const arrow::Array& array, RawColumn& column) {
  if (array.null_count() == 0) return;
  column.nulls.resize(static_cast<std::size_t>(array.length()));
  for (std::size_t i = 0; i < column.nulls.size(); ++i) {
    if (array.IsValid(static_cast<std::int64_t>(i))) continue;
    column.nulls[i] = 1;
    if (column.kind == RawColumn::Kind::kReal) {
      column.reals[i] = 0;
    } else {
      column.integers[i] = column.kind == RawColumn::Kind::kText ? -1 : 0;
    }
  }
}

}  // namespace

bool is_uuid(const arrow::DataType& type) {
  return type.id() == Type::FIXED_SIZE_BINARY &&
         static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width() == kUuidBytes;
}

std::string uuid_text(const std::uint8_t* bytes) {
  std::string text;
  for (int i = 0; i < kUuidBytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

std::int64_t units_per_second(const arrow::DataType& timestamp) {
  switch (static_cast<const arrow::TimestampType&>(timestamp).unit()) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1'000;
    case arrow::TimeUnit::MICRO:
      return 1'000'000;
    case arrow::TimeUnit::NANO:
      break;
  }
  return kNanosecondsPerSecond;
}

bool is_list(const arrow::DataType& type) {
  return type.id() == Type::LIST || type.id() == Type::LARGE_LIST;
}

std::shared_ptr<arrow::Array> first_elements(const arrow::Array& array) {
  return array.type_id() == Type::LIST ? first_of_each<arrow::ListArray>(array)
                                       : first_of_each<arrow::LargeListArray>(array);
}

bool is_text_type(const arrow::DataType& type) {
  return is_text(type.id()) || is_uuid(type) || type.id() == Type::DICTIONARY;
}

bool is_readable(const arrow::DataType& type) {
  if (type.id() == Type::DICTIONARY)
    return is_text(static_cast<const arrow::DictionaryType&>(type).value_type()->id());
  return is_text(type.id()) || is_uuid(type) || type.id() == Type::NA || arrow::is_integer(type.id()) ||
         type.id() == Type::BOOL || type.id() == Type::FLOAT || type.id() == Type::DOUBLE ||
         type.id() == Type::TIMESTAMP || type.id() == Type::DATE32 || type.id() == Type::DATE64 ||
         type.id() == Type::DECIMAL128;
}

RawColumn to_raw_column(const std::string& name, const arrow::Array& array, const std::string& place) {
  RawColumn column;
  column.name = name;
  column.type_name = array.type()->ToString();
  const Type::type id = array.type_id();
  if (id == Type::FLOAT || id == Type::DOUBLE) {
    column.kind = RawColumn::Kind::kReal;
    if (id == Type::FLOAT) column.exact = kLargestExactFloat;
    id == Type::FLOAT ? copy_values<arrow::FloatType>(array, column.reals)
                      : copy_values<arrow::DoubleType>(array, column.reals);
  } else if (id == Type::DICTIONARY) {
    column.kind = RawColumn::Kind::kText;
    copy_dictionary(array, place, column);
  } else if (is_text(id) || is_uuid(*array.type())) {
    column.kind = RawColumn::Kind::kText;
    copy_plain_texts(array, place, column);
  } else if (id == Type::NA) {
    column.untyped = true;
    column.integers.resize(static_cast<std::size_t>(array.length()));
  } else if (id == Type::TIMESTAMP) {
    column.kind = RawColumn::Kind::kSeconds;
    copy_timestamps(array, column);
  } else if (id == Type::DATE32 || id == Type::DATE64) {
    column.kind = RawColumn::Kind::kSeconds;
    copy_dates(array, column.integers);
  } else if (id == Type::DECIMAL128) {
    copy_decimals(array, place, column);
  } else if (id == Type::BOOL) {
    copy_booleans(array, column.integers);
  } else {
    require(arrow::is_integer(id), "{}: no conversion from {}", place, column.type_name);
    if (id == Type::UINT64) check_unsigned_range(array, place);
    copy_integers(array, column.integers);
  }
  mark_nulls(array, column);
  mark_nan(column);
  return column;
}

}  // namespace hstu
