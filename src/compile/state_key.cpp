#include "base/hash.h"
#include "compile/strategy.h"

namespace shardarray {

namespace {

class KeyWriter {
 public:
  explicit KeyWriter(StateKey& key) : key_(key) {}
  template <class T> void add(const T* p) {
    add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(p)));
  }
  void add(std::int64_t n) { key_.push_back(n); }
  template <class C> void add_all(const C& c) {
    add(static_cast<std::int64_t>(c.size()));
    for (const auto& x : c) add(x);
  }
  void add(const Type& t) {
    add(static_cast<std::int64_t>(t.dtype));
    add_all(t.shape);
  }
  void add(const std::vector<DimFactors>& dims) {
    add(static_cast<std::int64_t>(dims.size()));
    for (const DimFactors& d : dims) add_all(d);
  }
  void add(const Rule& r) {
    add(static_cast<std::int64_t>(r.factors.size()));
    for (const Factor& f : r.factors) {
      add(f.size);
      add(static_cast<std::int64_t>(f.role) * 64 + static_cast<std::int64_t>(f.reducer));
    }
    for (const auto* terms : {&r.operands, &r.results})
      for (const auto& dims : *terms) add(dims);
  }

 private:
  StateKey& key_;
};

}  // namespace

std::size_t StateHash::operator()(const StateKey& key) const {
  std::uint64_t h = key.size();
  for (const std::int64_t word : key) h = hash_mix(h, static_cast<std::uint64_t>(word));
  return h;
}

StateKey key_of(const NodeState& s) {
  StateKey key;
  key.reserve(96);  // of most nodes
  KeyWriter k(key);
  const Op& op = *s.node->op;
  k.add(static_cast<std::int64_t>(op.form));
  k.add(static_cast<std::int64_t>(s.node->modes->policy));
  if (op.boxes || op.windows || s.rule->has(Role::scan)) {  // what neighbours send depends on them
    k.add(&op);
    k.add(s.node->attrs.get());
  }
  k.add(static_cast<std::int64_t>(s.is_asked));
  k.add(*s.rule);
  k.add_all(s.pending);
  for (std::size_t i = 0; i < s.operands.size(); i++) {
    const TermState& t = s.operands[i];
    std::size_t same = 0;  // the first operand that is the same value
    while (s.node->in[same] != s.node->in[i]) same++;
    k.add(static_cast<std::int64_t>(same) * 16 + t.can_split * 8 + t.free * 4 + t.can_carry * 2 +
          t.should_stay);
    k.add(t.type);
    if (t.free) continue;
    k.add(t.layout);
    k.add(t.source.type);
    k.add(t.source.layout);
    k.add_all(t.source.copies);
    k.add(static_cast<std::int64_t>(t.source.rules.size()));
    for (const Rule* r : t.source.rules) k.add(*r);
  }
  for (const TermState& t : s.results) {
    k.add(t.type);
    k.add(t.layout);
    k.add(t.weight == 1.0);
  }
  return key;
}

}  // namespace shardarray
