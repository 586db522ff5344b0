// Transfers between layouts: the golden rows, paths, and which boxes move.
#include <doctest/doctest.h>

#include <random>
#include <utility>

#include "compile/reshard.h"
#include "layout/box_moves.h"
#include "layout/transfer.h"
#include "layout_helpers.h"
#include "messages.h"
#include "shardarray/error.h"

namespace transfer_test {

using namespace shardarray;
using namespace shardarray::testing::layouts;

namespace {

std::vector<const Layout*> path_of(const Layout* from, const Layout* to, const Shape& shape,
                                   std::int64_t device_memory = 0, bool replicas_apart = false) {
  Target target;
  target.device_memory = device_memory;
  return reshard(from, to, shape, 4, CostModel(target).with_replicas_apart(replicas_apart)).layouts;
}

std::int64_t bytes_of(const Layout* from, const std::vector<const Layout*>& path, const Shape& shape) {
  std::int64_t bytes = 0;
  for (const Layout* next : path) bytes += transfer_cost(*std::exchange(from, next), *next, shape, 4).bytes;
  return bytes;
}

std::vector<BoxMove> box_moves(const std::vector<Box>& sources, const std::vector<Box>& targets) {
  BoxSenders senders(sources);
  std::vector<BoxMove> moves;
  for (std::size_t p = 0; p < targets.size(); p++) senders.fill(targets[p], static_cast<int>(p), moves);
  return moves;
}

bool inside(const Box& part, const Box& whole) { return intersect(part, whole) == part; }

// Every element of every target is filled once, from a position that has it; own data comes from oneself.
void check_moves(const std::vector<Box>& sources, const std::vector<Box>& targets, const Shape& shape) {
  const auto moves = box_moves(sources, targets);
  std::vector<std::vector<int>> filled(targets.size(), std::vector<int>(num_elements(shape), 0));
  std::vector<std::int64_t> received(targets.size(), 0);
  for (const BoxMove& m : moves) {
    REQUIRE(!m.box.empty());
    REQUIRE(inside(m.box, sources[m.from]));
    REQUIRE(inside(m.box, targets[m.to]));
    if (m.from != m.to) received[m.to] += m.box.elements();
    for (std::int64_t i = 0; i < m.box.size[0]; i++)
      for (std::int64_t j = 0; j < m.box.size[1]; j++)
        filled[m.to][(m.box.lo[0] + i) * shape[1] + m.box.lo[1] + j]++;
  }
  for (std::size_t p = 0; p < targets.size(); p++) {
    std::int64_t total = 0;
    for (int count : filled[p]) {
      REQUIRE(count <= 1);
      total += count;
    }
    CHECK(total == targets[p].elements());
    CHECK(received[p] == targets[p].elements() - intersect(targets[p], sources[p]).elements());
  }
}

}  // namespace

TEST_CASE("transfer: golden transfers") {
  struct Row {
    int number;
    const Layout *from, *to;
    Shape shape;
    TransferKind kind;
    AxisList axes;
    std::int64_t bytes;
  };
  using K = TransferKind;
  const AxisList xy{{1, 8}};
  const Row rows[] = {
      {19, partial(P("x"), 2, {y}), on_mesh(P("x"), 2), {8, 16}, K::all_reduce, {y}, 128},
      {20, partial(P("x"), 2, {y}), on_mesh(P("x", "y"), 2), {8, 16}, K::reduce_scatter, {y}, 64},
      {34, partial(P(), 1, {x, y}), on_mesh(P(), 1), {13}, K::all_reduce, xy, 91},
      {35, partial(P(), 2, {x}), on_mesh(P(none, "x"), 2), {4, 16}, K::reduce_scatter, {x}, 192},
      {37, partial(P(), 2, {x}), on_mesh(P(), 2), {2, 13}, K::all_reduce, {x}, 156},
      {61, on_mesh(P("x", "y"), 3), on_mesh(P(none, "y", "x"), 3), {16, 8, 8}, K::all_to_all, {x}, 384},
      {62,
       on_mesh(P(none, axes("y", "x")), 3),
       on_mesh(P("x", none, "y"), 3),
       {16, 8, 8},
       K::exchange,
       xy,
       448},
      {64, on_mesh(P(axes("x", "y")), 2), on_mesh(P(axes("y", "x")), 2), {16, 8}, K::permute, xy, 64},
      {65, on_mesh(P(axes("x", "y")), 2), on_mesh(P("x"), 2), {16, 8}, K::all_gather, {y}, 64},
      // Not golden rows: cuts are free, equal layouts nothing, other rows of the same kinds.
      {0, on_mesh(P("x"), 2), on_mesh(P("x", "y"), 2), {16, 8}, K::slice, {}, 0},
      {0, on_mesh(P("x"), 2), on_mesh(P("x"), 2), {16, 8}, K::none, {}, 0},
      {0, on_mesh(P(axes("x", "y")), 2), on_mesh(P("y"), 2), {16, 8}, K::exchange, xy, 256},
      {0, partial(P(), 2, {x, y}), partial(P(), 2, {y}), {4, 4}, K::all_reduce, {x}, 96},
      {0, partial(P("x"), 2, {y}), partial(P(), 2, {y}), {8, 16}, K::all_gather, {x}, 384},
  };
  for (const Row& r : rows) {
    const TransferCost got = transfer_cost(*r.from, *r.to, r.shape, 4);
    CAPTURE(r.number);
    CHECK(std::string(name(got.kind)) == name(r.kind));
    CHECK(got.axes == r.axes);
    CHECK(got.bytes == r.bytes);
    if (r.kind != K::none) CHECK(path_of(r.from, r.to, r.shape) == std::vector<const Layout*>{r.to});
  }
  CHECK(path_of(on_mesh(P(), 1), on_mesh(P(), 1), {4}).empty());
  // Making summands is free: each device keeps what it has.
  CHECK(transfer_cost(*on_mesh(P(), 1), *partial(P(), 1, {x}), {4}, 4).kind == TransferKind::slice);
  CHECK(transfer_cost(*on_mesh(P("x"), 1), *partial(P(), 1, {x}), {4}, 4).bytes == 0);
  CHECK_SAYS(transfer_cost(*on_mesh(P("x"), 1), *partial(P(), 1, {x}), {3}, 4),
             "transfer_cost: [{1:4}] to [{}] U{1:4} is more than one transfer. Please report this.",
             InternalError);
  CHECK_SAYS(
      transfer_cost(*on_mesh(P(), 1), *Layout::of(on_mesh(P(), 1)->order(), {{}}, {x}, Reducer::max), {4}, 4),
      "transfer_cost: [{}] to [{}] U{1:4} max is no transfer. Both have one device order and rank, and "
      "only sums are split. Please report this.",
      InternalError);
}

TEST_CASE("transfer: golden row 22 takes two steps") {
  const Layout *from = partial(P("x"), 2, {y}), *to = on_mesh(P(axes("y", "x")), 2);
  const auto path = path_of(from, to, {8, 16});
  REQUIRE(path.size() == 2);
  const TransferCost first = transfer_cost(*from, *path[0], {8, 16}, 4),
                     second = transfer_cost(*path[0], *to, {8, 16}, 4);
  CHECK(first.kind == TransferKind::reduce_scatter);
  CHECK(path[0] == on_mesh(P(axes("x", "y")), 2));
  CHECK(second.kind == TransferKind::permute);
  CHECK(first.bytes + second.bytes == 128);
  // In one step it would be an all_reduce and the rest.
  CHECK(transfer_cost(*from, *to, {8, 16}, 4).kind == TransferKind::exchange);
}

TEST_CASE("transfer: paths end at the target, never dearer than reducing everything first") {
  Random random(3);
  const DeviceOrder* order = DeviceOrder::of(cpu_devices(8));
  const Shape shape{8, 16};
  for (int trial = 0; trial < 300; trial++) {
    const Layout* any = random_layout(random, order, 3);
    const auto dims = std::vector<AxisList>(any->dims().begin(), any->dims().begin() + 2);
    const Layout *from = Layout::of(order, dims, any->dims()[2], Reducer::sum),
                 *to = random_layout(random, order, 2);
    if (from == to) continue;
    const auto path = path_of(from, to, shape);
    REQUIRE(!path.empty());
    CHECK(path.back() == to);
    std::int64_t bytes = 0;
    for (const Layout* at = from; const Layout* next : path) {
      const TransferCost step = transfer_cost(*at, *next, shape, 4);
      CHECK((at->unreduced().empty() || step.kind != TransferKind::exchange));
      bytes += step.bytes;
      at = next;
    }
    const Layout* reduced = Layout::of(order, dims);
    CHECK(bytes <=
          transfer_cost(*from, *reduced, shape, 4).bytes + transfer_cost(*reduced, *to, shape, 4).bytes);
  }
}

TEST_CASE("transfer: a path costs what its steps cost, whatever the sizes of tiles") {
  Random random(29);
  const DeviceOrder* const orders[] = {DeviceOrder::of(cpu_devices(8)), DeviceOrder::of(cpu_devices(12))};
  for (int trial = 0; trial < 20000; trial++) {
    const DeviceOrder* const order = orders[trial % 2];
    const Layout *a = random_layout(random, order, 3), *b = random_layout(random, order, 3);
    const auto two = [](const Layout* l) {
      return std::vector<AxisList>(l->dims().begin(), l->dims().begin() + 2);
    };
    const Layout *from = Layout::of(order, two(a), a->dims()[2], Reducer::sum),
                 *to = Layout::of(order, two(b), trial % 5 == 0 ? b->dims()[2] : AxisList(), Reducer::sum);
    const Shape shape{pick(random, 1, 30), pick(random, 1, 30)};  // tiles of several sizes, empty ones
    CAPTURE(from->to_string());
    CAPTURE(to->to_string());
    CAPTURE(to_string(shape));
    for (const bool apart : {false, true}) {
      const CostModel model = CostModel(Target()).with_replicas_apart(apart);
      const ReshardPath path = reshard(from, to, shape, 4, model);
      double moved = 0;
      for (const Layout* at = from; const Layout* next : path.layouts)
        moved += model.transfer(transfer_cost(*std::exchange(at, next), *next, shape, 4).bytes);
      CHECK(path.cost.moved == doctest::Approx(moved).epsilon(1e-12));
      // Added up as a whole first.
      if (!to->unreduced().empty() || from->unreduced().empty()) continue;
      const Layout* const whole = without_partial_sums(*from, from->unreduced(), from->dims());
      CHECK(path.cost.all() <= model.transfer(transfer_cost(*from, *whole, shape, 4).bytes) +
                                   model.transfer(transfer_cost(*whole, *to, shape, 4).bytes));
    }
  }
}

TEST_CASE("transfer: no way brings a value with less than the least") {
  struct Row {
    const Layout *from, *to;
    std::int64_t bytes;  ///< of f32[16,8], 512 bytes
  };
  const Row rows[] = {
      // What the busiest lacks.
      {on_mesh(P("x"), 2), on_mesh(P(), 2), 384},
      {on_mesh(P(axes("x", "y")), 2), on_mesh(P(axes("y", "x")), 2), 64},
      {on_mesh(P("x"), 2), on_mesh(P("x", "y"), 2), 0},
      // Where each of g devices has a summand and wants all: 2 (g - 1) / g of it, or half of that where it wants its part.
      {partial(P(), 2, {x, y}), on_mesh(P(), 2), 2 * 512 * 7 / 8},
      {partial(P(), 2, {x, y}), on_mesh(P(axes("x", "y")), 2), 512 * 7 / 8},
      {partial(P("x"), 2, {y}), on_mesh(P("x"), 2), 128},
      {partial(P("x"), 2, {y}), on_mesh(P("x", "y"), 2), 64},
      // Four summands, each on two devices: 3 + 7 of 8, where the four alone would take 2 * 3 of 4.
      {partial(P(), 2, {x}), on_mesh(P(), 2), 512 * 10 / 8},
      // Two summands: 1 + 7 of 8.
      {partial(P(), 2, {y}), on_mesh(P(), 2), 512},
      {partial(P("x"), 2, {y}), on_mesh(P(), 2), 512},
      // Of 8 rows of tiles two are wanted where one of their two summands is.
      {partial(P("x"), 2, {y}), on_mesh(P(axes("y", "x")), 2), 64 * 14 / 8},
      // Summands that are made, that stay, and others than are there: nobody knows.
      {on_mesh(P(), 2), partial(P(), 2, {x}), 0},
      {partial(P(), 2, {x, y}), partial(P(), 2, {y}), 0},
      {partial(P("y"), 2, {x}), partial(P(), 2, {x}), 0},
      {Layout::of(on_mesh(P(), 2)->order(), {{}, {}}, {x}, Reducer::max), partial(P(), 2, {y}), 0},
  };
  for (const Row& r : rows) {
    CAPTURE(r.from->to_string());
    CAPTURE(r.to->to_string());
    CHECK(least_received(*r.from, *r.to, {16, 8}, 4) == r.bytes);
  }
  Random random(
      17);  // of sizes that all cuts divide: the bytes of other sums are those of even ones, rounded up
  const DeviceOrder* order = DeviceOrder::of(cpu_devices(8));
  for (int trial = 0; trial < 500; trial++) {
    const Layout *a = random_layout(random, order, 3), *b = random_layout(random, order, 3);
    const auto two = [](const Layout* l) {
      return std::vector<AxisList>(l->dims().begin(), l->dims().begin() + 2);
    };
    const Layout *from = Layout::of(order, two(a), a->dims()[2], Reducer::sum),
                 *to = Layout::of(order, two(b));
    const Shape shape{8 * pick(random, 1, 3), 8 * pick(random, 1, 3)};
    CAPTURE(from->to_string());
    CAPTURE(to->to_string());
    for (const bool apart : {false, true})
      CHECK(bytes_of(from, path_of(from, to, shape, 0, apart), shape) >=
            least_received(*from, *to, shape, 4));
  }
}

// On x = 4, y = 2, of f32[16,8] with four summands along x, each on two devices.
TEST_CASE(
    "transfer: summands that devices have twice, in memory of their own, are cut first where the target is") {
  const Layout *from = partial(P(), 2, {x}), *cut_y = partial(P("y"), 2, {x});
  struct Row {
    const Layout* to;
    std::vector<const Layout*> path;
    std::int64_t bytes;
  };
  const Row rows[] = {
      {on_mesh(P("y"), 2), {cut_y, on_mesh(P("y"), 2)}, 256 * 3 / 2},
      {on_mesh(P(axes("y", "x")), 2), {cut_y, on_mesh(P(axes("y", "x")), 2)}, 256 * 3 / 4},
      {on_mesh(P("y", "x"), 2), {cut_y, on_mesh(P("y", "x"), 2)}, 256 * 3 / 4},
      {partial(P("y"), 2, {x}), {cut_y}, 0},
      // What would have to be gathered again stays as it is.
      {on_mesh(P(), 2), {on_mesh(P(), 2)}, 512 * 3 / 2},
      {on_mesh(P("x"), 2), {on_mesh(P("x"), 2)}, 512 * 3 / 4},
  };
  for (const Row& r : rows) {
    CAPTURE(r.to->to_string());
    const auto path = path_of(from, r.to, {16, 8}, 0, true);
    CHECK(path == r.path);
    CHECK(bytes_of(from, path, {16, 8}) == r.bytes);
    CHECK(bytes_of(from, path_of(from, r.to, {16, 8}), {16, 8}) >= r.bytes);
  }
}

TEST_CASE("transfer: of paths that move the same, one whose steps fit the devices' memory is taken") {
  const Layout *from = partial(P(), 1, {x}), *to = on_mesh(P(), 1);
  const Shape shape = {64};  // 256 bytes, and as many of the sum; or a quarter of the sum at first
  for (const std::int64_t memory : {0, 512}) {
    CAPTURE(memory);
    CHECK(path_of(from, to, shape, memory) == std::vector<const Layout*>{to});
  }
  for (const std::int64_t memory : {320, 511})
    CHECK(path_of(from, to, shape, memory) == std::vector<const Layout*>{on_mesh(P("x"), 1), to});
}

TEST_CASE("transfer: box moves fill every element once") {
  Random random(4);
  const DeviceOrder* order = DeviceOrder::of(cpu_devices(12));
  for (int trial = 0; trial < 150; trial++) {
    const Shape shape{pick(random, 0, 14), pick(random, 0, 14)};
    const Layout *from = random_layout(random, order, 2), *to = random_layout(random, order, 2);
    check_moves(tiles_of(*from, shape), tiles_of(*to, shape), shape);
    // Any boxes may be asked for: halos, slices.
    std::vector<Box> targets;
    for (int p = 0; p < 12; p++) {
      Box b;
      for (std::int64_t n : shape) {
        b.lo.push_back(pick(random, 0, static_cast<int>(n)));
        b.size.push_back(pick(random, 0, static_cast<int>(n - b.lo.back())));
      }
      targets.push_back(b);
    }
    check_moves(tiles_of(*from, shape), targets, shape);
    // Sources that overlap each other: their halos and one whole copy.
    std::vector<Box> sources = targets;
    sources[pick(random, 0, 11)] = whole_box(shape);
    check_moves(sources, tiles_of(*to, shape), shape);
  }
  const Box scalar = whole_box({});
  CHECK(box_moves({scalar, Box{{0}, {0}}}, {scalar}).size() == 1);
}

TEST_CASE("transfer: replicas share the sending, the nearest first") {
  const Box whole = whole_box({4}), nothing{{0}, {0}};
  const std::vector<Box> sources = {whole, nothing, whole, nothing, whole, nothing, whole, nothing};
  std::vector<int> sent(8, 0);
  for (const BoxMove& m : box_moves(sources, std::vector<Box>(8, whole)))
    if (m.from != m.to) sent[m.from]++;
  CHECK(sent == std::vector<int>{1, 0, 1, 0, 1, 0, 1, 0});
  CHECK(box_moves(sources, {nothing, nothing, nothing, nothing, nothing, whole}).front().from == 4);
  CHECK_SAYS(
      box_moves({nothing, nothing}, {nothing, whole}),
      "box_moves: 4 elements of the target at position 1 are in no source. The sources must cover every "
      "target. Please report this.",
      InternalError);
}

}  // namespace transfer_test
