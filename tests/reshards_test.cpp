// Random pairs of placements, on meshes with different device orders: only what the target's shards lack is moved, it fits into the memory
// of both ends, plans are deterministic, and more data never moves fewer bytes.
#include <map>
#include <random>

#include "program_of.h"
#include "scale.h"

namespace reshards_test {

namespace sa = shardarray;
using namespace program_test;

namespace {

/// Eight devices on one to three axes, every other time in an order of their own.
sa::Mesh random_mesh(std::mt19937& random) {
  const std::vector<Shape> all{{8}, {2, 4}, {4, 2}, {2, 2, 2}};
  const Shape& shape = all[random() % all.size()];
  std::vector<sa::Device> devices = sa::devices();
  if (random() % 2 == 0) std::shuffle(devices.begin(), devices.end(), random);
  std::vector<std::string> names{"x", "y", "z"};
  names.resize(shape.size());
  return sa::Mesh({shape, devices}, names);
}

/// Every axis along a dimension or along none.
sa::Sharding random_place(std::mt19937& random, const sa::Mesh& mesh, std::size_t rank) {
  std::vector<std::vector<std::string>> dims(rank);
  std::vector<std::string> names = mesh.axis_names();
  std::shuffle(names.begin(), names.end(), random);
  for (const std::string& name : names)
    if (const std::size_t d = random() % (rank + 1); d < rank) dims[d].push_back(name);
  std::vector<sa::SpecEntry> entries;
  entries.reserve(rank);
  for (const auto& d : dims)
    entries.push_back(d.empty() ? sa::SpecEntry(sa::none) : sa::SpecEntry(sa::AxisNames{d}));
  return sa::NamedSharding(mesh, sa::PartitionSpec(std::move(entries)));
}

/// The elements of each device's piece: as [first, end) in each dimension.
using Boxes = std::map<int, std::vector<std::pair<std::int64_t, std::int64_t>>>;
Boxes boxes_of(const Array& x) {
  Boxes r;
  for (const sa::Shard& s : x.addressable_shards())
    for (std::size_t d = 0; d < s.index.size(); d++)
      r[s.device.id].emplace_back(s.index[d].start, s.index[d].start + s.data.shape()[d]);
  return r;
}
std::int64_t most_elements(const Boxes& boxes) {
  std::int64_t most = 0;
  for (const auto& [device, box] : boxes) {
    std::int64_t n = 1;
    for (const auto& [first, end] : box) n *= end - first;
    most = std::max(most, n);
  }
  return most;
}
/// What this device lacks of its target.
std::int64_t missing(const Boxes& from, const Boxes& to, int device) {
  std::int64_t all = 1, has = 1;
  const auto &held = from.at(device), &wanted = to.at(device);
  for (std::size_t d = 0; d < wanted.size(); d++) {
    all *= wanted[d].second - wanted[d].first;
    has *= std::max<std::int64_t>(
        0, std::min(held[d].second, wanted[d].second) - std::max(held[d].first, wanted[d].first));
  }
  return all - has;
}
std::int64_t most_missing(const Boxes& from, const Boxes& to) {
  std::int64_t most = 0;
  for (const auto& [device, box] : to) most = std::max(most, missing(from, to, device));
  return most;
}

}  // namespace

TEST_CASE("reshards: random pairs of placements move what the target lacks, in the memory of both") {
  std::mt19937 random(11);
  for (int pair = 0; pair < (sa::testing::full_scale() ? 2000 : 150); pair++) {
    const std::size_t rank = 1 + random() % 3;
    Shape shape;
    for (std::size_t d = 0; d < rank; d++) shape.push_back(1 + static_cast<std::int64_t>(random() % 17));
    const sa::Sharding from = random_place(random, random_mesh(random), rank),
                       to = random_place(random, random_mesh(random), rank);
    CAPTURE(pair);
    CAPTURE(sa::to_string(shape));
    CAPTURE(from.to_string());
    CAPTURE(to.to_string());
    const Array x = placed(shape, from), wanted = sa::device_put(numbers(shape), to);
    const auto f = sa::jit([&](const Array& v) { return sa::reshard(v, to); });
    const sa::Explanation e = sa::explain(f, x);
    CAPTURE(e.to_string());
    const Boxes source = boxes_of(x), target = boxes_of(wanted);
    CHECK(bytes_received(e) == 4 * most_missing(source, target));
    CHECK(e.transfers().size() <= 1);
    for (const sa::TransferInfo& t : e.transfers()) {
      CHECK(t.gap == 1);
      for (std::size_t d = 0; d < 8; d++)
        CHECK((t.received.empty() ? t.bytes_per_device : t.received[d]) ==
              4 * missing(source, target, e.devices()[d].id));
    }
    constexpr std::int64_t whole_lines = 2 * 64;  // of memory, of both
    CHECK(e.peak_bytes_per_device <= 4 * (most_elements(source) + most_elements(target)) + whole_lines);
    // Sizes that all axes cut evenly: where they do not, 5 elements may move and 40 need not.
    Shape even = shape;
    for (std::int64_t& n : even) n *= 8;
    Shape more = even;
    more[random() % rank] *= 2;
    const auto of = [&](const Shape& s) {
      return sa::explain(f, sa::shape_dtype_struct(s, sa::float32, from));
    };
    CHECK(bytes_received(of(more)) >= bytes_received(of(even)));
    CHECK(of(more).peak_bytes_per_device >= of(even).peak_bytes_per_device);
    check_received(f, x);
    const Array got = f(x);
    CHECK(boxes_of(got) == target);
    CHECK(values(got) == values(wanted));
  }
}

// Each is planned twice, by meshes that are made anew: what a plan needs is in memory of other addresses then.
TEST_CASE("reshards: the same program has the same plan") {
  for (std::uint32_t seed = 0; seed < (sa::testing::full_scale() ? 300u : 40u); seed++) {
    const auto plan = [seed] {
      std::mt19937 random(seed);
      const sa::Mesh mesh = random_mesh(random);
      const Shape a{16, 8}, b{8, 24};
      const sa::Sharding at = random_place(random, mesh, 2), bt = random_place(random, mesh, 2),
                         ct = random_place(random, mesh, 2);
      return sa::explain(
                 [&](const Array& x, const Array& y) {
                   const Array z = sa::matmul(x, y);
                   const Array w = sa::softmax(sa::roll(z, 1, 0) + sa::cumsum(sa::flip(z, 1), 0));
                   return std::pair(sa::reshard(w, ct), sa::sum(sa::pad(w, {{1, 1}, {0, 2}}), {.axis = 0}));
                 },
                 sa::shape_dtype_struct(a, sa::float32, at), sa::shape_dtype_struct(b, sa::float32, bt))
          .to_string();
    };
    const std::string first = plan();
    std::vector<std::string> held;  // addresses that are free now and then
    held.reserve(50);
    for (int k = 0; k < 50; k++) held.emplace_back(100 + 37 * k, 'x');
    CHECK(plan() == first);
  }
}

// Five elements on four devices: two, two, one and none.
TEST_CASE(
    "reshards: a program moves what its busiest device receives, not what the busiest of each transfer "
    "does") {
  const std::vector<sa::Device> all = sa::devices();
  const sa::Mesh mesh({{4}, {all[0], all[1], all[2], all[3]}}, {"x"}),
      back({{4}, {all[3], all[2], all[1], all[0]}}, {"x"});
  const sa::NamedSharding cut(mesh, P("x")), cut_back(back, P("x")), whole(mesh, P());
  const auto both = sa::explain(
      [&](const Array& a, const Array& b) { return std::pair(sa::reshard(a, whole), sa::reshard(b, whole)); },
      placed({5}, cut), placed({5}, cut_back));
  REQUIRE(both.transfers().size() == 2);
  CHECK(both.transfers()[0].received == std::vector<std::int64_t>{12, 12, 16, 20});
  CHECK(both.transfers()[1].received == std::vector<std::int64_t>{20, 16, 12, 12});
  CHECK(both.received_bytes_per_device() == 32);
  const auto loop = sa::explain(
      [](const Array& a) {
        return sa::fori_loop(
            0, 3, [](const Array&, const Array& v) { return v + sa::flip(v, 0); }, a);
      },
      placed({5}, cut));
  REQUIRE(loop.transfers().size() == 1);
  CHECK(loop.transfers()[0].received == std::vector<std::int64_t>{24, 12, 12, 0});
  // Each receives the sums of the tiles in front of it, or behind it.
  for (const bool reverse : {false, true}) {
    const auto scan = [&](const Array& a) { return sa::cumsum(a, {.axis = 0, .reverse = reverse}); };
    const auto told = sa::explain(sa::jit(scan), placed({5}, cut)).transfers();
    REQUIRE(told.size() == 1);
    CHECK(told[0].received ==
          (reverse ? std::vector<std::int64_t>{8, 4, 0, 0} : std::vector<std::int64_t>{0, 4, 8, 0}));
    CHECK(told[0].moved_bytes == 12);
  }
  // The first device has no neighbour in front of it.
  const auto halo = sa::explain(
      [](const Array& a) {
        const Array shifted = sa::pad(a, {{1, 0}});
        return a + shifted[sa::slice(0, 8)];
      },
      placed({8}, cut));
  REQUIRE(halo.transfers().size() == 1);
  CHECK(halo.transfers()[0].received == std::vector<std::int64_t>{0, 4, 4, 4});
  CHECK(halo.transfers()[0].gap == 1);
  CHECK(halo.received_bytes_per_device() == 4);
}

// Four summands along x, each on two devices; 256 KiB. `least`: nothing certain is known to take less.
TEST_CASE(
    "reshards: devices that have the same summand in memory of their own cut it first where the result is "
    "cut") {
  const std::shared_ptr<void> reset(nullptr, [](void*) { sa::set_share_replicas(true); });
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  constexpr std::int64_t all = 1024 * 64 * 4;
  struct Row {
    P spec;
    std::int64_t bytes;
    double gap;
  };
  const std::vector<Row> rows{{P(), all * 3 / 2, 1.2},
                              {P("x"), all * 3 / 4, 1.5},
                              {P("y"), all / 2 * 3 / 2, 1},
                              {P(sa::axes("y", "x")), all / 2 * 3 / 4, 1},
                              {P(sa::none, "y"), all / 2 * 3 / 2, 1},
                              {P("x", "y"), all / 2 * 3 / 4, 1}};
  for (const Row& r : rows)
    for (const bool shared : {false, true}) {
      sa::set_share_replicas(shared);
      CAPTURE(r.spec.to_string());
      CAPTURE(shared);
      const Array whole = numbers({1024, 64}),
                  x = sa::device_put(whole, sa::NamedSharding(mesh, P(sa::unreduced("x"))));
      const sa::NamedSharding to(mesh, r.spec);
      const auto f = sa::jit([&](const Array& v) { return sa::reshard(v, to); });
      const sa::Explanation e = sa::explain(f, x);
      if (!shared) {
        CHECK(bytes_received(e) == r.bytes);
        for (const sa::TransferInfo& t : e.transfers()) CHECK(t.gap == doctest::Approx(r.gap));
      }
      CHECK(values(f(x)) == values(whole));
      check_received(f, x);
    }
  // One that is refused is named as the operand lies, not as it is cut on the way.
  sa::set_share_replicas(false);
  const Array x = sa::device_put(numbers({1024, 64}), sa::NamedSharding(mesh, P(sa::unreduced("x"))));
  const sa::policy::strict here;
  CHECK_THROWS_WITH_AS(sa::jit([&](const Array& v) { return sa::tanh(v); })(x).block_until_ready(),
                       doctest::Contains("for operand 0 f32[1024,64]{U:x}"), sa::ShardingError);
}

// Placements that have no common mesh with the others': on devices in another order, and cut by other factors.
TEST_CASE("reshards: what is asked to lie somewhere lies there as a result, whoever computes with it") {
  const std::vector<sa::Device> all = sa::devices();
  std::vector<sa::Device> back(all.rbegin(), all.rend());
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}}), turned({{8}, back}, {"x"}),
                 grid({{2, 4}, back}, {"x", "y"}),
                 six({{3, 2}, {all[3], all[1], all[0], all[2], all[5], all[4]}}, {"x", "y"});
  const std::vector<sa::NamedSharding> places{
      {turned, P("x")}, {turned, P(sa::none, "x")}, {grid, P("y", "x")}, {grid, P("x")}, {six, P("x", "y")}};
  for (const sa::NamedSharding& place : places)
    for (const bool committed : {true, false}) {
      if (&place == &places.back() && committed) continue;  // of other devices
      CAPTURE(sa::Sharding(place).to_string());
      CAPTURE(committed);
      const Array x = numbers({12, 8}), a = committed ? sa::device_put(x, sa::NamedSharding(mesh, P())) : x,
                  b = committed ? placed({12, 8}, sa::NamedSharding(mesh, P(sa::none, "x"))) : x;
      const auto [q, more, sum] = sa::jit([&](const Array& v, const Array& w) {
        const Array r = sa::reshard(v, place);
        return std::tuple(r, r + w, sa::sum(r));
      })(a, b);
      CHECK(q.sharding().is_equivalent_to(place, 2));
      for (const sa::Shard& s : q.addressable_shards()) {
        const auto range = [&](std::size_t d) {
          return sa::slice(s.index[d].start, s.index[d].start + s.data.shape()[d]);
        };
        CHECK(values(s.data) == values(x[{range(0), range(1)}]));
      }
      CHECK(values(more) == values(x + b));
      CHECK(values(sum) == values(sa::sum(x)));
    }
}

}  // namespace reshards_test
