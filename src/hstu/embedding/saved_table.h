// The rows of one table on disk: those of a checkpoint or an export that is whole, and the changes of those
// that continue it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "hstu/checkpoint/section.h"

namespace hstu {

class SavedTable {
 public:
  // The table of a section "tables/NAME", with the rows of the section's base.
  explicit SavedTable(const SectionReader& section);
  // Brings in the changes of a section that continues this table. Throws Error if they do not fit.
  void apply(const SectionReader& section);

  // The description of the last section.
  const nlohmann::json& description() const { return layers_.back()->description; }
  const Path& folder() const { return layers_.back()->folder; }  // of that section
  std::int64_t dim() const { return dim_; }
  std::int64_t state_width() const { return state_width_; }  // 0: there is none, or it was not saved

  // Row i is that of ids()[i], which are ascending.
  std::span<const std::int64_t> ids() const { return is_merged_ ? ids_ : layers_.front()->ids; }
  std::size_t size() const { return ids().size(); }
  std::span<const float> row(std::size_t i) const { return of(&Layer::rows, i, dim_); }  // (D)
  std::span<const float> state(std::size_t i) const { return of(&Layer::state, i, state_width_); }
  std::span<const std::int64_t> history(std::size_t i) const { return of(&Layer::history, i, 2); }
  // Whether a change brought the row.
  bool is_changed(std::size_t i) const { return is_merged_ && places_[i].layer > 0; }

  // Of a table with limits: of the last section.
  std::span<const std::int64_t> waiting_ids() const { return waiting("waiting_ids"); }
  std::span<const std::int64_t> waiting_counts() const { return waiting("waiting_counts"); }

 private:
  struct Layer {
    explicit Layer(const SectionReader& section);
    Path folder;
    nlohmann::json description;
    SafetensorsFile file;
    std::span<const std::int64_t> ids, gone, history;
    std::span<const float> rows, state;
    std::vector<float> widened;  // rows that are in bf16
  };
  struct Place {
    std::uint32_t layer = 0;
    std::size_t row = 0;
  };

  template <typename T>
  std::span<const T> of(std::span<const T> Layer::*values, std::size_t i, std::int64_t width) const {
    const Place place = is_merged_ ? places_[i] : Place{0, i};
    const auto columns = static_cast<std::size_t>(width);
    return ((*layers_[place.layer]).*values).subspan(place.row * columns, columns);
  }
  std::span<const std::int64_t> waiting(const char* name) const {
    return layers_.back()->file.column<std::int64_t>(name);
  }
  void merge(const Layer& changes);

  std::int64_t dim_ = 0, state_width_ = 0;
  std::vector<std::unique_ptr<const Layer>> layers_;
  bool is_merged_ = false;         // several layers
  std::vector<std::int64_t> ids_;  // of these
  std::vector<Place> places_;
};

// Whether the changes of a section with the description `now` may follow on one with `before`.
bool may_follow(const nlohmann::json& before, const nlohmann::json& now);

// What two descriptions of one table must have in common: without counts, limits and changes.
nlohmann::json identity_of(nlohmann::json description);

}  // namespace hstu
