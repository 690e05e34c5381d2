#include "hstu/batching/batch.h"

#include <algorithm>
#include <cstring>

#include "hstu/base/error.h"

namespace hstu {

std::string ids_column(std::string_view feature) {
  return std::string(feature) + ".ids";
}
std::string index_column(std::string_view feature) {
  return std::string(feature) + ".index";
}

void Batch::clear() {
  columns_.clear();
  routes_.clear();
  bad_ids.clear();
  history_keys = nullptr;
  copied_ = false;
  used_ = samples = tokens = longest = supervised = 0;
}

void Batch::reserve(std::int64_t bytes) {
  if (bytes <= capacity_) return;
  // A quarter more, so that a slightly longer batch also fits.
  const auto wanted =
      static_cast<std::size_t>((bytes + bytes / 4 + kAlignment - 1) / kAlignment * kAlignment);
  std::shared_ptr<std::byte> slab(
      static_cast<std::byte*>(memory_->allocate(wanted, kAlignment)),
      [memory = memory_, wanted](std::byte* data) { memory->deallocate(data, wanted, kAlignment); });
  if (used_ > 0) std::memcpy(slab.get(), slab_.get(), static_cast<std::size_t>(used_));
  slab_ = std::move(slab);
  capacity_ = static_cast<std::int64_t>(wanted);
}

std::byte* Batch::add_column(std::string_view name, DType type, Shape shape) {
  require(find(name) == nullptr, "batch: column \"{}\" already exists", name);
  columns_.push_back(make_room(name, type, shape));
  return slab_.get() + columns_.back().offset;
}

Batch::Column Batch::make_room(std::string_view name, DType type, const Shape& shape) {
  Column column{std::string(name), type, used_, shape};
  const auto bytes = static_cast<std::int64_t>(column.elements() * size_of(type));
  const std::int64_t end = used_ + (bytes + kAlignment - 1) / kAlignment * kAlignment;
  reserve(std::max(end, kAlignment));
  used_ = end;
  return column;
}

Batch::NewRoute Batch::add_route(std::int64_t n, int ranks) {
  routes_.push_back(
      {make_room({}, DType::i64, {n}), make_room({}, DType::i32, {n}), make_room({}, DType::i64, {ranks})});
  const auto& [ids, positions, counts] = routes_.back();
  return {{reinterpret_cast<std::int64_t*>(slab_.get() + ids.offset), ids.elements()},
          {reinterpret_cast<std::int32_t*>(slab_.get() + positions.offset), positions.elements()},
          {reinterpret_cast<std::int64_t*>(slab_.get() + counts.offset), counts.elements()}};
}

Route Batch::route(std::size_t feature) const {
  require(feature < routes_.size(), "batch: expected the route of feature {}, found {} routes", feature,
          routes_.size());
  const auto& [ids, positions, counts] = routes_[feature];
  return {tensor(ids),
          tensor(positions),
          host_tensor(ids),
          {reinterpret_cast<const std::int64_t*>(slab_.get() + counts.offset), counts.elements()}};
}

const Batch::Column* Batch::find(std::string_view name) const {
  const auto column =
      std::find_if(columns_.begin(), columns_.end(), [&](const Column& c) { return c.name == name; });
  return column == columns_.end() ? nullptr : &*column;
}

const Batch::Column& Batch::find(std::string_view name, DType type) const {
  const Column* const column = find(name);
  if (column == nullptr) {
    std::string known;
    for (const Column& c : columns_) known += " " + c.name;
    require(false, "batch: no column \"{}\" among{}", name, known);
  }
  require(column->type == type, "batch: column \"{}\": expected {}, found {}", name, type, column->type);
  return *column;
}

Tensor Batch::host_tensor(std::string_view name) const {
  const Column* const column = find(name);
  require(column != nullptr, "batch: no column \"{}\"", name);
  return host_tensor(*column);
}

Tensor Batch::host_tensor(const Column& column) const {
  return Tensor::view(column.shape, column.type, slab_.get() + column.offset, slab_);
}

Tensor Batch::tensor(std::string_view name) const {
  const Column* const column = find(name);
  require(column != nullptr, "batch: no column \"{}\"", name);
  return tensor(*column);
}

Tensor Batch::tensor(const Column& column) const {
  if (!copied_) return host_tensor(column);
  auto copy = std::make_shared<Tensor>(copy_);
  return Tensor::view(column.shape, column.type, copy->mutable_raw() + column.offset, copy, copy_.device());
}

void Batch::copy_to(const Context& context, Tensor& memory) {
  copied_ = !context.device().is_host();
  if (!copied_) return;
  if (!memory.defined() || memory.device() != context.device() || memory.size() < used_) {
    memory = {}, copy_ = {};  // free for the new one
    memory = Tensor::empty({capacity_}, DType::u8, context);
  }
  copy_ = memory;
  copy_bytes(copy_.mutable_raw(), slab_.get(), static_cast<std::size_t>(used_), context.stream);
}

}  // namespace hstu
