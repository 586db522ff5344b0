#include "shardarray/dlpack.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/count_text.h"
#include "base/host_memory.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/host_stream.h"
#include "lib/shard_memory.h"
#include "runtime/devices.h"
#include "shardarray/placement.h"

namespace shardarray {

namespace {

// ---------------------------------------------------------------- dtypes
dlpack::DataType data_type(DType t) {
  const std::uint8_t code = t == DType::bool_        ? dlpack::code_bool
                            : t == DType::bfloat16   ? dlpack::code_bfloat
                            : is_floating(t)         ? dlpack::code_float
                            : is_complex(t)          ? dlpack::code_complex
                            : is_unsigned_integer(t) ? dlpack::code_uint
                                                     : dlpack::code_int;
  return {code, static_cast<std::uint8_t>(8 * itemsize(t)), 1};
}

DType dtype_of_tensor(const dlpack::DataType& given) {
  if (given.lanes != 1)
    throw Error(
        fmt::format("from_dlpack: the elements are vectors of {} numbers (lanes). Arrays have elements of "
                    "one number. Give the tensor another dimension in their place.",
                    given.lanes));
  for (int k = 0; k <= static_cast<int>(DType::complex128); k++) {
    const auto t = static_cast<DType>(k);
    const dlpack::DataType own = data_type(t);
    if (own.code == given.code && own.bits == given.bits) return t;
  }
  throw DTypeError(fmt::format(
      "from_dlpack: the dtype has code {} and {}. Arrays are of bool, integers of 8 to 64 bits, floats of 16 "
      "to 64 bits, bfloat16, or complex of 64 or 128 bits. Cast it where it comes from.",
      given.code, count_text(given.bits, "bit")));
}

// ---------------------------------------------------------------- out
/// What an exported tensor keeps alive.
template <class Managed> struct Exported {
  Managed managed{};
  Shape shape, strides;
  BufferRef buffer;
};

template <class Managed> Exported<Managed>* exported(const char* function, const Array& x) {
  auto memory = shard_memory(function, x);
  auto e = std::make_unique<Exported<Managed>>();
  e->shape = memory.type.shape;
  e->strides = e->shape;
  std::int64_t step = 1;
  for (std::size_t d = e->shape.size(); d-- > 0; step *= std::max<std::int64_t>(1, e->shape[d]))
    e->strides[d] = step;
  e->buffer = std::move(memory.buffer);
  e->managed.dl_tensor = {e->buffer->data,
                          {dlpack::cpu, 0},
                          static_cast<std::int32_t>(e->shape.size()),
                          data_type(memory.type.dtype),
                          e->shape.begin(),
                          e->strides.begin(),
                          0};
  e->managed.manager_ctx = e.get();
  e->managed.deleter = [](Managed* m) { delete static_cast<Exported<Managed>*>(m->manager_ctx); };
  return e.release();
}

// ---------------------------------------------------------------- in
bool is_row_major(const Type& t, const std::int64_t* strides) {
  if (strides == nullptr) return true;
  std::int64_t step = 1;
  for (std::size_t d = t.shape.size(); d-- > 0; step *= t.shape[d])
    if (t.shape[d] != 1 && strides[d] != step) return false;
  return true;
}

// Copies all elements, row-major, to `to`.
void copy_strided(const Type& t, const std::byte* from, const std::int64_t* strides, std::byte* to) {
  const std::size_t item = itemsize(t.dtype), rank = t.shape.size();
  Shape index = Shape::filled(rank, 0);
  for (std::int64_t left = num_elements(t.shape); left > 0; left--, to += item) {
    std::memcpy(to, from, item);
    for (std::size_t d = rank; d-- > 0;) {
      const auto step = strides[d] * static_cast<std::int64_t>(item);
      from += step;
      if (++index[d] < t.shape[d]) break;
      from -= step * t.shape[d];
      index[d] = 0;
    }
  }
}

/// The shape and dtype, checked.
Type type_of_tensor(const dlpack::Tensor& x) {
  if (x.ndim < 0 || static_cast<std::size_t>(x.ndim) > most_dimensions)
    throw ShapeError(fmt::format(
        "from_dlpack: the tensor has {} dimensions. An array has at most {}. Reshape it where it comes from.",
        x.ndim, most_dimensions));
  Type t{{}, dtype_of_tensor(x.dtype)};
  if (x.ndim > 0 && x.shape == nullptr)
    throw Error(
        fmt::format("from_dlpack: the tensor of {} has no shape. Every tensor has one. Correct its producer.",
                    count_text(x.ndim, "dimension")));
  t.shape = Shape(x.shape, x.shape + x.ndim);
  check_size("from_dlpack", t.shape, t.dtype);
  return t;
}

/// Why the elements cannot be used in place; null: they can.
const char* why_copied(const dlpack::Tensor& x, const Type& t, const std::byte* data, const Device& device) {
  if (device.platform != "cpu") return "the device is no CPU";
  if (!is_row_major(t, x.strides)) return "it is not row-major";
  if (reinterpret_cast<std::uintptr_t>(data) % itemsize(t.dtype) != 0)
    return "its elements are not aligned to their size";
  const std::int64_t n = num_elements(t.shape);
  if (t.dtype == DType::bool_ && std::any_of(data, data + n, [](std::byte b) { return b > std::byte{1}; }))
    return "it has bools other than 0 and 1";
  return nullptr;
}

ValueRef value_in(const dlpack::Tensor& x, const Type& t, std::shared_ptr<const void> keeper,
                  const DlpackOptions& o) {
  const Device& device = o.device ? *o.device : current_default_device();
  if (o.device) need_devices("from_dlpack", {&device, 1});
  const auto bytes = bytes_of(t.shape, t.dtype);
  if (x.data == nullptr && bytes > 0)
    throw Error(
        fmt::format("from_dlpack: {} without memory: its pointer is null. The elements have to be there. "
                    "Correct its producer.",
                    to_string(t)));
  const std::byte* const data = bytes > 0 ? static_cast<const std::byte*>(x.data) + x.byte_offset : nullptr;
  const char* const why = bytes > 0 ? why_copied(x, t, data, device) : nullptr;
  if (why != nullptr && o.copy == false)
    throw Error(
        fmt::format("from_dlpack: {} cannot be taken without a copy: {}. Without one its memory has to be "
                    "row-major, aligned, and a CPU device's. Leave `copy` out.",
                    to_string(t), why));
  const Sharding& s = sharding_on(device);
  const bool committed = o.device.has_value();
  if (bytes > 0 && why == nullptr && !o.copy.value_or(false)) {
    auto v = make_value(layout_of(s, static_cast<int>(t.shape.size())), s, committed, true);
    v->buffers.push_back(foreign_buffer(backend(device.platform), local_index(device), data,
                                        static_cast<std::size_t>(bytes), std::move(keeper)));
    return v;
  }
  std::vector<std::byte> elements = host_bytes("from_dlpack", bytes);
  if (bytes > 0 && is_row_major(t, x.strides)) std::memcpy(elements.data(), data, elements.size());
  else if (bytes > 0) copy_strided(t, data, x.strides, elements.data());
  if (t.dtype == DType::bool_)
    for (std::byte& b : elements) b = std::byte{b != std::byte{0}};
  ValueRef v = host_value(elements.data(), t, device);
  v->committed = committed;
  return v;
}

Array array_of(const dlpack::Tensor& x, std::shared_ptr<const void> keeper, const DlpackOptions& o, Where w) {
  if (x.device.device_type != dlpack::cpu)
    throw Error(
        fmt::format("from_dlpack: the tensor is on a device of type {}. Only the host's memory is read: type "
                    "{} (kDLCPU). Bring it to the host where it comes from.",
                    x.device.device_type, dlpack::cpu));
  const Type t = type_of_tensor(x);
  return leaf_array(t, value_in(x, t, std::move(keeper), o), w);
}

template <class Tensor> void need_tensor(const Tensor& t) {
  if (!t)
    throw Error(
        "from_dlpack: the pointer is null. A tensor is taken over once. Ask its producer for another one.");
}

}  // namespace

DlpackTensor to_dlpack(const Array& x, Where w) {
  const Site site(w, "to_dlpack");
  return detail::with_memory("to_dlpack", 0, [&] {
    auto* const e = exported<dlpack::ManagedTensorVersioned>("to_dlpack", x);
    e->managed.version = dlpack::version;
    e->managed.flags = dlpack::read_only;
    return DlpackTensor(&e->managed);
  });
}

LegacyDlpackTensor to_dlpack_legacy(const Array& x, Where w) {
  const Site site(w, "to_dlpack_legacy");
  return detail::with_memory("to_dlpack_legacy", 0, [&] {
    return LegacyDlpackTensor(&exported<dlpack::ManagedTensor>("to_dlpack_legacy", x)->managed);
  });
}

Array from_dlpack(DlpackTensor tensor, const DlpackOptions& options, Where w) {
  const Site site(w, "from_dlpack");
  need_tensor(tensor);
  if (tensor->version.major != dlpack::version.major)
    throw Error(
        fmt::format("from_dlpack: the tensor is of version {}.{} of DLPack. Version {} is read. Ask its "
                    "producer for that (max_version).",
                    tensor->version.major, tensor->version.minor, dlpack::version.major));
  return detail::with_memory("from_dlpack", 0, [&] {
    const std::shared_ptr<dlpack::ManagedTensorVersioned> keeper(std::move(tensor));
    return array_of(keeper->dl_tensor, keeper, options, w);
  });
}

Array from_dlpack(LegacyDlpackTensor tensor, const DlpackOptions& options, Where w) {
  const Site site(w, "from_dlpack");
  need_tensor(tensor);
  return detail::with_memory("from_dlpack", 0, [&] {
    const std::shared_ptr<dlpack::ManagedTensor> keeper(std::move(tensor));
    return array_of(keeper->dl_tensor, keeper, options, w);
  });
}

}  // namespace shardarray
