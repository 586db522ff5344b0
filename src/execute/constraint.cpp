#include "execute/constraint.h"

#include <fmt/core.h>

#include "execute/evaluate.h"
#include "layout/spelling.h"
#include "ops/record.h"
#include "runtime/devices.h"

namespace shardarray::core {

void check_summands(const Type& t, const Sharding& s, const char* function, const std::string& path) {
  const bool is_half = is_floating(t.dtype) && itemsize(t.dtype) == 2;
  if (is_partial(s) && (t.dtype == DType::bool_ || is_half))
    throw ShardingError(
        fmt::format("{}: {}{} as {}. Values of {} are not held as summands: {}. Cast it to {}, or leave out "
                    "unreduced(...).",
                    function, path.empty() ? "" : path + " ", to_string(t), s.to_string(), name(t.dtype),
                    is_half ? "each would be rounded" : "they have no sums", is_half ? "float32" : "int32"));
}

void check_fits(const Array& x, const Sharding& s, const std::string& path, const char* function,
                const char* whose) {
  const Type& t = type_of(x, function);
  check_summands(t, s, function, path);
  need_devices(function, s.device_assignment());
  try {
    layout_of(s, static_cast<int>(t.shape.size()));
  } catch (const ShardingError& e) {
    throw ShardingError(
        fmt::format("{}: One of its {} is incompatible with its sharding annotation {}: {}{}: {}", function,
                    whose, s.to_string(), path.empty() ? "" : path + " ", to_string(t), e.text()));
  }
}

Array constrain(const Array& x, const Sharding& s, Where w) {
  Attrs attrs;
  attrs.sharding = std::make_shared<const Sharding>(s);
  return record(op_constraint, {x}, std::move(attrs), w);
}

Array added_up(const Array& x, const char* what) {
  const ValueRef v = force(x, what);
  if (!is_partial(v->sharding)) return x;
  return leaf_array(type_of(x), reshard_value(v, type_of(x), added_up(v->sharding)), x.node()->where);
}

}  // namespace shardarray::core
