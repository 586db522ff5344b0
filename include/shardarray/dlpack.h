// DLPack: sharing arrays with other libraries without copying, in both directions.
//
// The structs are those of the specification under other names: a pointer to one can be converted to DLManagedTensorVersioned or
// DLManagedTensor of any dlpack.h, and back (reinterpret_cast). Source: dmlc.github.io/dlpack/latest/c_api.html, version 1.1.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "shardarray/array.h"

namespace shardarray {

namespace dlpack {

/// DLPackVersion. Other major versions have another layout, except for the deleter.
struct Version {
  std::uint32_t major, minor;
};
inline constexpr Version version{1, 1};  ///< the version that to_dlpack() returns

/// DLDevice. Only host memory is supported: kDLCPU.
struct DeviceOf {
  std::int32_t device_type, device_id;
};
inline constexpr std::int32_t cpu = 1;

/// DLDataType: `lanes` elements of `bits` bits of a kind.
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
inline constexpr std::uint8_t code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_complex = 5,
                              code_bool = 6;

/// DLTensor: elements start `byte_offset` bytes after `data`; strides count elements, null means row-major.
struct Tensor {
  void* data;
  DeviceOf device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

/// DLManagedTensor, from before version 1. Its consumer calls the deleter once, unless it is null.
struct ManagedTensor {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor*);
};
/// DLManagedTensorVersioned.
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned*);
  std::uint64_t flags;
  Tensor dl_tensor;
};
inline constexpr std::uint64_t read_only = 1, is_copied = 2;  ///< bits of `flags`

/// Calls the deleter of an unconsumed tensor.
struct Release {
  void operator()(ManagedTensor* t) const noexcept {
    if (t->deleter != nullptr) t->deleter(t);
  }
  void operator()(ManagedTensorVersioned* t) const noexcept {
    if (t->deleter != nullptr) t->deleter(t);
  }
};

}  // namespace dlpack

/// Owned tensors: `release()` hands one over, `DlpackTensor(pointer)` takes ownership of a pointer from elsewhere.
using DlpackTensor = std::unique_ptr<dlpack::ManagedTensorVersioned, dlpack::Release>;
using LegacyDlpackTensor = std::unique_ptr<dlpack::ManagedTensor, dlpack::Release>;

/// The array's memory as a tensor without a copy: row-major, with strides, of any dtype of arrays. The memory lives until the deleter is
/// called, on any thread; if the array is donated meanwhile, a copy is donated instead. Flagged read-only, as arrays are immutable:
/// writing to it nevertheless changes every array that shares the memory. For an array over several devices, take each shard:
/// `to_dlpack(x.addressable_data(i))`. Computes the array and waits for it. Throws ShardingError for an array on several devices,
/// DeviceError unless it is on a CPU device of this process, DonationError for a donated one, TraceError inside a trace.
[[nodiscard]] SHARDARRAY_API DlpackTensor to_dlpack(const Array& x, Where w = Where::here());
/// The same for consumers without version support. The struct cannot say that it is read-only.
[[nodiscard]] SHARDARRAY_API LegacyDlpackTensor to_dlpack_legacy(const Array& x, Where w = Where::here());

/// Options of from_dlpack().
struct DlpackOptions {
  std::optional<Device> device =
      std::nullopt;  ///< where the array is committed; none: uncommitted, default device
  /// false: never copy (reject tensors that need it); true: always copy; none: only if the memory cannot be used as it is.
  std::optional<bool> copy = std::nullopt;
};
/// The tensor's elements as an array of its shape and dtype. Host memory is used as CPU device memory without a copy if it is row-major
/// and elements are aligned to their size, as most allocators guarantee (JAX requires 64 bytes); strides of other orders, zero and
/// negative strides, misaligned elements, bools other than 0 and 1, and non-CPU devices require a copy. Memory that was not copied is
/// never written here, even if the array is donated, and must not change until the deleter is called: with the last array that shares it,
/// on any thread. After a copy it is called at once. In any case, the deleter is called exactly once. Inside a trace the array is a
/// constant. To build an array over several devices, use make_array_from_single_device_arrays() on arrays with `device`, which copies
/// nothing. Throws Error for a null pointer, another major version, memory other than the host's, `lanes` other than 1, and if there is
/// no memory to read or `copy` forbids a required copy; DTypeError for unsupported dtypes (8-bit floats), ShapeError for more than 32
/// dimensions and invalid sizes, DeviceError for a device that does not exist, OutOfMemory.
[[nodiscard]] SHARDARRAY_API Array from_dlpack(DlpackTensor tensor, const DlpackOptions& options = {},
                                               Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array from_dlpack(LegacyDlpackTensor tensor, const DlpackOptions& options = {},
                                               Where w = Where::here());

}  // namespace shardarray
