// Layouts for shardings by sub-axes, each looked up once per compilation.
#pragma once
#include <string>
#include <unordered_map>

#include "compile/passes.h"

namespace shardarray {

class SubAxisLayouts {
 public:
  explicit SubAxisLayouts(const SubAxes& sub_axes) : sub_axes_(sub_axes) {}
  const SubAxes& sub_axes() const { return sub_axes_; }
  /// `summed`: sub-axes of partial sums; without any, `reducer` is ignored.
  const Layout* of(const SubAxisDims& dims, const SubAxisList& summed = {}, Reducer reducer = Reducer::none);
  /// See SubAxes.
  bool can_express(const Layout* l);

 private:
  const SubAxes& sub_axes_;
  std::string key_;
  std::unordered_map<std::string, const Layout*> made_;
  std::unordered_map<const Layout*, bool> expressible_;
};

}  // namespace shardarray
