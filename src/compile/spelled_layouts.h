// Layouts in terms of mesh axes, each spelled once.
#pragma once
#include <string>
#include <unordered_map>

#include "layout/spelling.h"

namespace shardarray {

class SpelledLayouts {
 public:
  explicit SpelledLayouts(const Mesh* mesh) : mesh_(mesh) {}
  const std::string& of(const Layout* l) {
    const auto [it, fresh] = known_.try_emplace(l);
    if (fresh) it->second = spec_text(*l, mesh_);
    return it->second;
  }
  /// The axes of its partial sums.
  const std::string& summed(const Layout* l) {
    const auto [it, fresh] = summed_.try_emplace(l);
    if (fresh) it->second = axis_names(l->unreduced(), l->order(), mesh_);
    return it->second;
  }
  /// Whether it is sharded along parts of mesh axes; false without a mesh.
  bool is_in_parts(const Layout* l) {
    const auto [it, fresh] = in_parts_.try_emplace(l);
    if (fresh) it->second = mesh_ != nullptr && !sharding_code(*l, mesh_).in_parts.empty();
    return it->second;
  }

 private:
  const Mesh* mesh_;
  std::unordered_map<const Layout*, std::string> known_, summed_;
  std::unordered_map<const Layout*, bool> in_parts_;
};

}  // namespace shardarray
