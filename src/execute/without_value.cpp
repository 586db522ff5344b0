#include "execute/without_value.h"

#include "execute/constraint.h"
#include "execute/evaluate.h"
#include "execute/host_stream.h"
#include "runtime/devices.h"
#include "shardarray/explain.h"

namespace shardarray {

Array without_value(const Type& t, const Sharding& s, Where w) {
  Array a = without_value(t, w);
  a.node()->out()[0].value =
      make_value(layout_of(s, static_cast<int>(t.shape.size())), s, true, share_replicas());
  return a;
}

Array shape_dtype_struct(const Shape& shape, DType dtype, const Sharding& sharding, Where w) {
  const Site site(w, "shape_dtype_struct");
  const Array nowhere = without_value({shape, dtype, false}, w);
  core::check_fits(nowhere, sharding, "", "shape_dtype_struct");
  return without_value(type_of(nowhere), sharding, w);
}

ValueRef placed(const Array& a, const char* what) {
  type_of(a, what);  // throws if it is absent
  if (is_without_value(a))
    if (const ValueRef& v = a.node()->out()[a.index()].value) return v;
  return force(a, what);
}

ValueRef placed_somewhere(const Array& a, const DeviceOrder* home) {
  const ValueRef& v = a.node()->out()[a.index()].value;
  if (v && !home) return v;
  const Sharding& s = sharding_on(home ? home->devices()[0] : current_default_device());
  return make_value(layout_of(s, static_cast<int>(type_of(a).shape.size())), s, false, true);
}

}  // namespace shardarray
