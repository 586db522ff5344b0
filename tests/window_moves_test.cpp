// Halo exchange for windows and shifts that reach into neighbouring tiles: no more moves than the elements of the intervals that a device
// reads and does not hold, counted by plain loops.
#include <functional>
#include <random>

#include "golden.h"
#include "layout/layout.h"
#include "layout/spelling.h"
#include "program_of.h"
#include "scale.h"

namespace window_moves_test {

namespace sa = shardarray;
using namespace program_test;

namespace {

struct Interval {
  std::int64_t begin = 0, end = 0;  // none where end <= begin
  std::int64_t size() const { return std::max<std::int64_t>(end - begin, 0); }
};
Interval intersection(const Interval& a, const Interval& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}
Interval tile(std::int64_t size, std::int64_t devices, std::int64_t k) {
  const std::int64_t each = (size + devices - 1) / devices;
  return {std::min(k * each, size), std::min((k + 1) * each, size)};
}

// Windows along one dimension.
struct Along {
  std::int64_t size, window, stride = 1, dilation = 1, before = 0, behind = 0;
  std::int64_t results() const {
    return (size + before + behind - ((window - 1) * dilation + 1)) / stride + 1;
  }
  // Which elements the windows of these results read.
  Interval read(const Interval& results) const {
    if (results.size() == 0) return {};
    return intersection({0, size}, {results.begin * stride - before,
                                    (results.end - 1) * stride - before + (window - 1) * dilation + 1});
  }
};

/// Of the device that lacks most, in elements of one image: those of the intervals that it reads, without its tile.
std::int64_t most_lacked(const std::vector<Along>& dims, const std::vector<std::int64_t>& devices) {
  std::int64_t most = 0, count = 1;
  for (const std::int64_t n : devices) count *= n;
  for (std::int64_t p = 0; p < count; p++) {
    std::int64_t read = 1, held = 1, rest = p;
    for (std::size_t d = dims.size(); d-- > 0; rest /= devices[d]) {
      const std::int64_t k = rest % devices[d];
      const Interval needed = dims[d].read(tile(dims[d].results(), devices[d], k));
      read *= needed.size();
      held *= intersection(needed, tile(dims[d].size, devices[d], k)).size();
    }
    most = std::max(most, read - held);
  }
  return most;
}

/// Two dimensions behind two that stay whole, on a x b devices.
sa::NamedSharding cut(const std::vector<std::int64_t>& devices) {
  return {sa::make_mesh({{"x", devices[0]}, {"y", devices[1]}}), P(sa::none, sa::none, "x", "y")};
}
const std::vector<std::vector<std::int64_t>> meshes{{2, 1}, {4, 1}, {8, 1}, {1, 8}, {2, 2}, {4, 2}};

using Function = std::function<Array(const Array&)>;

/// Values of f are those of one device where x is cut over the devices, and its result alike. Bytes that move.
std::int64_t moved_bytes(const Function& f, const Shape& shape, const std::vector<std::int64_t>& devices) {
  const sa::NamedSharding s = cut(devices);
  const Array x = numbers(shape), placed = sa::device_put(x, s);
  const auto g = sa::jit(f, {.out_shardings = s});
  const sa::Explanation e = sa::explain(g, placed);
  for (const sa::TransferInfo& t : e.transfers())
    CHECK(t.reason.starts_with("neighbours' elements are needed"));
  CHECK(values(g(placed)) == values(f(x)));
  check_received(g, placed);
  const Prepared p = prepare(g, placed);
  for (std::size_t k = 0; k < e.transfers().size(); k++) {
    const sa::TransferInfo& t = e.transfers()[k];
    const std::vector<std::int64_t> told =
        t.received.empty() ? std::vector(e.devices().size(), t.bytes_per_device) : t.received;
    CHECK(told == received_by_pieces(p.program(), static_cast<int>(k)));
  }
  return bytes_received(e);
}

sa::Padding padding_of(const std::vector<Along>& dims) {
  return {{dims[0].before, dims[0].behind}, {dims[1].before, dims[1].behind}};
}
const std::vector<std::vector<Along>> windows{
    {{16, 3, 1, 1, 1, 1}, {16, 3, 1, 1, 1, 1}}, {{16, 3, 1, 1, 0, 0}, {19, 2, 1, 1, 0, 1}},
    {{16, 2, 2, 1, 0, 0}, {16, 2, 2, 1, 0, 0}}, {{17, 3, 2, 1, 1, 1}, {16, 5, 2, 1, 2, 3}},
    {{24, 7, 1, 1, 3, 3}, {12, 9, 1, 1, 4, 4}},  // reaches over more than one neighbour
    {{21, 3, 1, 3, 3, 3}, {18, 2, 3, 2, 1, 0}}, {{9, 3, 1, 1, 1, 1}, {11, 1, 2, 1, 0, 0}},
};

}  // namespace

TEST_CASE("windows: a convolution of cut images moves the edges that it reads") {
  for (const auto& w : windows)
    for (const auto& devices : meshes) {
      CAPTURE(devices[0] * 10 + devices[1]);
      CAPTURE(w[0].size);
      const Array kernel = numbers({1, 1, w[0].window, w[1].window}, sa::float32, 1);
      const sa::ConvOptions o{.window_strides = {w[0].stride, w[1].stride},
                              .padding = padding_of(w),
                              .rhs_dilation = {w[0].dilation, w[1].dilation}};
      const auto f = [=](const Array& x) { return sa::conv_general_dilated(x, kernel, o); };
      CHECK(moved_bytes(f, {1, 1, w[0].size, w[1].size}, devices) == 4 * most_lacked(w, devices));
    }
}

// Windows slide along the last dimension first.
TEST_CASE("windows: a pool of cut images moves the edges that it reads") {
  for (const auto& w : windows)
    for (const auto& devices : meshes) {
      CAPTURE(devices[0] * 10 + devices[1]);
      CAPTURE(w[0].size);
      const sa::PoolOptions o{.strides = {w[0].stride, w[1].stride},
                              .padding = padding_of(w),
                              .dilation = {w[0].dilation, w[1].dilation}};
      const auto f = [=](const Array& x) { return sa::max_pool(x, {w[0].window, w[1].window}, o); };
      const Along stay{w[0].size, 1}, slid{w[1].results(), 1};
      const std::int64_t limit = most_lacked({stay, w[1]}, devices) + most_lacked({w[0], slid}, devices),
                         moved = moved_bytes(f, {1, 1, w[0].size, w[1].size}, devices);
      // where windows leave elements out nobody needs those
      const auto has_gaps = [](const Along& a) { return a.dilation > 1 || a.stride > a.window; };
      if (has_gaps(w[0]) || has_gaps(w[1])) CHECK(moved <= 4 * limit);
      else CHECK(moved == 4 * limit);
      CHECK(moved <= 4 * most_lacked(w, devices));
    }
}

TEST_CASE("windows: gradients of a convolution of cut images") {
  for (const auto& w : windows)
    for (const auto& devices : meshes) {
      CAPTURE(devices[0] * 10 + devices[1]);
      CAPTURE(w[0].size);
      const sa::NamedSharding s = cut(devices), whole{s.mesh(), P()};
      const Array x = numbers({1, 1, w[0].size, w[1].size}),
                  kernel = numbers({1, 1, w[0].window, w[1].window}, sa::float32, 1),
                  weights = numbers({1, 1, w[0].results(), w[1].results()}, sa::float32, 2);
      const sa::ConvOptions o{.window_strides = {w[0].stride, w[1].stride},
                              .padding = padding_of(w),
                              .rhs_dilation = {w[0].dilation, w[1].dilation}};
      const auto loss = [=](const Array& a, const Array& k, const Array& by) {
        return sa::sum(by * sa::conv_general_dilated(a, k, o));
      };
      const auto of_image =
          sa::jit([=](const Array& a, const Array& k, const Array& by) { return sa::grad(loss)(a, k, by); });
      const auto of_kernel = sa::jit(
          [=](const Array& a, const Array& k, const Array& by) { return sa::grad<1>(loss)(a, k, by); });
      const Array a = sa::device_put(x, s), by = sa::device_put(weights, s),
                  k = sa::device_put(kernel, whole);
      CHECK(values(of_image(a, k, by)) == values(of_image(x, kernel, weights)));
      CHECK(values(of_kernel(a, k, by)) == values(of_kernel(x, kernel, weights)));
      // no more than the image's edges, and the sum of what each device has of the kernel
      const sa::Explanation e = sa::explain(of_kernel, a, k, by);
      CAPTURE(e.to_string());
      const std::int64_t g = devices[0] * devices[1], sums = 8 * (g - 1) * kernel.size();
      CHECK(bytes_received(e) <= 4 * most_lacked(w, devices) + (sums + g - 1) / g);
      check_received(of_image, a, k, by);
      check_received(of_kernel, a, k, by);
    }
}

// Images, channels and both spatial dimensions of every size against the devices': strides, holes, groups, padding beyond a tile or
// below zero, tiles without elements.
TEST_CASE("windows: random convolutions and pools of cut images have the values of one device") {
  std::mt19937 random(3);
  const auto pick = [&](std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
  };
  const std::vector<P> cuts{P(sa::none, sa::none, "x", "y"), P(sa::none, sa::none, "y", "x"),
                            P(sa::none, sa::none, sa::axes("x", "y")), P("x", sa::none, sa::none, "y"),
                            P(sa::none, "y", "x")};
  for (int k = 0; k < (sa::testing::is_sanitized() ? 20 : 60); k++) {
    CAPTURE(k);
    const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", k % 2 == 0 ? 2 : 4}});
    const Shape shape{pick(1, 3), 4, pick(1, 19), pick(3, 19)};
    const std::int64_t groups = std::int64_t{1} << pick(0, 2);
    const Shape window{pick(1, 5), pick(1, 4)};
    const auto widths = [&] { return std::pair{pick(-1, 9), pick(0, 6)}; };
    const sa::ConvOptions conv{.window_strides = {pick(1, 3), pick(1, 3)},
                               .padding = {widths(), widths()},
                               .lhs_dilation = {pick(1, 2), pick(1, 2)},
                               .rhs_dilation = {pick(1, 3), pick(1, 2)},
                               .feature_group_count = groups};
    const sa::PoolOptions pool{.strides = {pick(1, 3), pick(1, 3)},
                               .padding = {{pick(0, 7), pick(0, 7)}, {pick(0, 3), pick(0, 3)}},
                               .dilation = {pick(1, 3), pick(1, 2)}};
    const auto t = k % 3 == 0 ? sa::int32 : sa::float32;
    const Array x = numbers(shape, t), kernel = numbers({4, 4 / groups, window[0], window[1]}, t, 1);
    const auto both = [=](const Array& a, const Array& b) {
      return std::vector<Array>{sa::conv_general_dilated(a, b, conv), sa::max_pool(a, window, pool),
                                sa::sum_pool(a, window, pool)};
    };
    const auto weighed = [=](const Array& a, const Array& b) {
      Array sum = sa::zeros(Shape{});
      for (const Array& y : both(a, b)) sum = sum + sa::sum(y * numbers(y.shape(), sa::float32, 2));
      return sum;
    };
    const P& cut_as = cuts[static_cast<std::size_t>(k) % cuts.size()];
    const sa::NamedSharding s(mesh, cut_as), whole(mesh, P());
    const Array a = sa::device_put(x, s), b = sa::device_put(kernel, whole);
    const std::vector<Array> one = sa::jit(both)(x, kernel);
    const std::vector<Array> open = sa::jit(both)(a, b);
    for (std::size_t i = 0; i < one.size(); i++) {
      CAPTURE(i);
      CHECK(values(open[i]) == values(one[i]));
      const auto placed =
          sa::jit([=](const Array& c, const Array& d) { return both(c, d)[i]; }, {.out_shardings = s});
      CHECK(values(placed(a, b)) == values(one[i]));
      check_received(placed, a, b);
    }
    if (t == sa::int32) continue;
    const auto of_image = sa::jit([=](const Array& c, const Array& d) { return sa::grad(weighed)(c, d); });
    const auto of_kernel =
        sa::jit([=](const Array& c, const Array& d) { return sa::grad<1>(weighed)(c, d); });
    CHECK(values(of_image(a, b)) == values(of_image(x, kernel)));
    CHECK(values(of_kernel(a, b)) == values(of_kernel(x, kernel)));
  }
}

namespace {

// Of a function that only moves: each element of its result is one of x (its number, from 1) or none (0).
std::int64_t most_elements_lacked(const Function& f, const Shape& shape, const sa::NamedSharding& s) {
  std::vector<float> number(static_cast<std::size_t>(sa::num_elements(shape)));
  for (std::size_t k = 0; k < number.size(); k++) number[k] = static_cast<float>(k + 1);
  const Array x = sa::array(number, shape), y = f(x);
  const std::vector<double> read = values(y);
  const auto tiles = [&](const Shape& of, int p) {
    return shardarray::tile_of(*shardarray::layout_of(s, static_cast<int>(of.size())), of, p);
  };
  const auto inside = [](const shardarray::Box& b, const Shape& of, std::int64_t element) {
    for (std::size_t d = of.size(); d-- > 0; element /= of[d])
      if (element % of[d] < b.lo[d] || element % of[d] >= b.lo[d] + b.size[d]) return false;
    return true;
  };
  std::int64_t most = 0;
  for (int p = 0; p < s.mesh().size(); p++) {
    const shardarray::Box from = tiles(shape, p), to = tiles(y.shape(), p);
    std::int64_t lacked = 0;
    for (std::size_t k = 0; k < read.size(); k++)
      lacked += read[k] > 0 && inside(to, y.shape(), static_cast<std::int64_t>(k)) &&
                !inside(from, shape, static_cast<std::int64_t>(read[k]) - 1);
    most = std::max(most, lacked);
  }
  return most;
}

// A few moves, one of the other's result.
Function random_chain(std::mt19937& random, const Shape& shape) {
  std::vector<Function> links;
  Shape now = shape;
  const auto pick = [&](std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
  };
  for (std::int64_t n = pick(1, 5); n > 0; n--) {
    const auto d = static_cast<std::size_t>(pick(0, std::ssize(now) - 1));
    const auto axis = static_cast<std::int64_t>(d);
    const std::int64_t size = now[d];
    switch (pick(0, 4)) {
      case 0: {
        const std::int64_t lo = pick(0, size / 4), hi = size - pick(0, size / 4), step = pick(1, 2);
        std::vector<sa::Index> at(now.size(), sa::Index(sa::all));
        at[d] = sa::slice(lo, hi, step);
        links.emplace_back([at](const Array& x) { return x[at]; });
        now[d] = (hi - lo + step - 1) / step;
        break;
      }
      case 1: {
        std::vector<std::pair<std::int64_t, std::int64_t>> widths(now.size());
        widths[d] = {pick(0, 3), pick(0, 3)};
        now[d] += widths[d].first + widths[d].second;
        links.emplace_back([widths](const Array& x) { return sa::pad(x, widths); });
        break;
      }
      case 2: links.emplace_back([axis](const Array& x) { return sa::flip(x, axis); }); break;
      case 3: {
        const std::int64_t by = pick(-3, 3);
        links.emplace_back([=](const Array& x) { return sa::roll(x, by, axis); });
        break;
      }
      default: {
        Shape row = now;
        row[d] = pick(1, 3);
        now[d] += row[d];
        const bool first = pick(0, 1) == 0;
        links.emplace_back([=](const Array& x) {
          const Array none = sa::zeros(row);
          return first ? sa::concatenate({none, x}, axis) : sa::concatenate({x, none}, axis);
        });
      }
    }
  }
  return [links](Array x) {
    for (const Function& f : links) x = f(x);
    return x;
  };
}

}  // namespace

TEST_CASE("windows: a chain of moves is one transfer of what its end lacks") {
  std::mt19937 random(1);
  for (int k = 0; k < 60; k++) {
    CAPTURE(k);
    const bool plane = k % 2 == 1;
    const Shape shape = plane ? Shape{20 + k % 7, 17 + k % 5} : Shape{40 + k};
    const sa::NamedSharding s = plane ? sa::NamedSharding(sa::make_mesh({{"x", 4}, {"y", 2}}), P("x", "y"))
                                      : sa::NamedSharding(sa::make_mesh({{"x", 8}}), P("x"));
    const Function chain = random_chain(random, shape);
    const auto f = sa::jit([=](const Array& x) { return 2 * chain(x); }, {.out_shardings = s});
    const Array x = numbers(shape), placed = sa::device_put(x, s);
    const sa::Explanation e = sa::explain(f, placed);
    CAPTURE(e.to_string());
    CHECK(values(f(placed)) == values(2 * chain(x)));
    CHECK(bytes_received(e) == 4 * most_elements_lacked(chain, shape, s));
    CHECK(e.transfers().size() <= 1);
    check_received(f, placed);
  }
}

namespace {

const sa::slice but_first(1, sa::none), but_last(0, -1), before(0, -2), inner(1, -1), behind(2, sa::none);

Array heat(const Array& u, const Array& around) { return u + 0.25 * (around - 4 * u); }
Array pads_of_slices(const Array& u) {
  return heat(u, sa::pad(u[but_last], {{1, 0}, {0, 0}}) + sa::pad(u[but_first], {{0, 1}, {0, 0}}) +
                     sa::pad(u[{sa::all, but_last}], {{0, 0}, {1, 0}}) +
                     sa::pad(u[{sa::all, but_first}], {{0, 0}, {0, 1}}));
}
Array slices_of_a_pad(const Array& u) {
  const Array p = sa::pad(u, {{1, 1}, {1, 1}});
  return heat(u, p[{before, inner}] + p[{behind, inner}] + p[{inner, before}] + p[{inner, behind}]);
}
Array concatenations(const Array& u) {
  const Array row = sa::zeros({1, u.shape()[1]}), column = sa::zeros({u.shape()[0], 1});
  return heat(u, sa::concatenate({row, u[but_last]}) + sa::concatenate({u[but_first], row}) +
                     sa::concatenate({column, u[{sa::all, but_last}]}, 1) +
                     sa::concatenate({u[{sa::all, but_first}], column}, 1));
}
Array rolls(const Array& u) {
  return heat(u, sa::roll(u, 1, 0) + sa::roll(u, -1, 0) + sa::roll(u, 1, 1) + sa::roll(u, -1, 1));
}

}  // namespace

TEST_CASE("windows: shifts of one value, however written, are one window of it") {
  for (const std::int64_t n : {32, 27})
    for (const auto& devices : {std::pair{8, 1}, std::pair{4, 2}, std::pair{1, 8}}) {
      const sa::NamedSharding s(sa::make_mesh({{"x", devices.first}, {"y", devices.second}}), P("x", "y"));
      const Array u = numbers({n, n}), placed = sa::device_put(u, s);
      const std::int64_t rows = (n + devices.first - 1) / devices.first,
                         columns = (n + devices.second - 1) / devices.second;
      for (const auto& row :
           {std::tuple{"pads of slices", &pads_of_slices, false},
            std::tuple{"slices of a pad", &slices_of_a_pad, false},
            std::tuple{"concatenations", &concatenations, false}, std::tuple{"rolls", &rolls, true}}) {
        const auto f = std::get<1>(row);
        const bool ring = std::get<2>(row);
        CAPTURE(std::get<0>(row));
        CAPTURE(n);
        CAPTURE(devices.first);
        const auto g = sa::jit(f, {.out_shardings = s});
        const sa::Explanation e = sa::explain(g, placed);
        CAPTURE(e.to_string());
        const auto sides = [ring](int count) { return count == 1 ? 0 : count == 2 && !ring ? 1 : 2; };
        CHECK(bytes_received(e) == 4 * (sides(devices.first) * columns + sides(devices.second) * rows));
        CHECK(e.transfers().size() == 1);
        CHECK(e.steps_per_device == 2);
        CHECK(values(g(placed)) == values(f(u)));
        check_received(g, placed);
        // one window and one loop on one device, too
        CHECK(sa::explain(sa::jit(f), u).steps_per_device <= 3);
      }
    }
}

}  // namespace window_moves_test
