// Random numbers against JAX's: the cases of rng.json, in both modes; any sharding gives the same.
#include <algorithm>

#include "golden.h"
#include "messages.h"

namespace random_test {

using namespace shardarray;
using golden::Json;

namespace {

constexpr double ulp32 = 1.2e-7, ulp64 = 2.3e-16;

const Json& cases() {
  static const Json all = golden::load("rng.json")["cases"];
  return all;
}
// Calls f(attrs, outputs) for the cases of one name, in their mode.
template <class F> void each(const std::string& name, F f) {
  int seen = 0;
  for (const Json& c : cases()) {
    if (c["name"] != name || !c.contains("outputs")) continue;
    const Json& a = c["attrs"];
    const random::partitionable mode(a.value("partitionable", true));
    CAPTURE(a.dump());
    f(a, c["outputs"]);
    seen++;
  }
  CHECK_MESSAGE(seen > 0, name);
}
Array key_of(const Json& attrs) { return random::key(attrs["seed"].get<std::int32_t>()); }
DType dtype_of_case(const Json& a) { return golden::dtype_named(a["dtype"]); }
// Within a few units in the last place: logarithms and erf_inv differ from JAX's polynomials by that.
bool near(const Array& x, const Json& expected, double ulps = 4) {
  const double ulp = x.dtype() == float64   ? ulp64
                     : x.dtype() == float32 ? ulp32
                     : x.dtype() == float16 ? 1e-3
                                            : 8e-3;
  return golden::close(x, expected, ulps * ulp, ulps * ulp / 4);
}
// Complex numbers stand in the file as pairs: the first or the second ones.
Json parts(const Json& expected, std::size_t which) {
  Json r = expected;
  for (Json& v : r["data"]) v = Json(v[which]);
  return r;
}

}  // namespace

TEST_CASE("random: keys") {
  for (const char* name : {"key", "PRNGKey"})
    each(name, [](const Json& a, const Json& out) {
      const auto seed = a["seed"].is_number_unsigned()
                            ? static_cast<std::int64_t>(a["seed"].get<std::uint64_t>())
                            : a["seed"].get<std::int64_t>();
      // With x64 a 64-bit seed fills both words.
      const Array k =
          a["x64"].get<bool>() ? random::key(seed) : random::PRNGKey(static_cast<std::int32_t>(seed));
      CHECK(golden::same_bits(k, out));
    });
}

TEST_CASE("random: split and fold_in") {
  each("split", [](const Json& a, const Json& out) {
    const Array k = key_of(a);
    CHECK(golden::same_bits(a["num"].is_array() ? random::split(k, golden::shape_of(a["num"]))
                                                : random::split(k, a["num"].get<std::int64_t>()),
                            out));
  });
  each("fold_in", [](const Json& a, const Json& out) {
    const auto data = static_cast<std::uint32_t>(a["data"].get<std::int64_t>());
    CHECK(golden::same_bits(random::fold_in(key_of(a), array(std::vector{data}, ShapeOf(Shape{}))), out));
  });
  const auto [a, b] = random::split<2>(random::key(42));
  CHECK(a.to_vector<std::uint32_t>() == std::vector<std::uint32_t>{1832780943, 270669613});
  CHECK(b.to_vector<std::uint32_t>() == std::vector<std::uint32_t>{64467757, 2916123636});
}

TEST_CASE("random: bits") {
  each("bits", [](const Json& a, const Json& out) {
    const DType t = golden::dtype_named("uint" + std::to_string(a["width"].get<int>()));
    CHECK(golden::same_bits(random::bits(key_of(a), golden::shape_of(a["shape"]), t), out));
  });
  each("vmap_bits", [](const Json& a, const Json& out) {
    const Shape shape = golden::shape_of(a["shape"]);
    const Array keys = random::split(key_of(a), 3);
    CHECK(golden::same_bits(vmap([shape](const Array& k) { return random::bits(k, shape); })(keys), out));
  });
}

TEST_CASE("random: uniform") {
  each("uniform", [](const Json& a, const Json& out) {
    const Array u =
        random::uniform(key_of(a), golden::shape_of(a["shape"]), dtype_of_case(a), a["minval"], a["maxval"]);
    CHECK(golden::same_bits(u, out));
  });
}

TEST_CASE("random: randint") {
  each("randint", [](const Json& a, const Json& out) {
    const Array r =
        random::randint(key_of(a), golden::shape_of(a["shape"]), a["minval"], a["maxval"], dtype_of_case(a));
    CHECK(golden::same_bits(r, out));
  });
}

TEST_CASE("random: choice refuses numbers that are no int32") {
  for (const bool replace : {true, false})
    CHECK(
        testing::message_of<DTypeError>([&] {
          static_cast<void>(random::choice(random::key(0), std::int64_t{1} << 33, {2}, {.replace = replace}));
        }) ==
        "random::choice: numbers below 8589934592 do not fit into int32, of which draws are. Choose from at "
        "most 2147483647.");
}

TEST_CASE("random: bernoulli, permutation, choice, categorical") {
  each("bernoulli", [](const Json& a, const Json& out) {
    CHECK(golden::same_bits(random::bernoulli(key_of(a), a["p"].get<double>(), golden::shape_of(a["shape"])),
                            out));
  });
  each("permutation", [](const Json& a, const Json& out) {
    if (a.contains("n")) {
      CHECK(golden::same_bits(random::permutation(key_of(a), a["n"].get<std::int64_t>()), out));
      return;
    }
    const Shape shape = golden::shape_of(a["shape"]);
    const Array x = arange(num_elements(shape)).astype(int32).reshape(shape);
    CHECK(golden::same_bits(
        random::permutation(key_of(a), x, {.axis = a["axis"], .independent = a["independent"].get<bool>()}),
        out));
  });
  each("choice", [](const Json& a, const Json& out) {
    random::ChoiceOptions o{.replace = a["replace"]};
    if (!a["p"].is_null()) o.p = array(a["p"].get<std::vector<float>>());
    CHECK(golden::same_bits(
        random::choice(key_of(a), a["n"].get<std::int64_t>(), golden::shape_of(a["shape"]), o), out));
  });
  each("choice_array", [](const Json& a, const Json& out) {
    const Shape shape = golden::shape_of(a["array_shape"]);
    const Array x = arange(num_elements(shape)).astype(int32).reshape(shape);
    CHECK(golden::same_bits(random::choice(key_of(a), x, golden::shape_of(a["shape"]), {.axis = a["axis"]}),
                            out));
  });
  each("categorical", [](const Json& a, const Json& out) {
    const Array logits = golden::array(a["logits"]);
    const std::int64_t axis = a["axis"];
    const Array r = a.contains("shape")
                        ? random::categorical(key_of(a), logits, axis, golden::shape_of(a["shape"]))
                        : random::categorical(key_of(a), logits, axis);
    CHECK(golden::same_bits(r, out));
  });
}

TEST_CASE("random: normal, truncated_normal, exponential, gumbel") {
  each("normal", [](const Json& a, const Json& out) {
    const Array x = random::normal(key_of(a), golden::shape_of(a["shape"]), dtype_of_case(a));
    CHECK(x.dtype() == dtype_of_case(a));
    if (!is_complex(x.dtype())) CHECK(near(x, out));
    else CHECK((near(real(x), parts(out, 0)) && near(imag(x), parts(out, 1))));
  });
  each("truncated_normal", [](const Json& a, const Json& out) {
    CHECK(near(random::truncated_normal(key_of(a), a["lower"], a["upper"], golden::shape_of(a["shape"]),
                                        dtype_of_case(a)),
               out, a["dtype"] == "float64" ? 64 : 4));
  });
  each("exponential", [](const Json& a, const Json& out) {
    // XLA's log1p of float64 is less exact than ours.
    CHECK(near(random::exponential(key_of(a), golden::shape_of(a["shape"]), dtype_of_case(a)), out,
               a["dtype"] == "float64" ? 64 : 4));
  });
  each("gumbel", [](const Json& a, const Json& out) {
    CHECK(near(random::gumbel(key_of(a), golden::shape_of(a["shape"]), dtype_of_case(a)), out, 8));
  });
}

TEST_CASE("random: the other distributions of the file") {
  // XLA's logarithms and tangents differ by some ulp; rejections add none
  const auto shape = [](const Json& a) { return golden::shape_of(a["shape"]); };
  each("laplace", [&](const Json& a, const Json& out) {
    CHECK(
        near(random::laplace(key_of(a), shape(a), dtype_of_case(a)), out, a["dtype"] == "float64" ? 64 : 8));
  });
  each("logistic", [&](const Json& a, const Json& out) {
    CHECK(
        near(random::logistic(key_of(a), shape(a), dtype_of_case(a)), out, a["dtype"] == "float64" ? 64 : 8));
  });
  each("cauchy", [&](const Json& a, const Json& out) {
    CHECK(near(random::cauchy(key_of(a), shape(a), dtype_of_case(a)), out, 64));
  });
  each("gamma", [&](const Json& a, const Json& out) {
    CHECK(near(random::gamma(key_of(a), a["a"].get<double>(), shape(a)), out, 16));
  });
  each("rademacher", [&](const Json& a, const Json& out) {
    CHECK(golden::same_bits(random::rademacher(key_of(a), shape(a)), out));
  });
  each("ball", [&](const Json& a, const Json& out) {
    CHECK(near(random::ball(key_of(a), a["d"].get<int>(), 2, shape(a)), out, 16));
  });
  each("orthogonal_abs", [](const Json& a, const Json& out) {
    CHECK(golden::close(abs(random::orthogonal(key_of(a), a["n"].get<int>())), out, 1e-5, 1e-6));
  });
}

TEST_CASE("random: normal numbers of mapped keys, and of large draws their moments and extremes") {
  each("vmap_normal", [](const Json& a, const Json& out) {
    const Shape shape = golden::shape_of(a["shape"]);
    const Array keys = random::split(key_of(a), 3);
    CHECK(near(vmap([shape](const Array& k) { return random::normal(k, shape); })(keys), out));
  });
  each("normal_summary", [](const Json& a, const Json& out) {
    const std::vector<double> x = golden::values(random::normal(key_of(a), golden::shape_of(a["shape"])));
    const auto n = static_cast<double>(x.size());
    double sum = 0, squares = 0;
    for (const double v : x) sum += v;
    for (const double v : x) squares += (v - sum / n) * (v - sum / n);
    CHECK(sum / n == doctest::Approx(out["mean_f64"].get<double>()).epsilon(1e-4));
    CHECK(squares / n == doctest::Approx(out["var_f64"].get<double>()).epsilon(1e-6));
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    CHECK(golden::close({*least, *most}, {golden::numbers(out["min"])[0], golden::numbers(out["max"])[0]},
                        5e-7));
  });
}

TEST_CASE("random: large draws") {
  auto check = [](const Array& x, const Json& out) {
    const auto b = golden::bits(x);
    std::uint64_t sum = 0, all = 0;
    for (std::uint64_t v : b) {
      sum += v;
      all ^= v;
    }
    CHECK((sum & 0xffffffff) == out["sum_bits_mod_2_32"].get<std::uint64_t>());
    CHECK(all == out["xor_bits"].get<std::uint64_t>());
  };
  each("bits_checksum", [&](const Json& a, const Json& out) {
    check(random::bits(key_of(a), golden::shape_of(a["shape"]),
                       golden::dtype_named("uint" + std::to_string(a["width"].get<int>()))),
          out);
  });
  each("uniform_checksum", [&](const Json& a, const Json& out) {
    check(random::uniform(key_of(a), golden::shape_of(a["shape"])), out);
  });
  each("randint_checksum", [&](const Json& a, const Json& out) {
    check(random::randint(key_of(a), golden::shape_of(a["shape"]), 0, 1000), out);
  });
  each("split_checksum", [&](const Json& a, const Json& out) {
    check(random::split(key_of(a), a["num"].get<std::int64_t>()), out);
  });
  each("permutation_checksum", [&](const Json& a, const Json& out) {
    check(random::permutation(key_of(a), a["n"].get<std::int64_t>()), out);
  });
}

TEST_CASE("random: a sharded draw has the same bits and moves nothing") {
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  const Array key = random::key(7);
  for (const P& spec : {P("x"), P("y", "x"), P(none, axes("x", "y"))}) {
    const NamedSharding sharding(mesh, spec);
    auto draw = [=](const Array& k) { return filter_shard(random::normal(k, {10, 7}), sharding); };
    const Array placed_key = filter_shard(key, NamedSharding(mesh, P()));
    CHECK(golden::bits(jit(draw)(placed_key)) == golden::bits(random::normal(key, {10, 7})));
    CHECK(explain(draw, placed_key).transfers().empty());
  }
  const random::partitionable legacy(false);
  const NamedSharding by_row(mesh, P("x"));
  const Array sharded = jit([=](const Array& k) {
    return filter_shard(random::bits(k, {10, 7}), by_row);
  })(key);
  CHECK(golden::bits(sharded) == golden::bits(random::bits(key, {10, 7})));
}

TEST_CASE("random: the tpmap document's dice need the older numbers") {
  auto sixes = [] {
    const Array keys = random::split(random::PRNGKey(0), 8);
    return vmap([](const Array& k) { return sum(random::randint(k, {10}, 1, 7) == 6); })(keys)
        .to_vector<int>();
  };
  CHECK(sixes() == std::vector{1, 2, 2, 0, 4, 1, 1, 1});
  const random::partitionable legacy(false);
  CHECK(sixes() == std::vector{0, 4, 0, 0, 1, 1, 1, 3});
}

TEST_CASE("random: what is refused") {
  const Array k = random::key(0), keys = random::split(k, 2), no_key = zeros({2});
  auto text = [](auto f) {
    try {
      f();
    } catch (const Error& e) { return std::string(e.text()); }
    return std::string("no error");
  };
  CHECK(text([&] { random::uniform(keys, {3}); }) ==
        "random::uniform: accepts a single key, but was given u32[2,2]. A key is u32[2]. Index the array of "
        "keys, or map over it with vmap.");
  CHECK(text([&] { random::normal(no_key, {3}); }) ==
        "random::normal: the key is f32[2]. A key is u32[2]. Make one with random::key(seed).");
  CHECK_THROWS_AS(random::bits(keys), ShapeError);
  CHECK_THROWS_AS(random::split(no_key), DTypeError);
  CHECK(text([&] { random::uniform(k, {3}, int32); }) ==
        "random::uniform: dtype int32. It draws floating numbers. Choose float16, bfloat16, float32 or "
        "float64.");
  CHECK(text([&] { random::randint(k, {3}, 0, 5, float32); }) ==
        "random::randint: dtype float32. It draws integers. Choose an integer dtype.");
  CHECK(text([&] { random::bits(k, {3}, int32); }) ==
        "random::bits: dtype int32. Bits are uint8, uint16, uint32 or uint64. Choose one of them.");
  CHECK(text([&] { random::split(k, -1); }) ==
        "random::split: -1 keys. The number of keys is at least 0. Correct it.");
  CHECK(text([&] { random::fold_in(k, 1.5); }) ==
        "random::fold_in: the data are f32[]. They are one integer. Index the array, or map over it with "
        "vmap.");
  CHECK(text([&] { random::permutation(k, -2); }) ==
        "random::permutation: of -2 numbers. There are at least 0. Correct the number.");
  CHECK(text([&] { random::choice(k, 3, {4}, {.replace = false}); }) ==
        "random::choice: 4 draws from 3 elements. Without replacement there are at most as many draws as "
        "elements, and at least one "
        "element. Draw fewer, or with replacement.");
  CHECK(text([&] { random::choice(k, 3, {4}, {.p = ones({2})}); }) ==
        "random::choice: p is f32[2] for 3 elements. There is one probability for each of them. Correct p.");
  CHECK(text([&] {
          random::categorical(k, zeros({2, 3}), -1, {4});
        }) ==
        "random::categorical: shape [4] for logits f32[2,3]. The shape ends in that of the logits without "
        "the axis, [2]. Add leading "
        "dimensions only.");
  CHECK(text([&] { random::truncated_normal(k, 0, 1, {3}, float16); }) ==
        "random::truncated_normal: dtype float16. It draws float32 or float64. Cast the result with astype.");
  const random::partitionable legacy(false);
  CHECK(text([&] {
          random::bits(k, {1 << 20, 1 << 12});
        }) ==
        "random::bits: needs 4294967296 words. Draws that are not partitionable end at 2^32 - 1 words. Use "
        "random::partitionable(true), the default.");
}

}  // namespace random_test
