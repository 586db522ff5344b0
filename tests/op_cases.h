// One row per public function and op: how to call it, a reference, its domain. Generic tests run over all rows.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "erased.h"
#include "graph/graph.h"
#include "op_host.h"
#include "ops/record.h"
#include "scale.h"
#include "shardarray/collectives.h"
#include "shardarray/detail/maps.h"
#include "shardarray/ordering.h"
#include "shardarray/products.h"
#include "shardarray/rearrange.h"
#include "shardarray/statistics.h"

namespace shardarray::testing {

/// An operand: values between lo and hi; integers if the dtype is not floating.
struct OpInput {
  Shape shape;
  double lo = -2, hi = 2;
  DType dtype = DType::float32;
  bool avoid_integers = false;  ///< away from kinks at whole numbers, by 0.1 at least
  bool distinct = false;        ///< no two equal values (sort, max: derivatives without ties)
};

struct OpCase {
  std::string name;
  Erased<Array(std::span<const Array>)> function;
  /// The result's values, from the operands rounded to their dtypes.
  Erased<std::vector<double>(const Hosts&)> reference;
  std::vector<OpInput> inputs;
  bool differentiable = true;  ///< with respect to every floating operand
  /// |value - reference| <= tolerance * max(1, |reference|). 0: exact.
  double tolerance = 5e-7;
};

using Cases = std::vector<OpCase>;
using Numbers = std::vector<double>;

// ---------------------------------------------------------------- helpers
inline const Shape rows_and_columns{10, 6};  // uneven over 4 and over 8

/// f(x) elementwise.
template <class F>
OpCase unary_case(std::string name, F f, double (*reference)(double), OpInput in, bool differentiable = true,
                  double tolerance = 5e-7) {
  if (in.shape.empty()) in.shape = rows_and_columns;
  return {std::move(name),
          [f](std::span<const Array> x) { return f(x[0]); },
          [reference](const Hosts& x) {
            std::vector<double> r;
            for (double v : x[0].data) r.push_back(reference(v));
            return r;
          },
          {std::move(in)},
          differentiable,
          tolerance};
}
/// f(a, b) elementwise; b is a row that is broadcast.
template <class F>
OpCase binary_case(std::string name, F f, double (*reference)(double, double), OpInput a, OpInput b,
                   bool differentiable = true, double tolerance = 5e-7) {
  a.shape = rows_and_columns;
  b.shape = {rows_and_columns[1]};
  return {std::move(name),
          [f](std::span<const Array> x) { return f(x[0], x[1]); },
          [reference](const Hosts& x) {
            return build(x[0].shape,
                         [&](const Shape& i) { return reference(read(x[0], i), read_broadcast(x[1], i)); });
          },
          {std::move(a), std::move(b)},
          differentiable,
          tolerance};
}
inline OpCase whole_exact(OpCase c) {
  c.differentiable = false;
  c.tolerance = 0;
  return c;
}
inline OpInput values(double lo, double hi) { return {{}, lo, hi}; }
inline OpInput kinked(double lo, double hi) { return {{}, lo, hi, DType::float32, true}; }
inline OpInput whole(double lo, double hi, DType t = DType::int32) { return {{}, lo, hi, t}; }
inline OpInput truth() { return {{}, 0, 1, DType::bool_}; }

// In op_cases_*.cpp.
Cases elementwise_cases();
Cases logic_cases();
Cases power_cases();
Cases special_cases();
Cases part_cases();
Cases count_cases();
Cases activation_cases();
Cases reduce_cases();
Cases product_cases();
Cases shape_cases();
Cases position_cases();
Cases structure_cases();
Cases map_cases();
Cases statistics_cases();
Cases rearrange_cases();
Cases sample_cases();
Cases ordering_cases();
Cases indexing_cases();
Cases set_cases();
Cases line_cases();
Cases loss_cases();
Cases branch_cases();
Cases linalg_cases();
Cases option_cases();
Cases conv_cases();
Cases complex_cases();
Cases complex_conv_cases();
Cases complex_linalg_cases();
Cases fourier_cases();

/// Rows whose programs are lists of launches.
inline Cases launch_cases() {
  Cases rows;
  for (auto part :
       {elementwise_cases, logic_cases,      power_cases,        special_cases,    part_cases,
        count_cases,       activation_cases, reduce_cases,       product_cases,    shape_cases,
        position_cases,    structure_cases,  map_cases,          statistics_cases, rearrange_cases,
        sample_cases,      ordering_cases,   indexing_cases,     set_cases,        line_cases,
        conv_cases,        complex_cases,    complex_conv_cases, option_cases,     loss_cases})
    for (OpCase& c : part()) rows.push_back(std::move(c));
  return rows;
}
inline Cases all_op_cases() {
  Cases rows = launch_cases();
  for (auto part : {branch_cases, linalg_cases, fourier_cases, complex_linalg_cases})
    for (OpCase& c : part()) rows.push_back(std::move(c));
  return rows;
}
/// Those that are tried here: what the host does for CUDA devices takes long through their queues, and is left to full scale.
inline Cases op_cases() {
  const char* const platform = std::getenv("SHARDARRAY_PLATFORM");  // devices() would say how many there are
  if (full_scale() || platform == nullptr || std::string(platform) != "cuda") return all_op_cases();
  Cases rows = launch_cases();
  for (OpCase& c : branch_cases()) rows.push_back(std::move(c));
  return rows;
}

}  // namespace shardarray::testing
