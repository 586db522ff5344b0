#include "compile/reshards.h"

#include <array>
#include <span>

#include "compile/halo.h"
#include "compile/received.h"

namespace shardarray {

namespace {

std::int64_t size_of(const Type& t) { return static_cast<std::int64_t>(itemsize(t.dtype)); }

std::string key_of(const Layout* from, const Layout* to, const Type& t) {
  const std::array<std::int64_t, 3> head{reinterpret_cast<std::int64_t>(from),
                                         reinterpret_cast<std::int64_t>(to),
                                         static_cast<std::int64_t>(t.dtype)};
  std::string key;
  key.reserve(sizeof head + sizeof(std::int64_t) * t.shape.size());
  for (const auto& words : {std::span<const std::int64_t>(head), std::span<const std::int64_t>(t.shape)})
    key.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  return key;
}

}  // namespace

const ReshardPath& Reshards::of(const Layout* from, const Layout* to, const Type& t) {
  if (from == to) return stays_;
  const auto [it, fresh] = known_.try_emplace(key_of(from, to, t));
  if (fresh) it->second = reshard(from, to, t.shape, size_of(t), model_);
  return it->second;
}

const Transfer& Reshards::transfer(const Layout* from, const Layout* to, const Type& t) {
  const auto [it, fresh] = transfers_.try_emplace(key_of(from, to, t));
  Transfer& transfer = it->second;
  if (!fresh) return transfer;
  transfer = describe_transfer(t, from, to);
  if (transfer.kind != TransferKind::slice && transfer.kind != TransferKind::none)
    set_received(transfer, from->order() == to->order()
                               ? received_of_each(*from, *to, t.shape, size_of(t), transfer.kind)
                               : foreign_received(*from, *to, t.shape, size_of(t)));
  return transfer;
}

std::int64_t Reshards::least(const Layout* from, const Layout* to, const Type& t) {
  const auto [it, fresh] = least_.try_emplace(key_of(from, to, t));
  if (fresh) it->second = least_received(*from, *to, t.shape, size_of(t));
  return it->second;
}

}  // namespace shardarray
