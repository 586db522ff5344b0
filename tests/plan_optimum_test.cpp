// Plans of small random programs, compared with the best of all placements of their values, found by trying them.
#include <doctest/doctest.h>

#include <random>

#include "runtime/backend.h"
#include "runtime/platforms.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace plan_optimum_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;

namespace {

enum class Kind { add, multiply, matmul, transpose, relu, rows, columns };
struct Node {
  Kind kind;
  std::size_t a, b;  // values; arguments come first
};
struct Dag {
  std::vector<sa::Shape> arguments;
  std::vector<P> places;  // of the arguments
  std::vector<Node> nodes;
  P result;
};

const std::vector<P> cuts{P(), P("x"), P(sa::none, "x")};

/// Two or three matrices, three or four operations; what is last is the result. A product or a sum has an operand that comes of something
/// cut: of whole ones each device makes all of it, whatever it costs.
Dag random_dag(std::mt19937& random) {
  const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr std::int64_t sizes[] = {64, 128, 512};
  Dag d;
  std::vector<sa::Shape> shapes;
  std::vector<bool> is_cut;
  for (std::size_t k = 0, n = 2 + any(2); k < n; k++) {
    shapes.push_back({sizes[any(3)], sizes[any(3)]});
    d.places.push_back(cuts[any(3)]);
    is_cut.push_back(d.places.back() != cuts[0]);
  }
  d.arguments = shapes;
  const std::size_t wanted = 3 + any(2);
  for (int tries = 0; d.nodes.size() < wanted && tries < 1000; tries++) {
    const Node n{static_cast<Kind>(any(7)), any(shapes.size()), any(shapes.size())};
    const sa::Shape &a = shapes[n.a], &b = shapes[n.b];
    if (n.kind == Kind::matmul) {
      if (a[1] != b[0] || !(is_cut[n.a] || is_cut[n.b])) continue;
      shapes.push_back({a[0], b[1]});
    } else if (n.kind == Kind::add || n.kind == Kind::multiply) {
      if (n.a == n.b || !(a[0] == b[0] || b[0] == 1) || !(a[1] == b[1] || b[1] == 1)) continue;
      shapes.push_back(a);
    } else if (n.kind == Kind::transpose) shapes.push_back({a[1], a[0]});
    else if ((n.kind == Kind::rows || n.kind == Kind::columns) && !is_cut[n.a]) continue;
    else if (n.kind == Kind::rows) shapes.push_back({a[0], 1});
    else if (n.kind == Kind::columns) shapes.push_back({1, a[1]});
    else shapes.push_back(a);
    const bool reads_both = n.kind == Kind::matmul || n.kind == Kind::add || n.kind == Kind::multiply;
    is_cut.push_back(is_cut[n.a] || (reads_both && is_cut[n.b]));
    d.nodes.push_back(n);
  }
  d.result = cuts[any(3)];
  return d;
}

/// The program, where `places` says where each value but the last one lies; without places the planner does.
Array run(const Dag& d, const sa::Mesh& mesh, std::vector<Array> values,
          const std::vector<std::size_t>& places) {
  for (std::size_t k = 0; k < d.nodes.size(); k++) {
    const auto [kind, i, j] = d.nodes[k];
    const Array a = values[i], b = values[j];
    Array v = kind == Kind::add         ? a + b
              : kind == Kind::multiply  ? a * b
              : kind == Kind::matmul    ? sa::matmul(a, b)
              : kind == Kind::transpose ? sa::transpose(a)
              : kind == Kind::relu      ? sa::relu(a)
                                        : sa::sum(a, kind == Kind::rows ? 1 : 0, {.keepdims = true});
    if (k < places.size()) v = sa::filter_shard(v, sa::NamedSharding(mesh, cuts[places[k]]));
    values.push_back(v);
  }
  return values.back();
}

/// By the prices of the planner: bytes, what each transfer costs to start, arithmetic.
double cost(const sa::Explanation& e, const sa::Target::Links& links) {
  double all = static_cast<double>(e.flops) * links.operation;
  for (const sa::TransferInfo& t : e.transfers())
    all += static_cast<double>(t.bytes_per_device) + links.start;
  return all;
}

struct Costs {
  double ours, least;
};
/// What the planner's plan costs, and the cheapest where constraints say where each value but the last one lies.
Costs ours_and_least(const Dag& d, const sa::Mesh& mesh) {
  const sa::Target::Links links = sa::backend("cpu").target().links;
  std::vector<Array> arguments;
  for (std::size_t k = 0; k < d.arguments.size(); k++)
    arguments.push_back(
        sa::shape_dtype_struct(d.arguments[k], sa::float32, sa::NamedSharding(mesh, d.places[k])));
  const auto planned = [&](const std::vector<std::size_t>& places) {
    const auto f = sa::jit([&](const std::vector<Array>& a) { return run(d, mesh, a, places); },
                           {.out_shardings = sa::NamedSharding(mesh, d.result)});
    return cost(sa::explain(f, arguments), links);
  };
  const double ours = planned({});
  double least = HUGE_VAL;
  std::vector<std::size_t> places(d.nodes.size() - 1, 0);
  for (bool more = true; more;) {
    least = std::min(least, planned(places));
    more = false;
    for (std::size_t k = 0; k < places.size() && !more; k++) {
      places[k] = (places[k] + 1) % cuts.size();
      more = places[k] != 0;
    }
  }
  return {ours, least};
}

}  // namespace

TEST_CASE("plans: of small random programs, about as cheap as the best of all placements") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const int dags = sa::testing::full_scale() ? 500 : 40;
  std::mt19937 random(5);
  int best = 0, near = 0;
  double worst = 1;
  for (int n = 0; n < dags; n++) {
    const Dag d = random_dag(random);
    if (d.nodes.empty()) continue;
    const Costs c = ours_and_least(d, mesh);
    CAPTURE(n);
    CHECK_MESSAGE(c.ours <= 1.6 * c.least + 1, "least ", c.least, ", planned ", c.ours);
    best += c.ours <= c.least + 1;
    near += c.ours <= 1.05 * c.least + 1;
    worst = std::max(worst, c.ours / std::max(c.least, 1.0));
  }
  CHECK(best >= dags * 9 / 10);
  CHECK(near >=
        dags * 99 / 100);  // the others: an operand is placed before the product that would have it whole
  MESSAGE(best, " of ", dags, " as cheap as the best, ", near, " within a twentieth, the worst ", worst,
          " times");
}

// Of a whole operand and of summands: a part of the sum is less to bring than all of it, and less to multiply.
TEST_CASE("plans: products of summands take parts of the sum where that is less") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Node column{Kind::rows, 1, 0}, row{Kind::columns, 1, 0};
  for (const std::int64_t n : {64, 128, 512})
    for (const P& result : cuts)
      for (Dag d : {Dag{{{n, 512}, {512, 128}}, {P(), cuts[2]}, {column, {Kind::matmul, 0, 2}}, P()},
                    Dag{{{512, n}, {128, 512}}, {P(), cuts[1]}, {row, {Kind::matmul, 2, 0}}, P()},
                    Dag{{{n, 512}, {128, 512}},
                        {P(), cuts[1]},
                        {row, {Kind::transpose, 2, 0}, {Kind::matmul, 0, 3}},
                        P()}}) {
        if (d.nodes.back().a == 2 && result == cuts[1]) continue;  // its rows are one
        if (d.nodes.back().a == 0 && result == cuts[2]) continue;
        if (n == 512 && result == P()) continue;  // the result is more to sum up than the operand
        d.result = result;
        CAPTURE(n);
        CAPTURE(result.to_string());
        const Costs c = ours_and_least(d, mesh);
        CHECK_MESSAGE(c.ours <= 1.05 * c.least + 1, "least ", c.least, ", planned ", c.ours);
      }
}

}  // namespace plan_optimum_test
