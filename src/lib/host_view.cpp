#include "shardarray/host_view.h"

#include <fmt/core.h>

#include "base/count_text.h"
#include "lib/shard_memory.h"

namespace shardarray::detail {

ViewedMemory viewed_memory(const ShardedArray& x, DType dtype, std::size_t rank, Where w) {
  const Site site(w, "host_view");
  return with_memory("host_view", 0, [&] {
    const Type& t = type_of(x, "host_view");
    const bool by_bits = dtype == DType::uint16 && itemsize(t.dtype) == 2 && is_floating(t.dtype);
    if (t.dtype != dtype && !by_bits)
      throw DTypeError(fmt::format(
          "host_view: {} is seen as elements of {}. Memory is shown as it is. Name the type of the array "
          "(std::uint16_t for the bits of 16-bit floats), or cast with astype.",
          to_string(t), name(dtype)));
    if (t.shape.size() != rank)
      throw ShapeError(
          fmt::format("host_view: {} is seen as one of {}. A view has the dimensions of its array. Name as "
                      "many, or reshape the array.",
                      to_string(t), count_text(rank, "dimension")));
    ShardMemory memory = shard_memory("host_view", x);
    const void* const data = memory.buffer->data;
    return ViewedMemory{data, std::move(memory.type.shape),
                        std::make_shared<const BufferRef>(std::move(memory.buffer))};
  });
}

void refuse_position(std::int64_t index, std::size_t dim, std::int64_t size, Where w) {
  const Site site(w, "host_view");
  throw ShapeError(
      fmt::format("host_view: position {} of dimension {}, which has {}. Positions count from 0 to size - 1. "
                  "Correct it, or ask extent({}).",
                  index, dim, size, dim));
}

}  // namespace shardarray::detail
