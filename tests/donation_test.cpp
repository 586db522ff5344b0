// Donated arguments: whose memory results take over, what is copied, and the warnings.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>

#include "memory_helpers.h"

namespace donation_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using namespace memory_helpers;

namespace {

/// What is written to stderr while it lives.
class Captured {
 public:
  Captured() : file_(std::tmpfile()), kept_(dup(2)) {
    std::fflush(stderr);
    dup2(fileno(file_), 2);
  }
  ~Captured() {
    dup2(kept_, 2);
    close(kept_);
    std::fclose(file_);
  }
  std::string text() {
    std::fflush(stderr);
    std::string s;
    std::rewind(file_);
    for (int c; (c = std::fgetc(file_)) != EOF;) s += static_cast<char>(c);
    return s;
  }

 private:
  std::FILE* file_;
  int kept_;
};
/// What f writes to stderr.
template <class F> std::string written(const F& f) {
  Captured c;
  f();
  return c.text();
}

const std::string owned =
    " not reused: another handle owns it. Let that one go before the call: y = device_put(x, s) shares "
    "memory "
    "with x where x lies there, y = device_put(std::move(x), s) leaves no x";

std::string notice(const std::string& text, int line) {
  return "shardarray: " + text + " (" + __FILE__ + ":" + std::to_string(line) + ")\n";
}
}  // namespace

TEST_CASE("memory: a moved array with another owner is copied, and the report says so") {
  const auto f = sa::jit([](const Array& v) { return v + 1; }, {.name = "increment"});
  Array x = sa::block_until_ready(numbers(2000)), keep = x;
  const auto donation = sa::explain(f, sa::donated(x)).donations();
  REQUIRE(donation.size() == 1);
  CHECK_FALSE(donation[0].reused);
  CHECK(donation[0].reason == "another handle owns it");
  Array y;
  int line = 0;
  const std::string said = written([&] {
    line = __LINE__ + 1;
    y = f(std::move(x));
    sa::eval(f(numbers(1)));  // another line, and x stands: it is a name
  });
  CHECK(said == notice("increment: donated argument 0 f32[2000]" + owned, line));
  CHECK(x.is_deleted());
  CHECK(values(keep) == values(numbers(2000)));
  CHECK(values(y) == values(numbers(2000) + 1));
  CHECK(addresses(y) != addresses(keep));
  const auto at = addresses(y);  // sole owner
  CHECK(addresses(f(std::move(y))) == at);
  CHECK(
      error<sa::DonationError>([&] { f(x); }) ==
      "increment: argument 0: Array has been deleted with shape=f32[2000]: it was donated to increment. Pass "
      "it without std::move "
      "to keep it, or use the result.");
}

TEST_CASE("memory: a donated array that a result takes over goes on as that result") {
  const auto f = sa::jit([](const Array& v) { return v + 1; });
  Array x = sa::block_until_ready(numbers(4) * 1);
  Array y = f(std::move(x));
  const auto* node = y.node();
  Array z = f(std::move(y));
  CHECK(z.node() == node);
  CHECK(y.is_deleted());
  CHECK_FALSE(z.is_deleted());
  CHECK(values(z) == Values{-6, -5, -4, -3});
  const Array whole = sa::jit([](const Array& v) { return v.astype(sa::int32); })(std::move(z));
  CHECK(whole.dtype() == sa::int32);
  CHECK(values(whole) == Values{-6, -5, -4, -3});
}

TEST_CASE("memory: a result that is an argument shares its memory with it") {
  const auto f = sa::jit([](const Array& v) { return v + 1; });
  const Array x = sa::block_until_ready(numbers(4) * 1);
  auto [same, twice] = sa::jit([](const Array& v) { return std::pair(v, v * 2); })(x);
  CHECK(addresses(same) == addresses(x));
  CHECK(values(f(std::move(same))) == Values{-7, -6, -5, -4});
  CHECK(values(x) == Values{-8, -7, -6, -5});
  CHECK(values(twice) == Values{-16, -14, -12, -10});
}

TEST_CASE("memory: a shard view and a recorded use own the buffer too") {
  const auto f = sa::jit([](const Array& v) { return v + 1; });
  Array x = sa::block_until_ready(numbers(4));
  const std::vector<sa::Shard> view = x.addressable_shards();
  f(std::move(x));
  CHECK(values(view[0].data) == Values{-8, -7, -6, -5});
  Array y = sa::block_until_ready(numbers(4));
  const Array later = y * 10;  // recorded, not computed
  f(std::move(y));
  CHECK(values(later) == Values{-80, -70, -60, -50});
}

TEST_CASE("memory: donated by option, the buffer dies for every handle") {
  const auto f = sa::jit([](const Array& a, const Array& b) { return std::pair(a + 1, b + 1); },
                         {.donate = sa::Donate::all, .name = "both"});
  Array x = sa::block_until_ready(numbers(4)), y = sa::block_until_ready(numbers(4)), other = x;
  const auto at = addresses(x);
  const auto [a, b] = f(x, y);
  CHECK(addresses(a) == at);
  CHECK(x.is_deleted());
  CHECK(other.is_deleted());
  CHECK(error<sa::DonationError>([&] { values(other); }) != "no such error");
  const Array z = sa::block_until_ready(numbers(4));
  CHECK(error<sa::DonationError>([&] { f(z, z); }) ==
        "both: Attempt to donate the same buffer twice in the same call: arguments 0 and 1 are one array "
        "f32[4]. Pass it once, or "
        "donate none.");
  const auto last = sa::jit([](const Array& v, const Array& w) { return v + w; },
                            {.donate = sa::Donate::all_except_first, .name = "last"});
  CHECK(error<sa::DonationError>([&] { last(z, z); }) ==
        "last: Attempt to use a buffer that was donated in the same call: arguments 0 and 1 are one array "
        "f32[4]. Pass it once, or "
        "donate none.");
  CHECK(values(z) == Values{-8, -7, -6, -5});
}

TEST_CASE("memory: results of one operation are arrays of their own, and may be donated together") {
  const auto sum = sa::jit([](const Array& p, const Array& q) { return p + q; }, {.donate = sa::Donate::all});
  const auto of_tree = sa::jit([](const std::pair<Array, Array>& p) { return p.first + p.second; },
                               {.donate = sa::Donate::all});
  const auto check = [&](const auto& make) {
    const auto want = [&] {
      const std::pair<Array, Array> p = make();
      return values(p.first + p.second);
    }();
    for (const bool computed : {false, true}) {
      std::pair<Array, Array> p = make(), q = make();
      if (computed) sa::block_until_ready(std::tuple(p, q));
      CHECK(values(sum(p.first, p.second)) == want);
      CHECK(values(of_tree(q)) == want);
    }
  };
  const Array x = sa::block_until_ready(numbers(4));
  using Two = std::pair<Array, Array>;
  check([&] {
    const auto sorted = sa::sort({x, -x});
    return Two(sorted[0], sorted[1]);
  });
  check([&] {
    return sa::cond(
        sa::sum(x) > 0, [](const Array& v) { return Two(v + 1, v * 2); },
        [](const Array& v) { return Two(v - 1, v * 3); }, x);
  });
  check([&] {
    const auto [carry, ys] =
        sa::scan([](const Array& c, const Array& v) { return Two(c + v, c * v); }, sa::zeros({}), x);
    return Two(carry + sa::zeros(4), ys);
  });
  check([&] {
    const auto [carry, rows] =
        sa::scan([](const Array& c, const Array& v) { return Two(c + v, c[0] * v); }, sa::zeros(4), x);
    return Two(carry, rows[1]);
  });
}

TEST_CASE("memory: what an option donates in vain is said, as what is moved in vain") {
  const auto f =
      sa::jit([](const Array& v) { return sa::sum(v); }, {.donate = sa::Donate::all, .name = "total"});
  const Array x = sa::block_until_ready(sa::device_put(numbers(2000), sa::devices()[0]));
  const int line = __LINE__ + 1;
  const std::string said = written([&] { CHECK(values(f(x)) == values(f(x))); });
  CHECK(said ==
        notice("total: donated argument 0 f32[2000] not reused: no output of that size and sharding", line));
  CHECK_FALSE(x.is_deleted());
}

TEST_CASE("memory: of more than 4 KB that is given away in vain something is said, of less nothing") {
  const auto f = sa::jit([](const Array& v) { return sa::sum(v); }, {.donate = sa::Donate::all});
  for (const std::int64_t n : {1024, 1025}) {
    const Array x = sa::block_until_ready(sa::device_put(numbers(n), sa::devices()[0]));
    CHECK(written([&] { sa::eval(f(x)); }).empty() == (n == 1024));
  }
}

TEST_CASE(
    "memory: of temporaries that are given away in vain nothing is said, of names once for each call site") {
  const sa::Sharding rows = sa::NamedSharding(sa::make_mesh({{"i", 8}}), P("i"));
  const auto f = sa::jit([](const Array& v, const Array& w) { return v + sa::sum(w); }, {.name = "added"});
  const auto total =
      sa::jit([](const std::pair<Array, Array>& p) { return sa::sum(p.first + p.second); }, {.name = "pair"});
  Array x = sa::device_put(numbers(4000), rows);
  const Array b = sa::block_until_ready(sa::device_put(numbers(9000), rows));
  const std::string of_temporaries = written([&] {
    for (int k = 0; k < 2; k++) {
      x = f(std::move(x), b + 1);
      x = f(std::move(x), sa::device_put(numbers(5000), rows));
      x = f(std::move(x), b.astype(sa::float32));  // b itself
      x = f(f(std::move(x), b * 2), Array(b));
      sa::eval(f(x, x.at(0).set(1)), total(std::pair(b, b)));
      CHECK(f(x, b - 1).shape() == sa::Shape{4000});
      values(f(x, b - 2));
    }
  });
  CHECK(of_temporaries == "");
  const Array keep = x;
  int line = 0;
  const std::string of_names = written([&] {
    line = __LINE__ + 2;
    for (int k = 0; k < 3; k++) {
      Array y = x;
      y = f(std::move(y), b);
      std::pair named(b, b);
      const Array sum = total(std::move(named));
      named = {b, b};
    }
  });
  const std::string rest = " not reused: no output of that size and sharding";
  // what `named` held ends back to front
  CHECK(of_names == notice("added: donated argument 0 f32[4000]" + owned, line + 1) +
                        notice("pair: donated argument 0[1] f32[9000]" + rest, line + 3) +
                        notice("pair: donated argument 0[0] f32[9000]" + rest, line + 3));
  const std::string elsewhere = written([&] {
    Array y = x;
    line = __LINE__ + 1;
    y = f(std::move(y), b);
  });
  CHECK(elsewhere == notice("added: donated argument 0 f32[4000]" + owned, line));
  CHECK_FALSE(keep.is_deleted());
}

TEST_CASE("memory: one array that is given away as two arguments is said to be so") {
  const auto f =
      sa::jit([](const Array& a, const Array& b) { return std::pair(a * 2, b * 3); }, {.name = "two"});
  Array x = sa::block_until_ready(sa::device_put(numbers(4000), sa::devices()[0]));
  int line = 0;
  const std::string said = written([&] {
    Array y = x;
    line = __LINE__ + 1;
    const auto [p, q] = f(std::move(x), std::move(y));
    x = y = p;
    CHECK(values(q) == values(numbers(4000) * 3));
  });
  const auto of = [&](int k) {
    return notice(
        "two: donated argument " + std::to_string(k) + " f32[4000] not reused: it is argument " +
            std::to_string(1 - k) +
            " as well. Pass it once; where both begin as one array and go on apart, only this call copies",
        line);
  };
  CHECK((said == of(0) + of(1) || said == of(1) + of(0)));
}

TEST_CASE("memory: one argument is taken, another one that was given in vain has an owner elsewhere") {
  const auto f = sa::jit([](const Array& a, const Array& b) { return std::pair(a * 2, b * 3); },
                         {.donate = sa::Donate::all, .name = "both"});
  const auto placed = [](int seed) {
    return sa::block_until_ready(sa::device_put(numbers(4000) * seed, sa::devices()[0]));
  };
  for (const bool second : {false, true}) {
    Array a = placed(2), b = placed(3);
    const Array pending = (second ? a : b) + 1;
    int line = 0;
    const std::string said = written([&] {
      line = __LINE__ + 1;
      const auto [p, q] = f(a, b);
      CHECK(values(p) == values(numbers(4000) * 4));
      CHECK(values(q) == values(numbers(4000) * 9));
    });
    CHECK(said ==
          notice("both: donated argument " + std::to_string(second ? 0 : 1) + " f32[4000]" + owned, line));
    CHECK(values(pending) == values(numbers(4000) * (second ? 2 : 3) + 1));
  }
}

TEST_CASE("memory: where a result is left that would have taken donated memory") {
  const sa::Mesh mesh = sa::make_mesh({{"i", 8}});
  const Array x = sa::device_put(numbers(4000), sa::NamedSharding(mesh, P("i")));
  const auto whole = sa::jit([](const Array& v) { return std::pair(sa::sum(v), v * 2); },
                             {.donate = sa::Donate::all, .out_shardings = sa::NamedSharding(mesh, P())});
  CHECK(sa::explain(whole, x).donations()[0].reason ==
        "no output of that size and sharding: result 1 lies as [{}], not [{i}]. out_shardings says where it "
        "is left");
  const auto shorter =
      sa::jit([](const Array& v) { return v[sa::slice(0, 2000)]; }, {.donate = sa::Donate::all});
  CHECK(sa::explain(shorter, x).donations()[0].reason == "no output of that size and sharding");
}

TEST_CASE("memory: device_put shares memory with what lies there already, unless that is moved in") {
  const sa::Sharding everywhere = sa::NamedSharding(sa::make_mesh({{"x", 2}}), P());
  const auto step =
      sa::jit([](const Array& v) { return v + 1; }, {.donate = sa::Donate::all, .name = "step"});
  Array x = sa::block_until_ready(numbers(2000));
  int line = 0;
  const std::string shared = written([&] {
    const Array y = sa::device_put(x, everywhere);
    line = __LINE__ + 1;
    sa::eval(step(y));
  });
  CHECK(shared == notice("step: donated argument 0 f32[2000]" + owned, line));
  CHECK(written([&] {
          const Array y = sa::device_put(std::move(x), everywhere);
          sa::eval(step(y));
        }) == "");
}

TEST_CASE(
    "memory: arrays that are made of pieces are given away as any others, and what is kept is not said to be "
    "somebody's") {
  const auto step =
      sa::jit([](const Array& v) { return v + 1; }, {.donate = sa::Donate::all, .name = "step"});
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const auto piece = [](std::int64_t n, int device) {
    return sa::block_until_ready(
        sa::device_put(numbers(n) * 1, sa::devices()[static_cast<std::size_t>(device)]));
  };
  const auto pieces = [&](std::int64_t n) {
    std::vector<Array> all;
    for (int d = 0; d < 8; d++) all.push_back(piece(n, d));
    return all;
  };
  const sa::NamedSharding rows(mesh, P("x")), whole(mesh, P());
  const Values want = values(sa::tile(numbers(2000), {8}) + 1);
  for (const bool of_one_process : {false, true}) {
    Array x = of_one_process ? sa::make_array_from_process_local_data(rows, sa::tile(numbers(2000), {8}))
                             : sa::make_array_from_single_device_arrays({16000}, rows, pieces(2000));
    CHECK(sa::explain(step, x).donations()[0].reused);
    const auto at = addresses(x);
    CHECK(written([&] {
            const Array y = step(x);
            CHECK(addresses(y) == at);
            CHECK(values(y) == want);
          }) == "");
    CHECK(x.is_deleted());
  }
  // Replicas in separate buffers are not the one buffer that a result has.
  Array replicas = sa::make_array_from_single_device_arrays({2000}, whole, pieces(2000));
  const char* const apart = "its replicas have memory of their own";
  CHECK_FALSE(sa::explain(step, replicas).donations()[0].reused);
  CHECK(sa::explain(step, replicas).donations()[0].reason == apart);
  int line = 0;
  const std::string of_replicas = written([&] {
    line = __LINE__ + 1;
    CHECK(values(step(replicas)) == values(numbers(2000) + 1));
  });
  CHECK(of_replicas == notice(std::string("step: donated argument 0 f32[2000] not reused: ") + apart, line));
  std::vector<Array> one_buffer = {piece(2000, 0)};
  for (std::size_t d = 1; d < 8; d++) one_buffer.push_back(sa::device_put(one_buffer[0], sa::devices()[d]));
  Array of_one = sa::make_array_from_single_device_arrays({16000}, rows, one_buffer);
  one_buffer.clear();
  CHECK(sa::explain(step, of_one).donations()[0].reason == "its pieces share memory");
  CHECK(written([&] { CHECK(values(step(of_one)) == want); }).find("its pieces share memory") !=
        std::string::npos);
  Array foreign = sa::from_dlpack(sa::to_dlpack(sa::block_until_ready(numbers(2000) * 1)));
  const char* const lent = "its memory is not the library's";
  CHECK(sa::explain(step, foreign).donations()[0].reason == lent);
  const std::string of_foreign = written([&] {
    line = __LINE__ + 1;
    sa::eval(step(foreign));
  });
  CHECK(of_foreign == notice(std::string("step: donated argument 0 f32[2000] not reused: ") + lent, line));
}

// What one caller's program keeps says nothing of another's types.
TEST_CASE("memory: what is given away gets the result's type, whoever had the program compiled") {
  const auto add = sa::jit([](const Array& a, const Array& b) { return a + b; });
  const auto weak = sa::jit([](const Array& m) { return sa::where(m, 1.5, 0.5); });
  for (const bool weak_first : {false, true}) {
    const std::int64_t n = weak_first ? 8 : 9;  // a program of its own
    const Array y = sa::device_put(sa::ones({n}), sa::devices()[0]);
    const Array mask = sa::device_put(sa::ones({n}), sa::devices()[0]) > 0;
    for (const bool is_weak : {weak_first, !weak_first}) {
      Array x = is_weak ? weak(mask) : sa::device_put(sa::ones({n}), sa::devices()[0]);
      REQUIRE(x.weak_type() == is_weak);
      const Array sum = add(std::move(x), y);
      CHECK_FALSE(sum.weak_type());
      CHECK((sum * sa::ones({n}, sa::bfloat16)).dtype() == sa::float32);
    }
  }
}

}  // namespace donation_test
