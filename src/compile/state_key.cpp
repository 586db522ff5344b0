#include "compile/state_key.h"

#include "base/hash.h"
#include "compile/strategy.h"

namespace shardarray {

std::size_t StateHash::operator()(const StateKey& key) const {
  std::uint64_t h = key.size();
  for (const std::int64_t word : key) h = hash_mix(h, static_cast<std::uint64_t>(word));
  return h;
}

void KeyWriter::add(const Rule& r) {
  add(static_cast<std::int64_t>(r.factors.size()));
  for (const Factor& f : r.factors) {
    add(f.size);
    add(static_cast<std::int64_t>(f.role) * 64 + static_cast<std::int64_t>(f.reducer));
  }
  for (const auto* terms : {&r.operands, &r.results})
    for (const std::vector<DimFactors>& dims : *terms) {
      add(static_cast<std::int64_t>(dims.size()));
      for (const DimFactors& d : dims) add_all(d);
    }
}

StateKey key_of(const NodeState& s) {
  StateKey key;
  key.reserve(24);  // enough for most nodes
  KeyWriter k(key);
  k.add(s.kind);
  k.add(static_cast<std::int64_t>(s.is_asked));
  k.add_all(s.pending);
  for (const TermState& t : s.operands) {
    k.add(t.can_split * 8 + t.free * 4 + t.can_carry * 2 + t.should_stay);
    if (t.free) continue;
    k.add(t.layout);
    k.add(t.source.layout);
    k.add_all(t.source.copies);
  }
  for (const TermState& t : s.results) {
    k.add(t.layout);
    k.add(t.weight == 1.0);
  }
  return key;
}

}  // namespace shardarray
