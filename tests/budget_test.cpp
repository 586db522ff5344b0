// A limit on a program's memory per device: what does not fit is refused before it runs, and a plan that fits is preferred.
#include <doctest/doctest.h>
#include <shardarray/shardarray.h>

#include <thread>

#include "process_helpers.h"

namespace budget_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::testing::thrown;

TEST_CASE(
    "budget: a program that needs more throws before anything runs, and says what is large and what would "
    "help") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::ones({64, 1024}), sa::NamedSharding(mesh, P("x"))),
              whole = sa::device_put(sa::ones({1024, 1024}), sa::NamedSharding(mesh, P()));
  int runs = 0;
  const auto f = sa::jit([&](const Array& a, const Array& w) {
    sa::debug::callback([&](const sa::HostValues&) { runs++; });
    return sa::sum(sa::tanh(sa::matmul(a, w)));
  });
  const std::int64_t needs = sa::explain(f, x, whole).peak_bytes_per_device;
  CHECK(needs > 4 << 20);
  {
    const sa::policy::budget here(1 << 20);
    const std::string text = thrown([&] { sa::eval(f(x, whole)); });
    CAPTURE(text);
    CHECK(text.find(": a device needs 42") != std::string::npos);
    CHECK(text.find(" KB, and may need 1048.6 KB. Save 3") != std::string::npos);
    CHECK(text.find("\nlargest pieces\n  4194.3 KB  f32[1024,1024] argument 1\n") != std::string::npos);
    CHECK(
        text.find("up to 3670.0 KB: shard argument 1 f32[1024,1024] over the 8 devices that each hold it") !=
        std::string::npos);
    CHECK(runs == 0);
    sa::eval(x + 1);                                                 // 64 KiB a device
    CHECK(sa::explain(f, x, whole).peak_bytes_per_device == needs);  // it is shown all the same
    {
      const sa::policy::budget more(needs);
      sa::eval(f(x, whole));
      CHECK(runs == 1);
      const sa::policy::budget none(0);
      sa::eval(f(x, whole));
    }
    CHECK_THROWS_AS(sa::eval(f(x, whole)),
                    sa::OutOfMemory);  // the guard around it again, and a cached program is none
    std::thread([&] { sa::eval(f(x, whole)); }).join();  // the thread's own
    CHECK_THROWS_AS(sa::eval(sa::matmul(x, whole + 1)), sa::OutOfMemory);
  }
  // It applies to what runs while it lives, whenever that was recorded.
  Array before = sa::matmul(x, whole), after;
  {
    const sa::policy::budget here(1 << 20);
    CHECK_THROWS_AS(sa::eval(before), sa::OutOfMemory);
    after = sa::matmul(x, whole);
  }
  sa::eval(before);
  sa::eval(after);
  const auto inside = sa::jit([&](const Array& a, const Array& w) {
    const sa::policy::budget here(1 << 20);  // while it is traced
    return sa::matmul(a, w);
  });
  sa::eval(inside(x, whole));
  sa::eval(f(x, whole));
  CHECK(runs == 4);
  CHECK(thrown([] { const sa::policy::budget here(-1); }) ==
        "policy::budget: -1 bytes. A device has some, 0 means no limit. Give what it has.");
}

TEST_CASE("budget: of placements that move more, one that fits is taken") {
  // The right operand, sharded over y, would be gathered; resharded to rows it takes less memory, but then the result has to move.
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array left = sa::device_put(sa::ones({48, 16}), sa::NamedSharding(mesh, P("x"))),
              right = sa::device_put(sa::ones({16, 256}), sa::NamedSharding(mesh, P("y")));
  const auto f = sa::jit([](const Array& a, const Array& b) { return sa::matmul(a, b); },
                         {.out_shardings = sa::NamedSharding(mesh, P("x"))});
  const std::string any = sa::transfers(f, left, right);
  const std::int64_t most = sa::explain(f, left, right).peak_bytes_per_device;
  CHECK(any.find("all_gather{y} 8192 B") != std::string::npos);
  std::int64_t least = 0;
  {
    const sa::policy::budget here(1);
    least = sa::explain(f, left, right).peak_bytes_per_device;
    CHECK(least < most);
    CHECK_THROWS_AS(sa::eval(f(left, right)), sa::OutOfMemory);
  }
  Array product;
  {
    const sa::policy::budget here(least);
    CHECK(sa::transfers(f, left, right) != any);
    product = sa::block_until_ready(f(left, right));
  }
  CHECK(sa::array_equal(product, sa::full({48, 256}, 16.0f)));
}

TEST_CASE("budget: what the library does for itself needs none") {
  const Array rows = sa::block_until_ready(sa::arange(70));
  const sa::policy::budget here(100);
  std::size_t count = 0;
  for (const auto& [x] : sa::data::loader(std::tuple(rows), {.batch = 7, .seed = 1}))
    count += x.to_vector<int>().size();
  CHECK(count == 70);
}

TEST_CASE("budget: tune leaves out what does not fit, and says so where nothing does") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array a = sa::ones({64, 64}), b = sa::ones({64, 64});
  sa::eval(std::pair(a, b));
  const auto tuned = [&](std::int64_t bytes) {
    const sa::policy::budget here(bytes);  // the machine is measured outside of it
    return sa::tune([](const Array& x, const Array& y) { return sa::matmul(x, y); },
                    sa::TuneOptions{.mesh = mesh, .measured = 2}, a, b);
  };
  const auto enough = tuned(1 << 20);
  CHECK(enough.choices().size() > 2);
  CHECK(enough.choices()[0].measured > 0);
  for (const sa::TunedChoice& c : tuned(30000).choices()) CHECK(c.peak_bytes_per_device <= 30000);
  CHECK_THROWS_AS((void)tuned(3000), sa::OutOfMemory);
}

}  // namespace budget_test
