#include "execute/without_value.h"

#include "execute/constraint.h"
#include "execute/evaluate.h"
#include "execute/host_stream.h"
#include "runtime/devices.h"
#include "shardarray/explain.h"

namespace shardarray {

Array without_value(const Array& of, const Sharding& s, const std::string& path, const char* function,
                    Where w) {
  core::check_fits(of, s, path, function);
  const Type& t = type_of(of, function);
  Array a = without_value(t, w);
  a.node()->out()[0].value =
      make_value(layout_of(s, static_cast<int>(t.shape.size())), s, true, share_replicas());
  return a;
}

Array shape_dtype_struct(const Shape& shape, DType dtype, const Sharding& sharding, Where w) {
  const Site site(w, "shape_dtype_struct");
  return without_value(without_value({shape, dtype, false}, w), sharding, "", "shape_dtype_struct", w);
}

ValueRef placed(const Array& a, const char* what) {
  type_of(a, what);  // it is there
  if (is_without_value(a))
    if (const ValueRef& v = a.node()->out()[a.index()].value) return v;
  return force(a, what);
}

ValueRef placed_somewhere(const Array& a, const char* what) {
  if (!is_without_value(a) || a.node()->out()[a.index()].value) return placed(a, what);
  const Sharding& s = sharding_on(current_default_device());
  return make_value(layout_of(s, static_cast<int>(type_of(a).shape.size())), s, false, true);
}

}  // namespace shardarray
