// The reading and placement members of ShardedArray.
#include "shardarray/array.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/complex_parts.h"
#include "base/count_text.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/without_value.h"
#include "runtime/devices.h"
#include "runtime/scalar.h"

namespace shardarray {

const Type& ShardedArray::type(const char* function, Where w) const {
  if (has_value()) [[likely]]
    return node_->type(index_);
  const Site site(w);
  return type_of(*this, function);  // throws
}
const Shape& ShardedArray::shape(Where w) const { return type("shape", w).shape; }
DType ShardedArray::dtype(Where w) const { return type("dtype", w).dtype; }
bool ShardedArray::weak_type(Where w) const { return type("weak_type", w).weak; }
std::int64_t ShardedArray::size(Where w) const { return num_elements(type("size", w).shape); }
std::int64_t ShardedArray::nbytes(Where w) const {
  const Type& t = type("nbytes", w);
  return bytes_of(t.shape, t.dtype);
}
bool ShardedArray::is_deleted() const { return node_ && node_->donor() != nullptr; }

Sharding ShardedArray::sharding(Where w) const {
  const Site site(w, "sharding");
  return placed(*this, "sharding")->sharding;
}
bool ShardedArray::committed(Where w) const {
  const Site site(w, "committed");
  return placed(*this, "committed")->committed;
}
std::vector<Device> ShardedArray::devices(Where w) const {
  const Site site(w, "devices");
  return placed(*this, "devices")->sharding.device_set();
}
bool ShardedArray::is_fully_replicated(Where w) const {
  const Site site(w, "is_fully_replicated");
  return placed(*this, "is_fully_replicated")->layout->is_fully_replicated();
}

std::vector<Shard> ShardedArray::addressable_shards(Where w) const {
  const Site site(w, "addressable_shards");
  const ValueRef v = force(*this, "addressable_shards");
  const Type& t = type_of(*this);
  const auto map = v->sharding.devices_indices_map(t.shape);
  const auto replicas = v->sharding.replica_ids(t.shape);
  const Instances instances = addressable_instances(*v->layout, v->shared);
  std::vector<Shard> shards;
  for (std::size_t k = 0; k < map.size(); k++) {
    const Device& device = map[k].first;
    const int p = v->layout->order()->position(device);
    const int instance = instances.of_position[static_cast<std::size_t>(p)];
    if (instance < 0) continue;  // in another process
    const DeviceOrder* order = DeviceOrder::of({device});
    const Type part{tile_of(*v->layout, t.shape, p).size, t.dtype, t.weak};
    auto view = make_value(Layout::replicated(order, static_cast<int>(part.shape.size())),
                           SingleDeviceSharding(device), v->committed, true);
    view->buffers.push_back(v->buffers[static_cast<std::size_t>(instance)]);
    view->ready = v->ready;
    shards.push_back({device, map[k].second, replicas[k], leaf_array(part, std::move(view), node_->where)});
  }
  return shards;
}

ShardedArray ShardedArray::addressable_data(int i, Where w) const {
  const Site site(w, "addressable_data");
  const std::vector<Shard> shards = addressable_shards();
  if (i < 0 || i >= static_cast<int>(shards.size()))
    throw ShapeError(
        fmt::format("addressable_data: shard {} of {}. They are numbered from 0, in the order of the "
                    "sharding's devices. Give a number below {}.",
                    i, count_text(shards.size(), "shard"), shards.size()));
  return shards[is_fully_replicated() ? 0 : static_cast<std::size_t>(i)].data;
}

const ShardedArray& ShardedArray::block_until_ready(Where w) const {
  const Site site(w, "block_until_ready");
  wait(force(*this, "block_until_ready")->ready);
  return *this;
}

namespace {

// Whether `to` represents all values of `from`.
bool holds(DType to, DType from) {
  if (to == from) return true;
  if (is_complex(to)) return is_complex(from) ? itemsize(from) < itemsize(to) : holds(part_type(to), from);
  if (is_floating(to))
    return from == DType::bool_ || (is_floating(from) && itemsize(from) < itemsize(to)) ||
           (is_integer(from) && itemsize(from) < itemsize(to));
  if (is_integer(to))
    return from == DType::bool_ || (is_integer(from) && itemsize(from) < itemsize(to) &&
                                    (is_unsigned_integer(from) || is_signed_integer(to)));
  return false;
}

// A C++ type into which item() reads all values of t.
const char* name_in_cpp(DType t) {
  switch (t) {
    case DType::bool_: return "bool";
    case DType::int8: return "std::int8_t";
    case DType::int16: return "std::int16_t";
    case DType::int32: return "int";
    case DType::int64: return "std::int64_t";
    case DType::uint8: return "std::uint8_t";
    case DType::uint16: return "std::uint16_t";
    case DType::uint32: return "unsigned";
    case DType::uint64: return "std::uint64_t";
    case DType::float64: return "double";
    case DType::complex64: return "std::complex<float>";
    case DType::complex128: return "std::complex<double>";
    default: return "float";
  }
}

template <class To, class From> void convert_all(const std::byte* from, To* to, std::size_t n) {
  for (std::size_t k = 0; k < n; k++) {
    From x;
    std::memcpy(&x, from + k * sizeof(From), sizeof(From));
    to[k] = scalar::cast<To>(x);  // like astype: integers saturate, NaN gives 0
  }
}

// The value of a float16 or bfloat16.
float half_value(std::uint16_t bits, DType t) {
  if (t == DType::bfloat16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float v = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                  : exponent == 31 ? (fraction ? NAN : INFINITY)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits >> 15 ? -v : v;
}
template <class To> void convert_halves(const std::byte* from, DType t, To* to, std::size_t n) {
  for (std::size_t k = 0; k < n; k++) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * k, 2);
    to[k] = scalar::cast<To>(half_value(bits, t));
  }
}

template <class To> void convert_real(const std::byte* from, DType t, To* to, std::size_t n) {
  switch (t) {
    case DType::bool_:
    case DType::uint8: return convert_all<To, std::uint8_t>(from, to, n);
    case DType::int8: return convert_all<To, std::int8_t>(from, to, n);
    case DType::int16: return convert_all<To, std::int16_t>(from, to, n);
    case DType::uint16: return convert_all<To, std::uint16_t>(from, to, n);
    case DType::int32: return convert_all<To, std::int32_t>(from, to, n);
    case DType::uint32: return convert_all<To, std::uint32_t>(from, to, n);
    case DType::int64: return convert_all<To, std::int64_t>(from, to, n);
    case DType::uint64: return convert_all<To, std::uint64_t>(from, to, n);
    case DType::float16:
    case DType::bfloat16: return convert_halves(from, t, to, n);
    case DType::float32: return convert_all<To, float>(from, to, n);
    default: return convert_all<To, double>(from, to, n);
  }
}

// Like astype: real numbers get no imaginary part, and complex ones lose it, except that bool tests both parts.
template <class To, class From> To from_complex(std::complex<From> z) {
  if constexpr (ComplexElement<To>) return To(z);
  else if constexpr (std::is_same_v<To, bool>) return z.real() != 0 || z.imag() != 0;
  else return scalar::cast<To>(z.real());
}
template <class To, class From> void convert_pairs(const std::byte* from, To* to, std::size_t n) {
  for (std::size_t k = 0; k < n; k++) {
    std::complex<From> z;
    std::memcpy(&z, from + k * sizeof z, sizeof z);
    to[k] = from_complex<To>(z);
  }
}

template <class To> void convert_from(const std::byte* from, DType t, To* to, std::size_t n) {
  if (t == DType::complex64) return convert_pairs<To, float>(from, to, n);
  if (t == DType::complex128) return convert_pairs<To, double>(from, to, n);
  if constexpr (ComplexElement<To>) {
    std::vector<typename To::value_type> parts(n);
    convert_from(from, t, parts.data(), n);
    std::copy(parts.begin(), parts.end(), to);
    return;
  } else {
    convert_real(from, t, to, n);
  }
}

void convert(const std::byte* from, DType t, void* to, DType wanted, std::size_t n) {
  if (t == wanted) {
    if (n > 0) std::memcpy(to, from, n * itemsize(t));  // the address may be null if n is 0
    return;
  }
  switch (wanted) {
    case DType::bool_: return convert_from(from, t, static_cast<bool*>(to), n);
    case DType::uint8: return convert_from(from, t, static_cast<std::uint8_t*>(to), n);
    case DType::int8: return convert_from(from, t, static_cast<std::int8_t*>(to), n);
    case DType::int16: return convert_from(from, t, static_cast<std::int16_t*>(to), n);
    case DType::uint16: return convert_from(from, t, static_cast<std::uint16_t*>(to), n);
    case DType::int32: return convert_from(from, t, static_cast<std::int32_t*>(to), n);
    case DType::uint32: return convert_from(from, t, static_cast<std::uint32_t*>(to), n);
    case DType::int64: return convert_from(from, t, static_cast<std::int64_t*>(to), n);
    case DType::uint64: return convert_from(from, t, static_cast<std::uint64_t*>(to), n);
    case DType::float32: return convert_from(from, t, static_cast<float*>(to), n);
    case DType::complex64: return convert_from(from, t, static_cast<std::complex<float>*>(to), n);
    case DType::complex128: return convert_from(from, t, static_cast<std::complex<double>*>(to), n);
    default: return convert_from(from, t, static_cast<double*>(to), n);
  }
}

}  // namespace

void ShardedArray::read(void* to, DType wanted, std::int64_t elements, const char* what, Where w) const {
  const Site site(w, what);
  const Type& t = type_of(*this, what);
  if (num_elements(t.shape) != elements)
    throw ShapeError(
        fmt::format("{}: {} has {} elements, one was expected. Index it first, or use to_vector.", what,
                    to_string(t), num_elements(t.shape)));
  if (what == std::string_view("item") && !holds(wanted, t.dtype))
    throw DTypeError(
        fmt::format("item: a value of {} does not fit exactly into {}. A number is read into a type that "
                    "holds every one. Say x.item<{}>(), or {}.astype({}).item<{}>().",
                    name(t.dtype), name(wanted), name_in_cpp(t.dtype),
                    is_complex(t.dtype) && !is_complex(wanted) ? "real(x)" : "x",
                    wanted == DType::bool_ ? "bool_" : name(wanted), name_in_cpp(wanted)));
  if (is_complex(t.dtype) && !is_complex(wanted) && wanted != DType::bool_)
    throw DTypeError(fmt::format(
        "{}: {} has imaginary parts, {} has no place for them. They are not dropped where an array is read. "
        "Read std::complex<float> or std::complex<double>, or real(x), imag(x) or abs(x).",
        what, to_string(t), name(wanted)));
  const std::vector<std::byte> bytes = host_elements(*this, what);
  convert(bytes.data(), t.dtype, to, wanted, static_cast<std::size_t>(elements));
}

// A condition cannot pass a line: uses that of the array.
bool ShardedArray::item_bool() const {
  const Site site(has_value() ? node_->where : detail::RecordedLine());
  const Type& t = type_of(*this, "bool");
  if (num_elements(t.shape) != 1)
    throw ShapeError(fmt::format(
        "bool: the truth value of {} is ambiguous. Use any() or all(); element by element: where, "
        "logical_and, logical_or, logical_not, maximum, minimum.",
        to_string(t)));
  bool v = false;
  read(&v, DType::bool_, 1, "bool", {});
  return v;
}

}  // namespace shardarray
