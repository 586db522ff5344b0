// The canonical form of placements, tiles, instances, spellings, compared with brute force.
#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "layout/axes.h"
#include "layout/factor.h"
#include "layout/spelling.h"
#include "layout_helpers.h"
#include "messages.h"
#include "shardarray/error.h"

namespace layout_test {

using namespace shardarray;
using namespace shardarray::testing::layouts;

namespace {

// A random mesh and spec, and what they mean: the tile of every device, computed from its mesh coordinates.
struct Case {
  std::vector<Device> devices;
  Shape mesh;
  std::vector<std::vector<int>> axes;  ///< dimension -> mesh axes, most significant first
  Shape counts;
  std::map<int, std::vector<std::int64_t>> tile;  ///< device id -> tile per dimension
};

Case random_case(Random& random) {
  Case c;
  const int sizes[] = {2, 3, 4, 6, 8, 12, 16}, n = sizes[pick(random, 0, 6)];
  c.devices = cpu_devices(n);
  for (int rest = n; rest > 1;) {
    std::vector<int> divisors;
    for (int q = 2; q <= rest; q++)
      if (rest % q == 0) divisors.push_back(q);
    const int q = divisors[pick(random, 0, static_cast<int>(divisors.size()) - 1)];
    c.mesh.push_back(q);
    rest /= q;
  }
  if (pick(random, 0, 3) == 0) std::shuffle(c.devices.begin(), c.devices.end(), random);
  c.axes.resize(pick(random, 1, 3));
  std::vector<int> order(c.mesh.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (int axis : order) {
    const int d = pick(random, 0, static_cast<int>(c.axes.size()));
    if (d < static_cast<int>(c.axes.size())) c.axes[d].push_back(axis);
  }
  for (const auto& list : c.axes) {
    c.counts.push_back(1);
    for (int axis : list) c.counts.back() *= c.mesh[axis];
  }
  for (int p = 0; p < n; p++) {
    std::vector<int> coordinate(c.mesh.size());
    for (int k = static_cast<int>(c.mesh.size()) - 1, rest = p; k >= 0;
         rest /= static_cast<int>(c.mesh[k]), k--)
      coordinate[k] = rest % static_cast<int>(c.mesh[k]);
    for (const auto& list : c.axes) {
      std::int64_t t = 0;
      for (int axis : list) t = t * c.mesh[axis] + coordinate[axis];
      c.tile[c.devices[p].id].push_back(t);
    }
  }
  return c;
}

Sharding named(const Case& c) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < c.mesh.size(); k++) names.push_back("a" + std::to_string(k));
  std::vector<SpecEntry> entries;
  for (const auto& list : c.axes) {
    AxisNames tuple;
    for (int axis : list) tuple.names.push_back(names[axis]);
    entries.push_back(tuple);
  }
  return NamedSharding(Mesh({c.mesh, c.devices}, names), PartitionSpec(entries));
}

// The same placement written as a grid: devices by tile, in random order within a tile.
Sharding positional(const Case& c, Random& random) {
  std::vector<std::pair<std::vector<std::int64_t>, int>> order;
  for (const auto& [id, tile] : c.tile) order.emplace_back(tile, id);
  std::shuffle(order.begin(), order.end(), random);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Device> devices;
  for (const auto& [tile, id] : order) devices.push_back(Device{id});
  Shape grid = c.counts;
  grid.push_back(static_cast<std::int64_t>(devices.size()) / num_elements(c.counts));
  return PositionalSharding({grid, devices}).replicate(-1, {.keepdims = false});
}

}  // namespace

TEST_CASE("layout: sub-axes") {
  CHECK(merged({{1, 2}, {2, 3}, {6, 1}}) == AxisList{{1, 6}});
  CHECK(merged({{2, 3}, {1, 2}}) == AxisList{{2, 3}, {1, 2}});
  CHECK(disjoint({{4, 2}, {1, 4}}, 8));
  CHECK(!disjoint({{1, 4}, {2, 2}}, 8));
  CHECK(!disjoint({{1, 3}}, 8));
  CHECK(!disjoint({{1, 2}, {3, 2}}, 12));
  const CommonPrefix p = common_prefix({{1, 8}}, {{1, 4}, {8, 2}});
  CHECK(p.common == AxisList{{1, 4}});
  CHECK(p.rest_a == AxisList{{4, 2}});
  CHECK(p.rest_b == AxisList{{8, 2}});
  CHECK(*without_axes({{1, 8}}, {{2, 2}}) == AxisList{{1, 2}, {4, 2}});
  CHECK(!without_axes({{1, 4}}, {{4, 2}}));
  CHECK(cover({{4, 2}}, {{1, 4}}) == AxisList{{1, 8}});
  CHECK(cover({{1, 4}}, {{2, 2}, {8, 2}}) == AxisList{{1, 4}, {8, 2}});
  CHECK(cut({{1, 8}}, {{2, 2}}) == AxisList{{1, 2}, {2, 2}, {4, 2}});
}

TEST_CASE("layout: interned, merged, checked") {
  const DeviceOrder* order = DeviceOrder::of(cpu_devices(8));
  CHECK(order == DeviceOrder::of(cpu_devices(8)));
  CHECK(order->sorted() == order);
  const Layout* a = Layout::of(order, {{{1, 2}, {2, 2}}, {}});
  CHECK(a == Layout::of(order, {{{1, 4}, {4, 1}}, {}}));
  CHECK(a->tiles(0) == 4);
  CHECK(a->to_string() == "[{1:4}, {}]");
  CHECK(Layout::of(order, {{}}, {{4, 2}, {1, 2}}, Reducer::sum)->to_string() == "[{}] U{1:2,4:2}");
  CHECK(Layout::of(order, {{}}, {{1, 8}}, Reducer::max)->to_string() == "[{}] U{1:8} max");
  CHECK(Layout::of(order, {{}}, {}, Reducer::sum) == Layout::replicated(order, 1));
  CHECK(Layout::replicated(order, 1) != Layout::replicated(order, 2));
  CHECK_SAYS(
      Layout::of(order, {{{1, 4}}, {{2, 2}}}),
      "Layout::of: [{1:4}, {2:2}] over 8 devices. Sub-axes must not overlap, must divide the devices, and "
      "unreduced ones need a reducer. Please report this.",
      InternalError);
  CHECK_THROWS_AS(Layout::of(order, {{}}, {{1, 8}}), InternalError);
  CHECK_SAYS(
      DeviceOrder::of({Device{0}, Device{0}}),
      "DeviceOrder::of: 2 devices, empty or with one twice. A device order lists distinct devices. Please "
      "report this.",
      InternalError);
  CHECK_THROWS_AS(DeviceOrder::of({}), InternalError);
  CHECK_SAYS(
      tile_shape(*a, {3}),
      "tile_shape: layout [{1:4}, {}] and shape [3] differ in rank. A layout is made for one rank. Please "
      "report this.",
      InternalError);
  std::vector<Device> backwards = cpu_devices(8);
  std::reverse(backwards.begin(), backwards.end());
  const DeviceOrder* reversed = DeviceOrder::of(backwards);
  CHECK(reversed != order);
  CHECK(reversed->sorted() == order);
  CHECK(reversed->position(Device{7}) == 0);
  CHECK(reversed->position(Device{8}) == -1);
  CHECK(order->position(Device{1, "cuda"}) == -1);
}

TEST_CASE("layout: interning from many threads") {
  std::vector<std::vector<const Layout*>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found)
    threads.emplace_back([&mine] {
      for (int n = 2; n < 40; n++)
        mine.push_back(Layout::of(DeviceOrder::of(cpu_devices(n)), {{{1, n}}, {}}));
    });
  for (auto& t : threads) t.join();
  for (const auto& mine : found) CHECK(mine == found[0]);
}

TEST_CASE("layout: same placement, same pointer") {
  Random random(1);
  using Key = std::tuple<std::vector<std::int64_t>, std::map<int, std::vector<std::int64_t>>>;
  std::map<Key, const Layout*> by_placement;
  std::map<const Layout*, Key> by_layout;
  std::vector<Sharding> held;  // layouts live as long as what they were made from
  int private_orders = 0;
  for (int trial = 0; trial < 2000; trial++) {
    const Case c = random_case(random);
    const int rank = static_cast<int>(c.counts.size());
    const Layout* layout = layout_of(held.emplace_back(named(c)), rank);
    REQUIRE(layout == layout_of(positional(c, random), rank));
    for (const auto& [id, tile] : c.tile)
      for (int d = 0; d < rank; d++)
        REQUIRE(layout->tile_index(d, layout->order()->position(Device{id})) == tile[d]);
    const Key key{{c.counts.begin(), c.counts.end()}, c.tile};
    REQUIRE(by_placement.emplace(key, layout).first->second == layout);
    REQUIRE(by_layout.emplace(layout, key).first->second == key);
    private_orders += layout->order() != layout->order()->sorted();
    // Devices in their own order always factor.
    if (std::is_sorted(c.devices.begin(), c.devices.end(), [](auto& a, auto& b) { return a.id < b.id; }))
      REQUIRE(layout->order() == layout->order()->sorted());
  }
  CHECK(private_orders > 20);
  CHECK(by_placement.size() > 200);
}

TEST_CASE("layout: permuted meshes factor over the sorted devices") {
  const DeviceOrder* sorted = DeviceOrder::of(cpu_devices(8));
  CHECK(on_mesh(P("y", "x"), 2) == Layout::of(sorted, {{y}, {x}}));
  CHECK(on_mesh(P(axes("y", "x")), 1) == Layout::of(sorted, {{y, x}}));
  CHECK(on_mesh(P(axes("x", "y")), 1) == Layout::of(sorted, {{{1, 8}}}));
  // The transposed grid: its rows are 0 2 4 6 and 1 3 5 7.
  const std::vector<Device> d = cpu_devices(8);
  const Mesh transposed({{2, 4}, {d[0], d[2], d[4], d[6], d[1], d[3], d[5], d[7]}}, {"a", "b"});
  CHECK(layout_of(NamedSharding(transposed, P("a", "b")), 2) == Layout::of(sorted, {{y}, {x}}));
  // A snake does not: tiles row-major become the order.
  const Mesh snake({{2, 4}, {d[0], d[1], d[2], d[3], d[7], d[6], d[5], d[4]}}, {"a", "b"});
  const Sharding on_snake = NamedSharding(snake, P("a", "b"));
  const Layout* l = layout_of(on_snake, 2);
  CHECK(l->order() == DeviceOrder::of(snake.devices()));
  CHECK(l == Layout::of(l->order(), {{{1, 2}}, {{2, 4}}}));
  CHECK(layout_of(NamedSharding(snake, P("a")), 1) == Layout::of(sorted, {{{1, 2}}}));
}

TEST_CASE("layout: the same placement over another order") {
  const DeviceOrder* sorted = DeviceOrder::of(cpu_devices(8));
  const std::vector<Device> d = cpu_devices(8);
  const DeviceOrder* transposed = DeviceOrder::of({d[0], d[2], d[4], d[6], d[1], d[3], d[5], d[7]});
  const Layout* l = Layout::of(sorted, {{x}, {}}, {y}, Reducer::sum);
  CHECK(in_order(l, transposed) == Layout::of(transposed, {{{2, 4}}, {}}, {{1, 2}}, Reducer::sum));
  CHECK(in_order(in_order(l, transposed), sorted) == l);
  CHECK(in_order(l, DeviceOrder::of(cpu_devices(4))) == nullptr);
  CHECK(in_order(Layout::of(sorted, {{x}}),
                 DeviceOrder::of({d[1], d[2], d[3], d[0], d[4], d[5], d[6], d[7]})) == nullptr);
}

TEST_CASE("layout: tiles are ceil-sized, the last ones short or empty") {
  const auto sizes = [](std::int64_t n) {
    std::vector<std::int64_t> out;
    for (const Box& b : tiles_of(*layout_of(NamedSharding(golden_mesh(), P(axes("x", "y"))), 1), {n}))
      out.push_back(b.size[0]);
    return out;
  };
  CHECK(sizes(10) == std::vector<std::int64_t>{2, 2, 2, 2, 2, 0, 0, 0});
  CHECK(sizes(3) == std::vector<std::int64_t>{1, 1, 1, 0, 0, 0, 0, 0});
  CHECK(sizes(0) == std::vector<std::int64_t>(8, 0));
  const Layout* rows = on_mesh(P("x"), 2);
  const std::int64_t want[] = {3, 3, 3, 1};
  for (int p = 0; p < 8; p++) CHECK(tile_of(*rows, {10, 5}, p) == Box{{3 * (p / 2), 0}, {want[p / 2], 5}});
  CHECK(tile_shape(*rows, {10, 5}) == Shape{3, 5});
  Random random(2);
  for (int trial = 0; trial < 200; trial++) {
    const Layout* l = random_layout(random, DeviceOrder::of(cpu_devices(12)), 2);
    const Shape shape{pick(random, 0, 15), pick(random, 0, 15)};
    // Distinct tiles are disjoint and cover the value.
    std::map<std::pair<std::int64_t, std::int64_t>, Box> tiles;
    for (int p = 0; p < 12; p++) tiles[{l->tile_index(0, p), l->tile_index(1, p)}] = tile_of(*l, shape, p);
    std::int64_t total = 0;
    for (const auto& [at, box] : tiles) total += box.elements();
    CHECK(total == num_elements(shape));
    for (const auto& [at, a] : tiles)
      for (const auto& [bt, b] : tiles)
        if (at < bt) REQUIRE(intersect(a, b).empty());
  }
}

TEST_CASE("layout: instances") {
  const Instances rows = instances_of(*on_mesh(P("x"), 1), true);
  CHECK(rows.of_position == std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(rows.leader == std::vector<int>{0, 2, 4, 6});
  CHECK(instances_of(*on_mesh(P("y"), 1), true).of_position == std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(instances_of(*on_mesh(P(), 1), true).count() == 1);
  CHECK(instances_of(*on_mesh(P(), 1), false).count() == 8);
  CHECK(instances_of(*partial(P("y"), 1, {x}), true).count() == 8);
  CHECK(instances_of(*partial(P(), 1, {y}), true).leader == std::vector<int>{0, 1});
}

TEST_CASE("layout: spelling results like their inputs") {
  const NamedSharding rows(golden_mesh(), P("x"));
  const PositionalSharding grid({{4, 2}, cpu_devices(8)});
  const SingleDeviceSharding single(Device{3});
  const std::vector<Sharding> like = {single, rows, grid};
  CHECK(spell(on_mesh(P("x"), 2), like) == rows);
  CHECK(spell(on_mesh(P("x"), 2), like).impl() == like[1].impl());
  CHECK(spell(on_mesh(P(none, "y"), 2), like) == NamedSharding(golden_mesh(), P(none, "y")));
  CHECK(spell(on_mesh(P("y", axes("x")), 3), like) == NamedSharding(golden_mesh(), P("y", "x")));
  CHECK(spell(on_mesh(P(axes("x", "y")), 1), like) == NamedSharding(golden_mesh(), P(axes("x", "y"))));
  // Half of an axis has no name: the grid can write it.
  const DeviceOrder* order = DeviceOrder::of(cpu_devices(8));
  CHECK(spell(Layout::of(order, {{{1, 2}}}), like) == grid.reshape({2, 4}).replicate(1, {.keepdims = false}));
  CHECK(spell(on_mesh(P("x"), 1)) == grid.replicate(1, {.keepdims = false}));
  CHECK(spell(Layout::replicated(DeviceOrder::of({Device{3}}), 2)) == single);
  CHECK(mesh_of(rows) != nullptr);
  CHECK(mesh_of(grid) == nullptr);
  // A mesh in an order of its own names its axes too.
  const std::vector<Device> d = cpu_devices(4);
  const Mesh odd({{2, 2}, {d[3], d[1], d[2], d[0]}}, {"a", "b"});
  const std::vector<Sharding> on_odd = {NamedSharding(odd, P())};
  for (const auto& spec : {P("a"), P("b"), P("a", "b"), P(axes("b", "a"))})
    CHECK(spell(layout_of(NamedSharding(odd, spec), 2), on_odd) == NamedSharding(odd, spec));
  CHECK(dim_suffix(*layout_of(NamedSharding(odd, P("a")), 2), 0, &odd) == "@a");
}

TEST_CASE("layout: spelling round trips") {
  Random random(5);
  for (int trial = 0; trial < 300; trial++) {
    const Case c = random_case(random);
    const int rank = static_cast<int>(c.counts.size());
    const Sharding s = named(c);
    const Layout* layout = layout_of(s, rank);
    CHECK(layout_of(spell(layout), rank) == layout);
    const std::vector<Sharding> like = {NamedSharding(*mesh_of(s), P())};
    const Sharding again = spell(layout, like);
    CHECK(mesh_of(again) != nullptr);
    CHECK(layout_of(again, rank) == layout);
  }
}

TEST_CASE("layout: names of sub-axes") {
  const DeviceOrder* order = DeviceOrder::of(cpu_devices(8));
  const Mesh* mesh = &golden_mesh();
  CHECK(axis_names({x}, order, mesh) == "{x}");
  CHECK(axis_names({{1, 8}}, order, mesh) == "{x,y}");
  CHECK(axis_names({y, x}, order, mesh) == "{y,x}");
  CHECK(axis_names({{1, 2}}, order, mesh) == "{x:(1)2}");
  CHECK(axis_names({{2, 4}}, order, mesh) == "{x:(2)2,y}");
  CHECK(axis_names({}, order, mesh) == "{}");
  CHECK(axis_names({x, y}, order, nullptr) == "{1:4,4:2}");
  CHECK(axis_names({x}, DeviceOrder::of(cpu_devices(4)), mesh) == "{1:4}");
  const std::vector<Device> d = cpu_devices(8);
  const Mesh transposed({{2, 4}, {d[0], d[2], d[4], d[6], d[1], d[3], d[5], d[7]}}, {"a", "b"});
  CHECK(axis_names({x}, order, &transposed) == "{b}");
  CHECK(axis_names({{1, 8}}, order, &transposed) == "{b,a}");
  const Layout* l = on_mesh(P("x", none, "y"), 3);
  CHECK(dim_suffix(*l, 0, mesh) == "@x");
  CHECK(dim_suffix(*l, 1, mesh) == "");
  CHECK(dim_suffix(*l, 2, nullptr) == "@2");
  CHECK(dim_suffix(*on_mesh(P(axes("y", "x")), 1), 0, mesh) == "@(y,x)");
}

}  // namespace layout_test
