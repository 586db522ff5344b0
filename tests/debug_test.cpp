// Prints, callbacks and inspectors: when they are called, how often, in which order.
#include <doctest/doctest.h>

#include <complex>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

#include "cpu/codegen/codegen.h"
#include "shardarray/shardarray.h"

namespace debug_test {

namespace sa = shardarray;
using sa::Array;

namespace {

struct Captured {
  std::ostringstream out;
  sa::debug::PrintOptions options{&out};
  std::string take() {
    std::string text = out.str();
    out.str("");
    return text;
  }
};

template <class F> std::string message(F f) {
  try {
    f();
  } catch (const sa::Error& e) { return e.text(); }
  return "";
}

Array rows(double n, sa::Shape shape) { return sa::reshape(sa::arange(n), shape); }

}  // namespace

TEST_CASE("debug: print outside of traces, formats") {
  Captured c;
  sa::debug::print("{} and {} and {}", {sa::arange(3.0), 7, "text"}, c.options);
  CHECK(c.take() == "[0. 1. 2.] and 7 and text\n");
  sa::debug::print("{1:.2f} {0}", {sa::Shape{2, 8}, Array(0.126)}, c.options);
  CHECK(c.take() == "0.13 (2, 8)\n");
  sa::debug::print("{{}}", {}, c.options);
  CHECK(c.take() == "{}\n");
  sa::debug::print("{} {}", {Array(), 1}, c.options);
  CHECK(c.take() == "none 1\n");
  // A colon in the text is no format; arrays without one print as NumPy prints them.
  sa::debug::print(
      "loss: {} of {} at: {}, {}",
      {sa::array(0.1, sa::float16), sa::array(1.0), sa::array({18446744073709551615ull}, sa::uint64)[0],
       sa::array(std::complex<double>(1, -2))},
      c.options);
  CHECK(c.take() == "loss: 0.1 of 1.0 at: 18446744073709551615, (1-2j)\n");
  sa::debug::print("{0:>6} {1:x} {2:>{3}} {4:>8} {0}",
                   {sa::array(true), sa::array({18446744073709551615ull}, sa::uint64)[0], Array(0.5),
                    Array(6), sa::array(std::complex<double>(0, 1))},
                   c.options);
  CHECK(c.take() == "  True ffffffffffffffff    0.5       1j True\n");
  sa::debug::id_print(Array(2.0), {{"a {b} }", 1}, {"{}", Array(0.5)}}, c.options);
  CHECK(c.take() == "a {b} }: 1 {}: 0.5\n2.0\n");
  CHECK(message([&] {
          sa::debug::print("{}", {1, 2}, c.options);
        }) == "debug::print: unused argument 1 of 2 in \"{}\". Every argument needs a {}.");
  CHECK(message([&] { sa::debug::print("{} {}", {1}, c.options); }) ==
        "debug::print: \"{} {}\" with 1 argument: argument not found. Formats take one argument each; arrays "
        "take none.");
  CHECK(message([&] { sa::debug::print("{:.2f}", {sa::arange(3.0)}, c.options); }) ==
        "debug::print: \"{:.2f}\" with 1 argument: invalid type specifier. Formats take one argument each; "
        "arrays take none.");
  CHECK(c.take().empty());
  CHECK(message([] { sa::debug::callback(nullptr); }) ==
        "debug::callback: the function is empty. Give one that can be called.");
  CHECK(message([] { sa::inspect_array_sharding(Array(1.0), nullptr); }) ==
        "inspect_array_sharding: the function is empty. Give one that can be called.");
}

TEST_CASE("debug: rows that there are none of call nothing") {
  Captured c;
  int calls = 0;
  const auto f = [&](const Array& x) {
    sa::debug::callback([&](const sa::HostValues&) { calls++; }, {x});
    sa::debug::print("row {}", {x}, c.options);
    return x * 2;
  };
  const auto twice = [&](const Array& x) { return sa::vmap(sa::vmap(f))(x); };
  for (const sa::Shape& shape : {sa::Shape{0, 3}, {0, 3000}, {0}}) {
    CHECK(sa::block_until_ready(sa::vmap(f)(sa::zeros(shape))).shape() == shape);
    CHECK(sa::block_until_ready(sa::jit(sa::vmap(f))(sa::zeros(shape))).shape() == shape);
  }
  for (const sa::Shape& shape : {sa::Shape{2, 0, 3}, {0, 2, 3}, {0, 0}}) {
    CHECK(sa::block_until_ready(twice(sa::zeros(shape))).shape() == shape);
    CHECK(sa::block_until_ready(sa::jit(twice)(sa::zeros(shape))).shape() == shape);
  }
  CHECK(calls == 0);
  CHECK(c.take().empty());
}

TEST_CASE("debug: print in jit happens at every call, with the whole value") {
  Captured c;
  auto f = sa::jit([&](Array x) {
    sa::debug::print("first {}", {x}, c.options);
    const Array y = x + 1;
    sa::debug::print("then {}", {sa::sum(y)}, c.options);
    return y;
  });
  const auto over8 = sa::PositionalSharding(sa::create_device_mesh({8}));
  for (int k = 0; k < 2; k++) {
    f(sa::device_put(sa::arange(8.0), over8));
    CHECK(c.take() == "first [0. 1. 2. 3. 4. 5. 6. 7.]\nthen 36.0\n");
  }
  CHECK(f.traces() == 1);
  CHECK(sa::explain(f, sa::device_put(sa::arange(8.0), over8)).transfers().size() ==
        1);  // the sum's, none for the print
}

TEST_CASE("debug: once a device in pmap, once a row in vmap") {
  Captured c;
  const Array w = sa::ones({3});
  const auto f = [&](Array x) {
    sa::debug::id_print(sa::axis_index("i"), {{"shape", x.shape()}, {"a", 1}}, c.options);
    sa::debug::print("same everywhere {}", {w}, c.options);
    return x;
  };
  sa::pmap(f, {.axis_name = "i"})(rows(6, {2, 3}));
  CHECK(c.take() ==
        "a: 1 shape: (3,)\n0\na: 1 shape: (3,)\n1\nsame everywhere [1. 1. 1.]\nsame everywhere [1. 1. 1.]\n");
  sa::vmap(f, {.axis_name = "i"})(rows(6, {2, 3}));
  CHECK(c.take() == "a: 1 shape: (3,)\n[0 1]\nsame everywhere [1. 1. 1.]\n");
  sa::vmap([&](Array x) {
    sa::debug::print("{}", {x}, c.options);
    return x;
  })(rows(6, {2, 3}));
  CHECK(c.take() == "[0. 1. 2.]\n[3. 4. 5.]\n");
  auto with_device = c.options;
  with_device.device = true;
  sa::pmap([&](Array x) { return sa::debug::id_print(x, {}, with_device); })(sa::arange(2.0));
  const std::string platform = sa::devices()[0].platform;
  CHECK(c.take() == "device: " + platform + ":0\n0.0\ndevice: " + platform + ":1\n1.0\n");
}

TEST_CASE("debug: devices of nested maps, of chosen devices, of shard_map") {
  std::vector<std::pair<int, float>> seen;
  const auto note = [&](const sa::HostValues& v) {
    seen.emplace_back(v.device->id, v.arrays[0].item<float>());
  };
  const auto leaf = [&](Array v) {
    sa::debug::callback(note, {v});
    return v;
  };
  sa::pmap([&](Array r) { return sa::pmap(leaf, {.axis_name = "j"})(r); },
           {.axis_name = "i"})(rows(8, {4, 2}));
  std::vector<std::pair<int, float>> expected;
  for (int k = 0; k < 8; k++) expected.emplace_back(k, static_cast<float>(k));
  CHECK(seen == expected);
  seen.clear();
  const auto all = sa::devices();
  sa::pmap(leaf, {.devices = {all[5], all[2]}})(sa::arange(2.0));
  CHECK(seen == std::vector<std::pair<int, float>>{{5, 0.0f}, {2, 1.0f}});
  seen.clear();
  const auto mesh = sa::make_mesh({{"x", 2}, {"y", 2}});
  sa::jit(sa::shard_map(
      [&](Array v) { return sa::reshape(leaf(sa::reshape(v, sa::Shape{})), {1}); },
      {.mesh = mesh, .in_specs = sa::P(sa::axes("y", "x")), .out_specs = sa::P(sa::axes("y", "x"))}))(
      sa::arange(4.0));
  CHECK(seen == std::vector<std::pair<int, float>>{{0, 0.0f}, {1, 2.0f}, {2, 1.0f}, {3, 3.0f}});
}

TEST_CASE("debug: derivatives keep effects and do not repeat them") {
  Captured c;
  const auto loss = [&](Array x) {
    sa::debug::print("x {}", {x}, c.options);
    return sa::sum(sa::jit([&](Array v) {
      sa::debug::print("v {}", {v}, c.options);
      return v * v * v;
    })(x));
  };
  const Array g = sa::grad(loss)(sa::arange(3.0));
  CHECK(c.take() == "x [0. 1. 2.]\nv [0. 1. 2.]\n");
  CHECK(g.to_vector<float>() == std::vector<float>{0, 3, 12});
  auto compiled = sa::jit(sa::grad(loss));
  CHECK(compiled(sa::arange(3.0)).to_vector<float>() == std::vector<float>{0, 3, 12});
  CHECK(c.take() == "x [0. 1. 2.]\nv [0. 1. 2.]\n");
  sa::vmap(sa::grad(loss))(rows(4, {2, 2}));
  CHECK(c.take() == "x [0. 1.]\nx [2. 3.]\nv [0. 1.]\nv [2. 3.]\n");
}

TEST_CASE("debug: an exception of a callback comes out of the call") {
  auto f = sa::jit([](Array x) {
    sa::debug::callback(
        [](const sa::HostValues& v) {
          if (v.arrays[0].item<float>() < 0) throw std::runtime_error("negative");
        },
        {x});
    return x + 1;
  });
  CHECK(f(Array(1.0f)).item<float>() == 2);
  CHECK_THROWS_WITH(f(Array(-1.0f)), "negative");
  CHECK(f(Array(2.0f)).item<float>() == 3);
}

// The variable is read once: a process of its own.
TEST_CASE("debug: SHARDARRAY_DEBUG=time says how long the parts of a compilation take") {
  const std::string command = "SHARDARRAY_DEBUG=time SHARDARRAY_CODEGEN=always " +
                              std::filesystem::canonical("/proc/self/exe").string() +
                              " '--test-case=jit: functions within*' 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (char line[256]; std::fgets(line, sizeof line, pipe) != nullptr;) text += line;
  CHECK(pclose(pipe) == 0);
  for (const char* part :
       {"trace", "simplify", "propagate", "partition", "fuse", "plan", "  kernels", "  addresses", "load"})
    CHECK_MESSAGE(text.find(std::string("shardarray: ") + part) != text.npos, std::string(part));
  const bool generates = std::filesystem::exists(sa::code_plugin_path());
  CHECK((text.find("shardarray: link") != text.npos) == generates);
}

TEST_CASE("inspect_array_sharding: once a compilation, with the sharding that the compiler chose") {
  std::vector<std::string> seen;
  const auto note = [&](const sa::Sharding& s) { seen.push_back(s.to_string()); };
  auto f = sa::jit([&](Array x) {
    const Array y = x * 2;
    sa::inspect_array_sharding(y, note);
    return y + 1;
  });
  const auto mesh = sa::make_mesh({{"data", 8}});
  const auto over8 = sa::NamedSharding(mesh, sa::P("data"));
  f(sa::device_put(sa::arange(16.0), over8));
  f(sa::device_put(sa::arange(16.0), over8));
  CHECK(seen == std::vector<std::string>{"NamedSharding(mesh=Mesh('data': 8), spec=PartitionSpec('data',))"});
  f(sa::device_put(sa::arange(16.0), sa::NamedSharding(mesh, sa::P())));
  CHECK(seen.size() == 2);
  sa::inspect_array_sharding(sa::device_put(sa::arange(16.0), over8), note);
  CHECK(seen.back() == seen.front());
}

TEST_CASE("inspect_array_sharding: functions of one program each call their own") {
  std::string seen;
  const auto made = [&](char who) {
    return sa::jit([&seen, who](const Array& x) {
      sa::inspect_array_sharding(x, [&seen, who](const sa::Sharding&) { seen += who; });
      return x * 2;
    });
  };
  const Array x = sa::arange(4.0);
  const auto a = made('a'), b = made('b');
  for (int k = 0; k < 2; k++)
    for (const auto* f : {&a, &b}) sa::eval((*f)(x));
  CHECK(seen == "ab");
}

}  // namespace debug_test
