// Values as streams of bytes: for what is longer than the host's memory should have to hold, such as files.
#pragma once
#include <cstddef>
#include <span>

#include "execute/launch.h"
#include "shardarray/detail/path.h"

namespace shardarray {

/// One device as a sharding of any rank.
const Sharding& sharding_on(const Device& device);

/// Gives all elements, row-major, to `take`, part after part, each of at most 1 MiB: straight from a device's memory where that is
/// the host's and holds all of the part, else from 1 MiB beside it. Throws as gather_to_host, and OutOfMemory in the name of
/// `function`.
void stream_to_host(const char* function, const Value& v, const Type& t,
                    detail::FunctionRef<void(std::span<const std::byte>)> take);
/// A value of `t` in the place `s`, whose elements `fill` writes, row-major, part after part, each of at most 1 MiB: straight into
/// the memory of a device, or into 1 MiB of which the devices take their boxes, as above. All memory of the devices is taken
/// before. What `fill` throws comes out, and nothing stays. With `pass` it is told of the bytes that no device of this process
/// needs, in their turn, in place of `fill`.
using Pass = detail::FunctionRef<void(std::size_t)>;
ValueRef stream_from_host(const char* function, const Type& t, const Sharding& s, bool committed,
                          detail::FunctionRef<void(std::span<std::byte>)> fill, const Pass* pass = nullptr);

}  // namespace shardarray
