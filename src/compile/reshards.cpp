#include "compile/reshards.h"

#include <array>
#include <span>

namespace shardarray {

const ReshardPath& Reshards::of(const Layout* from, const Layout* to, const Type& t) {
  if (from == to) return stays_;
  const auto size = static_cast<std::int64_t>(itemsize(t.dtype));
  const std::array<std::int64_t, 3> head{reinterpret_cast<std::int64_t>(from),
                                         reinterpret_cast<std::int64_t>(to), size};
  std::string key;
  key.reserve(sizeof head + sizeof(std::int64_t) * t.shape.size());
  for (const auto& words : {std::span<const std::int64_t>(head), std::span<const std::int64_t>(t.shape)})
    key.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  const auto [it, fresh] = known_.try_emplace(std::move(key));
  if (fresh) it->second = reshard(from, to, t.shape, size, model_);
  return it->second;
}

}  // namespace shardarray
