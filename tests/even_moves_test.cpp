// Prices of transfers by sub-axes alone, compared with the boxes of every device.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "compile/even_moves.h"
#include "compile/reshard.h"
#include "layout/tiles.h"
#include "layout_helpers.h"

namespace even_moves_test {

using namespace shardarray;
using namespace shardarray::testing::layouts;

TEST_CASE("even moves: what the busiest device lacks is what boxes say; uneven tiles are left") {
  Random random(15);
  int even = 0, uneven = 0, none_there = 0;
  for (int trial = 0; trial < 2000; trial++) {
    const int rank = pick(random, 0, 4);
    const DeviceOrder* order =
        order_of(std::array{1, 6, 8, 12, 64, 360}[static_cast<std::size_t>(pick(random, 0, 5))]);
    const std::array layouts{random_layout(random, order, rank), random_layout(random, order, rank)};
    const auto [from, to] = layouts;
    const SubAxes sub_axes = SubAxes::of(order, layouts);
    if (!sub_axes.can_express(*from) || !sub_axes.can_express(*to)) continue;
    Shape shape;
    bool is_even = true;
    for (int d = 0; d < rank; d++) {
      shape.push_back(pick(random, 0, 3) * (trial % 3 == 0 ? 1 : from->tiles(d) * to->tiles(d)));
      is_even &= shape.back() % from->tiles(d) == 0 && shape.back() % to->tiles(d) == 0;
    }
    const SubAxisDims of_from = to_sub_axes(sub_axes, *from), of_to = to_sub_axes(sub_axes, *to);
    CHECK(tile_elements(of_from, shape, sub_axes) == num_elements(tile_shape(*from, shape)));
    const std::optional<std::int64_t> moved = even_move(of_from, of_to, shape, sub_axes);
    REQUIRE(moved.has_value() == is_even);
    (is_even ? even : uneven)++;
    if (!is_even) continue;
    std::int64_t most = 0, wanted = 0;
    for (int p = 0; p < order->size(); p++) {
      const Box target = tile_of(*to, shape, p), source = tile_of(*from, shape, p);
      most = std::max(most, target.elements() - intersect(target, source).elements());
      wanted = std::max(wanted, target.elements());
    }
    CHECK(*moved == most);
    none_there += most == wanted && most > 0;
  }
  CHECK(even > 500);
  CHECK(uneven > 50);
  CHECK(none_there > 50);
}

// What passes over a way to place a node without a path for its partial sums.
TEST_CASE("even moves: however partial sums are combined, it costs a scatter at least") {
  Random random(16);
  const CostModel model{Target{}};
  int scattered = 0, dearer = 0;
  for (int trial = 0; trial < 3000; trial++) {
    const int rank = pick(random, 0, 3);
    const DeviceOrder* order =
        order_of(std::array{2, 6, 8, 12, 64}[static_cast<std::size_t>(pick(random, 0, 4))]);
    const Layout* all = random_layout(random, order, rank + 1);  // the last dimension: of summands
    AxisList summands = all->dims().back();
    if (summands.empty()) continue;
    const Reducer reducer = trial % 2 == 0 ? Reducer::sum : Reducer::max;
    const Layout* from = Layout::of(order, {all->dims().begin(), all->dims().end() - 1}, summands, reducer);
    const Layout* to = random_layout(random, order, rank);
    Shape shape;
    for (int d = 0; d < rank; d++) shape.push_back(pick(random, 0, 3) * (trial % 3 == 0 ? 1 : all->tiles(d)));
    std::int64_t tile = 4, parts = 1;
    for (int d = 0; d < rank; d++) tile *= (shape[d] + from->tiles(d) - 1) / from->tiles(d);
    for (const SubAxis a : from->unreduced()) parts *= a.size;
    const double least = model.transfer((tile * (parts - 1) + parts - 1) / parts);
    const double cost = reshard(from, to, shape, 4, model).cost.all();
    CHECK(cost >= least);
    (cost == least ? scattered : dearer)++;
  }
  CHECK(scattered > 100);
  CHECK(dearer > 100);
}

}  // namespace even_moves_test
