// Trees: what they consist of, names, maps, and their errors. Nothing is evaluated except in tree_equal.
#include "shardarray/tree.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "messages.h"
#include "shardarray/filter_shard.h"
#include "shardarray/jit.h"
#include "shardarray/vmap.h"

namespace tree_test {

using namespace shardarray;

namespace {

using Texts = std::vector<std::string>;

struct Layer {
  Array weight, bias;
};
struct relu_like {
  Array operator()(const Array& x) const { return x; }
};
template <class Act = relu_like> struct Net {
  std::vector<Layer> layers;
  Act activation{};
};
double double_it(double x) { return 2 * x; }
double halve(double x) { return x / 2; }
enum class Mode { train, test };

struct Mixed {
  Array w = 2.0;
  std::optional<Array> bias;
  double (*act)(double) = double_it;
  std::string tag = "t";
  int k = 3;
  bool flag = false;
  Mode mode = Mode::train;
  std::map<std::string, Array> extra;
  std::array<Array, 2> pair{Array(1.0), Array(2.0)};
  std::tuple<Array, int> t{Array(3.0), 4};
  std::vector<Layer> layers;
  [[no_unique_address]] relu_like r{};
  std::vector<bool> mask;
  Shape kernel{3, 3};
};
struct Big40 {
  Array a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9;
  Array c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9;
};
class Hidden {
 public:
  explicit Hidden(Array w) : w_(std::move(w)) {}
  friend auto tree_fields(Hidden& h) { return std::tie(h.w_, h.k_); }

 private:
  Array w_;
  int k_ = 1;
};
struct WithoutDefault {
  explicit WithoutDefault(int) {}
};
[[maybe_unused]] auto tree_fields(WithoutDefault&) { return std::tuple<>(); }
struct NeedsAll {
  WithoutDefault a, b;
  Array x;
};
struct CArray {
  Array w[3];
  int k;
};
struct COne {
  Array w[1];
};
struct Pointer {
  Array* w;
};
struct Constant {
  const Array w;
};
struct ConstNumber {
  const int k = 1;
  Array w;
};
struct Based : Layer {
  int k;
};
struct Wrapped {
  Sharding sharding;
  Array x;
};

Layer layer() { return {1.0, 2.0}; }
Net<> net(int n) { return {std::vector<Layer>(static_cast<std::size_t>(n), layer())}; }
Array other() { return 5; }
// The node, to see whether two handles are of one value.
const Node* id(const Array& a) { return a.node(); }

template <class F> std::string message(const F& f) {
  try {
    f();
  } catch (const TreeError& e) { return e.text(); }
  return "no TreeError";
}

}  // namespace

TEST_CASE("tree: leaves and paths") {
  CHECK(tree_paths(net(2)) ==
        Texts{"layers[0].weight", "layers[0].bias", "layers[1].weight", "layers[1].bias"});
  CHECK(tree_paths(Array(1.0)) == Texts{""});
  CHECK(tree_paths(std::pair(Array(1.0), std::vector{Array(2.0)})) == Texts{"[0]", "[1][0]"});
  CHECK(tree_leaves(3.5).empty());
  CHECK(tree_leaves(std::tuple<>()).empty());

  Mixed m;
  m.extra["k"] = 1.0;
  m.bias = Array(1.0);
  m.layers.push_back(layer());
  CHECK(tree_paths(m) ==
        Texts{"w", "bias", "extra.k", "pair[0]", "pair[1]", "t[0]", "layers[0].weight", "layers[0].bias"});
  const auto leaves = tree_leaves(m);
  REQUIRE(leaves.size() == 8);
  CHECK(id(leaves[2]) == id(m.extra["k"]));
  CHECK(id(leaves[6]) == id(m.layers[0].weight));

  Hidden h(1.0);
  CHECK(tree_paths(h) == Texts{"[0]"});
  CHECK(tree_paths(Wrapped{SingleDeviceSharding(Device{}), 1.0}) == Texts{"x"});
}

TEST_CASE("tree: forty fields") {
  Big40 big;
  CHECK(tree_leaves(big).empty());  // absent arrays are no leaves
  big.a0 = big.d9 = big.b4 = 1.0;
  CHECK(tree_paths(big) == Texts{"a0", "b4", "d9"});
}

TEST_CASE("tree: what is a tree") {
  CHECK(Tree<Mixed>);
  CHECK(Tree<const Net<>&>);
  CHECK(Tree<NeedsAll>);
  CHECK(Tree<ConstNumber>);
  CHECK(Tree<std::map<std::string, std::optional<Layer>>>);
  CHECK_FALSE(Tree<CArray>);
  CHECK_FALSE(Tree<COne>);
  CHECK_FALSE(Tree<Pointer>);
  CHECK_FALSE(Tree<Constant>);
  CHECK_FALSE(Tree<Based>);
  CHECK_FALSE(Tree<std::function<void()>>);
  CHECK_FALSE(Tree<std::map<int, Array>>);
  CHECK_FALSE(Tree<std::tuple<Array&>>);
  CHECK_FALSE(Tree<std::unique_ptr<int>>);
  CHECK_FALSE(Tree<const char*>);
  const double scale = 2;
  auto captures = [scale](const Array& x) { return x * scale; };
  auto captureless = [](const Array& x) { return x; };
  CHECK_FALSE(Tree<decltype(captures)>);
  CHECK(Tree<Net<decltype(captureless)>>);
}

TEST_CASE("tree: with_leaves") {
  const Net<> n = net(1);
  const std::vector<Array> next{other(), other()};
  const Net<> m = with_leaves(n, next);
  CHECK(id(m.layers[0].weight) == id(next[0]));
  CHECK(id(m.layers[0].bias) == id(next[1]));
  Net<> without = n;
  without.layers[0].weight = Array();
  const Net<> filled = with_leaves(without, std::span(next).first(1));
  CHECK_FALSE(filled.layers[0].weight.has_value());
  CHECK(id(filled.layers[0].bias) == id(next[0]));
  CHECK(message([&] { with_leaves(n, std::span(next).first(1)); }) ==
        "with_leaves: 1 array for a tree of 2 leaves. There must be one array for each present leaf, in the "
        "order of "
        "tree_leaves(). tree_paths() lists the leaves.");
}

TEST_CASE("tree: tree_map") {
  Mixed m;
  m.layers.push_back({1.0, Array()});
  m.k = 7;
  const Array five = other();
  const Mixed r = tree_map([&](const Array&) { return five; }, m);
  CHECK(r.k == 7);
  CHECK(id(r.w) == id(five));
  CHECK(id(std::get<0>(r.t)) == id(five));
  CHECK_FALSE(r.layers[0].bias.has_value());

  const Net<> a = net(2), b = net(2), c = net(2);
  std::vector<const Node*> seen;
  tree_map(
      [&](const Array& x, const Array& y, const Array& z) {
        for (const Array* p : {&x, &y, &z}) seen.push_back(id(*p));
        return y;
      },
      a, b, c);
  REQUIRE(seen.size() == 12);
  CHECK(seen[3] == id(a.layers[0].bias));
  CHECK(seen[4] == id(b.layers[0].bias));
  CHECK(seen[5] == id(c.layers[0].bias));
  CHECK(seen[11] == id(c.layers[1].bias));
}

TEST_CASE("tree: trees that differ") {
  auto first = [](const Array& x, const Array&) { return x; };
  CHECK(message([&] { tree_map(first, net(2), net(3)); }) ==
        "tree_map: tree 1 has 3 entries at `layers`, the first tree has 2. All trees must have the same "
        "sizes and keys. "
        "Make one from the other, with tree_map() or with_leaves().");
  using Dict = std::map<std::string, Array>;
  CHECK(message([&] {
          tree_map(first, Dict{{"a", 1.0}}, Dict{{"b", 1.0}});
        }) ==
        "tree_map: tree 1 has key \"b\" at `b`, the first tree has \"a\". All trees must have the same sizes "
        "and keys. "
        "Make one from the other, with tree_map() or with_leaves().");
  CHECK(message([&] { tree_map(first, std::optional<Array>(1.0), std::optional<Array>()); }) ==
        "tree_map: tree 1 has 0 entries at its root, the first tree has 1. All trees must have the same "
        "sizes and keys. "
        "Make one from the other, with tree_map() or with_leaves().");
  Net<> absent = net(1);
  absent.layers[0].bias = Array();
  CHECK(message([&] { tree_map(first, net(1), absent); }) ==
        "tree_map: tree 1 has no array at `layers[0].bias`, the first tree has one. Every array of the first "
        "tree needs a "
        "partner in the others. Leave it out of the first tree too, with filter().");
  const auto sum = [](const Array& x, const Array& y) { return x + y; };
  const auto of_leaf = [](const std::string& e, const char* leaf) {
    return e.starts_with("add: ") && e.ends_with(fmt::format(" At `{}`.", leaf));
  };
  Net<> wide = net(2);
  wide.layers[1].bias = ones({3});
  CHECK(of_leaf(
      testing::message_of<ShapeError>([&] { tree_map([](const Array& x) { return x + ones({2}); }, wide); }),
      "layers[1].bias"));
  const Dict two{{"a", 1.0}, {"b", ones({2})}}, three{{"a", 1.0}, {"b", ones({3})}};
  CHECK(of_leaf(testing::message_of<ShapeError>([&] { tree_map(sum, two, three); }), "b"));
  // the other way round the first tree decides
  CHECK_FALSE(tree_map(first, absent, net(1)).layers[0].bias.has_value());
  // statics may differ: those of the first tree stay
  Mixed m, n;
  n.k = 9;
  CHECK(tree_map(first, m, n).k == 3);
}

TEST_CASE("tree: partition, combine, filter") {
  Mixed m;
  m.w = 3;  // int32
  const auto [inexact, rest] = partition(m, is_inexact_array);
  CHECK(tree_paths(inexact) == Texts{"pair[0]", "pair[1]", "t[0]"});
  CHECK(tree_paths(rest) == Texts{"w"});
  CHECK(rest.tag == "t");
  CHECK(std::get<1>(rest.t) == 4);
  const Mixed whole = combine(inexact, rest);
  CHECK(tree_paths(whole) == tree_paths(m));
  CHECK(id(whole.w) == id(m.w));
  CHECK(tree_leaves(filter(m, is_array)).size() == 4);
  CHECK(tree_leaves(filter(m, [](const Array&) { return false; })).empty());
  // By paths, each asked for once.
  Texts asked;
  const auto by_path = [&](const Array&, const std::string& path) {
    asked.push_back(path);
    return path == "w" || path.starts_with("pair[1]");
  };
  const auto [chosen, others] = partition(m, by_path);
  CHECK(asked == tree_paths(m));
  CHECK(tree_paths(chosen) == Texts{"w", "pair[1]"});
  CHECK(tree_paths(others) == Texts{"pair[0]", "t[0]"});
  CHECK(tree_paths(filter(m, by_path)) == tree_paths(chosen));
  CHECK(tree_equal(combine(chosen, others), m));
  CHECK(id(combine(Array(), m.w, m.pair[0])) == id(m.w));
  CHECK(message([&] { combine(net(1), net(2)); }) ==
        "combine: tree 1 has 2 entries at `layers`, the first tree has 1. All trees must have the same sizes "
        "and keys. "
        "Make one from the other, with tree_map() or with_leaves().");
}

TEST_CASE("tree: tree_at") {
  const Net<> n = net(2);
  const Array five = other();
  const Net<> m = tree_at(
      [](auto& t) -> auto& { return t.layers[1].weight; }, n, five);
  CHECK(id(m.layers[1].weight) == id(five));
  CHECK(id(m.layers[0].weight) == id(n.layers[0].weight));
  CHECK(id(n.layers[1].weight) != id(five));
  const Net<> grown = tree_at(
      [](auto& t) -> auto& { return t.layers; }, n,
      [](auto layers) {
        layers.push_back(layer());
        return layers;
      });
  CHECK(grown.layers.size() == 3);
  const Net<> two = tree_at([](auto& t) { return std::tie(t.layers[0].weight, t.layers[0].bias); }, n,
                            std::tuple(five, Array()));
  CHECK(id(two.layers[0].weight) == id(five));
  CHECK_FALSE(two.layers[0].bias.has_value());
}

TEST_CASE("tree: statics have identity") {
  // what a jit key sees of statics, as text
  auto statics = [](const auto& tree) {
    Texts r;
    detail::walk(
        const_cast<std::remove_cvref_t<decltype(tree)>&>(tree), Path{}, [](Array&, const Path&) {},
        [&](const detail::StaticValue& v, const Path& p) {
          r.push_back(p.text() + "=" + detail::to_string(v));
        });
    return r;
  };
  Mixed m;
  m.extra["x"] = 1.0;
  m.mask = {true, false};
  Texts all = statics(m);
  REQUIRE(all.size() == 13);
  CHECK(all[0] == "bias=0");
  CHECK(all[1].starts_with("act=function at 0x"));
  CHECK(Texts(all.begin() + 2, all.end()) == Texts{"tag=\"t\"", "k=3", "flag=0", "mode=0", "extra=1",
                                                   "extra.x=\"x\"", "pair=2", "t[1]=4", "layers=0",
                                                   "mask=\"10\"", "kernel=\"[3,3]\""});
  Mixed n = m;
  n.act = halve;
  CHECK(statics(n) != statics(m));
  CHECK(statics(std::pair(0.5, -1)) == Texts{"[0]=0.5", "[1]=-1"});
  CHECK(statics(P("x", none)) == Texts{"=\"PartitionSpec('x', None)\""});
}

TEST_CASE("tree: shardings by place") {
  const Device first{0}, second{1};
  std::vector<std::pair<std::string, int>> put;
  auto record = [&](const Array& a, const Sharding& s, const Path& p) {
    put.emplace_back(p.text(), s.device_set().at(0).id);
    return a;
  };
  using Puts = std::vector<std::pair<std::string, int>>;
  auto place = [&](auto tree, const auto& to) {
    put.clear();
    detail::place(tree, to, Path{}, record, "device_put");
    return put;
  };
  CHECK(place(std::pair(Array(1.0), 3), first) == Puts{{"[0]", 0}});
  CHECK(place(std::tuple(layer(), Array(1.0)), std::tuple(first, SingleDeviceSharding(second))) ==
        Puts{{"[0].weight", 0}, {"[0].bias", 0}, {"[1]", 1}});
  CHECK(place(std::tuple(layer(), Array(1.0)), std::tuple(none, second)) == Puts{{"[1]", 1}});
  CHECK(place(layer(), std::tuple(first, second)) == Puts{{"[0]", 0}, {"[1]", 1}});
  CHECK(place(net(2).layers, std::vector{first, second}) ==
        Puts{{"[0].weight", 0}, {"[0].bias", 0}, {"[1].weight", 1}, {"[1].bias", 1}});
  CHECK(message([&] {
          place(std::tuple(net(3).layers), std::tuple(std::vector{first, second}));
        }) ==
        "device_put: 2 shardings for 3 entries at `[0]`. A list of shardings needs one for each entry. Give "
        "one sharding "
        "for all of them, or as many.");
}

TEST_CASE("tree: axes of vmap") {
  using Axis = std::optional<std::int64_t>;
  const Path x{nullptr, {}, 0, 2}, y{nullptr, {}, 1, 2}, weight{&y, "weight", 0, 2}, bias{&y, "bias", 1, 2},
      root;
  auto at = [](const Axes& a, const Path& p) { return a.at(p, "vmap", "in_axes"); };
  CHECK(at(0, x) == Axis(0));
  CHECK(at(-1, bias) == Axis(-1));
  CHECK(at(none, bias) == Axis());
  CHECK(at({0, none}, x) == Axis(0));
  CHECK(at({0, none}, bias) == Axis());
  CHECK(at({0, {1, none}}, weight) == Axis(1));
  CHECK(at({0, {1, none}}, bias) == Axis());
  CHECK(at(2, root) == Axis(2));
  // {Array w; int n; Array b;}: the entry of n may be left out
  const Path w{&y, "w", 0, 3, 0, 2}, b{&y, "b", 2, 3, 1, 2};
  CHECK(at({0, {0, 1, none}}, b) == Axis());
  CHECK(at({0, {1, 2}}, w) == Axis(1));
  CHECK(at({0, {1, 2}}, b) == Axis(2));
  CHECK(message([&] {
          at({0, {1}}, b);
        }) ==
        "vmap: in_axes[1] has 1 entry for 3 parts. A list needs one entry for each argument, element or "
        "field. Write one number or none for all of them, or one for each.");
  CHECK(message([&] {
          at({0, 0, 0}, x);
        }) ==
        "vmap: in_axes has 3 entries for 2 parts. A list needs one entry for each argument, element or "
        "field. Write one "
        "number or none for all of them, or one for each.");
  CHECK(message([&] {
          at({0, {0}}, weight);
        }) ==
        "vmap: in_axes[1] has 1 entry for 2 parts. A list needs one entry for each argument, element or "
        "field. Write "
        "one number or none for all of them, or one for each.");
  CHECK(message([&] {
          at({{0, 1}, none}, x);
        }) ==
        "vmap: in_axes[0] is a list of 2 entries for one array. An array has one axis. Write a number or "
        "none there.");
}

TEST_CASE("tree: nested braces") {
  CHECK(NestedList{{1, 2, 3}, {4, 5, 6}}.shape() == Shape{2, 3});
  CHECK(NestedList{1, 2.5}.kind() == float32);
  CHECK(NestedList{true, 2}.kind() == int32);
  CHECK(NestedList(3).shape() == Shape{});
  std::vector<double> flat;
  NestedList{{{1, 2}}, {{3.5, 4}}}.append_to(flat);
  CHECK(flat == std::vector{1.0, 2.0, 3.5, 4.0});
  auto text = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) { return e.text(); }
    return "no error";
  };
  CHECK(text([] {
          array({{1, 2}, {3}});
        }) ==
        "array: entry 1 has shape [1], entry 0 has [2]. All rows must have the same length. Fill the short "
        "ones up.");
  CHECK(text([] {
          array({1, 2, 3}, {2, 2});
        }) ==
        "array: 3 values for shape [2,2], which has 4 elements. There must be one value per element. Correct "
        "the shape.");
  CHECK(text([] { array({3000000000}); }) ==
        "array: 3000000000 does not fit into int32. Whole numbers give int32 unless a dtype is named. Say "
        "array(values, "
        "int64).");
}

}  // namespace tree_test
