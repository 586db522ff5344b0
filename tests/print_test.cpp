// Printing against numpy's text.
#include <sstream>
#include <thread>

#include "golden.h"
#include "messages.h"

namespace print_test {

using namespace shardarray;
using golden::Json;

namespace {

Array array_of(const Json& c) {
  const DType t = golden::dtype_named(c["dtype"]);
  const Shape shape = golden::shape_of(c["shape"]);
  if (c.contains("arange")) return arange(num_elements(shape)).astype(t).reshape(shape);
  if (t == uint64) return array(c["data"].get<std::vector<std::uint64_t>>(), shape);
  if (is_integer(t)) return array(c["data"].get<std::vector<std::int64_t>>(), shape, t);
  return array(golden::numbers(c), shape, t);
}

}  // namespace

TEST_CASE("print: as numpy") {
  bool half = true;  // kernels of this build compute float16
  try {
    ones({2}, float16).astype(float32).block_until_ready();
  } catch (const Error&) { half = false; }
  const Json all = golden::load("print.json");
  for (const Json& c : all["cases"]) {
    if (c["dtype"] == "float16" && !half) continue;
    CAPTURE(c.dump());
    const Json options = c.value("options", Json::object());
    const print_options here({.precision = options.value("precision", 8),
                              .threshold = options.value("threshold", 1000),
                              .edge_items = options.value("edgeitems", 3),
                              .line_width = options.value("linewidth", 75),
                              .suppress = options.value("suppress", false)});
    CHECK(to_string(array_of(c)) == c["text"].get<std::string>());
  }
}

TEST_CASE("print: options are those of a scope and of a thread") {
  const Array x = array({0.125, 1.0 / 3});
  {
    const print_options outer({.precision = 2});
    CHECK(to_string(x) == "[0.12 0.33]");
    {
      const print_options inner({.precision = 1});
      CHECK(to_string(x) == "[0.1 0.3]");
    }
    CHECK(to_string(x) == "[0.12 0.33]");
    CHECK(to_string(x[1]) == "0.33333334");  // of a scalar all digits
    std::thread([&] { CHECK(to_string(x) == "[0.125      0.33333334]"); }).join();
    std::ostringstream os;
    debug::print("{}", {x}, {.stream = &os});
    CHECK(os.str() == "[0.12 0.33]\n");
  }
  CHECK(to_string(x) == "[0.125      0.33333334]");
  CHECK_SAYS(
      print_options({.edge_items = 0}),
      "print_options: precision 8, threshold 1000, edge_items 0, line_width 75. A number has 0 to 100 "
      "digits after the point, an end and a line have something, no threshold is negative. Correct them.",
      Error);
  CHECK_THROWS_AS(print_options({.precision = -1}), Error);
  CHECK_THROWS_AS(print_options({.threshold = -1}), Error);
  CHECK_THROWS_AS(print_options({.line_width = 0}), Error);
}

TEST_CASE("print: streams, sharded arrays, types") {
  const Array x = arange(8).reshape({4, 2}).astype(float32);
  std::ostringstream os;
  os << x;
  CHECK(os.str() == "[[0. 1.]\n [2. 3.]\n [4. 5.]\n [6. 7.]]");
  const Mesh mesh = make_mesh({{"data", 4}, {"model", 2}});
  const Array sharded = device_put(x, NamedSharding(mesh, P("data")));
  CHECK(to_string(sharded) == os.str());
  CHECK(sharded.type_string() == "f32[4@data,2]");
  CHECK(device_put(x, NamedSharding(mesh, P(axes("data", "model")))).type_string() ==
        "f32[4@(data,model),2]");
  CHECK(device_put(x, NamedSharding(mesh, P())).type_string() == "f32[4,2]");
  CHECK(device_put(x, PositionalSharding(create_device_mesh({4, 2}))).type_string() == "f32[4@4,2@2]");
  CHECK((x + 1).type_string() == "f32[4,2]");  // recorded only
  CHECK(Array(true).type_string() == "bool[]");
  std::ostringstream absent;  // as a bias that a layer has not
  absent << Array();
  CHECK(absent.str() == "none");
  CHECK(to_string(Array()) == "none");
  CHECK_THROWS_AS(Array().type_string(), Error);
}

}  // namespace print_test
