// Partial sums as operands of ops, on every mesh: the value of one device, whatever the op does and wherever its operands are
// placed.
#include "partial_sums.h"
#include "golden.h"
#include "ops/asked.h"
#include "scale.h"

namespace partial_sums_test {

using namespace partial_sums;

namespace {

// Ops that never see partial sums: maps turn them into others before anything is placed.
struct CollectiveRow {
  const Op* op;
  std::function<Array(const Array&, const std::string& axis)> f;  // of a value [8, 8]
};
std::vector<CollectiveRow> collective_rows() {
  using A = const Array&;
  using S = const std::string&;
  const auto ring = [](S axis) {
    sa::Permutation p;
    const int n = static_cast<int>(sa::axis_size(axis));
    for (int k = 0; k < n; k++) p.emplace_back(k, (k + 1) % n);
    return p;
  };
  return {
      {&sa::op_psum, [](A x, S axis) { return sa::psum(x, axis); }},
      {&sa::op_ppermute, [ring](A x, S axis) { return sa::ppermute(x, axis, ring(axis)); }},
      {&sa::op_pbroadcast, [](A x, S axis) { return sa::pbroadcast(x, axis, 1); }},
      {&sa::op_all_gather, [](A x, S axis) { return sa::all_gather(x, axis, {.axis = 1, .tiled = true}); }},
      {&sa::op_reduce_scatter,
       [](A x, S axis) { return sa::psum_scatter(x, axis, {.axis = 0, .tiled = true}); }},
      {&sa::op_all_to_all,
       [](A x, S axis) {
         return sa::all_to_all(x, axis, {.split_axis = 0, .concat_axis = 1, .tiled = true});
       }},
      {&sa::op_pmax, [](A x, S axis) { return sa::pmax(x, axis); }},
  };
}

// ---------------------------------------------------------------- placements
using Axes = std::vector<std::string>;

// The axes that hold the parts, and those that cut the two dimensions.
struct Cut {
  sa::Mesh mesh;
  Axes parts, rows, columns;

  static sa::SpecEntry entry(const Axes& a) {
    return a.empty() ? sa::SpecEntry(sa::none) : sa::SpecEntry(sa::AxisNames{a});
  }
  sa::Sharding of_parts() const {
    return sa::NamedSharding(mesh, P(std::vector{entry(parts), entry(rows), entry(columns)}));
  }
  sa::Sharding of_sum() const { return sa::NamedSharding(mesh, P(std::vector{entry(rows), entry(columns)})); }
};

std::vector<sa::Mesh> meshes() {
  return {sa::make_mesh({{"x", 2}, {"y", 2}}), sa::make_mesh({{"x", 4}, {"y", 2}}),
          sa::make_mesh({{"x", 2}, {"y", 2}, {"z", 2}})};
}
// Every axis holds parts, cuts rows or columns, or repeats.
std::vector<Cut> all_cuts() {
  std::vector<Cut> cuts;
  for (const sa::Mesh& mesh : meshes()) {
    const auto& names = mesh.axis_names();
    for (int code = 0; code < 1 << 2 * names.size(); code++) {
      Axes use[4];
      for (std::size_t k = 0; k < names.size(); k++) use[code >> 2 * k & 3].push_back(names[k]);
      if (!use[1].empty()) cuts.push_back({mesh, use[1], use[2], use[3]});
    }
  }
  return cuts;
}

}  // namespace

TEST_CASE("partial sums: every op that may let them pass has a row") {
  std::set<const Op*> have;
  for (const Row& row : rows()) have.insert(row.op);
  for (const CollectiveRow& row : collective_rows()) have.insert(row.op);
  have.insert(&sa::op_place);                    // becomes a constraint
  have.insert({&sa::op_beside, &sa::op_asked});  // nothing is left of them in a program
  for (const sa::Op& op : sa::all_ops())
    if (op.linearity)
      CHECK_MESSAGE(have.contains(&op), std::string(op.name) << " has no row in partial_sums_test.cpp");
}

TEST_CASE("partial sums: on every mesh, over all axes, the value of one device") {
  int cases = 0;
  sa::testing::LeftOut left_out(7, 3);
  const auto cuts = all_cuts();
  for (const Shape& shape : {Shape{8, 8}, Shape{7, 5}, Shape{3, 6}})
    for (const Row& row : rows()) {
      const Shape parts{4, shape[0], shape[1]};
      const DType t = row.passes == integers ? sa::int32 : sa::float32;
      const Arrays x = {numbers(parts, t), numbers(parts, t, 1), numbers(shape, t, 2), next_rows(shape[0])};
      const auto f = [&](const sa::Sharding& s) {
        return sa::jit([&row, s](const Arrays& v) { return of_sums(row, v, s); });
      };
      const auto want = values(f(sa::SingleDeviceSharding(sa::devices()[0]))(x));
      for (const Cut& cut : cuts) {
        if (left_out()) continue;
        const sa::Sharding of[] = {cut.of_parts(), cut.of_parts(), cut.of_sum(),
                                   sa::NamedSharding(cut.mesh, P())};
        Arrays placed;
        for (std::size_t k = 0; k < x.size(); k++) placed.push_back(sa::device_put(x[k], of[k]));
        const auto on_mesh = f(cut.of_sum());
        cases++;
        const std::string how =
            std::string(row.op->name) + " of " + to_string(shape) + " " + of[0].to_string();
        CHECK_MESSAGE(golden::close(values(on_mesh(placed)), want, 0), how);
        check_received(on_mesh, placed);
      }
    }
  MESSAGE("op x shape x sharding cases: " << cases);
}

TEST_CASE("partial sums: collectives over the other axes, as vmap over all of them") {
  int cases = 0;
  for (const sa::Mesh& mesh : meshes())
    for (const std::string& summed : mesh.axis_names())
      for (const std::string& axis : mesh.axis_names())
        for (const CollectiveRow& row : collective_rows()) {
          if (axis == summed) continue;
          const auto f = [&](const Array& v) { return row.f(sa::psum(v, summed), axis); };
          const auto& names = mesh.axis_names();
          const std::size_t n = names.size();
          Shape shape = {8, 8};
          for (std::size_t k = n; k-- > 0;) shape.insert(0, mesh.shape()[k].second);
          const auto piece = [&](const Array& v) {
            const Array y = f(sa::reshape(v, {8, 8}));
            Shape out = Shape::filled(n, 1);
            for (std::int64_t size : y.shape()) out.push_back(size);
            return sa::reshape(y, out);
          };
          std::function<Array(const Array&)> mapped = f;
          for (std::size_t k = n; k-- > 0;)
            mapped = [inner = mapped, name = names[k]](const Array& v) {
              return sa::vmap(inner, {.axis_name = name})(v);
            };
          std::vector<sa::SpecEntry> entries(names.begin(), names.end());
          const P spec(entries);
          const Array x = numbers(shape);
          cases++;
          CHECK_MESSAGE(values(sa::jit(sa::shard_map(piece, {mesh, spec, spec}))(x)) == values(mapped(x)),
                        std::string(row.op->name)
                            << " over " << axis << " of a psum over " << summed << " of " << n);
        }
  MESSAGE("collective x mesh x axes cases: " << cases);
}

// ---------------------------------------------------------------- as they were met
TEST_CASE("partial sums: a product's rows are sliced, reversed and sent on") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 2}});
  const auto on = [&](const Array& v, const P& spec) {
    return sa::device_put(v, sa::NamedSharding(mesh, spec));
  };
  const Array a = numbers({4, 8}), b = numbers({8, 3}, sa::float32, 1);
  const auto ax = on(a, P("x", "y")), bx = on(b, P("y"));
  std::vector<double> product(12, 0.0);
  for (std::size_t i = 0; i < 4; i++)
    for (std::size_t j = 0; j < 3; j++)
      for (std::size_t k = 0; k < 8; k++) product[3 * i + j] += values(a)[8 * i + k] * values(b)[3 * k + j];
  const std::vector<double> behind(product.begin() + 3, product.end());
  std::vector<double> turned;
  for (std::size_t i = 4; i-- > 0;)
    turned.insert(turned.end(), product.begin() + 3 * static_cast<std::ptrdiff_t>(i),
                  product.begin() + 3 * static_cast<std::ptrdiff_t>(i) + 3);
  CHECK(values(sa::jit([](const Array& p, const Array& q) {
          return sa::matmul(p, q)[sa::slice(1, sa::none)];
        })(ax, bx)) == behind);
  CHECK(values(sa::jit([](const Array& p, const Array& q) { return sa::flip(sa::matmul(p, q), 0); })(
            ax, bx)) == turned);
}

TEST_CASE("partial sums: quotients, casts and scaling wait for the sum") {
  const auto of = [](const auto& v, auto f) {
    const sa::Sharding four = sa::NamedSharding(sa::make_mesh({{"d", 4}}), P("d"));
    return values(
        sa::jit([f](const Array& x) { return f(sa::sum(x)); })(sa::device_put(sa::array(v), four)))[0];
  };
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(of(std::vector<std::uint32_t>{7, 8, 9, 9}, [](const Array& s) { return sa::floor_divide(s, 10); }) ==
        3);
  CHECK(of(std::vector<double>{1e10 + 1, 1, -1e10, 0.5},
           [](const Array& s) { return s.astype(sa::float32); }) == 2.5);
  CHECK(of(std::vector<float>{1, -3, 1, -1}, [](const Array& s) { return s * INFINITY; }) == -inf);
  CHECK(of(std::vector<float>{1, -3, 1, -1}, [](const Array& s) { return s / 0; }) == -inf);
  CHECK(of(std::vector<float>{1, -3, 1, -1}, [](const Array& s) { return s * 1.5e38; }) ==
        -2 * double(1.5e38F));
}

}  // namespace partial_sums_test
