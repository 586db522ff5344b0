// Functions of whole arrays by their names in ops.json: reductions, order, shapes, positions.
#pragma once
#include <algorithm>
#include <map>
#include <string>

#include "jax_cases.h"
#include "shardarray/indexing.h"
#include "shardarray/linalg.h"

namespace jax_ops_test {

namespace sa = shardarray;
using jax_cases::Array;
using jax_cases::Arrays;
using jax_cases::Json;
using Widths = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// From a case's operands and attributes.
using Function = Arrays (*)(const Arrays& x, const Json& a);
using Table = std::map<std::string, Function>;

inline sa::AxisSet axes_of(const Json& a) {
  if (!a.contains("axis")) return {};
  return a["axis"].is_array() ? sa::AxisSet(golden::shape_of(a["axis"])) : sa::AxisSet(a["axis"].get<int>());
}
inline sa::ReduceOptions reduction(const Json& a) {
  return {.axis = axes_of(a), .keepdims = a.value("keepdims", false)};
}
inline sa::CumulativeOptions running(const Json& a, bool reverse = false) {
  sa::CumulativeOptions o{.reverse = reverse};
  if (a.contains("axis")) o.axis = a["axis"].get<int>();
  return o;
}
template <auto& f> Arrays reduced(const Arrays& x, const Json& a) { return {f(x[0], reduction(a))}; }
template <auto& f> Arrays run(const Arrays& x, const Json& a) { return {f(x[0], running(a))}; }
template <auto& f> Arrays run_back(const Arrays& x, const Json&) {
  return {f(x[0], {.axis = 0, .reverse = true})};
}
template <auto& f> Arrays unary(const Arrays& x, const Json&) { return {f(x[0])}; }
template <auto& f> Arrays binary(const Arrays& x, const Json&) { return {f(x[0], x[1])}; }
template <auto& f> Arrays both(const Arrays& x, const Json&) {
  const auto [a, b] = f(x[0]);
  return {a, b};
}
template <auto& f> Arrays diagonal_of(const Arrays& x, const Json& a) { return {f(x[0], a["k"].get<int>())}; }
template <auto& f> Arrays segments(const Arrays& x, const Json&) { return {f(x[0], x[1], 4)}; }
template <auto& f> Arrays along(const Arrays& x, const Json& a) {
  return {f(x[0], a.contains("axis") ? a["axis"].get<int>() : -1)};
}

inline sa::QuantileMethod quantile_method(const std::string& name) {
  using enum sa::QuantileMethod;
  static const std::map<std::string, sa::QuantileMethod> methods = {
      {"linear", linear}, {"lower", lower}, {"higher", higher}, {"midpoint", midpoint}, {"nearest", nearest}};
  return methods.at(name);
}
inline sa::TakeMode take_mode(const std::string& name) {
  return name == "clip" ? sa::TakeMode::clip : name == "wrap" ? sa::TakeMode::wrap : sa::TakeMode::fill;
}
inline Widths widths_of(const Json& j) { return j.get<Widths>(); }
inline Arrays starts(const Json& a) {
  Arrays r;
  for (const Json& s : a["start"]) r.emplace_back(s.get<int>());
  return r;
}
inline Array index_attr(const Json& a) { return sa::array(a["idx"].get<std::vector<int>>()); }

inline Arrays padded(const Arrays& x, const Json& a) {
  const Widths widths = widths_of(a["pad"]);
  const std::string mode = a["mode"];
  if (mode == "constant") return {sa::pad(x[0], widths)};
  return {sa::pad(x[0], widths,
                  mode == "edge"        ? sa::PadMode::edge
                  : mode == "reflect"   ? sa::PadMode::reflect
                  : mode == "symmetric" ? sa::PadMode::symmetric
                                        : sa::PadMode::wrap)};
}
inline Arrays padded_between(const Arrays& x, const Json& a) {
  std::vector<sa::PadWidths> widths;
  for (const Json& w : a["config"]) widths.push_back({w[0], w[1], w[2]});
  return {sa::pad_general(x[0], widths, a["value"].get<double>())};
}
inline Arrays norm_of(const Arrays& x, const Json& a) {
  const std::string ord = a.value("ord", "None");
  if (ord == "None") return {sa::norm(x[0])};
  if (ord == "nuc") return {sa::linalg::matrix_norm(x[0], {.nuclear = true})};
  return {sa::linalg::matrix_norm(x[0], {.ord = std::stod(ord)})};
}
inline Arrays arange_of(const Arrays&, const Json& a) {
  const Json& v = a["args"];
  const bool whole = std::all_of(v.begin(), v.end(), [](const Json& n) { return n.is_number_integer(); });
  const bool wide = a.value("x64", false);
  const auto arg = [&](std::size_t k, double otherwise) {
    return k < v.size() ? v[k].get<double>() : otherwise;
  };
  const double start = v.size() == 1 ? 0 : arg(0, 0), stop = v.size() == 1 ? arg(0, 0) : arg(1, 0),
               step = arg(2, 1);
  if (!whole) return {wide ? sa::arange(start, stop, step, sa::float64) : sa::arange(start, stop, step)};
  const int from = static_cast<int>(start), to = static_cast<int>(stop), by = static_cast<int>(step);
  return {wide ? sa::arange(from, to, by, sa::int64) : sa::arange(from, to, by)};
}

inline const Table& reductions() {
  static const Table table = {
      {"sum", reduced<sa::sum>},
      {"prod", reduced<sa::prod>},
      {"max", reduced<sa::max>},
      {"min", reduced<sa::min>},
      {"mean", reduced<sa::mean>},
      {"var", reduced<sa::var>},
      {"std", reduced<sa::std>},
      {"argmax", reduced<sa::argmax>},
      {"argmin", reduced<sa::argmin>},
      {"any", reduced<sa::any>},
      {"all", reduced<sa::all>},
      {"ptp", reduced<sa::ptp>},
      {"median", reduced<sa::median>},
      {"nansum", reduced<sa::nansum>},
      {"nanmax", reduced<sa::nanmax>},
      {"nanmin", reduced<sa::nanmin>},
      {"nanmean", reduced<sa::nanmean>},
      {"nanargmax", reduced<sa::nanargmax>},
      {"count_nonzero", reduced<sa::count_nonzero>},
      {"nn.logsumexp", reduced<sa::logsumexp>},
      {"nn.logsumexp_all_neg_inf", reduced<sa::logsumexp>},
      {"sum_int8", reduced<sa::sum>},
      {"sum_uint8", reduced<sa::sum>},
      {"sum_bf16", reduced<sa::sum>},
      {"sum_wrap_i32", reduced<sa::sum>},
      {"argmax_ties", reduced<sa::argmax>},
      {"argmin_ties", reduced<sa::argmin>},
      {"var_ddof",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::var(x[0], {.axis = 0}, a["ddof"].get<int>())};
       }},
      {"sum_where",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::sum(x[0], {.where = x[0] > 0, .initial = 2.0})};
       }},
      {"average_weights",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::average(x[0], x[1], 0)}; }},
      {"linalg.norm", norm_of},
      {"cumsum", run<sa::cumsum>},
      {"cumprod", run<sa::cumprod>},
      {"nancumsum", run<sa::nancumsum>},
      {"lax.cummax", run<sa::cummax>},
      {"lax.cummin", run<sa::cummin>},
      {"lax.cumlogsumexp", run<sa::cumlogsumexp>},
      {"lax.cummax_reverse", run_back<sa::cummax>},
      {"lax.cummin_reverse", run_back<sa::cummin>},
      {"lax.cumlogsumexp_reverse", run_back<sa::cumlogsumexp>},
      {"diff", [](const Arrays& x, const Json&) -> Arrays { return {sa::diff(x[0], 1, 0)}; }},
      {"diff_2", [](const Arrays& x, const Json&) -> Arrays { return {sa::diff(x[0], 2)}; }},
      {"quantile", [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::quantile(x[0], a["q"].get<double>(), {.method = quantile_method(a["method"])})};
       }}};
  return table;
}

inline const Table& orders() {
  static const Table table = {
      {"sort", [](const Arrays& x, const Json&) -> Arrays { return {sa::sort(x[0])}; }},
      {"sort_axis0", [](const Arrays& x, const Json&) -> Arrays { return {sa::sort(x[0], 0)}; }},
      {"sort_descending",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::sort(x[0], {.descending = true})}; }},
      {"argsort", [](const Arrays& x, const Json&) -> Arrays { return {sa::argsort(x[0])}; }},
      {"argsort_axis0", [](const Arrays& x, const Json&) -> Arrays { return {sa::argsort(x[0], 0)}; }},
      {"argsort_descending",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::argsort(x[0], {.descending = true})}; }},
      {"lax.sort_two_keys",
       [](const Arrays& x, const Json&) -> Arrays { return sa::sort(x, {.num_keys = 2}); }},
      {"lax.sort_one_key_stable",
       [](const Arrays& x, const Json&) -> Arrays { return sa::sort(x, {.num_keys = 1}); }},
      {"lexsort",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::lexsort({x[0], x[1]})};
       }},
      {"lax.top_k",
       [](const Arrays& x, const Json& a) -> Arrays {
         const auto [values, places] = sa::top_k(x[0], a["k"].get<int>());
         return {values, places};
       }},
      {"searchsorted",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::searchsorted(x[0], x[1], a["side"] == "left" ? sa::Side::left : sa::Side::right)};
       }},
      {"digitize",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::digitize(x[1], x[0], a["right"].get<bool>())};
       }},
      {"unique_size",
       [](const Arrays& x, const Json&) -> Arrays {
         const sa::UniqueResult r = sa::unique_all(x[0], 6, -1);
         return {r.values, r.inverse_indices, r.counts};
       }},
      {"nonzero_size", [](const Arrays& x, const Json&) -> Arrays { return sa::nonzero(x[0], 7, -1); }},
      {"bincount", [](const Arrays& x, const Json&) -> Arrays { return {sa::bincount(x[0], 6)}; }},
      {"histogram",
       [](const Arrays& x, const Json&) -> Arrays {
         const auto [counts, edges] = sa::histogram(x[0], 4);
         return {counts, edges};
       }},
      {"ops.segment_sum", segments<sa::segment_sum>},
      {"ops.segment_max", segments<sa::segment_max>},
      {"ops.segment_min", segments<sa::segment_min>},
      {"ops.segment_prod", segments<sa::segment_prod>}};
  return table;
}

inline const Table& shapes() {
  static const Table table = {
      {"transpose", unary<sa::transpose>},
      {"moveaxis", [](const Arrays& x, const Json&) -> Arrays { return {sa::moveaxis(x[0], 0, -1)}; }},
      {"transpose_perm",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::transpose(x[0], golden::shape_of(a["perm"]))};
       }},
      {"reshape", [](const Arrays& x, const Json&) -> Arrays { return {x[0].reshape(-1, 2)}; }},
      {"broadcast_to",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::broadcast_to(x[0], {2, 3, 4})};
       }},
      {"concatenate",
       [](const Arrays& x, const Json& a) -> Arrays { return {sa::concatenate(x, a["axis"].get<int>())}; }},
      {"stack",
       [](const Arrays& x, const Json& a) -> Arrays { return {sa::stack(x, a["axis"].get<int>())}; }},
      {"split",
       [](const Arrays& x, const Json&) -> Arrays {
         return sa::split(x[0], {1, 3});
       }},
      {"array_split", [](const Arrays& x, const Json&) -> Arrays { return sa::array_split(x[0], 3); }},
      {"tile",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::tile(x[0], golden::shape_of(a["reps"]))};
       }},
      {"repeat",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::repeat(x[0], a["repeats"].get<int>(), a["axis"].get<int>())};
       }},
      {"repeat_each",
       [](const Arrays& x, const Json& a) -> Arrays {
         const Array counts = sa::array(a["repeats"].get<std::vector<int>>());
         return {sa::repeat(x[0], counts, {.total_repeat_length = a["total"].get<int>()})};
       }},
      {"roll",
       [](const Arrays& x, const Json& a) -> Arrays { return {sa::roll(x[0], a["shift"].get<int>())}; }},
      {"roll_axis",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::roll(x[0], a["shift"].get<int>(), a["axis"].get<int>())};
       }},
      {"flip", [](const Arrays& x, const Json&) -> Arrays { return {sa::flip(x[0], 1)}; }},
      {"rot90", unary<sa::rot90>},
      {"pad", padded},
      {"lax.pad", padded_between},
      {"tril", diagonal_of<sa::tril>},
      {"triu", diagonal_of<sa::triu>},
      {"diag", diagonal_of<sa::diag>},
      {"diagonal", diagonal_of<sa::diagonal>},
      {"eye", [](const Arrays&, const Json& a) -> Arrays { return {sa::eye(3, 4, a["k"].get<int>())}; }},
      {"trace", unary<sa::trace>},
      {"meshgrid", [](const Arrays& x, const Json&) -> Arrays { return sa::meshgrid(x); }},
      {"frexp", both<sa::frexp>},
      {"modf", both<sa::modf>},
      {"divmod",
       [](const Arrays& x, const Json&) -> Arrays {
         const auto [quotient, rest] = sa::divmod(x[0], x[1]);
         return {quotient, rest};
       }},
      {"astype",
       [](const Arrays& x, const Json& a) -> Arrays { return {x[0].astype(golden::dtype_named(a["to"]))}; }},
      {"clip",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::clip(x[0], a["lo"].get<double>(), a["hi"].get<double>())};
       }},
      {"where", [](const Arrays& x, const Json&) -> Arrays { return {sa::where(x[0], x[1], x[2])}; }},
      {"select",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::select({x[0] > 1, x[0] > 0}, {x[0] * 2, -x[0]}, 9.0)};
       }},
      {"nn.one_hot",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::one_hot(x[0], a["num_classes"].get<int>())};
       }},
      {"linspace",
       [](const Arrays&, const Json& a) -> Arrays {
         const Json& v = a["args"];
         return {sa::linspace(v[0], v[1], v[2].get<int>(), {.endpoint = v[3].get<bool>()})};
       }},
      {"linspace_int",
       [](const Arrays&, const Json& a) -> Arrays {
         return {sa::linspace(a["args"][0], a["args"][1], a["args"][2].get<int>(), {.dtype = sa::int32})};
       }},
      {"logspace",
       [](const Arrays&, const Json& a) -> Arrays {
         return {sa::logspace(a["args"][0], a["args"][1], a["args"][2].get<int>())};
       }},
      {"geomspace",
       [](const Arrays&, const Json& a) -> Arrays {
         return {sa::geomspace(a["args"][0], a["args"][1], a["args"][2].get<int>())};
       }},
      {"arange", arange_of},
      {"full",
       [](const Arrays&, const Json&) -> Arrays {
         return {sa::full({2, 2}, 3)};
       }},
      {"iota", [](const Arrays&, const Json&) -> Arrays {
         return {sa::indices({2, 3})[1]};
       }}};
  return table;
}

inline const Table& positions() {
  static const Table table = {
      {"getitem", [](const Arrays& x, const Json&) -> Arrays { return {x[0][x[1]]}; }},
      {"take",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::take(x[0], x[1], 0, take_mode(a["mode"]))};
       }},
      {"take_default", [](const Arrays& x, const Json&) -> Arrays { return {sa::take(x[0], x[1], 0)}; }},
      {"take_int_fill", [](const Arrays& x, const Json&) -> Arrays { return {sa::take(x[0], x[1])}; }},
      {"at_get_fill",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0].at(x[1]).get({.mode = sa::TakeMode::fill, .fill_value = -7})};
       }},
      {"take_along_axis",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::take_along_axis(x[0], x[1], 1)}; }},
      {"getitem_two",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0][{x[1], x[2]}]};
       }},
      {"getitem_mixed",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0][{sa::all, x[1], sa::slice(1, sa::none)}]};
       }},
      {"getitem_negative_step",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0][{sa::slice(sa::none, sa::none, -2), sa::slice(1, sa::none, 2)}]};
       }},
      {"getitem_bool_static",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0][sa::array({1, 0, 1, 1, 0}).astype(sa::bool_)]};
       }},
      {"lax.dynamic_slice",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::dynamic_slice(x[0], starts(a), golden::shape_of(a["sizes"]))};
       }},
      {"lax.dynamic_update_slice",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::dynamic_update_slice(x[0], x[1], starts(a))};
       }},
      {"at_add", [](const Arrays& x, const Json& a) -> Arrays { return {x[0].at(index_attr(a)).add(x[1])}; }},
      {"at_multiply",
       [](const Arrays& x, const Json& a) -> Arrays { return {x[0].at(index_attr(a)).mul(x[1])}; }},
      {"at_min", [](const Arrays& x, const Json& a) -> Arrays { return {x[0].at(index_attr(a)).min(x[1])}; }},
      {"at_max", [](const Arrays& x, const Json& a) -> Arrays { return {x[0].at(index_attr(a)).max(x[1])}; }},
      {"at_set", [](const Arrays& x, const Json& a) -> Arrays { return {x[0].at(index_attr(a)).set(x[1])}; }},
      {"at_set_scalar_dup",
       [](const Arrays& x, const Json& a) -> Arrays { return {x[0].at(index_attr(a)).set(3.5)}; }},
      {"at_add_mode", [](const Arrays& x, const Json& a) -> Arrays {
         return {x[0].at(index_attr(a)).add(1.0, {.mode = take_mode(a["mode"])})};
       }}};
  return table;
}

/// Other names of cases, whose operands or attributes are special.
inline const std::map<std::string, std::string>& same_functions() {
  static const std::map<std::string, std::string> table = {{"clip_swapped", "clip"},
                                                           {"lax.top_k_nan", "lax.top_k"},
                                                           {"lax.top_k_ties", "lax.top_k"},
                                                           {"matmul_int", "matmul"},
                                                           {"matmul_bf16", "matmul"},
                                                           {"matmul_nan", "matmul"},
                                                           {"linalg.cholesky_not_spd", "linalg.cholesky"},
                                                           {"linalg.solve_singular", "linalg.solve"},
                                                           {"linalg.inv_singular", "linalg.inv"}};
  return table;
}

}  // namespace jax_ops_test
