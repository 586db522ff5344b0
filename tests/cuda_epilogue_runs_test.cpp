// Programs whose large products are joined with the loops behind them, on the fake GPU (tests/cuda/), in processes of their own: the
// numbers of both steps, which of the two ways is taken, and what is remembered of that.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cuda_fake.h"
#include "platform_programs.h"
#include "process_helpers.h"
#include "scale.h"

namespace cuda_epilogue_runs_test {

namespace sa = shardarray;
using namespace sa::testing;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

const std::string settings_of_all =
    "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CODEGEN=off SHARDARRAY_FAKE_CUBLASLT=1 "
    "SHARDARRAY_FAKE_OWN_PRODUCTS=0 "
    "SHARDARRAY_FAKE_GUESSED_PRODUCTS=1 ";
const std::string no_disk = settings_of_all + "SHARDARRAY_CACHE_DIR= ",
                  one = "SHARDARRAY_CUDA_LOGICAL_DEVICES=1 ";

std::uint64_t epilogues() { return fake_control().products(3); }

/// Each in one program, and with the product in a program of its own.
struct Layer {
  const char* name;
  Array (*of_product)(const Array& c, const Array& b);
  bool relu;
};
constexpr Layer layers[] = {
    {"bias", [](const Array& c, const Array& b) { return c + b; }, false},
    {"relu", [](const Array& c, const Array&) { return sa::relu(c); }, true},
    {"both", [](const Array& c, const Array& b) { return sa::relu(b + c); }, true},
    {"maximum", [](const Array& c, const Array& b) { return sa::maximum(0.0f, c + b); }, true}};

std::vector<std::uint64_t> bits_of(const Array& x) {
  std::vector<std::uint64_t> all;
  for (const double v : x.to_vector<double>())
    all.push_back(std::isnan(v) ? 0x7ff8 : std::bit_cast<std::uint64_t>(v));
  return all;
}

/// Runs the layer both ways, again and again, so that it becomes a graph; how many calls of the library had an epilogue in the last
/// run.
std::uint64_t check_layer(const Layer& layer, const std::function<Array(const Array&, const Array&)>& product,
                          const Array& x, const Array& w, const Array& b) {
  CAPTURE(layer.name);
  const auto together = sa::jit(
      [&](const Array& p, const Array& q, const Array& r) { return layer.of_product(product(p, q), r); });
  const auto first = sa::jit(product);
  const auto second = sa::jit(layer.of_product);
  const auto want = bits_of(second(sa::block_until_ready(first(x, w)), b));
  std::uint64_t last = 0;
  std::vector<Array> alive;
  for (int run = 0; run < 7; run++) {
    const std::uint64_t before = epilogues();
    alive.push_back(sa::block_until_ready(together(x, w, b)));
    last = epilogues() - before;
    if (run == 4) alive.clear();  // addresses return
    CHECK(bits_of(sa::block_until_ready(together(x, w, b))) == want);
  }
  return last;
}
std::uint64_t check_all(const std::function<Array(const Array&, const Array&)>& product, const Array& x,
                        const Array& w, const Array& b) {
  std::uint64_t all = 0;
  for (const Layer& l : layers) all += check_layer(l, product, x, w, b) > 0 ? 1 : 0;
  return all;
}
Array multiplied(const Array& x, const Array& w) { return sa::matmul(x, w); }
Array in_tf32(const Array& x, const Array& w) {
  const sa::tf32 on(true);
  return sa::matmul(x, w);
}
Array in_order(const Array& x, const Array& w) {
  const sa::reproducible on(true);
  return sa::matmul(x, w);
}

struct Operands {
  Array x = sa::sin(numbers({24, 20})), w = sa::cos(numbers({20, 16})), b = sa::sin(numbers({16}));
};

}  // namespace

TEST_CASE("cuda process: products of 16 bits by one call each" * doctest::skip()) {
  const Operands o;
  for (const sa::DType t : {sa::bfloat16, sa::float16}) {
    const Array x = o.x.astype(t), w = o.w.astype(t);
    const auto both = sa::jit([](const Array& p, const Array& q) { return sa::matmul(p, q); });
    // The library adds what is widened in the same order.
    const auto wide = [](const Array& a) { return sa::block_until_ready(a.astype(sa::float32)); };
    const auto want = bits_of(sa::block_until_ready(multiplied(wide(x), wide(w))).astype(t));
    for (int run = 0; run < 4; run++) {
      const std::uint64_t before = epilogues();
      CHECK(bits_of(sa::block_until_ready(both(x, w))) == want);
      if (run > 0) CHECK(epilogues() - before == 1);  // at first it is tried
    }
    const auto scaled = sa::jit([](const Array& p, const Array& q) { return sa::matmul(p, q) * 2; });
    const std::uint64_t before = epilogues();
    sa::block_until_ready(scaled(x, w));
    CHECK(epilogues() == before);
  }
}

TEST_CASE("cuda process: layers by one call each" * doctest::skip()) {
  const Operands o;
  constexpr std::uint64_t every = std::size(layers);
  CHECK(check_all(multiplied, o.x, o.w, o.b) == every);
  CHECK(check_all(in_tf32, o.x, o.w, o.b) == every);
  const auto wide = [](const Array& x) { return x.astype(sa::float64); };
  CHECK(check_layer(layers[0], multiplied, wide(o.x), wide(o.w), wide(o.b)) == 1);
  CHECK(check_layer(layers[2], multiplied, wide(o.x), wide(o.w), wide(o.b)) == 1);
  // Batches: one bias, and one for each.
  const Array many = sa::sin(numbers({5, 12, 20}));
  CHECK(check_all(multiplied, many, o.w, o.b) == every);
  const Array weights = sa::cos(numbers({5, 20, 16}));
  CHECK(check_all(multiplied, many, weights, o.b) == every);
  CHECK(check_layer(layers[2], multiplied, many, weights, sa::sin(numbers({5, 1, 16}))) == 1);
  // Along the rows; read once more; in the order of `reproducible`.
  CHECK(check_layer(layers[0], multiplied, o.x, o.w, sa::sin(numbers({24, 1}))) == 0);
  const auto twice = sa::jit([](const Array& x, const Array& w, const Array& b) {
    const Array c = sa::matmul(x, w);
    return std::pair(sa::relu(c + b), sa::sort(c, 0));
  });
  const std::uint64_t before = epilogues();
  sa::block_until_ready(twice(o.x, o.w, o.b));
  CHECK(epilogues() == before);
  CHECK(check_all(in_order, o.x, o.w, o.b) == 0);
  // NaNs stay.
  const Array bad = sa::where(sa::reshape(sa::arange(480.0), {24, 20}) > 477.0f,
                              std::numeric_limits<float>::quiet_NaN(), o.x);
  REQUIRE(sa::sum(sa::isnan(bad)).item<int>() > 0);
  CHECK(check_all(multiplied, bad, o.w, o.b) == every);
}

TEST_CASE("cuda process: layers cut over devices" * doctest::skip()) {
  const Operands o;
  std::uint64_t joined = 0;
  const auto put = [](const Array& x, const P& spec) { return platform_test::put(x, "cuda", spec); };
  const std::vector<P> all_rows = {P(), P("x", "y"), P("x"), P(sa::none, "y")},
                       all_columns = {P(), P(sa::none, "y"), P("y")};
  const std::size_t placements = full_scale()                             ? 4
                                 : sa::devices("cuda").back().memory == 0 ? 2
                                                                          : 1;  // several GPUs take longer
  for (std::size_t r = 0; r < std::min(placements, all_rows.size()); r++)
    for (std::size_t c = 0; c < std::min(placements, all_columns.size()); c++)
      joined += check_all(multiplied, put(o.x, all_rows[r]), put(o.w, all_columns[c]), put(o.b, P()));
  joined +=
      check_all(multiplied, put(sa::sin(numbers({8, 12, 20})), P("x")), put(o.w, P()), put(o.b, P("y")));
  // A loop's body is a program of its own.
  const auto repeated = [](bool together) {
    return sa::jit([together](const Array& v, const Array& w, const Array& b) {
      return sa::fori_loop(
          0, 4,
          [&](const Array&, const Array& c) {
            const Array p = sa::matmul(c, w);
            return together ? sa::relu(p + b) : sa::relu(sa::flip(sa::flip(p, 0), 0) + b);
          },
          v);
    });
  };
  const Array v = put(sa::sin(numbers({16, 16})), P("x")), w = put(sa::cos(numbers({16, 16})) * 0.2f, P()),
              b = put(o.b, P());
  CHECK(bits_of(repeated(true)(v, w, b)) == bits_of(repeated(false)(v, w, b)));
  std::printf("joined %d\n", static_cast<int>(joined));
}

TEST_CASE("cuda process: how a layer is made" * doctest::skip()) {
  const Operands o;
  for (const Layer& layer : layers) {
    const auto f = sa::jit([&](const Array& x, const Array& w, const Array& b) {
      return layer.of_product(sa::matmul(x, w), b);
    });
    const std::uint64_t start = fake_control().products(0);
    sa::block_until_ready(f(o.x, o.w, o.b));
    const std::uint64_t made = fake_control().products(0), joint = epilogues(),
                        launched = fake_control().launches();
    sa::block_until_ready(f(o.x, o.w, o.b));
    std::printf("%s: %d tried, %d of %d with its loop, %d kernels\n", layer.name,
                static_cast<int>(made - start - 1), static_cast<int>(epilogues() - joint),
                static_cast<int>(fake_control().products(0) - made),
                static_cast<int>(fake_control().launches() - launched));
  }
}

TEST_CASE("cuda process: layers without memory to try them" * doctest::skip()) {
  constexpr std::size_t all = std::size_t{1} << 30, step = std::size_t{1} << 18;
  const Array b = sa::block_until_ready(sa::sin(numbers({16})));
  int plain = 0;
  bool joint = false;
  for (int k = 0; k < 64 && !joint; k++) {  // of another size each time, so that it is tried anew
    const Array x = sa::block_until_ready(sa::sin(numbers({24, 20 + k}))),
                w = sa::block_until_ready(sa::cos(numbers({20 + k, 16})));
    fake_control().set_capacity(0);
    CHECK(thrown([] { sa::block_until_ready(sa::zeros({1 << 26})); }) != "");  // gives back what nobody has
    fake_control().set_capacity(static_cast<std::size_t>(k) * step);
    const std::uint64_t before = epilogues();
    const auto layer = [&](int n) {
      return sa::jit([n](const Array& p, const Array& q, const Array& r) {
        return layers[n].of_product(sa::matmul(p, q), r);
      })(x, w, b);
    };
    Array y;
    bool made = false;
    try {
      y = sa::block_until_ready(layer(2));
      made = true;
    } catch (const sa::OutOfMemory&) {}
    fake_control().set_capacity(all);
    if (!made) continue;
    joint = epilogues() > before;
    CHECK(bits_of(y) == bits_of(sa::relu(sa::block_until_ready(sa::matmul(x, w)) + b)));
    if (joint) continue;
    plain++;
    sa::block_until_ready(layer(3));  // the same in another program: it is tried when there is memory
    CHECK(epilogues() > before);
  }
  CHECK((plain > 0 && joint));
}

TEST_CASE("cuda process: layers whose calls fail" * doctest::skip()) {
  int named = 0;
  std::uint64_t joint = 0;
  for (int k = 0, reached = 1; reached != 0; k += full_scale() ? 1 : 1 + k / 3) {
    // Of another size each time, so that it is tried anew.
    const Array x = sa::sin(numbers({24, 20 + k})), w = sa::cos(numbers({20 + k, 16})),
                b = sa::sin(numbers({16}));
    const auto want = bits_of(sa::relu(sa::block_until_ready(sa::matmul(x, w)) + b));
    const auto f = sa::jit(
        [](const Array& p, const Array& q, const Array& r) { return sa::relu(sa::matmul(p, q) + r); });
    const std::uint64_t calls = fake_control().calls();
    fake_control().fail_call(k, 1);
    try {
      for (int run = 0; run < 5; run++) {
        const bool right = bits_of(f(x, w, b)) == want;
        CHECK_MESSAGE(right, k);
      }
    } catch (const sa::Error& e) {
      named++;
      CHECK_MESSAGE(std::string(e.what()).find(fake_control().last_call()) != std::string::npos, e.what());
    }
    reached = fake_control().calls() - calls > static_cast<std::uint64_t>(k) ? 1 : 0;
    fake_control().fail_call(-1, 0);
    const std::uint64_t before = epilogues();
    const bool right = bits_of(f(x, w, b)) == want;
    CHECK_MESSAGE(right, k);
    joint += epilogues() - before;
  }
  CHECK(named > 5);
  std::printf("joined %d\n", static_cast<int>(joint));
}

TEST_CASE("cuda epilogue runs: layers of every float have the numbers of a product and a loop") {
  text_on_fake("cuda process: layers by one call each", no_disk + one + "SHARDARRAY_FAKE_EPILOGUES=fast");
  text_on_fake("cuda process: products of 16 bits by one call each",
               no_disk + one + "SHARDARRAY_FAKE_EPILOGUES=fast");
}

TEST_CASE("cuda epilogue runs: cut over devices of one GPU and of several" *
          doctest::skip(!shardarray::testing::full_scale())) {
  const std::string name = "cuda process: layers cut over devices",
                    fast = no_disk + "SHARDARRAY_FAKE_EPILOGUES=fast ";
  for (const char* const gpus : {"SHARDARRAY_FAKE_GPUS=1 SHARDARRAY_CUDA_LOGICAL_DEVICES=8",
                                 "SHARDARRAY_FAKE_GPUS=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=1"}) {
    const std::string text = text_on_fake(name, fast + gpus);
    CHECK_MESSAGE(text.find("joined 0\n") == text.npos, text);
  }
}

TEST_CASE("cuda epilogue runs: the faster way is taken, a launch falls away, and it is kept on the disk") {
  const std::string name = "cuda process: how a layer is made";
  const TemporaryFolder one_disk, other_disk, third_disk;
  const auto text = [&](const TemporaryFolder& disk, const std::string& settings) {
    return text_on_fake(name, settings_of_all + one + "SHARDARRAY_CACHE_DIR=" + disk.path + " " + settings);
  };
  const auto says = [](const std::string& all, const char* layer, int joint, int kernels, bool tried) {
    const std::string end = ", " + std::to_string(joint) + " of 1 with its loop, " + std::to_string(kernels) +
                            " kernels\n",
                      start = std::string(layer) + ": ";
    const std::size_t at = all.find("\n" + start) + 1 + start.size();
    const std::size_t digits = all.find(' ', at);
    CHECK_MESSAGE(all.compare(digits, 6 + end.size(), " tried" + end) == 0, all);
    CHECK_MESSAGE((std::stoi(all.substr(at)) > 0) == tried, all);
  };
  const std::string fast = text(one_disk, "SHARDARRAY_FAKE_EPILOGUES=fast");
  for (const char* const layer : {"bias", "relu", "both"}) says(fast, layer, 1, 0, true);
  says(fast, "maximum", 1, 0, false);  // the same as `both`
  const std::string slow = text(other_disk, "SHARDARRAY_FAKE_EPILOGUES=slow");
  for (const char* const layer : {"bias", "relu", "both"}) says(slow, layer, 0, 1, true);
  // A library that loses NaNs is not asked for the larger of a result and 0.
  const std::string lossy = text(third_disk, "SHARDARRAY_FAKE_EPILOGUES=nan");
  says(lossy, "bias", 1, 0, true);
  for (const char* const layer : {"relu", "both"}) says(lossy, layer, 0, 1, true);
  // Other processes know, whatever is true by then.
  for (const Layer& l : layers) {
    says(text(one_disk, "SHARDARRAY_FAKE_EPILOGUES=slow"), l.name, 1, 0, false);
    says(text(other_disk, "SHARDARRAY_FAKE_EPILOGUES=fast"), l.name, 0, 1, false);
    says(text(third_disk, "SHARDARRAY_FAKE_EPILOGUES=fast"), l.name, l.relu ? 0 : 1, l.relu ? 1 : 0, false);
    // A library without them, and products that are not tried.
    says(text(one_disk, ""), l.name, 0, 1, false);
    says(text_on_fake(name,
                      no_disk + one + "SHARDARRAY_FAKE_EPILOGUES=fast SHARDARRAY_FAKE_GUESSED_PRODUCTS=1e6"),
         l.name, 0, 1, false);
  }
}

TEST_CASE("cuda epilogue runs: without memory to try them, and whichever call fails" *
          doctest::skip(!shardarray::testing::full_scale())) {
  text_on_fake("cuda process: layers without memory to try them",
               no_disk + one + "SHARDARRAY_FAKE_EPILOGUES=fast_of_all");
  const std::string text =
      text_on_fake("cuda process: layers whose calls fail", no_disk + one + "SHARDARRAY_FAKE_EPILOGUES=free");
  CHECK_MESSAGE(text.find("joined 0\n") == text.npos, text);
}

}  // namespace cuda_epilogue_runs_test
