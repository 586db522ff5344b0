// Who sends which box to whom, and what all positions hold, compared with scans of every box and every position.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <tuple>

#include "layout/box_moves.h"
#include "layout/tiles.h"
#include "layout_helpers.h"

namespace box_moves_test {

using namespace shardarray;
using namespace shardarray::testing::layouts;

namespace {

Box random_box(Random& random, const Shape& shape) {
  Box b;
  for (std::int64_t n : shape) {
    b.lo.push_back(pick(random, 0, static_cast<int>(n)));
    b.size.push_back(pick(random, 0, static_cast<int>(n - b.lo.back())));
  }
  return b;
}

// Those of `boxes` that hold an element of `b`.
std::vector<int> scan(const std::vector<Box>& boxes, const Box& b) {
  std::vector<int> found;
  for (std::size_t k = 0; k < boxes.size(); k++)
    if (!intersect(boxes[k], b).empty()) found.push_back(static_cast<int>(k));
  return found;
}

// The rule of BoxSenders for tiles, which do not overlap, with a look at every pair.
struct PlainSenders {
  std::vector<Box> tiles;
  std::vector<int> memory;  // by position; empty: each has one of its own
  std::vector<std::int64_t> sent = std::vector<std::int64_t>(tiles.size(), 0);

  std::vector<BoxMove> fill(const Box& target, int p) {
    std::vector<BoxMove> moves;
    const auto own = static_cast<std::size_t>(p);
    if (!intersect(tiles[own], target).empty()) moves.push_back({p, p, intersect(tiles[own], target)});
    for (std::size_t q = 0; q < tiles.size(); q++) {
      const bool first =
          std::find(tiles.begin(), tiles.end(), tiles[q]) - tiles.begin() == static_cast<std::ptrdiff_t>(q);
      const Box part = intersect(tiles[q], target);
      if (!first || part.empty() || tiles[q] == tiles[own]) continue;
      std::tuple<std::int64_t, int, int> best{INT64_MAX, 0, 0};
      for (std::size_t o = 0; o < tiles.size(); o++) {
        const int k = static_cast<int>(o);
        const bool is_here = !memory.empty() && memory[o] == memory[own];
        if (tiles[o] == tiles[q])
          best = std::min(best, {is_here ? -1 : sent[o], is_here ? 0 : std::abs(k - p), k});
      }
      const int from = std::get<2>(best);
      moves.push_back({from, p, part});
      sent[static_cast<std::size_t>(from)] += part.elements();
    }
    return moves;
  }
};

std::string text(const std::vector<BoxMove>& moves) {
  std::string s;
  for (const BoxMove& m : moves)
    s += std::to_string(m.from) + ">" + std::to_string(m.to) + to_string(m.box.lo) + to_string(m.box.size) +
         " ";
  return s;
}

}  // namespace

TEST_CASE("box moves: what the senders choose is what a look at every pair gives, on any layouts") {
  Random random(11);
  for (int trial = 0; trial < 400; trial++) {
    const int rank = pick(random, 0, 3);
    const DeviceOrder* order =
        order_of(std::vector{1, 2, 6, 8, 12, 30, 64}[static_cast<std::size_t>(pick(random, 0, 6))]);
    const Shape shape = random_shape(random, rank);
    const Layout *from = random_layout(random, order, rank), *to = random_layout(random, order, rank);
    CAPTURE(from->to_string());
    CAPTURE(to->to_string());
    CAPTURE(shape);
    const std::vector<Box> sources = tiles_of(*from, shape);
    std::vector<int> memory;
    if (pick(random, 0, 1) == 1)
      for (int p = 0; p < order->size(); p++) memory.push_back(pick(random, 0, 3));
    BoxSenders senders(sources, memory);
    PlainSenders plain{sources, memory};
    const bool halos = pick(random, 0, 1) == 1;
    for (int p = 0; p < order->size(); p++) {
      const Box target = halos ? random_box(random, shape) : tile_of(*to, shape, p);
      std::vector<BoxMove> moves;
      senders.fill(target, p, moves);
      REQUIRE(text(moves) == text(plain.fill(target, p)));
    }
    senders.restart();
    PlainSenders fresh{sources, memory};
    std::vector<BoxMove> moves;
    senders.fill(whole_box(shape), order->size() - 1, moves);
    CHECK(text(moves) == text(fresh.fill(whole_box(shape), order->size() - 1)));
  }
}

TEST_CASE("box moves: an index of tiles looks at nothing but what it finds, at any number of devices") {
  Random random(12);
  for (int trial = 0; trial < 200; trial++) {
    const int rank = pick(random, 0, 3);
    const DeviceOrder* order =
        order_of(std::vector{1, 12, 64, 1024}[static_cast<std::size_t>(pick(random, 0, 3))]);
    const Shape shape = random_shape(random, rank);
    const HeldBoxes held(all_tiles(*random_layout(random, order, rank), shape));
    const BoxIndex index(held.boxes());
    for (int k = 0; k < 20; k++) {
      const Box b = random_box(random, shape);
      const std::vector<int> found = scan(held.boxes(), b);
      REQUIRE(index.meeting(b) == found);
      REQUIRE(index.candidates(b) == found);
    }
  }
}

TEST_CASE("box moves: an index of any boxes finds all that meet one") {
  Random random(13);
  for (int trial = 0; trial < 200; trial++) {
    const Shape shape = random_shape(random, pick(random, 0, 4));
    std::vector<Box> boxes;
    for (int k = pick(random, 0, 40); k > 0; k--) boxes.push_back(random_box(random, shape));
    const BoxIndex index(boxes);
    for (int k = 0; k < 20; k++) {
      const Box b = random_box(random, shape);
      REQUIRE(index.meeting(b) == scan(boxes, b));
    }
  }
}

TEST_CASE("box moves: boxes set apart have every element once, the first box whole") {
  Random random(15);
  for (int trial = 0; trial < 200; trial++) {
    const Shape shape = random_shape(random, pick(random, 1, 3));
    std::vector<Box> boxes;
    for (int k = pick(random, 1, 6); k > 0; k--) boxes.push_back(random_box(random, shape));
    const std::vector<Box> apart = disjoint(boxes);
    for (std::int64_t k = 0; k < num_elements(shape); k++) {
      Box element{shape, Shape::filled(shape.size(), 1)};
      std::int64_t rest = k;
      for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) element.lo[d] = rest % shape[d];
      REQUIRE(scan(apart, element).size() == (scan(boxes, element).empty() ? 0 : 1));
    }
    if (!boxes[0].empty()) CHECK(apart[0] == boxes[0]);
  }
}

TEST_CASE("box moves: the tiles of all positions, and what they lack, are those of each") {
  Random random(14);
  for (int trial = 0; trial < 400; trial++) {
    const int rank = pick(random, 0, 4);
    const DeviceOrder* order =
        order_of(std::vector{1, 6, 12, 64, 360}[static_cast<std::size_t>(pick(random, 0, 4))]);
    Shape shape = random_shape(random, rank);
    const Layout *from = random_layout(random, order, rank), *to = random_layout(random, order, rank);
    if (pick(random, 0, 3) == 0) to = Layout::replicated(order, rank);
    if (trial % 2 == 0)  // tiles of equal sizes
      for (int d = 0; d < rank; d++) shape[static_cast<std::size_t>(d)] *= from->tiles(d) * to->tiles(d);
    const std::vector<Box> sources = tiles_of(*from, shape), targets = tiles_of(*to, shape);
    REQUIRE(all_tiles(*from, shape) == sources);
    for (int d = 0; d < rank; d++) {
      const std::vector<std::int64_t> index = tile_indices(*from, d);
      for (int p = 0; p < order->size(); p++)
        REQUIRE(index[static_cast<std::size_t>(p)] == from->tile_index(d, p));
    }
    std::int64_t most = 0;
    for (std::size_t p = 0; p < targets.size(); p++)
      most = std::max(most, targets[p].elements() - intersect(targets[p], sources[p]).elements());
    CHECK(most_missing(*from, *to, shape) == most);
  }
}

}  // namespace box_moves_test
