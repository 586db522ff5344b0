// Printing against numpy's text.
#include <sstream>

#include "golden.h"

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
    CHECK(to_string(array_of(c)) == c["text"].get<std::string>());
  }
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
  CHECK_THROWS_AS(to_string(Array()), Error);
  CHECK_THROWS_AS(Array().type_string(), Error);
}

}  // namespace print_test
