// Values as streams of bytes: for what host memory should not have to hold as a whole, such as files.
#pragma once
#include <cstddef>
#include <span>

#include "execute/launch.h"
#include "shardarray/detail/path.h"

namespace shardarray {

/// One device as a sharding of any rank.
const Sharding& sharding_on(const Device& device);

/// Passes all elements, row-major, to `take` in parts of at most 1 MiB: directly from a device's memory if that is the host's and holds the
/// whole part, else by a staging buffer of 1 MiB. Throws as gather_to_host, and OutOfMemory in the name of `function`.
void stream_to_host(const char* function, const Value& v, const Type& t,
                    detail::FunctionRef<void(std::span<const std::byte>)> take);
/// A value sharded as `s`, whose elements `fill` writes, row-major, in parts of at most 1 MiB: directly into a device's memory, or into a
/// staging buffer of 1 MiB from which the devices get their boxes, as above. All device memory is allocated first. Exceptions of `fill`
/// propagate, and the value is freed. Bytes that no device of this process needs go to `pass`, if given, in their order instead of `fill`.
using Pass = detail::FunctionRef<void(std::size_t)>;
ValueRef stream_from_host(const char* function, const Type& t, const Sharding& s, bool committed,
                          detail::FunctionRef<void(std::span<std::byte>)> fill, const Pass* pass = nullptr);

}  // namespace shardarray
