// Checks of every row of op_cases.h: its value, its derivatives, vmap, jit, and independence of shardings.
#include <chrono>

#include "op_data.h"
#include "shardarray/detail/differentiation.h"
#include "shardarray/device.h"
#include "shardarray/jit.h"
#include "shardarray/reproducible.h"

namespace op_properties_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

using Core = core::Differentiation;

Rng rng_of(const OpCase& row) { return Rng(std::hash<std::string>()(row.name)); }

bool rounds(std::span<const Array> results) {
  bool r = false;
  each_node(results, [&](Node& n) { r |= adds_up(n); });
  return r;
}

}  // namespace

TEST_CASE("ops: values against the reference") {
  for (const OpCase& row : op_cases()) {
    Rng rng = rng_of(row);
    for (int repeat = 0; repeat < 2; repeat++) {
      const Arrays x = draw_operands(row, rng);
      const std::vector<double> got = row.function(x).to_vector<double>(), want = row.reference(hosts(x));
      REQUIRE_MESSAGE(got.size() == want.size(), row.name);
      for (std::size_t k = 0; k < got.size(); k++) {
        const bool near = std::abs(got[k] - want[k]) <= row.tolerance * std::max(1.0, std::abs(want[k]));
        if (!near) FAIL_CHECK(row.name << ": element " << k << " is " << got[k] << ", wanted " << want[k]);
      }
    }
  }
}

TEST_CASE("ops: jit gives the bits of eager evaluation") {
  for (const OpCase& row : op_cases()) {
    Rng rng = rng_of(row);
    const Arrays x = draw_operands(row, rng);
    const auto f = jit([&](const Arrays& a) { return row.function(a); });
    const std::string text = difference(host(f(x)), host(row.function(x)), 0);
    CHECK_MESSAGE(text.empty(), row.name << ": " << text);
  }
}

// ---------------------------------------------------------------- completeness
TEST_CASE("ops: every op has a row, a rule and a derivative") {
  std::set<const Op*> reached;
  std::set<std::string> names;
  const std::set<const Op*> constants = {&op_stop_gradient};  // floating, without derivative on purpose
  for (const OpCase& row : all_op_cases()) {
    Rng rng = rng_of(row);
    const Array y = row.function(draw_operands(row, rng));
    names.insert(row.name);
    each_node(std::span(&y, 1), [&](Node& n) {
      reached.insert(n.op);
      if (n.op->form == Form::leaf || n.op == &op_identity || !is_inexact(n.type().dtype) ||
          constants.contains(n.op))
        return;
      std::vector<Type> in, out;
      for (const Array& a : n.in()) in.push_back(type_of(a));
      for (const auto& o : n.out()) out.push_back(o.type);
      const Call call{n.op, in, out, &n.attrs()};
      for (std::size_t k = 0; k < in.size(); k++) {
        const bool linear = linearity(call, static_cast<int>(k)) != Linear::no;
        CHECK_MESSAGE((!is_inexact(in[k].dtype) || linear || n.op->jvp), n.op->name << " has no derivative");
        CHECK_MESSAGE((!linear || n.op->transpose), n.op->name << " is linear and has no transpose");
      }
    });
  }
  for (const Op& op : all_ops()) {
    CHECK_MESSAGE(!!op.rule, op.name << " has no rule");
    // Collectives are gone once the map that binds their axis has been applied: only the row's name shows them.
    if (&op == &op_place || &op == &op_host_call)
      continue;  // nested maps over devices and effects: pmap_test.cpp, debug_test.cpp
    const bool named =
        op.form == Form::collective && std::any_of(names.begin(), names.end(), [&](const std::string& n) {
          return n.find(op.name) != std::string::npos;
        });
    CHECK_MESSAGE((named || reached.contains(&op)), std::string(op.name) << " has no row in op_cases.h");
  }
}

// ---------------------------------------------------------------- derivatives
namespace {

// A row at a point of its domain, in float64 where it can be, with directions in the operands and in the result.
struct Point {
  const OpCase* row = nullptr;
  std::vector<std::vector<double>> at, direction;
  std::vector<DType> dtypes;
  double step = 0, tolerance = 0;

  std::size_t size() const { return at.size(); }
  bool varies(std::size_t k) const { return is_floating(row->inputs[k].dtype); }
  Arrays operands(double along) const {
    Arrays r;
    for (std::size_t k = 0; k < size(); k++) {
      std::vector<double> v = at[k];
      for (std::size_t e = 0; varies(k) && e < v.size(); e++) v[e] += along * direction[k][e];
      r.push_back(to_array(v, row->inputs[k].shape, dtypes[k]));
    }
    return r;
  }
  Arrays tangents() const {
    Arrays r;
    for (std::size_t k = 0; k < size(); k++)
      r.push_back(varies(k) ? to_array(direction[k], row->inputs[k].shape, dtypes[k]) : Array());
    return r;
  }
};

Point point_of(const OpCase& row, Rng& rng) {
  Point p{&row, {}, {}, {}, 1e-5, 1e-6};
  for (const OpInput& in : row.inputs) {
    p.at.push_back(draw(in, rng));
    p.direction.push_back(draw({in.shape, -1, 1}, rng));
    p.dtypes.push_back(is_floating(in.dtype) ? DType::float64 : in.dtype);
  }
  if (row.function(p.operands(0)).dtype() == DType::float64) return p;
  for (DType& t : p.dtypes) t = t == DType::float64 ? DType::float32 : t;
  p.step = 1e-2;
  p.tolerance = 1e-2;
  return p;
}

// (f(x + h u) - f(x - h u)) / 2h
template <class F> HostArray central_difference(const Point& p, const F& f) {
  HostArray up = f(p.operands(p.step));
  const HostArray down = f(p.operands(-p.step));
  for (std::size_t e = 0; e < up.data.size(); e++) up.data[e] = (up.data[e] - down.data[e]) / (2 * p.step);
  return up;
}

// An absent tangent is zero.
HostArray tangent_host(const Array& t, const Shape& shape) {
  return t.has_value()
             ? host(t)
             : HostArray{shape, std::vector<double>(static_cast<std::size_t>(num_elements(shape)), 0.0)};
}
double inner_product(const HostArray& a, const std::vector<double>& b) {
  double s = 0;
  for (std::size_t e = 0; e < b.size(); e++) s += a.data[e] * b[e];
  return s;
}

// All cotangents of the floating operands for the cotangent w, one after the other.
Array flat_gradient(const Point& p, std::span<const Array> x, const std::vector<double>& w) {
  const Core d(x, "grad");
  const Array y[] = {p.row->function(d.variables())};
  const Array cotangent[] = {to_array(w, y[0].shape(), y[0].dtype())};
  d.linearize(y);
  const Arrays given = d.pull(cotangent);
  Arrays parts;
  for (std::size_t k = 0; k < p.size(); k++)
    if (p.varies(k)) parts.push_back(reshape(given[k].has_value() ? given[k] : zeros_like(x[k]), {-1}));
  return concatenate(parts);
}

void check_derivatives(const OpCase& row, Rng& rng) {
  const Point p = point_of(row, rng);
  const Core d(p.operands(0), "grad");
  const Array y[] = {row.function(d.variables())};
  const std::vector<double> w = draw({y[0].shape(), -1, 1}, rng);
  const HostArray tangent = tangent_host(d.push(y, p.tangents())[0], y[0].shape());
  const auto value = [&](const Arrays& x) { return host(row.function(x)); };
  const std::string text = difference(tangent, central_difference(p, value), p.tolerance);
  CHECK_MESSAGE(text.empty(), row.name << ": forward: " << text);

  const Array cotangent[] = {to_array(w, y[0].shape(), y[0].dtype())};
  d.linearize(y);
  const Arrays back = d.pull(cotangent);
  double backward = 0;
  for (std::size_t k = 0; k < p.size(); k++)
    if (p.varies(k)) backward += inner_product(tangent_host(back[k], row.inputs[k].shape), p.direction[k]);
  const double forward = inner_product(tangent, w);
  CHECK_MESSAGE(std::abs(forward - backward) <= p.tolerance * std::max(1.0, std::abs(forward)),
                row.name << ": forward gives " << forward << ", backward " << backward);
}

void check_second_derivatives(const OpCase& row, Rng& rng) {
  const Point p = point_of(row, rng);
  const std::vector<double> w = draw({row.function(p.operands(0)).shape(), -1, 1}, rng);
  const Core d(p.operands(0), "grad");
  const Array g[] = {flat_gradient(p, d.variables(), w)};
  const HostArray tangent = tangent_host(d.push(g, p.tangents())[0], g[0].shape());
  const auto gradient = [&](const Arrays& x) { return host(flat_gradient(p, x, w)); };
  const std::string text = difference(tangent, central_difference(p, gradient), 10 * p.tolerance);
  CHECK_MESSAGE(text.empty(), row.name << ": second order: " << text);
}

}  // namespace

TEST_CASE("ops: derivatives against differences") {
  int rows = 0;
  for (const OpCase& row : op_cases()) {
    if (!row.differentiable) continue;
    rows++;
    Rng rng = rng_of(row);
    check_derivatives(row, rng);
    check_second_derivatives(row, rng);
  }
  CHECK(rows > 100);
}

// ---------------------------------------------------------------- vmap
namespace {

constexpr std::int64_t kRows = 3;

// The operands of all rows as one array, the rows along `axis`.
Array stacked(const std::vector<Arrays>& rows, std::size_t k, std::int64_t axis) {
  std::vector<Array> parts;
  for (const Arrays& r : rows) parts.push_back(r[k]);
  return stack(parts, axis);
}

// axes[k]: 0, 1, or -1 for an operand that all rows share.
std::string check_vmap(const OpCase& row, const std::vector<Arrays>& rows,
                       const std::vector<std::int64_t>& axes) {
  std::vector<core::VmapArg> args;
  for (std::size_t k = 0; k < axes.size(); k++)
    args.push_back(axes[k] < 0 ? core::VmapArg{rows[0][k], std::nullopt, ""}
                               : core::VmapArg{stacked(rows, k, axes[k]), axes[k], ""});
  const auto body = [&](std::span<const Array> x) { return Arrays{row.function(x)}; };
  const core::VmapResult r = core::vmap(body, args, "rows", std::nullopt, "vmap", Where::here());
  const HostArray got = host(core::place_axis(r, 0, 0, "rows", "vmap"));
  HostArray want;
  bool sums = false;
  for (std::int64_t b = 0; b < kRows; b++) {
    Arrays x;
    for (std::size_t k = 0; k < axes.size(); k++)
      x.push_back(rows[axes[k] < 0 ? 0 : static_cast<std::size_t>(b)][k]);
    const Array y = row.function(x);
    sums |= rounds(std::span(&y, 1));
    const HostArray one = host(y);
    want.shape = one.shape;
    want.data.insert(want.data.end(), one.data.begin(), one.data.end());
  }
  want.shape.insert(0, kRows);
  return difference(got, want, sums ? 1e-5 : 0);
}

}  // namespace

TEST_CASE("ops: vmap against a loop over the rows") {
  int cases = 0;
  for (const OpCase& row : op_cases()) {
    Rng rng = rng_of(row);
    std::vector<Arrays> rows;
    for (std::int64_t b = 0; b < kRows; b++) rows.push_back(draw_operands(row, rng));
    std::size_t mixes = 1;
    for (std::size_t k = 0; k < row.inputs.size(); k++) mixes *= 3;
    for (std::size_t mix = 1; mix < mixes; mix++) {  // the digits of `mix`: shared, axis 0, axis 1
      std::vector<std::int64_t> axes;
      std::size_t rest = mix;
      bool exists = true;
      for (const OpInput& in : row.inputs) {
        axes.push_back(static_cast<std::int64_t>(rest % 3) - 1);
        exists &= axes.back() <= static_cast<std::int64_t>(in.shape.size());
        rest /= 3;
      }
      if (!exists) continue;
      cases++;
      const std::string text = check_vmap(row, rows, axes);
      CHECK_MESSAGE(text.empty(), row.name << ", mix " << mix << ": " << text);
    }
  }
  CHECK(cases > 500);
}

// ---------------------------------------------------------------- shardings
namespace {

// Another size for each of a row's sizes; equal ones stay equal, and 1 stays 1.
using Resize = std::int64_t (*)(std::int64_t);
constexpr Resize kSizes[] = {
    [](std::int64_t n) { return n; },
    [](std::int64_t n) -> std::int64_t {
      return n == 10 ? 16 : n == 6 ? 8 : n == 1 ? 1 : 8;
    },  // even everywhere
    [](std::int64_t n) -> std::int64_t {
      return n == 10 ? 7 : n == 6 ? 5 : n == 1 ? 1 : 3;
    },
    [](std::int64_t n) -> std::int64_t { return n == 10  ? 3
                                                : n == 6 ? 9
                                                         : 1; },
    [](std::int64_t n) -> std::int64_t { return n == 10 ? 0 : n; },
};

// The row with other sizes; false where its function asks for certain ones.
bool resized(OpCase& row, Resize size) {
  bool changed = false;
  for (OpInput& in : row.inputs)
    for (std::int64_t& n : in.shape) {
      changed |= size(n) != n;
      n = size(n);
    }
  if (!changed) return false;
  Rng rng(1);
  try {
    row.function(draw_operands(row, rng));
    return true;
  } catch (const ShapeError&) { return false; }
}

class ShardingCases {
 public:
  /// `is_ordered`: the lines are reproducible, so that sums keep their bits too.
  explicit ShardingCases(bool is_ordered = false) : is_ordered_(is_ordered) {
    for (const auto& axes : std::vector<std::vector<std::pair<std::string, std::int64_t>>>{
             {{"x", 1}}, {{"x", 2}}, {{"x", 8}}, {{"x", 2}, {"y", 4}}})
      meshes_.push_back(make_mesh(axes));
  }

  void run(const OpCase& row) {
    Rng rng = rng_of(row);
    const Arrays x = draw_operands(row, rng);
    const Array y = row.function(x);
    const bool adds = rounds(std::span(&y, 1));
    if (is_ordered_ && !adds) return;  // they have the bits on all lines
    bool constrained = false;          // to all devices
    each_node(std::span(&y, 1), [&](Node& n) { constrained |= n.op->form == Form::constraint; });
    const double tolerance = adds && !is_ordered_ ? 1e-5 : 0;
    const HostArray want = host(y);
    for (const Mesh& mesh : meshes_)
      if (!constrained || mesh.size() == device_count())
        x.empty() ? run_result(row, mesh, want) : run_mesh(row, mesh, x, want, tolerance, rng);
  }
  int count() const { return count_; }

 private:
  // What is propagated and planned is the same on every platform.
  const bool is_slow_ = devices()[0].platform != "cpu" || is_sanitized();
  const std::size_t most_mixes_ = full_scale() ? (is_slow_ ? 37 : 150) : (is_slow_ ? 2 : 3);

  // Every combination of shardings of the operands, or a random part of very many.
  void run_mesh(const OpCase& row, const Mesh& mesh, const Arrays& x, const HostArray& want, double tolerance,
                Rng& rng) {
    std::vector<std::vector<Sharding>> shardings;
    std::vector<Arrays> placed;
    std::size_t mixes = 1;
    for (const Array& a : x) {
      shardings.push_back(every_sharding(mesh, a.shape().size()));
      mixes *= shardings.back().size();
      placed.emplace_back();
      for (const Sharding& s : shardings.back()) placed.back().push_back(device_put(a, s));
    }
    const auto f = jit([&row](const Arrays& a) { return row.function(a); });
    for (std::size_t n = 0; n < std::min(mixes, most_mixes_); n++) {
      std::size_t mix =
          mixes <= most_mixes_
              ? n
              : static_cast<std::size_t>(whole_between(rng, 0, static_cast<std::int64_t>(mixes) - 1));
      Arrays given;
      std::string how;
      for (std::size_t k = 0; k < x.size(); k++) {
        const std::size_t s = mix % placed[k].size();
        mix /= placed[k].size();
        given.push_back(placed[k][s]);
        how += " " + to_string(type_of(x[k])) + " " + shardings[k][s].to_string();
      }
      check(row, how, f, given, want, tolerance);
    }
  }

  // Without operands the result is placed.
  void run_result(const OpCase& row, const Mesh& mesh, const HostArray& want) {
    for (const Sharding& s : every_sharding(mesh, want.shape.size()))
      check(row, s.to_string(), jit([&](const Arrays& a) { return filter_shard(row.function(a), s); }), {},
            want, 0);
  }

  template <class F>
  void check(const OpCase& row, const std::string& how, const F& f, const Arrays& given,
             const HostArray& want, double tolerance) {
    count_++;
    std::string text;
    try {
      text = difference(host(f(given)), want, tolerance);
    } catch (const std::exception& e) { text = e.what(); }
    if (!text.empty()) FAIL_CHECK(row.name << " with" << how << ": " << text);
  }

  bool is_ordered_;
  std::vector<Mesh> meshes_;
  int count_ = 0;
};

}  // namespace

TEST_CASE("ops: on reproducible lines every sharding gives the bits of one device") {
  const reproducible on(true);
  ShardingCases cases(true);
  for (const OpCase& row : op_cases())
    for (Resize size : {kSizes[1], kSizes[0]}) {
      OpCase other = row;
      if (size != kSizes[0] && !resized(other, size)) continue;
      cases.run(other);
      if (!full_scale()) break;
    }
  MESSAGE("op x sharding cases with the bits of one device: " << cases.count());
  CHECK(cases.count() >= (full_scale() ? 1000 : 500));
}

TEST_CASE("ops: every sharding gives the value of one device") {
  ShardingCases cases;
  LeftOut left_out(3);
  for (const OpCase& row : op_cases())
    for (Resize size : kSizes) {
      if (left_out()) continue;
      OpCase other = row;
      if (size == kSizes[0] || resized(other, size)) cases.run(other);
    }
  MESSAGE("op x shape x sharding cases: " << cases.count());
  CHECK(cases.count() >= (is_sanitized() ? 5'000 : 10'000));
}

}  // namespace op_properties_test
