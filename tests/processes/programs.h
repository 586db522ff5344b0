// Parts of `programs`: host functions, local data, loaders.
#pragma once
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "everywhere.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace processes_test {

namespace sa = shardarray;

// Arguments of host functions: in each process the whole of an array that is sharded over all; under maps the parts of its own devices.
inline bool calls(const sa::Mesh& mesh) {
  const sa::Array x = platform_test::put(platform_test::numbers({16, 8}), mesh, sa::P("y", "x"));
  std::vector<std::vector<std::uint32_t>> seen;
  const auto note = [&](const sa::HostValues& v) { seen.push_back(platform_test::bits(v.arrays[0])); };
  const auto f = sa::jit([&](const sa::Array& v) {
    sa::debug::callback(note, {v, sa::sum(v)});
    sa::debug::callback(note, {v * 2});
    return v + 1;
  });
  for (int k = 0; k < 2; k++) (void)sa::block_until_ready(f(x));
  sa::debug::callback(note, {x});
  sa::debug::callback(note, {x * 2});
  const auto whole = platform_test::bits(platform_test::numbers({16, 8})),
             twice = platform_test::bits(platform_test::numbers({16, 8}) * 2);
  bool good = seen == std::vector{whole, twice, whole, twice, whole, twice};
  std::vector<std::pair<int, float>> of_devices;
  (void)sa::block_until_ready(sa::pmap([&](const sa::Array& v) {
    sa::debug::callback(
        [&](const sa::HostValues& h) { of_devices.emplace_back(h.device->id, h.arrays[0].item<float>()); },
        {v});
    return v;
  })(sa::arange(static_cast<float>(sa::device_count()))));
  std::vector<std::pair<int, float>> own;
  for (const sa::Device& d : sa::local_devices()) own.emplace_back(d.id, static_cast<float>(d.id));
  good &= of_devices == own;
  // It is called where the array lies.
  int called = 0;
  sa::debug::callback([&](const sa::HostValues&) { called++; },
                      {sa::device_put(sa::ones({4}), sa::devices().back())});
  const bool is_last = sa::process_index() == sa::process_count() - 1;
  const auto count = [&](const sa::HostValues& v) {
    called += v.arrays[0].size() == 4 && v.arrays.back().item<float>() == 2;
  };
  const sa::Array there = sa::device_put(sa::ones({4}), sa::devices().back());
  sa::debug::callback(count, {there, sa::Array(2.0f)});  // a number lies wherever it is read
  sa::debug::callback(count, {there, sa::ones({}) + 1});
  good &= called == (is_last ? 3 : 0);
  // What one throws is its own: the others call what is behind it, and all go on.
  int behind = 0;
  const auto throwing = sa::jit([&](const sa::Array& v) {
    sa::debug::callback(
        [&](const sa::HostValues&) {
          if (is_last) throw std::runtime_error("of the last one");
        },
        {v});
    sa::debug::callback([&](const sa::HostValues&) { behind++; }, {v * 2});
    return v + 1;
  });
  for (int k = 0; k < 2; k++) try {
      (void)sa::block_until_ready(throwing(x));
      good &= !is_last;
    } catch (const std::runtime_error& e) { good &= is_last && std::string(e.what()) == "of the last one"; }
  return good && behind == (is_last ? 0 : 2) && sa::testing::everywhere(x + 1).shape() == x.shape();
}

// Rows that each process has locally become one global array.
inline bool joins_local_data(const sa::Mesh& mesh) {
  const sa::Array own = sa::full({8 / sa::process_count(), 3}, sa::process_index());
  const sa::NamedSharding rows(mesh, sa::P(sa::axes("x", "y")));
  const sa::Array made = sa::make_array_from_process_local_data(rows, own);
  std::vector<int> want;
  for (int k = 0; k < 24; k++) want.push_back(k / 3 * sa::process_count() / 8);
  return made.shape() == sa::Shape{8, 3} && made.sharding() == sa::Sharding(rows) &&
         sa::testing::read<int>(made) == want;
}

// tpmap runs on the devices of its own process.
inline bool maps_own_devices() {
  const auto twice = sa::tpmap([](sa::Array a) { return 2 * a; }, {.args = {sa::shard}});
  const sa::Array y = twice(sa::arange(8.0f) + 100.0f * static_cast<float>(sa::process_index()));
  std::vector<float> want;
  for (int k = 0; k < 8; k++) want.push_back(2.0f * static_cast<float>(k + 100 * sa::process_index()));
  return y.sharding().device_assignment() == sa::local_devices() && y.to_vector<float>() == want;
}

// Loaders with different examples or orders are refused in all processes, which then go on.
inline bool refuses_other_examples(const sa::Mesh& mesh) {
  const int p = sa::process_index(), last = sa::process_count() - 1;
  const sa::Array x = platform_test::numbers({16, 2});
  const auto said = [&](const sa::Array& examples, sa::data::LoaderOptions o, int epoch = 0) -> std::string {
    o.sharding = sa::NamedSharding(mesh, sa::P("x"));
    try {
      (void)sa::data::loader(std::tuple(x, examples), o).epoch(epoch);
      return "";
    } catch (const sa::Error& e) { return e.text(); }
  };
  const auto is = [&](const std::string& text, const std::string& a, const std::string& b) {
    return sa::process_count() == 1
               ? text.empty()
               : text.find("data::loader: process 0 has " + a) == 0 &&
                     text.find(", process " + std::to_string(last) + " has " + b) != text.npos;
  };
  const int other = p == last && last > 0 ? 1 : 0;
  bool good = is(said(x + other, {}), "array 1 f32[16,2] with the sum", "array 1 f32[16,2] with the sum");
  good &= is(said(other ? x.astype(sa::int32) : x, {}), "array 1 f32[16,2] with", "array 1 i32[16,2] with");
  good &= is(said(x, {.seed = other}), "batch = 32, seed = 0", "batch = 32, seed = 1");
  good &= is(said(x, {.batch = 4 + other}), "batch = 4", "batch = 5");
  good &= is(said(x, {.seed = 1}, other), "batch = 32, seed = 1, drop_last = false, epoch = 0",
             "batch = 32, seed = 1, drop_last = false, epoch = 1");
  good &= is(said(x, {.batch = 4 + other, .seed = 1}), "batch = 4, seed = 1, ", "batch = 5, seed = 1, ");
  const auto cut = platform_test::put(x, mesh, sa::P("x"));
  // What all have to compute is computed before one of them refuses.
  const std::string none = said(sa::sum(cut) + x, {.batch = 8 - 8 * other});
  good &= last == 0 ? none.empty() : none.find("data::loader: batch is 0.") == 0;
  const std::string bad = said(other ? sa::ones({3}) : x, {});
  good &= last == 0 || bad.find("data::loader: array 1 is f32[3], array 0 f32[16,2].") == 0;
  good &= last == 0 || p == last || bad.find("(in process " + std::to_string(last) + ")") != bad.npos;
  return good && said(x, {}).empty();
}

}  // namespace processes_test
