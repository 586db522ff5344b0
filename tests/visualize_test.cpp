// Pictures of any sharding: more than two dimensions, many devices, narrow terminals, what differs between two.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "layout/pictures/device_ids.h"
#include "layout_helpers.h"
#include "messages.h"
#include "picture_reader.h"
#include "printed.h"
#include "shardarray/shardarray.h"

namespace visualize_test {

using namespace shardarray;
using namespace shardarray::testing;
using layouts::pick;
using layouts::Random;

namespace {

Mesh mesh_of_ids(const Shape& shape, std::vector<std::string> names) {
  return Mesh({shape, layouts::cpu_devices(static_cast<int>(num_elements(shape)))}, std::move(names));
}
Sharding on_line(int n, PartitionSpec spec) {
  return NamedSharding(mesh_of_ids({n}, {"x"}), std::move(spec));
}
Sharding on_square(PartitionSpec spec) {
  return NamedSharding(mesh_of_ids({2, 2}, {"x", "y"}), std::move(spec));
}

// A mesh of 1 to 4 axes over devices in any order, and a spec whose entries are any of them.
Sharding random_sharding(Random& random, int rank, std::vector<Device> devices) {
  std::shuffle(devices.begin(), devices.end(), random);
  if (pick(random, 0, 2) > 0)
    std::sort(devices.begin(), devices.end(), [](auto& a, auto& b) { return a.id < b.id; });
  std::vector<std::string> names;
  Shape sizes;
  int rest = static_cast<int>(devices.size());
  while (rest > 1 && sizes.size() < 4) {
    int size = sizes.size() == 3 ? rest : pick(random, 2, pick(random, 0, 1) ? rest : std::min(rest, 4));
    while (rest % size != 0) size++;
    sizes.push_back(size);
    names.push_back(std::string(1, static_cast<char>('a' + names.size())));
    rest /= size;
  }
  if (sizes.empty()) return SingleDeviceSharding(devices[0]);
  std::vector<std::vector<std::string>> cuts(static_cast<std::size_t>(rank));
  for (const std::string& name : names)
    if (const int d = pick(random, 0, rank); d < rank) cuts[static_cast<std::size_t>(d)].push_back(name);
  std::vector<SpecEntry> entries;
  for (auto& cut : cuts) entries.push_back(AxisNames{cut});
  return NamedSharding(Mesh({sizes, devices}, names), PartitionSpec(std::move(entries)));
}

struct Case {
  Shape shape;
  std::vector<Device> devices;
  int count() const { return static_cast<int>(devices.size()); }
};
Case random_case(Random& random) {
  constexpr int counts[] = {1, 2, 3, 4, 6, 8, 8, 12, 16, 30, 48, 64, 96, 256};
  Case out;
  for (int d = pick(random, 0, 5); d > 0; d--) out.shape.push_back(pick(random, 0, 9) * pick(random, 1, 99));
  out.devices = layouts::cpu_devices(counts[pick(random, 0, std::size(counts) - 1)]);
  return out;
}

// The devices whose piece of a value of `shape` has no elements.
Ids empty_ids(const Shape& shape, const Sharding& sharding) {
  Ids out;
  for (const Device& d : sharding.device_set())
    if (num_elements(sharding.shard_shape(shape, d)) == 0) out.insert(d.id);
  return out;
}

// Who holds each block of `fold` tiles, row-major, but for devices that hold nothing: asked of the layout, tile by tile.
std::vector<Ids> blocks_of(const Layout& layout, std::vector<std::int64_t> fold, const Ids& empty) {
  const std::size_t rank = static_cast<std::size_t>(layout.rank());
  while (fold.size() < rank) fold.push_back(1);
  const std::size_t added = fold.size() - rank;  // vectors are drawn as one row
  std::map<std::vector<std::int64_t>, Ids> blocks;
  for (int p = 0; p < layout.order()->size(); p++) {
    const int id = layout.order()->devices()[static_cast<std::size_t>(p)].id;
    if (empty.contains(id)) continue;
    std::vector<std::int64_t> at;
    for (std::size_t d = 0; d < rank; d++)
      at.push_back(layout.tile_index(static_cast<int>(d), p) / fold[added + d]);
    blocks[at].insert(id);
  }
  std::vector<Ids> out;
  for (auto& [at, ids] : blocks) out.push_back(ids);
  return out;
}

Ids all_ids(int n) {
  Ids out;
  for (int k = 0; k < n; k++) out.insert(k);
  return out;
}

std::size_t widest_line(const std::string& text) {
  std::size_t out = 0;
  for (const std::string& line : lines_of(without_colors(text))) out = std::max(out, characters(line).size());
  return out;
}

}  // namespace

TEST_CASE("visualize: of more dimensions the last two, once for each piece of the others") {
  // 10 / sqrt(2) lines high, even: 6. As wide as high: 3 * 2.5 columns a block, 9 at least.
  CHECK(render_sharding({4, 2, 2}, on_square(P("x", none, "y"))) ==
        "[0:2, :, :]        [2:4, :, :]\n"
        "┌───────┬───────┐  ┌───────┬───────┐\n"
        "│       │       │  │       │       │\n"
        "│       │       │  │       │       │\n"
        "│ CPU 0 │ CPU 1 │  │ CPU 2 │ CPU 3 │\n"
        "│       │       │  │       │       │\n"
        "│       │       │  │       │       │\n"
        "└───────┴───────┘  └───────┴───────┘\n");
  // Two leading dimensions are cut, three rows over two devices are 2 and 1; four facets are 5, so 4 lines high.
  CHECK(render_sharding({3, 4, 5, 2}, on_square(P("x", "y")), {.max_width = 40}) ==
        "[0:2, 0:2, :, :]  [0:2, 2:4, :, :]\n"
        "┌───────┐         ┌───────┐\n"
        "│       │         │       │\n"
        "│ CPU 0 │         │ CPU 1 │\n"
        "│       │         │       │\n"
        "└───────┘         └───────┘\n"
        "[2:3, 0:2, :, :]  [2:3, 2:4, :, :]\n"
        "┌───────┐         ┌───────┐\n"
        "│       │         │       │\n"
        "│ CPU 2 │         │ CPU 3 │\n"
        "│       │         │       │\n"
        "└───────┘         └───────┘\n");
  // Leading dimensions that nothing cuts: all of their pictures are alike, and one is drawn.
  CHECK(render_sharding({9, 3, 4, 4}, on_square(P(none, none, "x", "y"))) ==
        "[:, :, :, :]\n" + render_sharding({4, 4}, on_square(P("x", "y"))));
  CHECK(render_sharding({}, on_line(2, P())) ==
        "┌───────────────────────┐\n"
        "│        CPU 0,1        │\n"
        "└───────────────────────┘\n");
}

TEST_CASE("visualize: many tiles are blocks of neighbours, which a line says") {
  CHECK(render_sharding({1024}, on_line(64, P("x"))) ==
        "┌───────┬────────┬─────────┬─────────┬─────────┬─────────┬─────────┬─────────┐\n"
        "│CPU 0-7│CPU 8-15│CPU 16-23│CPU 24-31│CPU 32-39│CPU 40-47│CPU 48-55│CPU 56-63│\n"
        "└───────┴────────┴─────────┴─────────┴─────────┴─────────┴─────────┴─────────┘\n"
        "A block is 1 x 8 tiles; sharding_table lists each.\n");
  // 41 rows are too many: 21 blocks of 2 still are, so they are of 4; of the last one there is one row.
  const ReadPicture rows = read_picture(render_sharding({82, 2}, on_line(41, P("x"))));
  REQUIRE(rows.blocks.size() == 11);
  CHECK(rows.notes.fold == std::vector<std::int64_t>{4, 1});
  CHECK(rows.blocks[0] == Ids{0, 1, 2, 3});
  CHECK(rows.blocks[10] == Ids{40});
  CHECK(render_sharding({82, 2}, on_line(41, P("x")))
            .ends_with("A block is up to 4 x 1 tiles; sharding_table lists each.\n"));
  // 1000 over 64 are 62 tiles of 16, one of 8 and an empty one: blocks are of those that there are.
  CHECK(render_sharding({1000}, on_line(64, P("x")))
            .ends_with("A block is up to 1 x 6 tiles; sharding_table lists each.\nCPU 63 holds nothing.\n"));
  // As many facets as fit on a screen.
  const ReadPicture batch = read_picture(render_sharding({64, 4, 4}, on_line(64, P("x"))));
  CHECK(batch.blocks.size() == 16);
  CHECK(batch.notes.fold == std::vector<std::int64_t>{4, 1, 1});
  CHECK(batch.captions[0] == "[0:4, :, :]    [4:8, :, :]    [8:12, :, :]   [12:16, :, :]  [16:20, :, :]");
}

TEST_CASE("visualize: labels become shorter before tiles are joined") {
  // Without colours JAX draws these eight columns, 30 wide in all, without any label.
  const Sharding eight = on_line(8, P(none, "x"));
  CHECK(render_sharding({8, 64}, eight, {.scale = 0.1, .max_width = 30}) ==
        "┌───┬───┬───┬──┬───┬──┬───┬──┐\n"
        "│ 0 │ 1 │ 2 │3 │ 4 │5 │ 6 │7 │\n"
        "└───┴───┴───┴──┴───┴──┴───┴──┘\n"
        "Numbers are ids of CPU\n"
        "devices.\n");
  CHECK(render_sharding({8, 8}, on_line(16, P()), {.scale = 0.1}) ==
        "┌────────┐\n"
        "│CPU 0-15│\n"
        "└────────┘\n");
  // Too many ids for a block that is a whole row: letters. Those with an even number of ones in base 2, and the others.
  std::vector<Device> devices;
  std::string even;
  for (const int odd : {0, 1})
    for (int k = 0; k < 64; k++)
      if (__builtin_popcount(static_cast<unsigned>(k)) % 2 == odd) {
        devices.push_back(Device{k});
        if (odd == 0) even += (even.empty() ? "" : ", ") + std::to_string(k);
      }
  const Sharding scattered = NamedSharding(Mesh({{2, 32}, devices}, {"x", "y"}), P("x"));
  const std::string text = render_sharding({2, 1}, scattered, {.scale = 0.4, .max_width = 20});
  CHECK(
      text.starts_with("┌───────┐\n"
                       "│   A   │\n"
                       "├───────┤\n"
                       "│   B   │\n"
                       "└───────┘\n"
                       "A: CPU 0, 3, 5, 6,\n"));
  std::string legend = text.substr(text.find("A: CPU"));
  std::replace(legend.begin(), legend.end(), '\n', ' ');
  CHECK(legend.starts_with("A: CPU " + even + " B: CPU 1, 2, 4, "));
}

TEST_CASE("visualize: ids as lists of CPUs") {
  const auto runs = [](const std::vector<int>& ids) { return id_runs(ids); };
  CHECK(runs({7}) == "7");
  CHECK(runs({0, 1}) == "0,1");
  CHECK(runs({0, 1, 2}) == "0-2");
  CHECK(runs({0, 4, 8}) == "0,4,8");
  CHECK(runs({0, 4, 8, 12}) == "0-12:4");
  CHECK(runs({0, 4, 8, 12, 13, 14, 15}) == "0,4,8,12-15");
  CHECK(runs({0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35}) == "0-35:4/16");
  CHECK(runs({0, 1, 8, 9, 16, 17, 40}) == "0-17:2/8,40");
  CHECK(id_runs({0, 1, 3, 4}, ", ") == "0, 1, 3, 4");
  Random random(7);
  for (int turn = 0; turn < 300; turn++) {
    Ids wanted, read;
    for (int k = 0, step = pick(random, 1, 9); k < 60; k++)
      if (pick(random, 0, 9) < 2 || k % step < step / 2 + (step < 4)) wanted.insert(k);
    REQUIRE(read_ids(runs({wanted.begin(), wanted.end()}), read));
    CHECK(read == wanted);
  }
}

TEST_CASE("visualize: any sharding has a picture that names all devices, and is no wider than said") {
  Random random(2026);
  int folded = 0, lettered = 0, facets = 0, partly = 0;
  for (int turn = 0; turn < 1500; turn++) {
    const Case c = random_case(random);
    const int rank = static_cast<int>(c.shape.size());
    const Sharding sharding = random_sharding(random, rank, c.devices);
    VisualizeOptions options;
    options.max_width = pick(random, 0, 3) ? pick(random, 0, 160) : 80;
    options.min_width = pick(random, 0, 3) ? 9 : pick(random, 0, 200);
    if (pick(random, 0, 3) == 0) options.scale = pick(random, 0, 30) / 10.0;
    CAPTURE(turn);
    CAPTURE(c.shape);
    CAPTURE(sharding.to_string());
    CAPTURE(options.max_width);
    const std::string text = render_sharding(c.shape, sharding, options);
    CAPTURE(text);
    const std::size_t width = static_cast<std::size_t>(std::max(20, options.max_width));
    REQUIRE(widest_line(text) <= width);
    const ReadPicture read = read_picture(text);
    const Ids empty = empty_ids(c.shape, sharding);
    REQUIRE(read.notes.empty == empty);
    REQUIRE(read.blocks == blocks_of(*layout_of(sharding, rank), read.notes.fold, empty));
    CHECK((read.captions.size() > 0) == (rank > 2 && num_elements(c.shape) > 0));
    partly += !empty.empty() && num_elements(c.shape) > 0;
    folded += !read.notes.fold.empty();
    lettered += !read.notes.lettered.empty();
    facets += read.captions.size() > 1;
    options.use_color = true;
    const std::string colored = render_sharding(c.shape, sharding, options);
    REQUIRE(widest_line(colored) <= width);
    Ids named = read_colored(colored);
    named.insert(empty.begin(), empty.end());
    REQUIRE(named == all_ids(c.count()));
    const std::vector<std::string> rows = lines_of(sharding_table(c.shape, sharding));
    CHECK(rows.size() == c.devices.size() + 1);
    Ids said;
    for (const std::string& row : rows)
      if (row.ends_with(" empty")) read_ids(row.substr(4, row.find(' ') - 4), said);
    CHECK(said == empty);
  }
  CHECK(folded > 100);
  CHECK(lettered > 0);
  CHECK(facets > 100);
  CHECK(partly > 100);
}

TEST_CASE("visualize: what differs between two shardings") {
  CHECK(render_diff({8, 4}, on_line(4, P("x")), on_line(4, P(none, "x"))) ==
        "devices  from      to        keep        receive\n"
        "cpu:0    (0:2, :)  (:, 0:1)  2 elements  6 elements\n"
        "cpu:1    (2:4, :)  (:, 1:2)  2 elements  6 elements\n"
        "cpu:2    (4:6, :)  (:, 2:3)  2 elements  6 elements\n"
        "cpu:3    (6:8, :)  (:, 3:4)  2 elements  6 elements\n"
        "Devices receive 24 elements in all, at most 6 elements each (all_to_all {x}).\n");
  // Replicas are one row; 3 of 5 rows and the other 2; who is in one sharding only.
  CHECK(render_diff({5, 10}, on_square(P("x")), SingleDeviceSharding(Device{1}), float32) ==
        "devices  from      to      keep   receive\n"
        "cpu:0    (0:3, :)  -       0 B    0 B\n"
        "cpu:1    (0:3, :)  (:, :)  120 B  80 B\n"
        "cpu:2,3  (3:5, :)  -       0 B    0 B\n"
        "Devices receive 80 B in all, at most 80 B each.\n");
  // x and y change places: devices 0 and 3 keep what they have.
  CHECK(render_diff({2, 2}, on_square(P("x", "y")), on_square(P("y", "x")), bool_) ==
        "devices  from        to          keep  receive\n"
        "cpu:1    (0:1, 1:2)  (1:2, 0:1)  0 B   1 B\n"
        "cpu:2    (1:2, 0:1)  (0:1, 1:2)  0 B   1 B\n"
        "cpu:0,3 hold the same in both.\n"
        "Devices receive 2 B in all, at most 1 B each (permute {x,y}).\n");
  CHECK(render_diff({}, on_line(4, P()), on_line(4, P())) ==
        "cpu:0-3 hold the same in both.\n"
        "No device receives anything.\n");
  CHECK(render_diff({4}, on_line(2, P()), on_line(2, P("x")), float64) ==
        "devices  from  to      keep  receive\n"
        "cpu:0    (:,)  (0:2,)  16 B  0 B\n"
        "cpu:1    (:,)  (2:4,)  16 B  0 B\n"
        "No device receives anything.\n");
}

TEST_CASE("visualize: a difference counts what each device lacks, and names all devices") {
  Random random(11);
  for (int turn = 0; turn < 300; turn++) {
    Shape shape;
    for (int d = pick(random, 0, 3); d > 0; d--) shape.push_back(pick(random, 0, 7));
    constexpr int counts[] = {1, 2, 4, 6, 8, 12};
    std::vector<Device> all = layouts::cpu_devices(12), first = all, second = all;
    first.resize(static_cast<std::size_t>(counts[pick(random, 0, 5)]));
    second.erase(second.begin(), second.end() - counts[pick(random, 0, 5)]);
    const int rank = static_cast<int>(shape.size());
    const Sharding a = random_sharding(random, rank, first), b = random_sharding(random, rank, second);
    // Element by element.
    const auto holds = [&](const ShardIndex& index, std::int64_t element) {
      for (std::size_t d = shape.size(); d-- > 0; element /= shape[d])
        if (!index[d].whole && (element % shape[d] < index[d].start || element % shape[d] >= index[d].stop))
          return false;
      return true;
    };
    std::int64_t total = 0, most = 0;
    for (const auto& [device, wanted] : b.devices_indices_map(shape)) {
      std::int64_t lacks = 0;
      for (std::int64_t e = 0; e < num_elements(shape); e++) {
        bool there = false;
        for (const auto& [other, index] : a.devices_indices_map(shape))
          there |= other == device && holds(index, e);
        lacks += holds(wanted, e) && !there;
      }
      total += lacks;
      most = std::max(most, lacks);
    }
    const std::string text = render_diff(shape, a, b, int8);
    CAPTURE(a.to_string());
    CAPTURE(b.to_string());
    CAPTURE(text);
    const std::string sums =
        "Devices receive " + std::to_string(total) + " B in all, at most " + std::to_string(most) + " B each";
    CHECK(contains(text, total == 0 ? "No device receives anything.\n" : sums));
    Ids named, wanted;
    for (const std::string& line : lines_of(text))
      if (line.starts_with("cpu:")) read_ids(line.substr(4, line.find(' ') - 4), named);
    for (const Sharding& s : {a, b})
      for (const Device& d : s.device_set()) wanted.insert(d.id);
    CHECK(named == wanted);
  }
}

TEST_CASE("visualize: arrays of any rank, dtype and place, inside of maps that of all rows") {
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  const auto named = [&](const PartitionSpec& spec) { return NamedSharding(mesh, spec); };
  const VisualizeOptions plain{.use_color = false};
  const auto picture = [&](const Array& x) {
    Printed out;
    visualize_array_sharding(x, plain);
    return out.text();
  };
  const Array arrays[] = {Array(1.5),
                          Array(true),
                          zeros({0, 3}),
                          ones({4, 4, 4}) * 2,
                          device_put(ones({5, 6}, bool_), named(P("x", "y"))),
                          device_put(ones({3, 4, 5}, bfloat16), named(P(none, "y", "x"))) + 1,
                          device_put(arange(7, uint8), devices()[5]),
                          filter_shard(arange(16), named(P("x")))};
  for (const Array& x : arrays) CHECK(picture(x) == render_sharding(x.shape(), x.sharding()));

  // A PositionalSharding fits one rank alone: that of all rows.
  const Array rows = device_put(ones({8, 6}), PositionalSharding(devices()).reshape({8, 1}));
  const auto show = [&](Array r) {
    visualize_array_sharding(r, plain);
    return r * 2;
  };
  const std::string whole = render_sharding({8, 6}, rows.sharding());
  const auto shown = [&](const auto& f) {
    Printed out;
    static_cast<void>(f(rows).template to_vector<float>());
    return out.text();
  };
  CHECK(shown(vmap(show)) == whole);
  CHECK(shown(jit(vmap(show))) == whole);
  CHECK(shown(pmap(show)).starts_with("┌"));
  CHECK(shown(shard_map(show, {.mesh = mesh, .in_specs = P("x"), .out_specs = P("x")})).ends_with("┘\n"));
}

TEST_CASE("visualize: what differs between two arrays") {
  const Mesh mesh = make_mesh({{"x", 8}});
  const Array x = device_put(ones({8, 8}), NamedSharding(mesh, P("x")));
  const Array y = filter_shard(x * 2, NamedSharding(mesh, P(none, "x")));
  Printed out;
  visualize_diff(x, y);
  CHECK(out.text() == render_diff({8, 8}, x.sharding(), y.sharding(), float32));
  CHECK_SAYS(visualize_diff(x, ones({8})),
             "visualize_diff: f32[8@x,8] and f32[8] differ in shape. Two placements of one shape are "
             "compared. Give arrays of "
             "the same shape.",
             ShapeError);
  CHECK_THROWS_AS(jit([](const Array& a) {
                    visualize_diff(a, a);
                    return a;
                  })(x),
                  TraceError);
}

TEST_CASE("visualize: what differs between an array and a sharding") {
  const Mesh mesh = make_mesh({{"x", 8}});
  const Array x = device_put(ones({8, 3}, float64), NamedSharding(mesh, P("x")));
  const NamedSharding named(mesh, P(none, "x"));
  const Sharding wanted[] = {named, NamedSharding(mesh, P()), SingleDeviceSharding(devices()[3]),
                             PositionalSharding(devices()).reshape({8, 1})};
  for (const Sharding& to : wanted) {
    Printed out;
    visualize_diff(x, to);
    CHECK(out.text() == render_diff({8, 3}, x.sharding(), to, float64));
  }
  Printed out;
  visualize_diff(x * 2, named);  // any spelling, and what is pending
  CHECK(out.text() == render_diff({8, 3}, x.sharding(), named, float64));
  CHECK(x.sharding() == Sharding(NamedSharding(mesh, P("x"))));
  const int line = __LINE__ + 2;
  try {
    visualize_diff(x, PositionalSharding(devices()));
    FAIL("nothing was thrown");
  } catch (const ShardingError& e) { CHECK(e.where().line == line); }
  CHECK_THROWS_AS(visualize_diff(Array(), named), Error);
  CHECK_THROWS_AS(jit([&](const Array& a) {
                    visualize_diff(a, named);
                    return a;
                  })(x),
                  TraceError);
}

TEST_CASE("visualize_diff: summands that are added up cost what explain says") {
  const Mesh mesh = make_mesh({{"x", 4}});
  const NamedSharding parts(mesh, P(unreduced("x"))), whole(mesh, P());
  for (const std::int64_t n : {1, 3, 5, 6, 7}) {
    const auto e = explain([&](const Array& v) { return reshard(v, whole); }, device_put(ones(n), parts));
    REQUIRE(e.transfers().size() == 1);
    const std::string text = render_diff({n}, parts, whole, float32);
    CHECK_MESSAGE(
        text.find(fmt::format("at most {} B each", e.transfers()[0].bytes_per_device)) != std::string::npos,
        text);
  }
}

}  // namespace visualize_test
