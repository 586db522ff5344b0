// Unreduced values: P(unreduced(...)) of arguments, constraints and results.
#include <map>
#include <random>

#include "files_helpers.h"
#include "layout/spelling.h"
#include "partial_sums.h"
#include "scale.h"
#include "shardarray/checkpoints.h"
#include "shardarray/visualize.h"

namespace unreduced_test {

using namespace partial_sums;
using sa::NamedSharding;
using sa::Sharding;
using sa::unreduced;
using Rng = std::mt19937;

namespace {
// Every mesh axis shards one of `rank` dimensions, holds summands, or neither.
std::vector<sa::PartitionSpec> every_spec(const sa::Mesh& mesh, std::size_t rank) {
  std::vector<sa::PartitionSpec> all;
  std::size_t ways = 1;
  for (std::size_t k = 0; k < mesh.axis_names().size(); k++) ways *= rank + 2;
  for (std::size_t way = 0; way < ways; way++) {
    std::vector<sa::SpecEntry> dims(rank, sa::none);
    sa::UnreducedAxes sums;
    std::size_t rest = way;
    for (const std::string& axis : mesh.axis_names()) {
      const std::size_t where = rest % (rank + 2);
      rest /= rank + 2;
      if (where == rank) sums.names.push_back(axis);
      if (where >= rank) continue;
      std::vector<std::string> names = dims[where].names;
      names.push_back(axis);
      dims[where] = sa::AxisNames{names};
    }
    all.emplace_back(dims, sums);
  }
  return all;
}

// An array of `sum`, whose summands are drawn: every device has its own, and they cancel.
Array drawn_summands(const Array& sum, const Sharding& s, Rng& rng) {
  const auto index = s.devices_indices_map(sum.shape());
  const auto replicas = s.replica_ids(sum.shape());
  const auto draw = [&](const sa::Shape& shape) {
    std::uniform_int_distribution<int> numbers(-1000, 1000);
    std::vector<std::int32_t> v;
    for (std::int64_t k = 0; k < sa::num_elements(shape); k++) v.push_back(numbers(rng));
    return sa::array(v, shape).astype(sum.dtype());
  };
  // By piece: the first of its devices that are no replicas of each other gets what the others leave of the sum. Replicas of a
  // summand hold its values.
  std::map<std::string, Array> left;
  std::map<std::string, std::vector<std::size_t>> holders;
  for (std::size_t k = 0; k < index.size(); k++) holders[sa::to_string(index[k].second)].push_back(k);
  std::vector<Array> pieces(index.size());
  for (const auto& [text, devices] : holders) {
    Array rest = sum;
    const sa::ShardIndex& at = index[devices[0]].second;
    for (std::size_t d = 0; d < at.size(); d++)
      if (!at[d].whole)
        rest = sa::primitive::slice_dim(rest, static_cast<std::int64_t>(d), at[d].start, at[d].stop);
    int copies = 0;  // of a summand
    for (const std::size_t k : devices) copies = std::max(copies, replicas[k] + 1);
    const int summands = static_cast<int>(devices.size()) / copies;
    std::vector<Array> drawn;
    for (int k = 0; k + 1 < summands; k++) {
      drawn.push_back(draw(rest.shape()));
      rest = rest - drawn.back();
    }
    drawn.push_back(rest);
    std::vector<int> next(static_cast<std::size_t>(copies),
                          0);  // replicas of the same number come in the order of the summands
    for (const std::size_t k : devices)
      pieces[k] =
          sa::device_put(drawn[static_cast<std::size_t>(next[static_cast<std::size_t>(replicas[k])]++)],
                         sa::SingleDeviceSharding(index[k].first));
  }
  return sa::make_array_from_single_device_arrays(sum.shape(), s, pieces);
}

Array whole_numbers(const sa::Shape& shape, sa::DType t, Rng& rng) {
  std::uniform_int_distribution<int> draw(-50, 50);
  std::vector<std::int32_t> v;
  for (std::int64_t k = 0; k < sa::num_elements(shape); k++) v.push_back(draw(rng));
  return sa::array(v, shape).astype(t);
}

template <class F, class... A> std::vector<std::string> kinds(const F& f, const A&... x) {
  std::vector<std::string> r;  // by value: several may go together
  for (const auto& t : prepare(f, x...).program().transfers)
    r.insert(r.end(), static_cast<std::size_t>(t.values), sa::name(t.kind));
  return r;
}
bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && sa::array_equal(a, b);
}

}  // namespace

TEST_CASE("unreduced: a spec says over which axes a value is a sum") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  const sa::PartitionSpec spec("x", unreduced("y"));
  CHECK(spec.to_string() == "PartitionSpec('x', unreduced={'y'})");
  CHECK(sa::PartitionSpec(unreduced("y", "x")).to_string() == "PartitionSpec(unreduced={'x', 'y'})");
  CHECK(sa::PartitionSpec(unreduced("y", "x")) == sa::PartitionSpec(unreduced("x", "y")));
  CHECK(spec != sa::PartitionSpec("x"));
  CHECK(spec.entries().size() == 1);
  CHECK(spec.unreduced_axes() == std::vector<std::string>{"y"});
  const NamedSharding s(mesh, spec), whole(mesh, P("x"));
  CHECK(Sharding(s) != Sharding(whole));
  CHECK(Sharding(s).hash() != Sharding(whole).hash());
  CHECK_FALSE(s->is_equivalent_to(whole, 2));
  CHECK(s->is_equivalent_to(NamedSharding(mesh, P("x", sa::none, unreduced("y"))), 2));
  CHECK_FALSE(NamedSharding(mesh, P(unreduced("y")))->is_fully_replicated());
  CHECK(s->shard_shape({6, 3}) == sa::Shape{3, 3});
  CHECK(NamedSharding(mesh, P(unreduced("y")))->replica_ids({6}) == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
  const sa::Mesh one = sa::make_mesh({{"x", 8}, {"y", 1}});
  CHECK(NamedSharding(one, P("x", unreduced("y")))->is_equivalent_to(NamedSharding(one, P("x")), 1));
  CHECK_THROWS_WITH_AS(NamedSharding(mesh, P("x", unreduced("z"))), doctest::Contains("axis 'z'"),
                       sa::ShardingError);
  CHECK_THROWS_WITH_AS(NamedSharding(mesh, P("x", unreduced("x"))), doctest::Contains("duplicate"),
                       sa::ShardingError);
  CHECK_THROWS_WITH_AS(sa::device_put(sa::array({true}), NamedSharding(mesh, P(unreduced("x")))),
                       doctest::Contains("Values of bool are not held as summands"), sa::ShardingError);
  CHECK_THROWS_WITH_AS(sa::filter_shard(sa::zeros({2}, sa::bfloat16), NamedSharding(mesh, P(unreduced("x")))),
                       doctest::Contains("Cast it to float32"), sa::ShardingError);
  CHECK_THROWS_WITH_AS(
      sa::shard_map([](Array a) { return a; },
                    {.mesh = mesh, .in_specs = P(unreduced("x")), .out_specs = P()})(sa::ones({2})),
      doctest::Contains("not summands"), sa::ShardingError);
}

TEST_CASE("unreduced: a value comes into any sharding and out of it, with or without summands") {
  const auto devices = sa::devices();
  std::vector<sa::Device> reversed(devices.rbegin(), devices.rend());
  std::swap(reversed[1], reversed[4]);
  // Of six devices halves and thirds have nothing to do with each other.
  const std::vector<sa::Device> six(devices.begin(), devices.begin() + 6),
      turned{six[0], six[3], six[1], six[4], six[2], six[5]};
  const std::vector<std::vector<sa::Mesh>> groups{
      {sa::make_mesh({{"x", 2}, {"y", 2}, {"z", 2}}), sa::make_mesh({{"x", 2}, {"y", 4}}, reversed)},
      {sa::make_mesh({{"x", 2}, {"y", 3}}, six), sa::make_mesh({{"x", 3}, {"y", 2}}, six),
       sa::make_mesh({{"x", 6}}, six), sa::make_mesh({{"x", 2}, {"y", 3}}, turned)}};
  Rng rng(7);
  int cases = 0;
  for (int turn = 0; turn < 6; turn++) {
    const sa::Shape shape =
        std::vector<sa::Shape>{{5, 3}, {8}, {}, {6, 3}, {6}, {}}[static_cast<std::size_t>(turn)];
    std::vector<Sharding> all;
    for (const sa::Mesh& mesh : groups[static_cast<std::size_t>(turn / 3)])
      for (const sa::PartitionSpec& spec : every_spec(mesh, shape.size()))
        all.push_back(NamedSharding(mesh, spec));
    const Array i32 = whole_numbers(shape, sa::int32, rng), f32 = i32.astype(sa::float32);
    const std::size_t pairs = all.size() * all.size(),
                      tried = std::min<std::size_t>(pairs, sa::testing::full_scale() ? 4000 : 250);
    for (std::size_t n = 0; n < tried; n++) {
      const std::size_t pair =
          tried == pairs ? n : std::uniform_int_distribution<std::size_t>(0, pairs - 1)(rng);
      const Sharding &from = all[pair % all.size()], &to = all[pair / all.size()];
      const Array& want = n % 2 ? i32 : f32;
      const Array x = drawn_summands(want, from, rng);
      CHECK(x.sharding() == from);
      const auto constrain = sa::jit([&](Array a) { return sa::filter_shard(a, to); });
      const Array put = sa::device_put(x, to), constrained = constrain(x);
      if (n % 4 == 0) check_received(constrain, x);
      for (const Array& y : {x, put, constrained}) {
        const bool right = same(sa::array(y.to_vector<std::int32_t>(), shape), i32);
        CHECK_MESSAGE(right, from.to_string() << " to " << to.to_string());
      }
      CHECK_MESSAGE(put.sharding().is_equivalent_to(to, static_cast<int>(shape.size())), to.to_string());
      const int rank = static_cast<int>(shape.size());
      CHECK_MESSAGE((sa::layout_of(constrained.sharding(), rank) == sa::layout_of(to, rank)),
                    constrained.sharding().to_string() << " not " << to.to_string());
      cases++;
    }
  }
  MESSAGE("pairs of shardings: " << cases);
}

TEST_CASE("unreduced: results of jit are summands where out_shardings says so") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array w = sa::device_put(sa::arange(24.0).reshape({8, 3}), NamedSharding(mesh, P("x"))),
              v = sa::device_put(sa::arange(16.0).reshape({2, 8}), NamedSharding(mesh, P(sa::none, "x")));
  const NamedSharding partial(mesh, P(unreduced("x")));
  const auto product = [](const Array& a, const Array& b) { return sa::matmul(a, b); };
  const auto f = sa::jit(product, {.out_shardings = partial});
  CHECK(sa::explain(f, v, w).transfers().empty());  // what is added up later moves nothing now
  const Array sums = f(v, w);
  CHECK(sums.sharding() == partial);
  CHECK(same(sums, product(v, w)));
  CHECK(sa::transfers(sa::jit(product, {.out_shardings = NamedSharding(mesh, P())}), v, w)
            .starts_with("all_reduce{x} 36 B f32[2,3] for "));
}

TEST_CASE("unreduced: what becomes summands keeps its bits, and moves nothing") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Array f = sa::array({0.0F, -0.0F, 1.0F, inf, -inf, 1e-45F, 3e38F, 0.1F});
  for (const sa::DType t :
       {sa::float32, sa::float64, sa::int8, sa::uint16, sa::int64, sa::complex64, sa::complex128}) {
    const Array v = sa::is_inexact(t) ? f.astype(t) : sa::arange(8).astype(t);
    const auto parts = [&](const Array& a) {
      return (sa::is_complex(t) ? sa::real(a) : a).to_vector<double>();
    };
    for (const sa::PartitionSpec& spec :
         {P(unreduced("y")), P("x", unreduced("y")), P(unreduced("x", "y"))}) {
      const Array there = sa::device_put(v, NamedSharding(mesh, P(sa::axes("x", "y"))));
      const auto split = sa::jit([&](Array a) { return sa::filter_shard(a, NamedSharding(mesh, spec)); });
      const Array x = split(there);
      // Cut over what they become summands over, nothing moves; cut over x as well, that has to come.
      const bool moves = spec != P("x", unreduced("y")) && spec != P(unreduced("x", "y"));
      CHECK_MESSAGE(kinds(split, there).empty() == !moves, spec.to_string());
      std::size_t held = 0;  // each element by one device, but for replicas
      for (const sa::Shard& s : x.addressable_shards())
        for (const double number : s.replica_id == 0 ? parts(s.data) : std::vector<double>())
          held += number != 0;
      const auto all = parts(v);
      CHECK(held == all.size() - static_cast<std::size_t>(std::count(all.begin(), all.end(), 0.0)));
      const Array back = sa::device_put(x, NamedSharding(mesh, P()));
      const auto got = parts(back), want = parts(v);
      for (std::size_t k = 0; k < got.size(); k++)
        CHECK_MESSAGE((got[k] == want[k] && std::signbit(got[k]) == std::signbit(want[k])),
                      sa::name(t) << " " << spec.to_string() << " element " << k);
    }
  }
}

TEST_CASE("unreduced: every function gives of summands what it gives of the sum") {
  using namespace sa::testing;
  const sa::Mesh mesh = sa::make_mesh({{"d", 4}, {"all", 2}});
  int cases = 0;
  Rng draws(11);
  for (LeftOut left_out(5); const OpCase& row : op_cases()) {
    if (left_out()) continue;
    sa::testing::Rng rng(1);
    Arrays sums, parts;
    for (const OpInput& in : row.inputs) {
      Array v = draw_array(in, rng);
      const bool summed =
          v.dtype() != sa::bool_ && sa::itemsize(v.dtype()) >= 4 && !sa::is_complex(v.dtype());
      if (sa::is_inexact(v.dtype()))
        v = (sa::round(v.astype(sa::float32) * 16) / 16 + 0).astype(v.dtype());  // exact sums, no -0
      sums.push_back(v);
      const std::size_t rank = v.shape().size();
      const Sharding s =
          NamedSharding(mesh, rank > 0 && cases % 2 ? P("all", unreduced("d")) : P(unreduced("d")));
      parts.push_back(summed ? drawn_summands(v, s, draws) : v);
    }
    const Array y = row.function(sums);
    bool rounds = false;
    each_node(std::span(&y, 1), [&](sa::Node& n) { rounds |= adds_up(n); });
    const auto no_minus_zero = [](HostArray x) {
      for (double& v : x.data) v += 0.0;
      return x;
    };
    const HostArray want = no_minus_zero(host(y));
    const auto f = sa::jit([&](const Arrays& x) { return row.function(x); });
    for (std::size_t which = 0; which <= sums.size(); which++) {  // one operand in summands, or all
      Arrays x = sums;
      for (std::size_t k = 0; k < sums.size(); k++)
        if (k == which || which == sums.size()) x[k] = parts[k];
      cases++;
      const std::string text = difference(no_minus_zero(host(f(x))), want, rounds ? 1e-5 : 0);
      CHECK_MESSAGE(text.empty(), row.name << ", operand " << which << ": " << text);
    }
  }
  MESSAGE("function x operand cases: " << cases);
}

TEST_CASE("unreduced: every function's result may be asked for as summands") {
  using namespace sa::testing;
  const sa::Mesh mesh = sa::make_mesh({{"d", 4}, {"all", 2}});
  int cases = 0;
  for (LeftOut left_out(5); const OpCase& row : op_cases()) {
    if (left_out()) continue;
    sa::testing::Rng rng(1);
    Arrays x, cut;
    for (const OpInput& in : row.inputs) {
      x.push_back(draw_array(in, rng));
      cut.push_back(sa::device_put(x.back(), NamedSharding(mesh, x.back().ndim() > 0 ? P("d") : P())));
    }
    const Array y = row.function(x);
    if (y.dtype() == sa::bool_ || sa::itemsize(y.dtype()) < 4) continue;
    for (const auto& spec : {P(unreduced("d")), P(unreduced("all")), P(unreduced("all", "d"))}) {
      const NamedSharding to(mesh, spec);
      const auto f = sa::jit([&](const Arrays& v) { return sa::filter_shard(row.function(v), to); });
      const Array got = cut.empty() ? sa::device_put(y, to) : f(cut);
      cases++;
      const std::string text = difference(host(got), host(y), 1e-5);
      CHECK_MESSAGE(text.empty(), row.name << ", " << spec.to_string() << ": " << text);
      CHECK_MESSAGE((sa::layout_of(got.sharding(), got.ndim()) == sa::layout_of(to, got.ndim())), row.name);
    }
  }
  MESSAGE("function x summands cases: " << cases);
}

// ---------------------------------------------------------------- gradients of several batches
namespace {

struct Layers {
  Array w1, b1, w2;
};
Array loss_of(const Layers& m, const Array& x, const Array& y) {
  return sa::mean(sa::square(sa::matmul(sa::tanh(sa::matmul(x, m.w1) + m.b1), m.w2) - y));
}
Layers small_layers() {
  return {numbers({4, 8}, sa::float32, 1) * 0.3, numbers({8}, sa::float32, 2) * 0.1,
          numbers({8, 2}, sa::float32, 3) * 0.3};
}
void check_near(const Layers& a, const Layers& b, double tolerance = 1e-5) {
  for (const auto& [x, y] : {std::pair(a.w1, b.w1), std::pair(a.b1, b.b1), std::pair(a.w2, b.w2)})
    CHECK(sa::max(sa::abs(x - y)).item<double>() <= tolerance);
}

}  // namespace

TEST_CASE("unreduced: gradients of several calls are added with one all-reduce at the end") {
  const sa::Mesh mesh = sa::make_mesh({{"data", 4}, {"model", 2}});
  const Layers model = small_layers();
  const NamedSharding rows(mesh, P("data")), whole(mesh, P());
  const auto place = sa::filter_shard(model, whole);
  // Weights are whole, or cut over the other axis.
  for (const bool cut : {false, true}) {
    const auto held = [&](const Layers& m) {
      const auto at = [&](sa::PartitionSpec spec) { return NamedSharding(mesh, std::move(spec)); };
      return Layers{
          sa::filter_shard(m.w1, at(cut ? P(sa::none, "model", unreduced("data")) : P(unreduced("data")))),
          sa::filter_shard(m.b1, at(cut ? P("model", unreduced("data")) : P(unreduced("data")))),
          sa::filter_shard(m.w2, at(cut ? P("model", sa::none, unreduced("data")) : P(unreduced("data"))))};
    };
    const auto accumulate = sa::jit([=](Layers m, Layers c, Array x, Array y) {
      const Layers g = sa::grad(loss_of)(m, x, y);
      return held({c.w1 + g.w1, c.b1 + g.b1, c.w2 + g.w2});
    });
    const auto finish = sa::jit([=](Layers m, Layers c) {
      return sa::filter_shard(Layers{m.w1 - c.w1 * 0.1, m.b1 - c.b1 * 0.1, m.w2 - c.w2 * 0.1}, whole);
    });
    Layers sums = held({sa::zeros_like(model.w1), sa::zeros_like(model.b1), sa::zeros_like(model.w2)});
    Layers want = model;
    for (int k = 0; k < 3; k++) {
      const Array x = numbers({16, 4}, sa::float32, 10 + k), y = numbers({16, 2}, sa::float32, 20 + k);
      const Array xs = sa::device_put(x, rows), ys = sa::device_put(y, rows);
      if (!cut) CHECK(kinds(accumulate, place, sums, xs, ys).empty());
      sums = accumulate(place, sums, xs, ys);
      CHECK(sums.w2.type_string() == (cut ? "f32[8@model,2]{U:data}" : "f32[8,2]{U:data}"));
      const Layers g = sa::grad(loss_of)(model, x, y);
      want = {want.w1 - g.w1 * 0.1, want.b1 - g.b1 * 0.1, want.w2 - g.w2 * 0.1};
    }
    const std::vector<std::string> moved = kinds(finish, place, sums);
    CHECK(std::count(moved.begin(), moved.end(), "all_reduce") +
              std::count(moved.begin(), moved.end(), "reduce_scatter") ==
          3);
    check_near(finish(place, sums), want);
  }
}

TEST_CASE("unreduced: a scan and a loop in one program add gradients with one all-reduce each") {
  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const NamedSharding rows(mesh, P(sa::none, "data")), whole(mesh, P());
  const Layers model = sa::filter_shard(small_layers(), whole);
  const Array xs = sa::device_put(numbers({3, 16, 4}, sa::float32, 1), rows),
              ys = sa::device_put(numbers({3, 16, 2}, sa::float32, 2), rows);
  const auto step = [](const Layers& m, const Layers& c, const Array& x, const Array& y) {
    const Layers g = sa::grad(loss_of)(m, x, y);
    return Layers{c.w1 + g.w1, c.b1 + g.b1, c.w2 + g.w2};
  };
  const auto unrolled = sa::jit([=](Layers m, Array x, Array y) {
    Layers c{sa::zeros_like(m.w1), sa::zeros_like(m.b1), sa::zeros_like(m.w2)};
    for (int k = 0; k < 3; k++) c = step(m, c, x[k], y[k]);
    return sa::filter_shard(c, whole);
  });
  const auto scanned = sa::jit([=](Layers m, Array x, Array y) {
    const Layers zeros{sa::zeros_like(m.w1), sa::zeros_like(m.b1), sa::zeros_like(m.w2)};
    const auto sums = sa::scan(
        [=](const Layers& c, const std::pair<Array, Array>& b) {
          return std::pair(step(m, c, b.first, b.second), sa::Array());
        },
        zeros, std::pair(x, y));
    return sa::filter_shard(sums.first, whole);
  });
  const std::vector<std::string> three(3, "all_reduce");
  CHECK(kinds(unrolled, model, xs, ys) == three);
  CHECK(kinds(scanned, model, xs, ys) == three);
  check_near(scanned(model, xs, ys), unrolled(model, xs, ys));
}

TEST_CASE("unreduced: multi_steps adds up in the last of its steps alone") {
  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const NamedSharding rows(mesh, P("data")), whole(mesh, P()), sums(mesh, P(unreduced("data")));
  for (const bool mean : {true, false}) {
    const auto optim = sa::optim::multi_steps(sa::optim::adam(0.1), 3, {.use_grad_mean = mean});
    const auto update = [=](Layers model, auto state, Array x, Array y) {
      const auto [updates, next] = optim.update(sa::grad(loss_of)(model, x, y), state);
      return std::pair(sa::apply_updates(model, updates), next);
    };
    const auto step = sa::jit([=](Layers model, auto state, Array x, Array y) {
      auto r = update(model, state, x, y);
      r.first = sa::filter_shard(r.first, whole);
      r.second.acc_grads = sa::filter_shard(r.second.acc_grads, sums);
      return r;
    });
    Layers plain = small_layers(), model = sa::filter_shard(plain, whole);
    auto plain_state = optim.init(plain);
    auto state = sa::filter_shard(optim.init(plain), whole);
    state.acc_grads = sa::filter_shard(state.acc_grads, sums);
    for (int k = 0; k < 6; k++) {
      const Array x = numbers({16, 4}, sa::float32, 10 + k), y = numbers({16, 2}, sa::float32, 20 + k);
      const Array xs = sa::device_put(x, rows), ys = sa::device_put(y, rows);
      for (const sa::TransferInfo& t : sa::explain(step, model, state, xs, ys).transfers())
        CHECK_MESSAGE(t.reason.find("in branch 1") != std::string::npos, t.kind << ": " << t.reason);
      std::tie(model, state) = step(model, state, xs, ys);
      std::tie(plain, plain_state) = update(plain, plain_state, x, y);
      check_near(model, plain);
      check_near(state.acc_grads, plain_state.acc_grads, 1e-4);
    }
  }
}

TEST_CASE("unreduced: gradients, maps and modes see the sum") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  const NamedSharding sums(mesh, P(unreduced("y")));
  const Array v = numbers({6, 4}, sa::float32, 5);
  const Array x = sa::device_put(v, sums);
  const auto f = [&](const Array& a) { return sa::sum(sa::sin(sa::filter_shard(a * 2, sums)) * a); };
  const auto g = [](const Array& a) { return sa::sum(sa::sin(a * 2) * a); };
  CHECK(sa::allclose(sa::jit(sa::grad(f))(x), sa::grad(g)(v)));
  CHECK(sa::allclose(sa::grad(f)(v), sa::grad(g)(v)));
  const NamedSharding row_sums(mesh, P(unreduced("x", "y")));
  const Array mapped = sa::jit(sa::vmap([&](Array a) { return sa::filter_shard(a + 1, row_sums); }))(v);
  CHECK(mapped.sharding().is_equivalent_to(NamedSharding(mesh, P(unreduced("x", "y"))), 2));
  CHECK(sa::allclose(mapped, v + 1));
  {
    const sa::reproducible on(true);
    const auto twice = sa::jit([](Array a) { return a * 0.1 + a; });
    CHECK(same(twice(x), twice(v)));
  }
  CHECK(sa::allclose(x + v, v + v));  // by itself, one operation after the other
  CHECK(sa::allclose(sa::exp(x), sa::exp(v)));
  CHECK(sa::jit([](Array a) { return a; })(x).sharding() == Sharding(sums));
  CHECK((sa::jit([](Array a) { return a + a; })(x)).is_fully_replicated());
}

TEST_CASE("unreduced: a sum under its maximum, and other summands than are asked for") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  const Array v = numbers({8, 8}, sa::float32, 5),
              there = sa::device_put(v, NamedSharding(mesh, P("y", "x")));
  for (const sa::PartitionSpec& spec : {P(unreduced("y")), P(unreduced("x")), P(unreduced("x", "y"))}) {
    const NamedSharding to(mesh, spec);
    const auto most = sa::jit([&](Array a) { return sa::filter_shard(sa::max(a, {.axis = 0}), to); });
    const auto total = sa::jit([&](Array a) { return sa::filter_shard(sa::sum(a, {.axis = 0}), to); });
    CHECK(same(sa::array(most(there).to_vector<float>()), sa::max(v, {.axis = 0})));
    CHECK(sa::allclose(total(there), sa::sum(v, {.axis = 0})));
    CHECK(total(there).sharding() == Sharding(to));
  }
}

TEST_CASE("unreduced: files, checkpoints, items and pictures are of the sum") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  const NamedSharding sums(mesh, P("x", unreduced("y")));
  Rng rng(3);
  const Array v = whole_numbers({6, 2}, sa::float32, rng), x = drawn_summands(v, sums, rng);
  const sa::testing::TemporaryFolder folder;
  sa::save(folder.file("x.safetensors"), x);
  CHECK(same(sa::load(folder.file("x.safetensors"), sa::zeros({6, 2})), v));
  const Array into = sa::load(folder.file("x.safetensors"), x);
  CHECK(into.sharding() == Sharding(sums));
  CHECK(same(sa::array(into.to_vector<float>(), {6, 2}), v));
  sa::checkpoints::save(folder.file("run"), 1, x);
  CHECK(same(sa::checkpoints::restore(folder.file("run"), sa::zeros({6, 2})), v));
  const Array restored = sa::checkpoints::restore(folder.file("run"), x);
  CHECK(restored.sharding() == Sharding(sums));
  CHECK(same(sa::array(restored.to_vector<float>(), {6, 2}), v));
  const auto items = sa::unshard(x);
  CHECK(items.size() == 6);
  CHECK(same(sa::array(items[3].to_vector<float>()), v[3]));
  CHECK_NOTHROW(sa::assert_replica_integrity(x));
  CHECK(x[1].to_vector<float>() == v[1].to_vector<float>());
  CHECK(sa::make_array_from_callback({6, 2}, sums, [&](const sa::ShardIndex& i) {
          return i[0].whole ? v : sa::primitive::slice_dim(v, 0, i[0].start, i[0].stop);
        }).to_vector<float>() == v.to_vector<float>());
  CHECK(sa::render_sharding({6, 2}, sums)
            .find("The value is the sum over {y}: each of these devices holds a summand.") !=
        std::string::npos);
  CHECK(sa::sharding_table({6, 2}, sums).find("summand") != std::string::npos);
  const std::string diff = sa::render_diff({6, 2}, sums, NamedSharding(mesh, P()));
  CHECK(
      diff.find("Summands over {y} are added up (all_reduce): devices receive at most 9 elements each.\n") !=
      std::string::npos);
  CHECK(sa::render_diff({8, 2}, NamedSharding(mesh, P(unreduced("y"))), NamedSharding(mesh, P("y"))) ==
        "Summands over {y} are added up (reduce_scatter): devices receive at most 12 elements each.\n");
  CHECK(sa::render_diff({6, 2}, NamedSharding(mesh, P()), sums).find("the others hold zeros") !=
        std::string::npos);
  CHECK(x.type_string() == "f32[6@x,2]{U:y}");
}

}  // namespace unreduced_test
