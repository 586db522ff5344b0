// DLPack: arrays that programs of other libraries read where they lie, and theirs that are read here.
//
// The structs are those of the specification, by other names: a pointer to one of them is one to DLManagedTensorVersioned or
// DLManagedTensor of any dlpack.h, and back (reinterpret_cast). Source: dmlc.github.io/dlpack/latest/c_api.html, version 1.1.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "shardarray/array.h"

namespace shardarray {

namespace dlpack {

/// DLPackVersion. What has another major version is laid out in another way, but for its deleter.
struct Version {
  std::uint32_t major, minor;
};
inline constexpr Version version{1, 1};  ///< of what to_dlpack() gives

/// DLDevice. Of the types only the host's memory is known here: kDLCPU.
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

/// DLTensor: the elements begin `byte_offset` bytes behind `data`; strides count elements, none (null) are those of rows in order.
struct Tensor {
  void* data;
  DeviceOf device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};

/// DLManagedTensor, as it was before version 1. Who takes it calls the deleter once, unless it is null.
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
inline constexpr std::uint64_t read_only = 1, is_copied = 2;  ///< of `flags`

/// Calls the deleter of a tensor that nobody took.
struct Release {
  void operator()(ManagedTensor* t) const noexcept {
    if (t->deleter != nullptr) t->deleter(t);
  }
  void operator()(ManagedTensorVersioned* t) const noexcept {
    if (t->deleter != nullptr) t->deleter(t);
  }
};

}  // namespace dlpack

/// Tensors that are owned here: `release()` hands one over, a pointer from elsewhere is taken with `DlpackTensor(pointer)`.
using DlpackTensor = std::unique_ptr<dlpack::ManagedTensorVersioned, dlpack::Release>;
using LegacyDlpackTensor = std::unique_ptr<dlpack::ManagedTensor, dlpack::Release>;

/// The array's memory as a tensor, nothing is copied: row-major, with strides, of every dtype that arrays have. The memory lives
/// until the deleter is called, which may be on any thread; an array that is given away meanwhile leaves it alone (a copy is
/// given). Flagged as read-only: arrays do not change, and who writes there all the same changes every array that shares the
/// memory. Of an array over several devices each piece is a tensor: `to_dlpack(x.addressable_data(i))`. Computes the array and
/// waits for it. Throws ShardingError for one on several devices, DeviceError for one that is no CPU device's of this process,
/// DonationError for one that was given away, TraceError inside of a trace.
[[nodiscard]] SHARDARRAY_API DlpackTensor to_dlpack(const Array& x, Where w = Where::here());
/// The same for who knows no versions. The struct cannot say that it is read-only.
[[nodiscard]] SHARDARRAY_API LegacyDlpackTensor to_dlpack_legacy(const Array& x, Where w = Where::here());

/// Options of from_dlpack().
struct DlpackOptions {
  std::optional<Device> device =
      std::nullopt;  ///< where the array is committed; none: uncommitted, default device
  /// Never (false: what would need one is refused), always (true), none: where the memory cannot serve as it is.
  std::optional<bool> copy = std::nullopt;
};
/// The tensor's elements as an array of its shape and dtype. The memory of the host is a CPU device's without a copy if it is
/// row-major and every element is aligned to its size, which are all of most allocators (JAX wants 64 bytes); strides of other
/// orders, of 0 and backwards, elements beside their alignment, bools other than 0 and 1, and devices that are no CPUs need
/// one. Memory that was not copied is never written here, not even when the array is donated, and has to stay as it is until
/// the deleter is called: with the last array that shares it, on any thread. What was copied is let go at once. However it
/// ends, the deleter is called once. Inside a trace the array is a constant. The pieces of an array over several devices:
/// make_array_from_single_device_arrays() of arrays with `device`, which copies nothing. Throws Error for a null pointer,
/// another major version, another device than the host's memory, `lanes` other than 1, and where there is no memory to read or
/// `copy` forbids what is needed; DTypeError for dtypes that arrays do not have (8-bit floats), ShapeError for more
/// than 32 dimensions and sizes that are none, DeviceError for a device that is not there, OutOfMemory.
[[nodiscard]] SHARDARRAY_API Array from_dlpack(DlpackTensor tensor, const DlpackOptions& options = {},
                                               Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array from_dlpack(LegacyDlpackTensor tensor, const DlpackOptions& options = {},
                                               Where w = Where::here());

}  // namespace shardarray
