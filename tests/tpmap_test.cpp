// tpmap and its helpers, and the pages of the examples, compared with the numbers of bobbin and JAX.
#include <bit>
#include <sstream>

#include "golden.h"
#include "transforms_helpers.h"

namespace tpmap_test {

using namespace transforms_test;
using golden::Json;

namespace {

struct Result {
  Array roll_count, six_count;
};
struct Params {
  Array w;
};
struct Tree {
  Params params;
};

Array noisy_matmul(Array matrix, Array xs, Array rng) {
  return sa::dot(xs, matrix) + 0.1 * sa::random::normal(rng, {1, matrix.shape().back()});
}
Result roll_dice(int count, Array rng) {
  const Array value = sa::random::randint(rng, {count}, 1, 7);
  return {sa::full({}, count), sa::sum((value == 6).astype(sa::float32))};
}
std::string line_of(std::size_t device, const Result& r) {
  const float rate = everywhere(r.six_count / r.roll_count).item<float>();
  char text[64];
  if (rate > 0.3f)
    std::snprintf(text, sizeof text, "Device #%zu was lucky! six-rate=%2.0f%%!!\n", device,
                  100 * static_cast<double>(rate));
  else std::snprintf(text, sizeof text, "Device #%zu is normal.\n", device);
  return text;
}
Array twice_and_sum(Array v) { return v * 2 + sa::psum(v, "i"); }

/// By default on the devices of all processes.
template <class F> auto on_all(const F& f, sa::TpmapOptions o) {
  if (o.devices.empty()) o.devices = sa::devices();
  return sa::tpmap(f, std::move(o));
}

std::vector<Json> cases(const std::string& name) {
  const Json file = golden::load("tpmap_document.json");
  std::vector<Json> r;
  for (const Json& c : file["cases"])
    if (c["name"] == name) r.push_back(c);
  REQUIRE_MESSAGE(!r.empty(), name);
  return r;
}
bool on(const Array& a, std::size_t device) {
  return a.devices().size() == 1 && a.devices()[0] == sa::devices()[device];
}
// One array a device, replica k holding pieces[k].
Array replicated(const std::vector<Array>& pieces) {
  std::vector<Array> placed;
  for (std::size_t k = 0; k < pieces.size(); k++)
    placed.push_back(sa::device_put(pieces[k], sa::devices()[k]).block_until_ready());
  const auto grid = sa::create_device_mesh({8});
  return sa::make_array_from_single_device_arrays(pieces[0].shape(), sa::PositionalSharding(grid).replicate(),
                                                  placed);
}
std::vector<Array> copies(const Array& x, std::size_t n = 8) {
  std::vector<Array> r;
  for (std::size_t k = 0; k < n; k++) r.push_back(sa::array(everywhere(x).to_vector<float>(), x.shape()));
  return r;
}

}  // namespace

TEST_CASE("tpmap: the document, on the devices of all processes") {
  const Json inputs = cases("noisy_matmul")[1]["inputs"];
  const Array parameter = golden::array(inputs["parameter"]).astype(sa::float32),
              data = golden::array(inputs["data"]).astype(sa::float32);
  for (const std::string name : {"noisy_matmul", "noisy_matmul_raw"})
    for (const Json& c : cases(name)) {
      const sa::random::partitionable mode(c["attrs"]["partitionable"].get<bool>());
      const bool raw = name == "noisy_matmul_raw";
      const auto f =
          on_all(noisy_matmul, {.axis_name = "i",
                                .args = {sa::broadcast, sa::shard, sa::rng},
                                .wrap_return = raw ? sa::WrapReturn() : sa::WrapReturn([](Array x) {
                                  return x.reshape({-1, x.shape().back()});
                                })});
      const Array y = f(parameter, data, sa::random::PRNGKey(0));
      CHECK(golden::close(everywhere(y), raw ? c["outputs"] : c["outputs"]["result"], 1e-5, 1e-6));
      CHECK(y.devices().size() == 8);
    }
  for (const Json& c : cases("dice")) {
    const sa::random::partitionable mode(c["attrs"]["partitionable"].get<bool>());
    const auto roll = on_all(roll_dice, {.axis_name = "d", .args = {sa::fixed, sa::rng}});
    const Result r = roll(c["attrs"]["count"].get<int>(), sa::random::PRNGKey(c["attrs"]["seed"].get<int>()));
    CHECK(golden::same_bits(everywhere(r.roll_count), c["outputs"]["roll_count"]));
    CHECK(r.roll_count.weak_type());
    CHECK(golden::same_bits(everywhere(r.six_count), c["outputs"]["six_count"]));
    std::string printed;
    const auto items = sa::unshard(r);
    for (std::size_t k = 0; k < items.size(); k++) printed += line_of(k, items[k]);
    CHECK(printed == c["outputs"]["printed"].get<std::string>());
  }
}

TEST_CASE("tpmap: prints once a device, whose shapes are those of its part") {
  std::ostringstream out;
  const auto f = on_all(
      [&](const Array& matrix, const Array& xs) {
        sa::debug::id_print(sa::axis_index("i"),
                            {{"shape_of_parameter", matrix.shape()}, {"shape_of_data", xs.shape()}},
                            {.stream = &out});
        return sa::dot(xs, matrix);
      },
      {.axis_name = "i", .args = {sa::broadcast, sa::shard}});
  f(sa::ones({8, 5}), sa::ones({16, 8}));
  std::string want;
  const Json groups = cases("noisy_matmul")[0]["outputs"]["id_print_groups_sorted"];
  for (const Json& group : groups) want += group.get<std::string>() + "\n";
  CHECK(out.str() == want);
}

TEST_CASE("tpmap: every kind of argument") {
  for (const std::string kind : {"thru", "shard", "broadcast"}) {
    const Json c = cases(kind)[0];
    const sa::ArgType type = kind == "thru" ? sa::thru : kind == "shard" ? sa::shard : sa::broadcast;
    CHECK(golden::close(on_all(twice_and_sum, {.axis_name = "i", .args = {type}})(golden::array(c["inputs"])),
                        c["outputs"], 1e-5, 1e-5));
  }
  const auto scalar = on_all(twice_and_sum, {.axis_name = "i", .args = {sa::broadcast}});
  CHECK(golden::same_bits(scalar(2.5), cases("broadcast_scalar")[0]["outputs"]));
  CHECK(golden::same_bits(scalar(Array(2.5)), cases("broadcast_scalar")[0]["outputs"]));

  // trees, chosen devices, a wrap_return of the tree, out_axes
  const std::vector<sa::Device> four = {sa::devices()[3], sa::devices()[1], sa::devices()[0],
                                        sa::devices()[2]};
  const auto f = on_all(
      [](const Params& p, const std::tuple<Array, Array>& batch) {
        return Params{p.w + std::get<0>(batch) + std::get<1>(batch)};
      },
      {.args = {sa::broadcast, sa::shard},
       .wrap_return = [](Params p) { return Params{p.w + 1}; },
       .devices = four});
  const Params r = f(Params{sa::array({10, 20})},
                     std::tuple(sa::arange(16).reshape({8, 2}), sa::zeros({8, 1}, sa::int32)));
  CHECK(r.w.shape() == Shape{4, 2, 2});
  CHECK(values(r.w) == Values{11, 22, 13, 24, 15, 26, 17, 28, 19, 30, 21, 32, 23, 34, 25, 36});
  CHECK(on(sa::unshard(r)[0].w, 3));
  const auto last = on_all([](const Array& x) { return x; }, {.args = {sa::shard}, .out_axes = 1});
  CHECK(last(sa::arange(16)).shape() == Shape{2, 8});
  const auto joined = on_all([](const Array& x) { return Tree{{x + 1}}; },
                             {.args = {sa::shard}, .wrap_return = sa::join_batches});
  CHECK(values(joined(sa::arange(16)).params.w)[15] == 16);
}

TEST_CASE("tpmap: what lies on its devices stays there") {
  const auto f = on_all([](const Array& w, const Array& x) { return sa::dot(x, w); },
                        {.args = {sa::broadcast, sa::shard}, .wrap_return = sa::join_batches});
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::ones({16, 4}), sa::NamedSharding(mesh, sa::P("x"))),
              w = sa::device_put(sa::ones({4, 3}), sa::NamedSharding(mesh, sa::P()));
  CHECK(sa::explain(f, w, x).transfers().empty());
  const Array y = f(w, x);
  CHECK(y.sharding().is_equivalent_to(sa::NamedSharding(mesh, sa::P("x")), 2));
  // from one device: each takes its rows and nothing else
  const Array far = sa::device_put(sa::arange(64.0).reshape({16, 4}), sa::devices()[5]);
  check_near(f(w, far),
             values(sa::broadcast_to(
                 sa::sum(sa::arange(64.0).reshape({16, 4}), {.axis = 1, .keepdims = true}), {16, 3})));
  CHECK(f(w, far).devices().size() == 8);
}

TEST_CASE("tpmap: with other transforms, and without arguments") {
  const auto square = on_all([](const Array& x) { return sa::square(x); },
                             {.args = {sa::shard}, .wrap_return = sa::join_batches});
  const auto slope = sa::grad([&](const Array& x) { return sa::sum(square(x)); });
  const Array x = sa::arange(8.0);
  check_near(slope(x), {0, 2, 4, 6, 8, 10, 12, 14});
  check_near(sa::jit(slope)(x), {0, 2, 4, 6, 8, 10, 12, 14});
  check_near(sa::vmap(square)(x.reshape({1, 8})), {0, 1, 4, 9, 16, 25, 36, 49});
  const auto index = on_all([] { return sa::axis_index("i"); }, {.axis_name = "i"});
  CHECK(values(index()) == Values{0, 1, 2, 3, 4, 5, 6, 7});
  const auto first =
      on_all([](const Array& v) { return sa::sum(v); }, {.args = {sa::shard}, .out_axes = sa::none});
  CHECK(at(first(sa::arange(16.0))) == 1);  // of the first device
}

TEST_CASE("tpmap: errors") {
  const auto f = on_all(twice_and_sum, {.axis_name = "i", .args = {sa::shard}});
  const std::string rows = cases("shard_not_divisible_message")[0]["outputs"]["text"];
  const std::string seven = error<sa::ShapeError>([&] { f(sa::ones({7, 2})); });
  CHECK(contains(seven, "tpmap: " + rows.substr(0, rows.find('.')) + ": `0` f32[7,2]."));
  CHECK(contains(seven, "atch size must be a multiple of the number of devices"));
  CHECK(contains(error<sa::ShapeError>([&] { f(Array(1.0)); }),
                 "tpmap: `0` f32[] does not have a leading axis."));
  CHECK(
      contains(error<sa::ShapeError>([&] { f(1.0); }), "tpmap: argument 0 is a number and declared shard."));
  const auto draw =
      on_all([](const Array& key) { return sa::random::normal(key, {2}); }, {.args = {sa::rng}});
  CHECK(error<sa::ShapeError>([&] { draw(0); })
            .starts_with("tpmap: argument 0 is a number and declared rng. A key is an array. Make one with "
                         "random::key(seed)."));
  const auto two =
      on_all([](const Tree& t, const Array&) { return t.params.w; }, {.args = {sa::shard, sa::broadcast}});
  CHECK(contains(
      error<sa::ShapeError>([&] { two(Tree{{sa::ones({9})}}, 1.0); }),
      "Trying to split 9 rows into 8 groups: `0.params.w` f32[9]. The batch size must be a multiple "
      "of the number of devices or groups. Drop 1 with x[slice(8)], or pad it to 16 rows with pad(x, "
      "{{0, 7}})."));
  CHECK(contains(error<sa::ShapeError>([&] {
                   f(sa::ones({3, 2}));
                 }),
                 "Name a number of devices or groups that divides 3, or pad it to 8 rows with pad(x, {{0, "
                 "5}, {0, 0}})."));
  const auto one = on_all([](const Array& a, const Array& b) { return a + b; }, {.args = {sa::shard}});
  CHECK(contains(error<sa::TreeError>([&] { one(sa::ones({8}), sa::ones({8})); }),
                 "tpmap: the number of arguments does not match the ones declared in .args (2 != 1)."));
  const auto thru = on_all(twice_and_sum, {.axis_name = "i", .args = {sa::thru}});
  CHECK(contains(
      error<sa::ShapeError>([&] { thru(sa::ones({4})); }),
      "tpmap: `0` f32[4] has 4 rows for 8 devices. Declared thru, it has one row for each. Give it 8, "
      "or name 4 in .devices."));
  CHECK(error<sa::ShapeError>([&] { thru(sa::ones({16})); }).find("Declare it shard: 2 for each.") !=
        std::string::npos);
  CHECK(error<sa::ShapeError>([&] { thru(sa::ones({9})); }).find("Take 8 of them with x[slice(8)].") !=
        std::string::npos);
  const auto fixed =
      on_all([](const Tree& t, const Array& x) { return x + t.params.w; }, {.args = {sa::fixed, sa::shard}});
  CHECK(contains(error<sa::TreeError>([&] { fixed(Tree{{sa::ones({8})}}, sa::ones({8})); }),
                 "tpmap: `0.params.w` f32[8] is declared fixed and holds an array."));
  const auto key = on_all([](const Array& k) { return sa::random::normal(k); }, {.args = {sa::rng}});
  CHECK(contains(error<sa::ShapeError>([&] { key(sa::random::split(sa::random::key(0), 8)); }),
                 "random::split: accepts a single key"));
  const auto wrapped = on_all(
      twice_and_sum, {.axis_name = "i", .args = {sa::shard}, .wrap_return = [](Params p) { return p; }});
  CHECK(contains(error<sa::TreeError>([&] { wrapped(sa::ones({8})); }),
                 "tpmap: wrap_return takes another type"));
  const auto flat =
      on_all(twice_and_sum, {.axis_name = "i", .args = {sa::thru}, .wrap_return = sa::join_batches});
  CHECK(contains(error<sa::ShapeError>([&] { flat(sa::ones({8})); }),
                 "join_batches: cannot join the first 2 dimensions of f32[8]."));
}

// There are no names and no keywords here: what bobbin refuses of them when a function is made does not compile.
static_assert(!std::is_convertible_v<const char*, sa::ArgType>);

TEST_CASE("tpmap: refuses what bobbin refuses, for its reasons") {
  const auto refusal = [](const std::string& name) {
    return cases(name)[0]["outputs"]["text"].get<std::string>();
  };
  const auto shard = on_all(twice_and_sum, {.axis_name = "i", .args = {sa::shard}});
  const std::string rows =
      cases("shard_not_divisible")[0]["raises"];  // `ValueError: Trying to split 7 rows ..`
  CHECK(contains(error<sa::ShapeError>([&] {
                   shard(sa::ones({7, 2}));
                 }),
                 rows.substr(rows.find("Trying"), rows.find('.') - rows.find("Trying"))));

  const auto one = on_all([](const Array& a, const Array& b) { return a + b; }, {.args = {sa::shard}});
  const std::string numbers = refusal("wrong_count").substr(refusal("wrong_count").rfind('('));
  CHECK(numbers == "(2 != 1)");
  CHECK(contains(error<sa::TreeError>([&] { one(sa::ones({8}), sa::ones({8})); }), numbers));

  CHECK(refusal("unknown_argtype").starts_with("Unknown argtype name"));
  CHECK(refusal("kwarg_not_in_types").starts_with("`kwargtypes` specified"));
  CHECK(refusal("kwargtypes_broadcast").ends_with("only allowed as positional arguments."));

  CHECK(refusal("unshard_empty") == "PyTree to be unsharded is empty.");
  CHECK(contains(error<sa::TreeError>([] { sa::unshard(std::vector<Array>()); }),
                 "the tree to be unsharded holds no arrays"));
  CHECK(refusal("unshard_scalar") == "Tree to be unsharded do not have a leading axis.");
  CHECK(contains(error<sa::ShapeError>([] { sa::unshard(Params{Array(1.0)}); }),
                 "does not have a leading axis"));
}

TEST_CASE("unshard") {
  struct Inner {
    Array c;
  };
  struct Outer {
    Array a;
    Inner b;
    Array absent;
    int step = 3;
  };
  const Json c = cases("unshard")[0];
  const Outer host{golden::array(c["inputs"]["a"]), {golden::array(c["inputs"]["b"]["c"])}, Array()};
  const Outer mapped = sa::pmap([](const Outer& t) { return t; })(host);
  for (const Outer& tree : {host, mapped}) {
    const std::vector<Outer> items = sa::unshard(tree);
    REQUIRE(items.size() == 8);
    for (std::size_t k = 0; k < 8; k++) {
      CHECK(golden::same_bits(items[k].a, c["outputs"][k]["a"]));
      CHECK(golden::same_bits(items[k].b.c, c["outputs"][k]["b"]["c"]));
      CHECK((!items[k].absent.has_value() && items[k].step == 3));
      CHECK(!items[k].a.committed());
    }
  }
  const auto items = sa::unshard(mapped);
  CHECK((on(items[5].a, 5) && on(items[5].b.c, 5)));
  check_near(items[2].a + items[6].a, values(host.a[2] + host.a[6]));  // uncommitted: they meet

  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array x = sa::arange(64).reshape({8, 8});
  for (const sa::P& spec : {sa::P("x"), sa::P("x", "y"), sa::P(sa::none, "y"), sa::P()}) {
    const auto rows = sa::unshard(sa::device_put(x, sa::NamedSharding(mesh, spec)));
    REQUIRE(rows.size() == 8);
    for (std::size_t k = 0; k < 8; k++) {
      CHECK(values(rows[k]) == values(x[static_cast<int>(k)]));
      CHECK(rows[k].devices().size() == 1);
    }
  }
  CHECK(on(sa::unshard(sa::device_put(x, sa::NamedSharding(mesh, sa::P())))[6], 6));
  CHECK(on(sa::unshard(sa::device_put(x, sa::NamedSharding(mesh, sa::P("x"))))[6], 6));
  CHECK(values(std::get<1>(sa::unshard(std::tuple(sa::arange(4), sa::arange(2)))[3])) ==
        Values{1});  // the last row of a shorter leaf

  CHECK(contains(error<sa::TreeError>([] { sa::unshard(std::vector<Array>()); }),
                 "unshard: the tree to be unsharded holds no arrays."));
  CHECK(contains(error<sa::ShapeError>([] { sa::unshard(Params{Array(1.0)}); }),
                 "unshard: `w` f32[] does not have a leading axis."));
  CHECK(contains(error<sa::ShapeError>([] { sa::unshard(std::tuple(sa::ones({2}), sa::ones({0}))); }),
                 "unshard: a leaf has no rows"));
  CHECK(contains(
      error<sa::TraceError>([] { sa::jit([](const Array& a) { return sa::unshard(a)[0]; })(sa::ones({8})); }),
      "unshard: reading a value inside a trace"));
}

TEST_CASE("gather_from_processes, split_leading_axis, flatten_leading_axes") {
  const Json c = cases("gather_from_jax_processes")[0]["outputs"];
  const auto trees = sa::gather_from_processes(Params{golden::array(c[0]["w"])});
  REQUIRE(trees.size() == 1);
  CHECK(golden::same_bits(trees[0].w, c[0]["w"]));
  for (const Json& s : cases("split_leading_axis"))
    CHECK(golden::same_bits(
        sa::split_leading_axis(s["attrs"]["n"].get<int>(), Params{golden::array(s["inputs"])}).w,
        s["outputs"]));
  for (const Json& s : cases("flatten_leading_axes"))
    CHECK(golden::same_bits(sa::flatten_leading_axes(golden::array(s["inputs"])), s["outputs"]));
  CHECK(sa::flatten_leading_axes(sa::ones({2, 3, 4}), 3).shape() == Shape{24});
  CHECK(contains(error<sa::ShapeError>([] { sa::split_leading_axis(4, Params{sa::ones({6})}); }),
                 "split_leading_axis: Trying to split 6 rows into 4 groups: `w` f32[6]."));
  CHECK(contains(error<sa::ShapeError>([] { sa::split_leading_axis(0, sa::ones({6})); }),
                 "split_leading_axis: 0 groups."));
  CHECK(contains(error<sa::ShapeError>([] { sa::flatten_leading_axes(sa::ones({6})); }),
                 "flatten_leading_axes: cannot join the first 2 dimensions of f32[6]. There are between 1 "
                 "and 1 to join."));
}

TEST_CASE("assert_replica_integrity") {
  const Array x = sa::arange(12.0).reshape({4, 3});
  const auto tree = [&](const std::vector<Array>& pieces) { return Tree{{replicated(pieces)}}; };
  std::vector<Array> pieces = copies(x);
  CHECK_NOTHROW(sa::assert_replica_integrity(tree(pieces), {.rtol = 0, .atol = 0}));

  // bobbin's words, of a leading device axis: `Inconsistency found in 5-th replica of /params/w [shape=(8, 4, 3)]`
  CHECK(cases("replicas_equal")[0]["outputs"]["type"].is_null());
  const Json differ = cases("replicas_differ")[0];
  const int bad = differ["attrs"]["bad_replica"];
  const std::string line = differ["outputs"]["line"][0];
  CHECK(contains(line, std::to_string(bad) + "-th replica of /params/w [shape=(8, 4, 3)]"));
  const Array apart = sa::ones({8, 4, 3}).at(bad).add(0.5);
  CHECK_NOTHROW(sa::assert_replica_integrity(Tree{{sa::ones({8, 4, 3})}}, {.is_device_replicated = true}));
  CHECK(contains(error<sa::ShardingError>(
                     [&] { sa::assert_replica_integrity(Tree{{apart}}, {.is_device_replicated = true}); }),
                 "Inconsistency found in replica " + std::to_string(bad) + " of `params.w` f32[8,4,3]"));

  // one flipped bit: the last of 7 in replica 5
  std::vector<float> v = x.to_vector<float>();
  v[7] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(v[7]) ^ 1u);
  pieces[5] = sa::array(v, {4, 3});
  CHECK_NOTHROW(sa::assert_replica_integrity(tree(pieces)));
  CHECK(contains(
      error<sa::ShardingError>([&] { sa::assert_replica_integrity(tree(pieces), {.rtol = 0, .atol = 0}); }),
      "assert_replica_integrity: Inconsistency found in replica 5 of `params.w` f32[4,3]: 7.0000005 "
      "(0x40e00001) on " +
          sa::to_string(sa::devices()[5]) + ", 7 (0x40e00000) on " + sa::to_string(sa::devices()[0]) +
          " at index [2,1], 1 of 12 elements in all. Replicas must agree within atol = 0 and rtol = 0."));
  v[7] = 7.01f;
  v[0] = -0.0f;
  pieces[5] = sa::array(v, {4, 3});
  CHECK(contains(error<sa::ShardingError>([&] { sa::assert_replica_integrity(tree(pieces)); }),
                 "replica 5 of `params.w` f32[4,3]: 7.01 (0x40e051ec) on cpu:5"));
  CHECK(contains(
      error<sa::ShardingError>([&] { sa::assert_replica_integrity(tree(pieces), {.rtol = 0, .atol = 0}); }),
      "-0 (0x80000000) on cpu:5, 0 (0x00000000)"));
  CHECK_NOTHROW(sa::assert_replica_integrity(tree(pieces), {.atol = 0.02}));

  // NaN agrees with NaN, infinity with nothing else, integers only with themselves
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto both = [&](float a, float b) {
    pieces = copies(sa::array({1.0, 2.0}));
    for (auto& p : pieces) p = sa::array(std::vector<float>{1, a});
    pieces[3] = sa::array(std::vector<float>{1, b});
    return replicated(pieces);
  };
  CHECK_NOTHROW(sa::assert_replica_integrity(both(nan, nan)));
  CHECK_NOTHROW(sa::assert_replica_integrity(both(inf, inf)));
  for (const auto& [a, b] :
       std::vector<std::pair<float, float>>{{nan, 1.0f}, {1.0f, nan}, {inf, 1.0f}, {1.0f, inf}, {inf, -inf}})
    CHECK(contains(
        error<sa::ShardingError>([&both, a = a, b = b] { sa::assert_replica_integrity(both(a, b)); }),
        "replica 3 of f32[2]"));
  std::vector<Array> keys;
  for (std::uint32_t k = 0; k < 8; k++)
    keys.push_back(sa::array(std::vector<std::uint32_t>{4000000000u, k < 6 ? 4000000000u : 4000000001u}));
  CHECK(contains(error<sa::ShardingError>([&] { sa::assert_replica_integrity(replicated(keys)); }),
                 "replica 6 of u32[2]: 0xee6b2801 on cpu:6"));

  // a part that two devices hold
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  std::vector<Array> parts;
  for (int k = 0; k < 8; k++)
    parts.push_back(
        sa::device_put(sa::full({2}, k == 5 ? 9.0 : k / 2), sa::devices()[static_cast<std::size_t>(k)])
            .block_until_ready());
  const Array sharded =
      sa::make_array_from_single_device_arrays({8}, sa::NamedSharding(mesh, sa::P("x")), parts);
  CHECK(contains(error<sa::ShardingError>([&] { sa::assert_replica_integrity(std::tuple(x, sharded)); }),
                 "replica 1 of `[1]` f32[8]: 9 (0x41100000) on cpu:5, 2 (0x40000000) on cpu:4 at index [4], "
                 "2 of 2 elements"));
  CHECK_NOTHROW(
      sa::assert_replica_integrity(std::tuple(x, sa::device_put(x, sa::NamedSharding(mesh, sa::P())))));

  // a leading device axis, as in bobbin
  Array rows = sa::ones({8, 4, 3});
  const sa::IntegrityOptions leading{.is_device_replicated = true};
  CHECK_NOTHROW(sa::assert_replica_integrity(Tree{{rows}}, leading));
  rows = rows.at({5, 1, 2}).add(0.01);
  for (const Array& r : {rows, sa::pmap([](const Array& a) { return a * 1; })(rows)})
    CHECK(contains(error<sa::ShardingError>([&] { sa::assert_replica_integrity(Tree{{r}}, leading); }),
                   "replica 5 of `params.w` f32[8,4,3]: 1.01 ("));
  CHECK(contains(error<sa::ShapeError>([&] { sa::assert_replica_integrity(Array(1.0), leading); }),
                 "does not have a leading axis"));
}

}  // namespace tpmap_test
