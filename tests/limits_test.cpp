// Hostile numbers for functions that allocate no arrays: meshes, shardings, pictures, arrays from parts, options.
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "golden.h"
#include "process_helpers.h"

namespace limits_test {

namespace sa = shardarray;
using sa::Array;
using sa::Shape;

namespace {

using Int = std::int64_t;
constexpr Int lowest = std::numeric_limits<Int>::min(), highest = std::numeric_limits<Int>::max();
constexpr Int hostile[] = {lowest,       -(Int{1} << 32) - 1, -8,           -1,           0,      1, 2, 8,
                           Int{1} << 31, (Int{1} << 32) + 1,  Int{1} << 61, Int{1} << 62, highest};
constexpr int hostile_ints[] = {std::numeric_limits<int>::min(), -1, 0, 1, 8, 4096,
                                std::numeric_limits<int>::max()};

using sa::testing::thrown;

struct Check {
  std::string function;
  std::function<void(Int)> call;
  std::function<bool(Int)> works;
};

}  // namespace

TEST_CASE("limits: meshes and shardings take sizes that multiply to their devices, and shapes that exist") {
  const std::vector<sa::Device> all = sa::devices();
  const auto count = static_cast<Int>(all.size());
  REQUIRE(count == 8);
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const sa::Sharding rows = sa::NamedSharding(mesh, sa::P("x"));
  const sa::PositionalSharding positional(sa::create_device_mesh({8, 1}));
  const auto exists = [](Int n) { return n >= 0 && n < (Int{1} << 62); };
  const std::vector<Check> checks = {
      {"create_device_mesh", [&](Int n) { sa::create_device_mesh({n}); },
       [](Int n) { return n == 8 || n == -1; }},
      {"create_device_mesh",
       [&](Int n) {
         sa::create_device_mesh({n, n, 8});
       },
       [](Int n) { return n == 1; }},
      {"make_mesh",
       [&](Int n) {
         sa::make_mesh({{"x", n}});
       },
       [](Int n) { return n >= 1 && n <= 8; }},
      {"make_mesh",
       [&](Int n) {
         sa::make_mesh({{"x", n}, {"y", n}, {"z", n}});
       },
       [](Int n) { return n >= 1 && n <= 2; }},
      {"Mesh",
       [&](Int n) {
         sa::Mesh({{n}, all}, {"x"});
       },
       [](Int n) { return n == 8; }},
      {"Mesh",
       [&](Int n) {
         sa::Mesh({{n, -1}, all}, {"x", "y"});
       },
       [](Int) { return false; }},
      {"PositionalSharding",
       [&](Int n) {
         sa::PositionalSharding(sa::DeviceGrid{{n}, all});
       },
       [](Int n) { return n == 8; }},
      {"PositionalSharding",
       [&](Int n) {
         sa::PositionalSharding(sa::DeviceGrid{{n, -1}, all});
       },
       [](Int) { return false; }},
      {"reshape", [&](Int n) { positional.reshape({n}); }, [](Int n) { return n == 8 || n == -1; }},
      {"reshape",
       [&](Int n) {
         positional.reshape({n, n, -1});
       },
       [](Int n) { return n == 1 || n == 2; }},
      {"transpose",
       [&](Int n) {
         positional.transpose({n, 0});
       },
       [](Int n) { return n == 1 || n == -1; }},
      {"replicate", [&](Int n) { positional.replicate(n); },
       [](Int n) { return n == 0 || n == 1 || n == -1; }},
      {"shard_shape",
       [&](Int n) {
         const Shape piece = rows.shard_shape({n});
         CHECK(piece == Shape{n / 8 + (n % 8 != 0)});
       },
       exists},
      {"shard_shape", [&](Int n) { rows.shard_shape({n}, all[7]); }, exists},
      {"devices_indices_map",
       [&](Int n) {
         Int covered = 0;
         for (const auto& [device, index] : rows.devices_indices_map({n}))
           covered += index[0].stop - index[0].start;
         CHECK(covered == n);
       },
       exists},
      {"replica_ids", [&](Int n) { rows.replica_ids({n}); }, exists},
      {"render_sharding", [&](Int n) { sa::render_sharding({n}, rows); }, exists},
      {"render_sharding",
       [&](Int n) {
         sa::render_sharding({3, n}, rows);
       },
       [&](Int n) { return exists(n) && n < (Int{1} << 60); }},
      {"sharding_table", [&](Int n) { sa::sharding_table({n}, rows); }, exists},
      {"make_array_from_callback",
       [&](Int n) {
         sa::make_array_from_callback({n}, rows, [](const sa::ShardIndex&) { return std::vector<float>(1); });
       },
       [](Int n) { return n == 8; }},
      {"make_array_from_single_device_arrays",
       [&](Int n) {
         std::vector<Array> parts;
         for (const sa::Device& d : all) parts.push_back(sa::device_put(sa::ones({1}), d));
         sa::make_array_from_single_device_arrays({n}, rows, parts);
       },
       [](Int n) { return n == 8; }},
  };
  for (const Check& c : checks)
    for (const Int n : hostile) {
      CAPTURE(c.function);
      CAPTURE(n);
      const std::string error = thrown([&] { c.call(n); });
      CAPTURE(error);
      CHECK(error.empty() == c.works(n));
      if (!error.empty()) CHECK(error.starts_with(c.function));
    }
}

TEST_CASE("limits: numbers of devices, ranks and pieces") {
  const sa::Sharding rows = sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P());
  const Array x = sa::arange(8);
  for (const int n : hostile_ints) {
    const bool is_device = n >= 0 && n < 8;
    const sa::Device d{n};
    CAPTURE(n);
    CHECK(thrown([&] { sa::default_device on(d); }).empty() == is_device);
    CHECK(thrown([&] { x.addressable_data(n); }).empty() == (n == 0));
    CHECK(thrown([&] { rows.is_equivalent_to(rows, n); }).empty() == (n >= 0 && n <= 1024));
    CHECK(thrown([&] { rows.is_fully_replicated(n); }).empty() == (n >= 0 && n <= 1024));
    CHECK(thrown([&] { sa::set_cpu_device_count(n); }).empty() == (n == 8));
    CHECK(thrown([&] { sa::render_sharding({8}, rows, {.min_width = n}); }).empty() ==
          (n >= 0 && n <= 10'000));
    CHECK(thrown([&] { sa::render_sharding({8}, rows, {.max_width = n}); }).empty() ==
          (n >= 0 && n <= 10'000));
    CHECK(thrown([&] {
            sa::jit([](const Array& a) { return a; }, {.donate_args = {n}})(sa::arange(8) * 1);
          }).empty() == (n == 0));
    CHECK(thrown([&] { sa::jit([](const Array& a) { return a; }, {.static_args = {n}})(x); }) != "");
    CHECK(thrown([&] {
            sa::grad([](const Array& a) { return sa::sum(a); }, {.argnums = n})(sa::ones({2}));
          }).empty() == (n == 0));
    CHECK(thrown([&] { sa::round(sa::ones({2}), n); }) == "");
    const auto gathered = [&](const Array& a) { return sa::all_gather(a, "i", {.axis = n}); };
    CHECK(thrown([&] {
            sa::vmap(gathered, {.axis_name = "i"})(sa::ones({2, 3}));
          }).empty() == (n >= -1 && n <= 1));
    const auto scattered = [&](const Array& a) { return sa::psum_scatter(a, "i", {.axis = n}); };
    CHECK(thrown([&] {
            sa::vmap(scattered, {.axis_name = "i"})(sa::ones({2, 2}));
          }).empty() == (n >= -1 && n <= 0));
    const auto sent = [&](const Array& a) {
      return sa::all_to_all(a, "i", {.split_axis = n, .concat_axis = 0});
    };
    CHECK(thrown([&] {
            sa::vmap(sent, {.axis_name = "i"})(sa::ones({2, 2}));
          }).empty() == (n >= -1 && n <= 0));
    const auto moved = [&](const Array& a) { return sa::ppermute(a, "i", {{0, n}}); };
    CHECK(thrown([&] {
            sa::vmap(moved, {.axis_name = "i"})(sa::ones({2, 2}));
          }).empty() == (n >= 0 && n <= 1));
    const auto source = [&](const Array& a) { return sa::pbroadcast(a, "i", n); };
    CHECK(thrown([&] {
            sa::vmap(source, {.axis_name = "i"})(sa::ones({2, 2}));
          }).empty() == (n >= 0 && n <= 1));
  }
  CHECK(thrown([&] { rows.is_equivalent_to(rows, -1); }) ==
        "is_equivalent_to: rank -1. A rank is from 0 to 1024. Give the value's number of dimensions.");
  for (const double scale : {-1.0, 1e300, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(thrown([&] {
            sa::render_sharding({8}, rows, {.scale = scale});
          }).starts_with("render_sharding: scale "));
  CHECK(thrown([&] { sa::render_sharding({8}, rows, {.max_width = -1}); }) ==
        "render_sharding: scale 1, min_width 9, max_width -1. The scale is from 0 to 1000, widths are from 0 "
        "to 10000 "
        "columns. Correct the options.");
  CHECK(thrown([&] { sa::nn::MLP<>::init(2, 2, 2, highest, sa::random::key(0)); }) ==
        "nn::MLP: depth 9223372036854775807. The number of hidden layers is at most 2^20. Correct it.");
  CHECK(thrown([&] { sa::split(sa::zeros({0}), highest); }) ==
        "split: 9223372036854775807 pieces. There are at most 1048576: each is an array. Reshape, and map "
        "over the rows "
        "with vmap.");
}

TEST_CASE("limits: pieces of no elements do not make an array that has too many") {
  const Shape shape = {0, Int{1} << 60};
  const sa::Sharding one = sa::SingleDeviceSharding(sa::devices()[0]);
  const auto made = [&](sa::DType t) {
    return thrown([&] {
      sa::make_array_from_callback(shape, one, [t](const sa::ShardIndex&) { return sa::zeros({0}, t); });
    });
  };
  for (const sa::DType t : {sa::float32, sa::float64})
    CHECK(made(t).find("make_array_from_callback: shape [0,1152921504606846976] of") == 0);
}

TEST_CASE("limits: arrays have up to 32 dimensions") {
  const Shape most(std::vector<std::int64_t>(32, 1)), more(std::vector<std::int64_t>(33, 1));
  const Array x = sa::ones({1});
  CHECK((x.reshape(most) + 1).to_vector<float>()[0] == 2);
  const std::vector<std::pair<std::string, std::function<void()>>> calls = {
      {"reshape", [&] { sa::reshape(x, more); }},
      {"zeros", [&] { sa::zeros(more); }},
      {"broadcast_to", [&] { sa::broadcast_to(x, more); }},
      {"expand_dims", [&] { sa::expand_dims(x.reshape(most), 0); }},
      {"random::bits", [&] { sa::random::bits(sa::random::key(1), more); }}};
  for (const auto& [name, call] : calls)
    CHECK(thrown(call) == name + ": shape " + sa::to_string(more) +
                              " has 33 dimensions. Arrays have up to 32. Merge some with reshape.");
}

}  // namespace limits_test
