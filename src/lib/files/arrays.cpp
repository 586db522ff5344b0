#include "lib/files/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/complex_parts.h"
#include "base/sizes.h"
#include "execute/constraint.h"
#include "execute/evaluate.h"
#include "layout/spelling.h"
#include "runtime/devices.h"
#include "shardarray/detail/maps.h"
#include "shardarray/placement.h"

namespace shardarray::files {

static_assert(std::endian::native == std::endian::little, "files hold the bytes of memory");

static constexpr std::array<DTypeNames, 15> all_names{{
    {DType::bool_, "b1", "BOOL"},
    {DType::int8, "i1", "I8"},
    {DType::int16, "i2", "I16"},
    {DType::int32, "i4", "I32"},
    {DType::int64, "i8", "I64"},
    {DType::uint8, "u1", "U8"},
    {DType::uint16, "u2", "U16"},
    {DType::uint32, "u4", "U32"},
    {DType::uint64, "u8", "U64"},
    {DType::float16, "f2", "F16"},
    {DType::bfloat16, "V2", "BF16"},  // NumPy does not know ml_dtypes.bfloat16 and writes this
    {DType::float32, "f4", "F32"},
    {DType::float64, "f8", "F64"},
    {DType::complex64, "c8", nullptr},
    {DType::complex128, "c16", nullptr},
}};
std::span<const DTypeNames> dtype_names() { return all_names; }
const DTypeNames& names_of(DType dtype) {
  return *std::find_if(all_names.begin(), all_names.end(), [&](const auto& n) { return n.dtype == dtype; });
}

Home home_of(const char* function, const std::optional<Sharding>& s, const Type& t, const std::string& name) {
  if (!s) return {sharding_on(current_default_device()), false};
  need_devices(function, s->device_assignment());
  core::check_summands(t, *s, function, name);
  try {
    layout_of(*s, static_cast<int>(t.shape.size()));
  } catch (const ShardingError& e) {
    throw ShardingError(fmt::format("{}: {}{} cannot be loaded to {}: {}", function,
                                    name.empty() ? "" : "`" + shown(name) + "` ", to_string(t),
                                    s->to_string(), e.text()));
  }
  return {*s, true};
}

std::int64_t stored_bytes(const FileReader& file, const std::string& name, const Type& t) {
  try {
    check_size(file.function(), t.shape, t.dtype);
  } catch (const ShapeError&) {
    file.fail(
        fmt::format("{}has the shape {} of {}", name.empty() ? "" : "`" + shown(name) + "` ",
                    to_string(t.shape), shardarray::name(t.dtype)),
        "An array has at most 32 dimensions, no negative sizes, and fewer than 2^62 bytes. Write the file "
        "again.");
  }
  return bytes_of(t.shape, t.dtype);
}

namespace {

void swap_bytes(std::span<std::byte> bytes, std::size_t item) {
  for (std::size_t k = 0; k < bytes.size(); k += item)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(k),
                 bytes.begin() + static_cast<std::ptrdiff_t>(k + item));
}

Shape reversed(const Shape& s) {
  Shape r = s;
  std::reverse(r.begin(), r.end());
  return r;
}
/// The sharding of the transpose.
Sharding reversed(const Sharding& s, int rank) {
  const Layout* const l = layout_of(s, rank);
  std::vector<AxisList> dims = l->dims();
  std::reverse(dims.begin(), dims.end());
  return spell(Layout::of(l->order(), std::move(dims)), {&s, 1});
}

}  // namespace

Array load_array(const Type& t, const Home& home, Order order, const FileReader& file, std::uint64_t at) {
  const auto pass = [&](std::size_t bytes) { at += bytes; };
  const auto fill = [&](std::span<std::byte> to) {
    file.read(at, to.data(), to.size());
    at += to.size();
  };
  const Pass passing = pass;
  return load_array(t, home, order, fill, &passing);
}

Array load_array(const Type& t, const Home& home, Order order, Fill fill, const Pass* pass) {
  const Where w = detail::call_site.place();
  const char* const function = detail::call_site.function;
  const std::size_t item = itemsize(part_type(t.dtype));
  const auto next = [&](std::span<std::byte> to) {
    fill(to);
    if (order.swapped) swap_bytes(to, item);
    if (t.dtype == DType::bool_)
      for (std::byte& b : to) b = std::byte{b != std::byte{0}};
  };
  if (!order.fortran || t.shape.size() < 2)
    return leaf_array(t, stream_from_host(function, t, home.sharding, home.committed, next, pass), w);
  // The file holds the transpose, row-major.
  const Type stored{reversed(t.shape), t.dtype};
  const Sharding there = reversed(home.sharding, static_cast<int>(t.shape.size()));
  Array x = leaf_array(stored, stream_from_host(function, stored, there, home.committed, next, pass), w)
                .transpose({}, w);
  if (home.committed) return core::device_put_leaf(x, home.sharding, "", w);
  if (!core::tracing()) evaluate({&x, 1}, "load");
  return x;
}

void save_array(const Array& x, detail::FunctionRef<void(std::span<const std::byte>)> take) {
  stream_to_host(detail::call_site.function, *value_of(x), type_of(x), take);
}

}  // namespace shardarray::files
