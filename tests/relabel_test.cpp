// relabel_devices: if it does not matter which device has which tile, the order that moves least.
#include "layout/relabel.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "layout_helpers.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace relabel_test {

namespace sa = shardarray;
using namespace shardarray::testing::layouts;
using program_test::numbers, program_test::values;
using sa::Array;
using sa::P;

namespace {

/// Elements that lie in their place if the tiles go to these devices.
std::int64_t in_place(const sa::Layout& from, const sa::Layout& to, const sa::Shape& shape,
                      const std::vector<sa::Device>& devices) {
  std::int64_t n = 0;
  for (std::size_t t = 0; t < devices.size(); t++)
    if (const int p = from.order()->position(devices[t]); p >= 0)
      n += sa::intersect(sa::tile_of(from, shape, p), sa::tile_of(to, shape, static_cast<int>(t))).elements();
  return n;
}

}  // namespace

TEST_CASE("relabel: of all orders of the devices none leaves more in its place") {
  Random random(5);
  for (int trial = 0; trial < 150; trial++) {
    const int rank = pick(random, 0, 3);
    const sa::DeviceOrder* order =
        order_of(std::vector{1, 2, 4, 6}[static_cast<std::size_t>(pick(random, 0, 3))]);
    const sa::Shape shape = random_shape(random, rank);
    const sa::Layout *from = random_layout(random, order, rank), *to = random_layout(random, order, rank);
    CAPTURE(from->to_string());
    CAPTURE(to->to_string());
    CAPTURE(shape);
    std::vector<sa::Device> all = order->devices();
    const std::vector<sa::Device> got = sa::nearest_devices(*from, *to, shape);
    CHECK(std::is_permutation(got.begin(), got.end(), all.begin(), all.end()));
    const std::int64_t as_given = in_place(*from, *to, shape, all);
    std::int64_t most = 0;
    std::vector<int> index(all.size());
    for (std::size_t k = 0; k < index.size(); k++) index[k] = static_cast<int>(k);
    do {
      std::vector<sa::Device> permuted;
      for (const int k : index) permuted.push_back(all[static_cast<std::size_t>(k)]);
      most = std::max(most, in_place(*from, *to, shape, permuted));
    } while (std::ranges::next_permutation(index).found);
    CHECK(in_place(*from, *to, shape, got) == most);
    if (as_given == most) CHECK(got == all);
  }
}

TEST_CASE("relabel: a sharding on other devices gives the same tiles, and moves nothing where it need not") {
  const Array x = numbers({16, 24});
  const auto spec = {P("a", "b"), P(sa::axes("b", "a")), P("b"), P(sa::none, sa::axes("a", "b")), P()};
  const sa::Mesh one = sa::make_mesh({{"a", 4}, {"b", 2}});
  std::vector<sa::Device> turned;
  for (const int k : {3, 1, 7, 5, 0, 2, 6, 4})
    turned.push_back(sa::devices("cpu")[static_cast<std::size_t>(k)]);
  const sa::Mesh other = sa::make_mesh({{"a", 4}, {"b", 2}}, turned);
  for (const P& p : spec) {
    const Array y = sa::device_put(x, sa::NamedSharding(one, p));
    const sa::NamedSharding asked(other, p), same = sa::relabel_devices(y, asked);
    CHECK(same.spec() == p);
    CHECK(same.mesh().shape() == other.shape());
    CHECK(values(sa::device_put(y, same)) == values(x));
    CHECK(sa::explain([&](const Array& v) { return sa::reshard(v, same); }, y).received_bytes_per_device() ==
          0);
    const sa::NamedSharding given(one, p);
    CHECK(sa::relabel_devices(y, given) == given);
  }
  // From rows to columns all have a part of what they need, whatever the order.
  const Array y = sa::device_put(x, sa::NamedSharding(one, P(sa::axes("a", "b"))));
  const sa::NamedSharding columns(other, P(sa::none, sa::axes("a", "b")));
  CHECK(sa::relabel_devices(y, columns) == columns);
  // What lies on one device goes to the others, whichever it is; arrays without values do.
  const sa::Mesh pair = sa::make_mesh({{"a", 2}}, {sa::devices("cpu")[6], sa::devices("cpu")[5]});
  const sa::SingleDeviceSharding fifth(sa::devices("cpu")[5]);
  const sa::NamedSharding rows(pair, P("a"));
  CHECK(sa::relabel_devices(sa::shape_dtype_struct({3}, sa::float32, fifth), rows).mesh().devices() ==
        std::vector<sa::Device>{sa::devices("cpu")[5], sa::devices("cpu")[6]});
}

TEST_CASE("relabel: messages") {
  const sa::NamedSharding rows(sa::make_mesh({{"a", 8}}), P(sa::none, "a"));
  CHECK_THROWS_WITH_AS((void)sa::relabel_devices(numbers({8}), rows), doctest::Contains("relabel_devices: "),
                       sa::ShardingError);
  CHECK_THROWS_WITH_AS((void)sa::relabel_devices(Array(), rows), doctest::Contains("relabel_devices: "),
                       sa::Error);
  CHECK_THROWS_AS(sa::jit([&](const Array& v) { return sa::device_put(v, sa::relabel_devices(v, rows)); })(
                      numbers({8, 8})),
                  sa::TraceError);
}

}  // namespace relabel_test
