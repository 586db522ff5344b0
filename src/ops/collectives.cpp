#include "shardarray/collectives.h"

#include "graph/trace_state.h"
#include "ops/prims.h"

namespace shardarray {

Array psum(const Array& x, const std::string& axis_name, Where w) {
  const Site site(w);
  Attrs a;
  a.axis = find_axis(axis_name, "psum");
  return record(op_psum, {type_of(x, "psum").dtype == DType::bool_ ? prim::cast(x, DType::int32) : x},
                std::move(a));
}

Array axis_index(const std::string& axis_name, Where w) {
  const Site site(w);
  Attrs a;
  a.axis = find_axis(axis_name, "axis_index");
  return record(op_axis_index, {}, std::move(a));
}

}  // namespace shardarray
