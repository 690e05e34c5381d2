// What requests for a model consist of: how ids, actions and context columns are named.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/dataset/dataset.h"
#include "hstu/dataset/names.h"

namespace hstu {

class RequestForm {
 public:
  // Of a model that reads these context columns of requests and of events (needed_columns.h). `schema` must
  // outlive it.
  RequestForm(const Dataset& schema, std::vector<bool> of_requests, std::vector<bool> of_events);

  const Manifest& manifest() const { return schema_.manifest(); }
  std::size_t columns() const { return manifest().context.size(); }
  bool users_are_texts() const { return manifest().hashed.contains("user"); }
  bool items_are_texts() const { return manifest().hashed.contains("item"); }
  // By context column, whether a request must have it, and whether events must.
  const std::vector<bool>& of_requests() const { return of_requests_; }
  const std::vector<bool>& of_events() const { return of_events_; }

  // The sum of bits of "listen|like". UsageError for an action that the dataset does not have.
  std::uint8_t action_bits(std::string_view names) const;
  std::uint8_t known_bits() const;  // of all actions
  // The index of a context column. UsageError with the nearest name if there is none.
  std::size_t column(std::string_view name) const;
  bool has_texts(std::size_t column) const { return codes_[column].has_value(); }  // of a context column
  // UsageError naming a value that is no code of a context column of texts: 0 is none, the texts count
  // from 1.
  void check_codes(std::size_t column, std::span<const std::int64_t> values) const;
  // The code of a text of a context column, none for a text that the dataset does not have. UsageError where
  // the column has no texts.
  std::optional<std::int64_t> code_of(std::size_t column, std::string_view text) const;
  // The name of an item, if the dataset kept it.
  std::optional<std::string_view> item_name(std::int64_t item) const;

 private:
  const Dataset& schema_;
  std::vector<bool> of_requests_, of_events_;
  std::vector<std::optional<Names>> codes_;  // of context columns of texts
  std::optional<Names> items_;
};

}  // namespace hstu
