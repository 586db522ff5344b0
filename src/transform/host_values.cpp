// Arrays from values that stand in the program or on the host.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "shardarray/filter_shard.h"

namespace shardarray {

DType NestedList::kind() const {
  if (!is_list_) return kind_;
  DType r = entries_.empty() ? DType::float32 : entries_[0].kind();
  for (const NestedList& e : entries_) r = std::max(r, e.kind());  // bool < int32 < float32
  return r;
}

Shape NestedList::shape() const {
  if (!is_list_) return {};
  Shape row = entries_.empty() ? Shape() : entries_[0].shape();
  for (std::size_t k = 1; k < entries_.size(); k++)
    if (const Shape other = entries_[k].shape(); other != row)
      throw ShapeError(fmt::format(
          "array: entry {} has shape {}, entry 0 has {}. All rows must have the same length. Fill the "
          "short ones up.",
          k, to_string(other), to_string(row)));
  row.insert(0, static_cast<std::int64_t>(entries_.size()));
  return row;
}

namespace {

template <class T>
Array from_list(const NestedList& values, DType stored, const ShapeOf& shape, DType dtype, Where w) {
  std::vector<T> flat;
  values.append_to(flat);
  return detail::host_array(flat.data(), stored, flat.size(), shape, dtype, w);
}

Array from_integers(const NestedList& values, const ShapeOf& shape, Where w) {
  std::vector<std::int64_t> wide;
  values.append_to(wide);
  std::vector<std::int32_t> flat;
  for (const std::int64_t v : wide) {
    if (v < std::numeric_limits<std::int32_t>::min() || v > std::numeric_limits<std::int32_t>::max())
      throw DTypeError(
          fmt::format("array: {} does not fit into int32. Whole numbers give int32 unless a dtype is "
                      "named. Say array(values, int64).",
                      v));
    flat.push_back(static_cast<std::int32_t>(v));
  }
  return detail::host_array(flat.data(), DType::int32, flat.size(), shape, DType::int32, w);
}

}  // namespace

Array array(const NestedList& values, const ShapeOf& shape, std::optional<DType> dtype, Where w) {
  const ShapeOf to = shape.shape ? shape : ShapeOf(values.shape());
  const DType kind = values.kind(), wanted = dtype.value_or(kind);
  if (kind == DType::bool_) return from_list<std::uint8_t>(values, DType::bool_, to, wanted, w);
  if (kind == DType::int32)
    return dtype ? from_list<std::int64_t>(values, DType::int64, to, wanted, w)
                 : from_integers(values, to, w);
  if (wanted == DType::float32) return from_list<float>(values, DType::float32, to, wanted, w);
  return from_list<double>(values, DType::float64, to, wanted, w);
}

namespace detail {

Array host_array(const void* data, DType stored, std::size_t size, const ShapeOf& shape,
                 std::optional<DType> dtype, Where w) {
  const Shape to = shape.shape.value_or(Shape{static_cast<std::int64_t>(size)});
  if (num_elements(to) != static_cast<std::int64_t>(size))
    throw ShapeError(
        fmt::format("array: {} values for shape {}, which has {} elements. There must be one value per "
                    "element. Correct the shape.",
                    size, shardarray::to_string(to), num_elements(to)));
  const Array a = core::make_array(data, stored, to, w);
  return dtype && *dtype != stored ? a.astype(*dtype, w) : a;
}

void throw_sharding_tree(std::size_t wanted, std::size_t given, const Path& path, const char* function) {
  const std::string text = path.text();
  throw TreeError(
      fmt::format("{}: {} shardings for {} entries{}. A list of shardings needs one for each entry. Give "
                  "one sharding for all of them, or as many.",
                  function, given, wanted, text.empty() ? "" : fmt::format(" at `{}`", text)));
}

}  // namespace detail
}  // namespace shardarray
