// The public sharding classes: index maps, replicas, equality, printing, and every refusal.
#include <doctest/doctest.h>

#include <sstream>

#include "layout_helpers.h"
#include "messages.h"
#include "shardarray/error.h"
#include "shardarray/sharding.h"

namespace sharding_test {

using namespace shardarray;
using testing::layouts::cpu_devices;

namespace {

Mesh mesh_4x2() { return Mesh({{4, 2}, cpu_devices(8)}, {"x", "y"}); }
Sharding named(PartitionSpec spec) { return NamedSharding(mesh_4x2(), std::move(spec)); }
PositionalSharding grid(const Shape& shape) {
  return PositionalSharding({shape, cpu_devices(static_cast<int>(num_elements(shape)))});
}

template <class T> std::string printed(const T& value) {
  std::ostringstream os;
  os << value;
  return os.str();
}

}  // namespace

TEST_CASE("sharding: replica ids and shard shapes of named shardings") {
  using Ids = std::vector<int>;
  CHECK(named(P("x")).replica_ids({8, 2}) == Ids{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(named(P("y")).replica_ids({8, 2}) == Ids{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(named(P(none, "y")).replica_ids({8, 2}) == Ids{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(named(P("x", "y")).replica_ids({8, 2}) == Ids(8, 0));
  CHECK(named(P(axes("x", "y"))).replica_ids({8, 2}) == Ids(8, 0));
  CHECK(named(P()).replica_ids({8, 2}) == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(named(P("y")).shard_shape({8, 2}) == Shape{4, 2});
  CHECK(to_string(named(P("y")).devices_indices_map({8, 2})[0].second) == "(0:4, :)");
  CHECK(named(P()).shard_shape({8, 2}) == Shape{8, 2});
}

TEST_CASE("sharding: index maps") {
  // P('y', 'x') of (8,4): tiles 2 x 4; tile order is devices 0,2,4,6,1,3,5,7.
  const auto map = named(P("y", "x")).devices_indices_map({8, 4});
  REQUIRE(map.size() == 8);
  CHECK(to_string(map[0].second) == "(0:4, 0:1)");
  const int order[] = {0, 2, 4, 6, 1, 3, 5, 7};
  for (int tile = 0; tile < 8; tile++) {
    const auto& [device, index] = map[order[tile]];
    CHECK(device.id == order[tile]);
    CHECK(index == ShardIndex{{false, 4 * (tile / 4), 4 * (tile / 4) + 4}, {false, tile % 4, tile % 4 + 1}});
  }
  CHECK(to_string(SingleDeviceSharding(Device{3})->devices_indices_map({4, 4, 4})[0].second) == "(:, :, :)");
  CHECK(to_string(ShardIndex{{false, 2, 4}}) == "(2:4,)");
  CHECK(to_string(ShardIndex{}) == "()");
  // Devices in assignment order, as the mesh lists them.
  std::vector<Device> reversed = cpu_devices(2);
  std::swap(reversed[0], reversed[1]);
  const NamedSharding swapped(Mesh({{2}, reversed}, {"x"}), P("x"));
  CHECK(swapped->devices_indices_map({4})[0].first.id == 1);
  CHECK(to_string(swapped->devices_indices_map({4})[0].second) == "(0:2,)");
  CHECK(swapped->device_set() == cpu_devices(2));
  CHECK(swapped->device_assignment() == reversed);
}

TEST_CASE("sharding: uneven pieces") {
  const Sharding s = named(P("x"));
  CHECK(s.shard_shape({10, 3}) == Shape{3, 3});
  CHECK(s.shard_shape({10, 3}, Device{0}) == Shape{3, 3});
  CHECK(s.shard_shape({10, 3}, Device{7}) == Shape{1, 3});
  CHECK(s.shard_shape({5, 3}, Device{6}) == Shape{0, 3});
  CHECK(to_string(s.devices_indices_map({10, 3})[7].second) == "(9:10, :)");
  CHECK_SAYS(s.shard_shape({10, 3}, Device{8}),
             "shard_shape: cpu:8 is not one of the devices of NamedSharding(mesh=Mesh('x': 4, 'y': 2), "
             "spec=PartitionSpec('x',)). Only those hold a piece. Use a device of device_set().",
             DeviceError);
}

TEST_CASE("sharding: equivalences of positional and named") {
  const auto g = grid({4, 2});
  const std::pair<PartitionSpec, PositionalSharding> rows[] = {
      {P("x", "y"), g.replicate(Shape{})},
      {P("x"), g.replicate(1)},
      {P("y"), g.replicate(0).T()},
      {P(none, "y"), g.replicate(0)},
      {P(none, "x"), g.replicate(1).T()},
      {P(axes("x", "y")), grid({8, 1})},
      {P(), g.replicate()},
  };
  for (const auto& row : rows) {
    const PartitionSpec& spec = row.first;
    const PositionalSharding& positional = row.second;
    CAPTURE(spec.to_string());
    CHECK(named(spec).is_equivalent_to(positional, 2));
    CHECK(named(spec).devices_indices_map({8, 4}) == positional->devices_indices_map({8, 4}));
    CHECK(!(named(spec) == positional));
    for (const auto& [other, p] : rows)
      CHECK(named(other).is_equivalent_to(positional, 2) == (other == spec));
  }
}

TEST_CASE("sharding: equivalence looks at devices and their order") {
  const Mesh one({{1}, cpu_devices(1)}, {"x"});
  CHECK(Sharding(NamedSharding(one, P("x"))).is_equivalent_to(SingleDeviceSharding(Device{0}), 1));
  CHECK(!Sharding(NamedSharding(one, P("x"))).is_equivalent_to(SingleDeviceSharding(Device{1}), 1));
  CHECK(!named(P()).is_equivalent_to(SingleDeviceSharding(Device{0}), 1));
  CHECK(named(P("x")).is_equivalent_to(named(P("x", none)), 2));
  std::vector<Device> reversed = cpu_devices(8);
  std::reverse(reversed.begin(), reversed.end());
  const Mesh backwards({{4, 2}, reversed}, {"x", "y"});
  CHECK(!named(P()).is_equivalent_to(NamedSharding(backwards, P()), 1));
  CHECK(named(P()).is_fully_replicated(1));
}

TEST_CASE("sharding: full replication") {
  CHECK(named(P()).is_fully_replicated());
  CHECK(named(P(none, none)).is_fully_replicated());
  CHECK(!named(P("y")).is_fully_replicated());
  CHECK(Sharding(NamedSharding(Mesh({{2, 1}, cpu_devices(2)}, {"x", "y"}), P("y"))).is_fully_replicated());
  CHECK(!grid({8, 1})->is_fully_replicated());
  CHECK(grid({8, 1}).replicate()->is_fully_replicated());
  CHECK(SingleDeviceSharding(Device{2})->is_fully_replicated());
  CHECK(!named(P("y")).is_fully_replicated(1));
  // Fully replicated positional shardings fit any rank.
  for (int rank : {0, 1, 3}) CHECK(grid({4, 2}).replicate()->is_fully_replicated(rank));
}

TEST_CASE("sharding: equality compares spellings") {
  CHECK(named(P("x")) == named(P("x")));
  CHECK(named(P("x")).hash() == named(P("x")).hash());
  CHECK(!(named(P("x")) == named(P("x", none))));
  CHECK(!(P("x") == P(axes("x"))));
  CHECK(!(P(axes("x", "y")) == P(axes("y", "x"))));
  CHECK(!(named(P("x")) == Sharding(NamedSharding(Mesh({{4, 2}, cpu_devices(8)}, {"x", "z"}), P("x")))));
  CHECK(grid({4, 2}) == grid({8}).reshape({4, 2}));
  CHECK(!(grid({4, 2}) == grid({2, 4})));
  CHECK(!(grid({4, 2}).T() == grid({2, 4})));
  CHECK(grid({4, 2})->hash() == grid({8}).reshape({4, -1})->hash());
  CHECK(Sharding(SingleDeviceSharding(Device{1})) == Sharding(SingleDeviceSharding(Device{1})));
  CHECK(!(Sharding(SingleDeviceSharding(Device{1})) == Sharding(SingleDeviceSharding(Device{2}))));
  CHECK(mesh_4x2() == mesh_4x2());
  CHECK(std::hash<Sharding>{}(named(P())) == named(P()).hash());
}

TEST_CASE("sharding: printing") {
  CHECK(printed(mesh_4x2()) == "Mesh('x': 4, 'y': 2)");
  CHECK(printed(P("x", none, axes("y", "z"))) == "PartitionSpec('x', None, ('y', 'z'))");
  CHECK(printed(P("x")) == "PartitionSpec('x',)");
  CHECK(printed(P()) == "PartitionSpec()");
  CHECK(printed(P(axes("x"))) == "PartitionSpec(('x',),)");
  CHECK(printed(NamedSharding(mesh_4x2(), P("x", "y"))) ==
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec('x', 'y'))");
  CHECK(printed(Sharding(SingleDeviceSharding(Device{3}))) == "SingleDeviceSharding(device=CpuDevice(id=3))");
  CHECK(printed(grid({4, 2}).replicate(0)) ==
        "PositionalSharding([[{CPU 0, 2, 4, 6} {CPU 1, 3, 5, 7}]], shape=(1, 2))");
  CHECK(printed(grid({2, 2, 1})) ==
        "PositionalSharding([[[{CPU 0}]\n"
        "                     [{CPU 1}]]\n"
        "\n"
        "                    [[{CPU 2}]\n"
        "                     [{CPU 3}]]], shape=(2, 2, 1))");
  CHECK(printed(PositionalSharding({{2}, {Device{1, "cuda"}, Device{0, "cuda"}}}).replicate()) ==
        "PositionalSharding([{CUDA 0, 1}], shape=(1,))");
  CHECK(printed(grid({2}).replicate(0, {.keepdims = false})) == "PositionalSharding({CPU 0, 1}, shape=())");
}

TEST_CASE("sharding: long rows of a positional sharding are broken as numpy does") {
  // 32 devices: 9, 8, 8 and 7 entries a line.
  const std::string text = printed(grid({32}));
  std::vector<int> entries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    entries.push_back(static_cast<int>(std::count(line.begin(), line.end(), '{')));
  CHECK(entries == std::vector<int>{9, 8, 8, 7});
  CHECK(text.find("{CPU 8}\n                    {CPU 9}") != std::string::npos);
  CHECK(text.ends_with("{CPU 31}], shape=(32,))"));
  CHECK(printed(grid({1, 32})).find("[[{CPU 0}") == 19);
}

TEST_CASE("sharding: positional array operations") {
  using Ids = std::vector<std::vector<int>>;
  const auto g = grid({4, 2});
  CHECK(g.shape() == Shape{4, 2});
  CHECK(g.replicate(0).shape() == Shape{1, 2});
  CHECK(g.replicate(1).shape() == Shape{4, 1});
  CHECK(g.replicate(-1).shape() == Shape{4, 1});
  CHECK(g.replicate().shape() == Shape{1, 1});
  CHECK(g.replicate({0, 1}, {.keepdims = false}).shape() == Shape{});
  CHECK(g.replicate(Shape{}) == g);
  CHECK(g.replicate(0).ids() == Ids{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(g.T().ids() == Ids{{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}});
  CHECK(g.transpose({1, 0}) == g.T());
  CHECK(g.reshape({-1}).shape() == Shape{8});
  CHECK(grid({2, 2, 2}).transpose({2, 0, -2}).ids() == Ids{{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}});
  CHECK(g.ndim() == 2);
  CHECK(g.T()->device_assignment() == cpu_devices(8));
  CHECK(PositionalSharding(cpu_devices(8)) == grid({8}));
  // Real ids, whatever the order of the list.
  CHECK(PositionalSharding({Device{5}, Device{2}}).replicate().ids() == Ids{{2, 5}});
}

TEST_CASE("sharding: meshes") {
  const Mesh m = make_mesh({{"x", 2}, {"y", 2}}, cpu_devices(8));
  CHECK(m.size() == 4);
  CHECK(m.devices() == cpu_devices(4));
  CHECK(m.axis_size("y") == 2);
  CHECK(m.shape() == std::vector<std::pair<std::string, std::int64_t>>{{"x", 2}, {"y", 2}});
  CHECK_SAYS(
      make_mesh({{"x", 4}, {"y", 4}}, cpu_devices(8)),
      "make_mesh: a mesh of shape [4,4] needs 16 devices, but gets 8. The product of the sizes must not "
      "exceed the number of devices. Use smaller sizes, or more virtual devices (set_cpu_device_count, "
      "SHARDARRAY_CPU_DEVICES).",
      DeviceError);
  CHECK(make_mesh({4, 2}, {"x", "y"}, cpu_devices(8)) == make_mesh({{"x", 4}, {"y", 2}}, cpu_devices(8)));
  CHECK(make_mesh({2}, {"x"}, cpu_devices(8)) == make_mesh({{"x", 2}}, cpu_devices(8)));
  CHECK_SAYS(make_mesh({4, 2}, {"x"}, cpu_devices(8)),
             "make_mesh: 2 sizes [4,2] and 1 axis name. Every dimension has one name. Give as many names as "
             "sizes.",
             ShardingError);
  CHECK_SAYS(make_mesh({{"x", 0}}, cpu_devices(8)),
             "make_mesh: axis 'x' has size 0. Sizes are at least 1. Correct it.", ShardingError);
  CHECK_SAYS(
      m.axis_size("z"),
      "axis_size: Mesh('x': 2, 'y': 2) has no axis 'z'. An axis is found by its name. Use one of ('x', 'y').",
      ShardingError);
  CHECK_SAYS(
      Mesh({{4, 2}, cpu_devices(8)}, {"x"}),
      "Mesh: a grid of shape [4,2] with 1 axis name ('x'). Every dimension of the grid has one name. Give 2 "
      "names.",
      ShardingError);
  CHECK_SAYS(Mesh({{4, 2}, cpu_devices(7)}, {"x", "y"}),
             "Mesh: a grid of shape [4,2] with 7 devices. The sizes must multiply to the number of "
             "devices, at least "
             "one. Use create_device_mesh.",
             ShardingError);
  CHECK_SAYS(Mesh({{1, 1}, cpu_devices(1)}, {"x", "x"}),
             "Mesh: axis name 'x' stands twice in ('x', 'x'). Specs find an axis by its name. Rename one, or "
             "make one "
             "axis of size 1 of both.",
             ShardingError);
  CHECK_SAYS(
      make_mesh({2, 3}, {"x", "x"}, cpu_devices(8)),
      "make_mesh: axis name 'x' stands twice in ('x', 'x'). Specs find an axis by its name. Rename one, or "
      "make one axis of size 6 of both.",
      ShardingError);
  CHECK_SAYS(make_mesh({{"x", 2}, {"", 2}}, cpu_devices(8)),
             "make_mesh: an axis name is empty in ('x', ''). Specs find an axis by its name. Give it one.",
             ShardingError);
  CHECK_SAYS(
      Mesh({{2}, {Device{3}, Device{3}}}, {"x"}),
      "Mesh: device cpu:3 stands at positions 0 and 1 of the grid. Every device occurs once. Remove one.",
      ShardingError);
}

TEST_CASE("sharding: refusals of named and positional shardings") {
  CHECK_SAYS(named(P("z")),
             "NamedSharding: axis 'z' of PartitionSpec('z',) is not found in Mesh('x': 4, 'y': 2). "
             "A spec names axes "
             "of its mesh. Use one of ('x', 'y').",
             ShardingError);
  CHECK_SAYS(
      named(P("x", "x")),
      "NamedSharding: PartitionSpec('x', 'x') has duplicate entries for 'x'. A mesh axis cuts at most one "
      "dimension, or holds summands. Remove one of them.",
      ShardingError);
  CHECK_SAYS(
      named(P("x", "y")).shard_shape({8}),
      "NamedSharding: NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec('x', 'y')) is only valid "
      "for "
      "values of rank at least 2, but was applied to a value of rank 1. The sharding must fit the value's "
      "dimensions. Drop entries from the PartitionSpec.",
      ShardingError);
  CHECK_SAYS(
      named(P(none)).shard_shape({}),
      "NamedSharding: NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec(None,)) is only valid for "
      "values of rank at least 1, but was applied to a value of rank 0. The sharding must fit the value's "
      "dimensions. For scalars use P().",
      ShardingError);
  CHECK_SAYS(
      grid({2})->shard_shape({4, 4}),
      "PositionalSharding: PositionalSharding([{CPU 0} {CPU 1}], shape=(2,)) is only valid for values of "
      "rank "
      "1, but was applied to a value of rank 2. The sharding must fit the value's dimensions. Reshape the "
      "sharding or replicate() it.",
      ShardingError);
  CHECK_SAYS(
      PositionalSharding(std::vector<Device>{}),
      "PositionalSharding: a grid of shape [0] with 0 devices. It needs at least one device, and the sizes "
      "must multiply to their number. Use create_device_mesh.",
      ShardingError);
  CHECK_SAYS(PositionalSharding({Device{1}, Device{0}, Device{1}}),
             "PositionalSharding: device cpu:1 stands at positions 0 and 2 of the grid. Every "
             "device holds one block. "
             "Remove one.",
             ShardingError);
  for (const Shape& bad : {Shape{3, 2}, Shape{-1, 3}, Shape{-1, -1}, Shape{0, -1}, Shape{-2, 4}}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(grid({4, 2}).reshape(bad), ShardingError);
  }
  CHECK_SAYS(grid({4, 2}).reshape({3, 2}),
             "reshape: cannot reshape a sharding of 8 entries into shape (3, 2). The sizes must "
             "multiply to the number "
             "of entries; one may be -1. Correct the shape.",
             ShardingError);
  for (const Shape& bad : {Shape{0}, Shape{0, 0}, Shape{0, 2}, Shape{0, 1, 2}})
    CHECK_THROWS_AS(grid({4, 2}).transpose(bad), ShardingError);
  CHECK_SAYS(grid({4, 2}).transpose({0, 0}),
             "transpose: axes (0, 0) do not match a sharding of 2 dimensions. Each dimension "
             "stands there once. Correct "
             "the axes.",
             ShardingError);
  CHECK_SAYS(grid({4, 2}).replicate(2),
             "replicate: axis 2 is out of bounds for a sharding of 2 dimensions. Axes go from -n "
             "to n - 1. Correct the "
             "axis.",
             ShardingError);
  CHECK_SAYS(grid({4, 2}).replicate({0, -2}),
             "replicate: axis -2 stands twice in (0, -2). Axes are distinct. Remove one.", ShardingError);
}

}  // namespace sharding_test
