// Jacobians: a function's linear map applied to all unit vectors at once.
#include <fmt/core.h>

#include "base/sizes.h"
#include "ops/record.h"
#include "shardarray/detail/differentiation.h"
#include "shardarray/detail/maps.h"
#include "shardarray/ops.h"
#include "transform/trace.h"

namespace shardarray {

namespace {

// The unit vectors of the space of arrays like `x`, as rows.
Array unit_rows(const Array& x) {
  const std::int64_t n = num_elements(x.shape());
  return primitive::reshape(eye(n, n, 0, x.dtype()), joined_shape(Shape{n}, x.shape()));
}

bool is_variable(const Array& v) { return v.has_value() && is_inexact(v.dtype()); }

// The derivative of a complex number by a real one has two parts, of which a cotangent gives only one; for real by complex, the tangent
// gives only one.
void check_complex(const Array& output, const Array& variable, core::JacobianBy by, const char* function) {
  using enum core::JacobianBy;
  const bool from = is_complex(variable.dtype()), to = is_complex(output.dtype());
  const bool has_half = by == columns ? from && !to : by == rows ? to && !from : from != to;
  if (!has_half) return;
  throw DTypeError(fmt::format(
      "{}: the function gives {} from {}. {}.", function, to_string(type_of(output)),
      to_string(type_of(variable)),
      by == columns
          ? "Columns of a real result by a complex argument are half of it. Use jacrev, or take real "
            "arguments"
      : by == rows
          ? "Rows of a complex result by a real argument are half of it. Use jacfwd, or the function's "
            "real() and imag()"
          : "Second derivatives where one is complex and the other real are half of it. Take the function's "
            "real() and imag() of real arguments"));
}

// Maps f over the rows; results have rows first.
Arrays linear_on_rows(core::MapBody f, const Array& rows, const char* function, Where w) {
  const core::VmapArg arg{rows, 0, ""};
  const core::VmapResult r = core::vmap(f, {&arg, 1}, "", std::nullopt, function, w);
  Arrays out;
  for (std::size_t k = 0; k < r.out.size(); k++) out.push_back(core::place_axis(r, k, 0, "", function));
  return out;
}

}  // namespace

namespace core {

Arrays jacobian(const Differentiation& d, std::span<const Array> outputs, JacobianBy by, const char* function,
                Where w) {
  for (const Array& o : outputs)
    if (o.has_value() && !is_inexact(o.dtype()))
      throw DTypeError(
          fmt::format("{}: the function must return floating arrays, but it returned {}. Cast with astype.",
                      function, to_string(type_of(o))));
  const Arrays& variables = d.variables();
  for (const Array& o : outputs)
    for (const Array& v : variables)
      if (o.has_value() && is_variable(v)) check_complex(o, v, by, function);
  const bool reverse = by != JacobianBy::columns;
  d.linearize(outputs);
  const Site site(w, function);
  std::vector<Arrays> by_output(outputs.size(), Arrays(variables.size()));
  const auto whole = [&](std::size_t k, std::size_t j) {
    return Type{joined_shape(outputs[k].shape(), variables[j].shape()),
                reverse ? variables[j].dtype() : outputs[k].dtype(), false};
  };
  // The block of an empty output or variable needs no computation.
  const auto is_empty = [&](std::size_t k, std::size_t j) {
    return num_elements(outputs[k].shape()) == 0 || num_elements(variables[j].shape()) == 0;
  };
  for (std::size_t k = 0; k < outputs.size(); k++)
    for (std::size_t j = 0; j < variables.size(); j++)
      if (outputs[k].has_value() && is_variable(variables[j]) && is_empty(k, j))
        by_output[k][j] = zeros_of(whole(k, j));
  const auto put = [&](std::size_t k, std::size_t j, const Array& rows_of_outputs) {
    if (!by_output[k][j].has_value())
      by_output[k][j] = primitive::reshape(rows_of_outputs, whole(k, j).shape);
  };
  if (reverse) {
    for (std::size_t k = 0; k < outputs.size(); k++) {
      if (!outputs[k].has_value() || num_elements(outputs[k].shape()) == 0) continue;
      const auto pull = [&](std::span<const Array> row) {
        Arrays cotangents(outputs.size());
        cotangents[k] = row[0];
        return d.pull(cotangents);
      };
      const Arrays rows = linear_on_rows(pull, unit_rows(outputs[k]), function, w);
      for (std::size_t j = 0; j < variables.size(); j++)
        if (is_variable(variables[j])) put(k, j, rows[j]);
    }
  } else {
    for (std::size_t j = 0; j < variables.size(); j++) {
      if (!is_variable(variables[j]) || num_elements(variables[j].shape()) == 0) continue;
      const auto push = [&](std::span<const Array> row) {
        Arrays tangents(variables.size());
        tangents[j] = row[0];
        return d.apply(tangents);
      };
      const Arrays columns = linear_on_rows(push, unit_rows(variables[j]), function, w);
      for (std::size_t k = 0; k < outputs.size(); k++)
        if (outputs[k].has_value()) put(k, j, moveaxis(columns[k], 0, -1));
    }
  }
  Arrays all;
  for (const Arrays& a : by_output) all.insert(all.end(), a.begin(), a.end());
  return all;
}

}  // namespace core
}  // namespace shardarray
