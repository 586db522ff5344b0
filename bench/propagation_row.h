// The parts of the rows of propagation_rows.h.
#pragma once
#include <shardarray/shardarray.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/record.h"

namespace propagation_rows {

namespace sa = shardarray;
using sa::Array;
using sa::axes;
using sa::P;
using sa::Shape;

using Fn = std::function<Array(const std::vector<Array>&)>;
struct Operand {
  Shape shape;
  sa::Sharding sharding;
  sa::DType dtype = sa::float32;
};
struct Row {
  int number;
  std::string what;
  std::int64_t xla;  ///< bytes that the busiest device receives in JAX 0.10.2 (Shardy); negative: unknown
  std::vector<Operand> operands;
  Fn f;
  std::optional<sa::Sharding> closed;  ///< requested for the result
  sa::Sharding final;
  std::string transfers;  ///< in order, with the bytes that the busiest device receives
  std::int64_t most;      ///< bytes of the best known plan
};
constexpr std::int64_t unknown = -1;
constexpr auto open = std::nullopt;

inline sa::Sharding on(const P& spec) { return sa::NamedSharding(sa::make_mesh({{"x", 4}, {"y", 2}}), spec); }
inline sa::Sharding on_ab(const P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"a", 2}, {"b", 2}}), spec);
}
inline sa::Sharding on_x0x1y(const P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"x0", 2}, {"x1", 2}, {"y", 2}}), spec);
}

inline const Array& first(const std::vector<Array>& v) { return v[0]; }
inline Array product(const std::vector<Array>& v) { return sa::matmul(v[0], v[1]); }
inline Array sum_of_two(const std::vector<Array>& v) { return v[0] + v[1]; }
inline Array mlp(const std::vector<Array>& v) { return sa::matmul(sa::relu(sa::matmul(v[0], v[1])), v[2]); }
inline Fn reshape_to(const Shape& s) {
  return [s](const std::vector<Array>& v) { return sa::reshape(v[0], s); };
}
inline Fn sum_over(const Shape& dims) {
  return [dims](const std::vector<Array>& v) { return sa::sum(v[0], {.axis = dims}); };
}
inline Fn sort_along(int dim) {
  return [dim](const std::vector<Array>& v) { return sa::sort(v[0], dim); };
}

}  // namespace propagation_rows
