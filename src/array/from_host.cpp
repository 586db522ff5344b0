// Arrays from values in the program or on the host.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/count_text.h"
#include "base/sizes.h"
#include "ops/api.h"
#include "shardarray/filter_shard.h"

namespace shardarray {

DType NestedList::kind() const {
  if (!is_list_) return kind_;
  DType r = entries_.empty() ? DType::float32 : entries_[0].kind();
  for (const NestedList& e : entries_) r = std::max(r, e.kind());  // bool < int32 < float32 < complex64
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

}  // namespace

void NestedList::check_values(DType dtype, bool is_named) const {
  for (const NestedList& e : entries_) e.check_values(dtype, is_named);
  if (is_list_ || kind_ != DType::int32) return;
  const bool is_large = has_large();
  const auto value = static_cast<std::int64_t>(bits_);
  if (primitive::is_value(dtype, value, is_large)) return;
  const DType wide = is_large                                          ? DType::uint64
                     : primitive::is_value(DType::int32, value, false) ? DType::int32
                                                                       : DType::int64;
  const std::string number = is_large ? std::to_string(bits_) : std::to_string(value);
  if (is_named)
    throw DTypeError(
        fmt::format("array: {} does not fit into {}. A list has values of its dtype, and none wraps. Say "
                    "array(values, {}), and astype where it shall wrap.",
                    number, name(dtype), name(wide)));
  throw DTypeError(
      fmt::format("array: {} does not fit into {}. Whole numbers give int32 unless a dtype is named. Say "
                  "array(values, {}).",
                  number, name(dtype), name(wide)));
}

bool NestedList::has_large() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const NestedList& e) { return e.has_large(); }) ||
         (is_unsigned_ && static_cast<std::int64_t>(bits_) < 0);
}

Array array(const NestedList& values, const ShapeOf& shape, std::optional<DType> dtype, Where w) {
  const Site site(w, "array");
  const ShapeOf to = shape.shape ? shape : ShapeOf(values.shape());
  const DType kind = values.kind(), wanted = dtype.value_or(kind);
  if (kind == DType::bool_) return from_list<std::uint8_t>(values, DType::bool_, to, wanted, w);
  if (kind == DType::int32) {
    values.check_values(wanted, dtype.has_value());
    if (wanted == DType::int32) return from_list<std::int32_t>(values, wanted, to, wanted, w);
    if (!values.has_large()) return from_list<std::int64_t>(values, DType::int64, to, wanted, w);
    if (wanted == DType::uint64) return from_list<std::uint64_t>(values, wanted, to, wanted, w);
  }
  if (kind == DType::complex64) {
    if (wanted == DType::complex64) return from_list<std::complex<float>>(values, wanted, to, wanted, w);
    return from_list<std::complex<double>>(values, DType::complex128, to, wanted, w);
  }
  if (wanted == DType::float32) return from_list<float>(values, DType::float32, to, wanted, w);
  return from_list<double>(values, DType::float64, to, wanted, w);
}

namespace detail {

Array number_array(const Array& x, DType dtype, Where w) {
  const Site site(w, "asarray");
  primitive::check_literal(x, dtype);
  return primitive::cast(x, dtype);
}

Array host_array(const void* data, DType stored, std::size_t size, const ShapeOf& shape,
                 std::optional<DType> dtype, Where w) {
  const Site site(w, "array");
  const Shape to = shape.shape.value_or(Shape{static_cast<std::int64_t>(size)});
  check_size("array", to, stored);
  if (num_elements(to) != static_cast<std::int64_t>(size))
    throw ShapeError(fmt::format(
        "array: {} for shape {}, which has {}. There must be one value per element. Correct the shape.",
        count_text(size, "value"), shardarray::to_string(to), count_text(num_elements(to), "element")));
  const Array a = core::make_array(data, stored, to, w);
  return dtype && *dtype != stored ? a.astype(*dtype, w) : a;
}

void throw_no_array_at(const std::string& path, const char* function) {
  throw TreeError(
      fmt::format("{}: there is a sharding for `{}`, and the tree has no array there. Keys are the paths of "
                  "arrays, as tree_paths() has them. Check it.",
                  function, path));
}

void throw_sharding_tree(std::size_t wanted, std::size_t given, const Path& path, const char* function) {
  const std::string text = path.text();
  throw TreeError(
      fmt::format("{}: {} for {}{}. A list of shardings needs one for each entry. Give one sharding for all "
                  "of them, or as many.",
                  function, count_text(given, "sharding"), count_text(wanted, "entry"),
                  text.empty() ? "" : fmt::format(" at `{}`", text)));
}

}  // namespace detail
}  // namespace shardarray
