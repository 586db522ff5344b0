// Views of an array's memory.
#include <doctest/doctest.h>

#include <type_traits>

#include "messages.h"
#include "shardarray/shardarray.h"

namespace host_view_test {

using namespace shardarray;
using namespace shardarray::testing;

TEST_CASE("host_view: elements where they lie, shaped as std::mdspan") {
  const Array x = (arange(24) * 3).reshape(2, 3, 4);
  const HostView<std::int32_t, 3> v = host_view<std::int32_t, 3>(x);
  static_assert(std::is_same_v<decltype(v)::element_type, const std::int32_t>);
  static_assert(std::is_same_v<decltype(v.data_handle()), const std::int32_t*>);
  static_assert(v.rank() == 3);
  CHECK(v.extents() == std::array<std::int64_t, 3>{2, 3, 4});
  CHECK(v.strides() == std::array<std::int64_t, 3>{12, 4, 1});
  CHECK(v.extent(1) == 3);
  CHECK(v.stride(1) == 4);
  CHECK(v.size() == 24);
  CHECK(v.is_row_major());
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 4; k++) {
        const int want = 3 * (12 * i + 4 * j + k);
        CHECK(v(i, j, k) == want);
        CHECK(v.at(i, j, k) == want);
        CHECK(v[i][j][k] == want);
        CHECK(v.transposed()(k, j, i) == want);
      }
  CHECK(v.data_handle() == host_view<std::int32_t, 3>(x).data_handle());
  CHECK(&v[1][2][3] == v.data_handle() + 23);
  CHECK(!v.transposed().is_row_major());
  CHECK(v.transposed().extents() == std::array<std::int64_t, 3>{4, 3, 2});
  CHECK(v[1].is_row_major());
  CHECK(host_view<float, 0>(Array(2.5f))() == 2.5f);
  CHECK(host_view<float, 2>(zeros({0, 3})).empty());
  CHECK(HostView<float, 2>().empty());
#if defined(__cpp_lib_mdspan)
  CHECK(v.mdspan().extent(2) == 4);
  CHECK(v.transposed().mdspan().stride(0) == 1);
#endif
}

TEST_CASE("host_view: a view keeps its memory, whatever becomes of the array") {
  Array x = arange(1000.0) + 1;
  const auto v = host_view<float, 1>(x);
  const auto f = jit([](const Array& a) { return a * 0; });
  const Array zero = f(std::move(x));
  CHECK(sum(zero).item<float>() == 0);
  for (int k = 0; k < 1000; k++) CHECK(v[k] == static_cast<float>(k + 1));
  // Also where a handle that stays is given away by option.
  const Array y = arange(8.0) + 1;
  const auto w = host_view<float, 1>(y);
  eval(jit([](const Array& a) { return a * 0; }, {.donate_args = {0}})(y));
  CHECK(w[7] == 8);
}

TEST_CASE("host_view: pieces of a cut array, and 16-bit floats as their bits") {
  const Array x =
      device_put(arange(32.0).reshape(8, 4), NamedSharding(make_mesh({{"x", 4}, {"y", 2}}), P("x", "y")));
  for (const Shard& s : x.addressable_shards()) {
    const auto v = host_view<float, 2>(s.data);
    CHECK(v.extents() == std::array<std::int64_t, 2>{2, 2});
    CHECK(v(1, 1) == x[{s.index[0].start + 1, s.index[1].start + 1}].item<float>());
  }
  CHECK(host_view<std::uint16_t, 1>(ones({2}, float16))[1] == 0x3c00);
  CHECK(host_view<std::uint16_t, 1>(ones({2}, bfloat16))[1] == 0x3f80);
  CHECK(host_view<bool, 1>(array({true, false}))[0]);
}

TEST_CASE("host_view: messages") {
  const Array x = arange(6.0).reshape(2, 3);
  CHECK(message_of<DTypeError>([&] { static_cast<void>(host_view<double, 2>(x)); }) ==
        "host_view: f32[2,3] is seen as elements of float64. Memory is shown as it is. Name the type of the "
        "array "
        "(std::uint16_t for the bits of 16-bit floats), or cast with astype.");
  CHECK(message_of<ShapeError>([&] { static_cast<void>(host_view<float, 1>(x)); }) ==
        "host_view: f32[2,3] is seen as one of 1 dimension. A view has the dimensions of its array. Name as "
        "many, "
        "or reshape the array.");
  CHECK(message_of<ShapeError>([&] { static_cast<void>(host_view<float, 2>(x).at(0, 3)); }) ==
        "host_view: position 3 of dimension 1, which has 3. Positions count from 0 to size - 1. Correct it, "
        "or ask "
        "extent(1).");
  CHECK_THROWS_AS(static_cast<void>(host_view<float, 2>(x).at(-1, 0)), ShapeError);
  const Array cut = device_put(x, NamedSharding(make_mesh({{"x", 2}}), P("x")));
  CHECK(contains(message_of<ShardingError>([&] { static_cast<void>(host_view<float, 2>(cut)); }),
                 "host_view: f32[2,3] is on 2 devices."));
  CHECK_THROWS_AS(jit([](const Array& a) {
                    static_cast<void>(host_view<float, 2>(a));
                    return a;
                  })(x),
                  TraceError);
}

}  // namespace host_view_test
