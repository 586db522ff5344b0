// Rules by brute force: the claims of an op's factors, compared with the op itself run on slices of its operands.
#include <unordered_set>

#include "op_data.h"
#include "shardarray/complex.h"

namespace rules_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

// A recorded node with the values of its operands and results.
struct Recorded {
  const Op* op = nullptr;
  Attrs attrs;
  std::vector<Type> in_types, out_types;
  Arrays operands, results;
  Hosts in, out;

  Call call() const { return {op, in_types, out_types, &attrs}; }
};

// Of complex elements: who moves these moves the imaginary parts alike.
HostArray real_part(const Array& x) { return host(is_complex(x.dtype()) ? real(x) : x); }

// The different nodes of all rows, without those that hold graphs, shardings or axes: they are gone before rules matter.
std::vector<Recorded> recorded_nodes() {
  std::vector<Recorded> all;
  std::unordered_set<std::string> seen;
  Rng rng(1);
  for (const OpCase& row : op_cases()) {
    const Array y = row.function(draw_operands(row, rng));
    for (Node* n : topological(std::span(&y, 1), [](Node*) { return true; })) {
      if (n->evaluated() || n->op->form == Form::leaf || !n->attrs().graphs.empty() ||
          n->op->form == Form::constraint || n->op == &op_constant)
        continue;
      Recorded r{n->op, n->attrs(), {}, {}, {n->in().begin(), n->in().end()}, {}, {}, {}};
      std::string key = std::string(n->op->name) + std::to_string(n->attrs().hash());
      for (const Array& a : r.operands) r.in_types.push_back(type_of(a)), key += to_string(type_of(a));
      for (std::uint32_t k = 0; k < n->out().size(); k++)
        r.results.push_back(handle(n, k)), r.out_types.push_back(n->type(k));
      if (seen.insert(key).second) all.push_back(std::move(r));
    }
  }
  const auto real_parts = [](const Arrays& x) {
    Hosts r;
    for (const Array& a : x) r.push_back(real_part(a));
    return r;
  };
  for (Recorded& r : all) {
    r.in = real_parts(r.operands);
    r.out = real_parts(r.results);
  }
  return all;
}

HostArray part(const HostArray& x, const Box& box) {
  return {box.size, build(box.size, [&](const Shape& i) {
            Shape at = i;
            for (std::size_t d = 0; d < at.size(); d++) at[d] += box.lo[d];
            return read(x, at);
          })};
}

// The tile `t` of `tiles` of a value whose dimensions have these factors, when factor f is cut.
Box tile(const Shape& shape, const std::vector<DimFactors>& dims, int f, std::int64_t t, std::int64_t tiles) {
  Box b = whole_box(shape);
  for (std::size_t d = 0; d < dims.size(); d++)
    if (dims[d][0] == f) {
      const std::int64_t size = (shape[d] + tiles - 1) / tiles;
      b.lo[d] = std::min(t * size, shape[d]);
      b.size[d] = std::min(size, shape[d] - b.lo[d]);
    }
  return b;
}

// Where dimensions consist of several factors, only the first one gives contiguous tiles, and only when it divides.
bool can_cut(const Rule& r, int f, std::int64_t tiles) {
  for (const auto* side : {&r.operands, &r.results})
    for (const auto& term : *side)
      for (const DimFactors& dim : term)
        if (dim.size() > 1 && std::find(dim.begin(), dim.end(), f) != dim.end() &&
            (dim[0] != f || r.factors[static_cast<std::size_t>(f)].size % tiles != 0))
          return false;
  return true;
}

HostArray shifted(HostArray x, double by) {
  for (double& v : x.data) v += by;
  return x;
}

// The op on one tile: sizes in its attributes become local, positions count from the tile's first row.
Hosts run_on_tile(const Recorded& r, const Rule& rule, int f, std::int64_t t, std::int64_t tiles) {
  auto operand = [&](std::size_t k) { return tile(r.in_types[k].shape, rule.operands[k], f, t, tiles); };
  const Box out = tile(r.out_types[0].shape, rule.results[0], f, t, tiles);
  Attrs a = r.attrs;
  std::vector<Box> read;
  for (std::size_t k = 0; k < r.in.size(); k++) read.push_back(operand(k));
  if (r.op->windows) read = r.op->windows({r.call(), read, std::span(&out, 1)});
  Hosts in;
  for (std::size_t k = 0; k < r.in.size(); k++) in.push_back(part(r.in[k], read[k]));
  if (r.op == &op_iota || r.op == &op_broadcast || r.op == &op_reshape) a.shape = out.size;
  if (r.op == &op_slice)
    for (std::size_t d = 0; d < a.hi.size(); d++)
      if (rule.operands[0][d][0] == f) a.hi[d] = in[0].shape[d];
  if (r.op == &op_take)
    in[1] = shifted(in[1], -static_cast<double>(operand(0).lo[static_cast<std::size_t>(a.lo[0])]));
  if (r.op == &op_scatter) {
    const auto rows = static_cast<std::size_t>(a.lo[0]);
    in[0] = shifted(in[0], -static_cast<double>(out.lo[rows]));
    a.shape = {out.size[rows]};
  }
  if (r.op == &op_update_rows)
    in[1] = shifted(in[1], -static_cast<double>(out.lo[static_cast<std::size_t>(a.lo[0])]));
  if (r.op == &op_update)
    for (std::size_t k = 0; k < a.dims.size(); k++)
      in[2 + k] = shifted(in[2 + k], -static_cast<double>(out.lo[static_cast<std::size_t>(a.dims[k])]));
  if (r.op->windows && std::any_of(in.begin(), in.end(), [](const HostArray& x) { return x.data.empty(); }))
    return {
        {out.size, std::vector<double>(static_cast<std::size_t>(out.elements()), 0)}};  // a sum of nothing
  Arrays given;
  for (std::size_t k = 0; k < in.size(); k++)
    given.push_back(to_array(in[k].data, in[k].shape, r.in_types[k].dtype));
  Hosts result = hosts(record_all(*r.op, given, std::make_shared<const Attrs>(a), {}));
  if (r.op == &op_iota)
    result[0] =
        shifted(result[0], static_cast<double>(out.lo[out.lo.size() + static_cast<std::size_t>(a.dims[0])]));
  return result;
}

double combine(Reducer reducer, double a, double b) {
  switch (reducer) {
    case Reducer::sum: return a + b;
    case Reducer::prod: return a * b;
    case Reducer::max: return std::max(a, b);
    case Reducer::any:
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) | std::bit_cast<std::uint64_t>(b));
    case Reducer::min:
    case Reducer::all: return std::min(a, b);
    default: return NAN;
  }
}

// Tiles of a scan, each with what those in front of it end with.
void add_carries(std::vector<Hosts>& parts, const Rule& rule, int f, bool reverse) {
  const auto& dims = rule.results[0];
  const auto dim =
      static_cast<std::size_t>(std::find(dims.begin(), dims.end(), DimFactors{f}) - dims.begin());
  if (reverse) std::reverse(parts.begin(), parts.end());
  HostArray before;  // the tile in front, carried
  for (Hosts& hosts : parts) {
    HostArray& x = hosts[0];
    if (x.data.empty()) continue;
    if (!before.data.empty())
      x.data = build(x.shape, [&](const Shape& i) {
        Shape last = i;
        last[dim] = reverse ? 0 : before.shape[dim] - 1;
        return combine(rule.factors[static_cast<std::size_t>(f)].reducer, read(before, last), read(x, i));
      });
    before = x;
  }
  if (reverse) std::reverse(parts.begin(), parts.end());
}

// Empty when the claim about factor f holds for this number of tiles.
std::string broken_claim(const Recorded& r, const Rule& rule, int f, std::int64_t tiles) {
  const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
  std::vector<Hosts> parts;
  for (std::int64_t t = 0; t < tiles; t++) parts.push_back(run_on_tile(r, rule, f, t, tiles));
  if (factor.role == Role::scan) add_carries(parts, rule, f, r.attrs.step[0] < 0);
  for (std::size_t k = 0; k < r.out.size(); k++) {
    std::string text;
    if (factor.role != Role::reduce) {
      const bool solves = r.op == &op_triangular_solve || r.op == &op_lu_solve;
      const double tolerance = factor.role == Role::scan || solves ? 1e-5 : 0;
      for (std::size_t t = 0; t < parts.size() && text.empty(); t++)
        text = difference(
            parts[t][k],
            part(r.out[k], tile(r.out[k].shape, rule.results[k], f, static_cast<std::int64_t>(t), tiles)),
            tolerance);
    } else {
      HostArray total = parts[0][k];
      for (std::size_t t = 1; t < parts.size(); t++)
        for (std::size_t e = 0; e < total.data.size(); e++)
          total.data[e] = combine(factor.reducer, total.data[e], parts[t][k].data[e]);
      const bool rounds = is_inexact(r.out_types[k].dtype) &&
                          (factor.reducer == Reducer::sum || factor.reducer == Reducer::prod);
      text = difference(total, r.out[k], rounds ? 1e-5 : 0);
    }
    if (!text.empty()) return text;
  }
  return "";
}

std::string describe(const Recorded& r) {
  std::string s = r.op->name;
  for (const Type& t : r.in_types) s += " " + to_string(t);
  return s + " -> " + to_string(r.out_types[0]);
}

}  // namespace

TEST_CASE("rules: every factor that passes, reduces or scans, on tiles") {
  int cases = 0;
  for (const Recorded& r : recorded_nodes()) {
    const auto is_pair = [](const Type& t) { return is_complex(t.dtype); };
    if (std::any_of(r.in_types.begin(), r.in_types.end(), is_pair) ||
        std::any_of(r.out_types.begin(), r.out_types.end(), is_pair))
      continue;  // a HostArray has real elements; op cases cut these in every way
    const Rule rule = r.op->rule(r.call());
    REQUIRE(rule.operands.size() == r.in.size());
    REQUIRE(rule.results.size() == r.out.size());
    for (int f = 0; f < static_cast<int>(rule.factors.size()); f++) {
      const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
      if (factor.size < 2 || factor.role == Role::whole) continue;
      if (factor.role == Role::halo && !r.op->windows) continue;  // they are made of boxes: see below
      for (std::int64_t tiles : {2, 3, 4})
        if (can_cut(rule, f, tiles)) {
          cases++;
          const std::string text = broken_claim(r, rule, f, tiles);
          CHECK_MESSAGE(text.empty(), describe(r)
                                          << ", factor " << f << " in " << tiles << " tiles: " << text);
        }
    }
  }
  MESSAGE("op x factor x tiles cases: " << cases);
  CHECK(cases > 500);
}

TEST_CASE("rules: factors have the sizes of their dimensions") {
  for (const Recorded& r : recorded_nodes()) {
    const Rule rule = r.op->rule(r.call());
    auto check = [&](const Shape& shape, const std::vector<DimFactors>& dims, bool has_windows) {
      REQUIRE_MESSAGE(dims.size() == shape.size(), describe(r));
      for (std::size_t d = 0; d < dims.size(); d++) {
        std::int64_t size = 1;
        bool halo = has_windows;
        for (int f : dims[d]) {
          size *= rule.factors[static_cast<std::size_t>(f)].size;
          halo |= rule.factors[static_cast<std::size_t>(f)].role == Role::halo;
        }
        CHECK_MESSAGE((halo || size == shape[d]), describe(r) << ", dimension " << d);
      }
    };
    for (std::size_t k = 0; k < r.in.size(); k++) check(r.in_types[k].shape, rule.operands[k], r.op->windows);
    for (std::size_t k = 0; k < r.out.size(); k++) check(r.out_types[k].shape, rule.results[k], false);
  }
}

TEST_CASE("rules: boxes and index maps find every element") {
  int boxes = 0, maps = 0;
  Rng rng(2);
  for (const Recorded& r : recorded_nodes()) {
    const HostArray& out = r.out[0];
    if (r.op->map && out.data.size() > 0) {
      const std::vector<MapDim> map = r.op->map(r.call());
      maps++;
      const HostArray got{
          out.shape, build(out.shape, [&](const Shape& i) {
            Shape at;
            for (const MapDim& m : map)
              at.push_back(m.offset + (m.dim < 0 ? 0 : m.step * i[static_cast<std::size_t>(m.dim)]));
            return read(r.in[0], at);
          })};
      CHECK_MESSAGE(difference(got, out, 0).empty(), describe(r) << ": map");
    }
    for (int repeat = 0; r.op->boxes && repeat < 5; repeat++) {
      Box box = whole_box(out.shape);
      for (std::size_t d = 0; d < box.lo.size(); d++) {
        box.lo[d] = whole_between(rng, 0, out.shape[d]);
        box.size[d] = whole_between(rng, 0, out.shape[d] - box.lo[d]);
      }
      const double fill = real_part(primitive::constant(r.out_types[0].dtype, r.attrs.bits, false)).data[0];
      HostArray got{out.shape, std::vector<double>(out.data.size(), fill)};
      for (const BoxSource& s : r.op->boxes(r.call(), box))
        each_index(s.out.size, [&](const Shape& i) {
          Shape to = i, from = i;
          for (std::size_t d = 0; d < i.size(); d++) {
            to[d] += s.out.lo[d];
            from[d] = s.in_lo[d] + s.step[d] * i[d];
          }
          got.data[offset(out.shape, to)] = read(r.in[static_cast<std::size_t>(s.operand)], from);
        });
      boxes++;
      const std::string text = difference(part(got, box), part(out, box), 0);
      CHECK_MESSAGE(text.empty(), describe(r) << ": boxes: " << text);
    }
  }
  CHECK(maps > 20);
  CHECK(boxes > 50);
}

}  // namespace rules_test
