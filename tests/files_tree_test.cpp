// Trees in files: what is saved, what is loaded into, and what differs.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "files_helpers.h"
#include "messages.h"
#include "scale.h"

namespace files_tree_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

enum class Kind : std::uint8_t { small, large = 200 };
enum Plain { first = -3, second = 5 };
struct Settings {
  int epoch = 0;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  std::int8_t tiny = 0;
  bool done = false;
  float rate = 0;
  double scale = 0;
  std::string name;
  Kind kind = Kind::small;
  Plain plain = first;
  char letter = 'a';
  std::optional<int> best;
  std::vector<int> sizes;
  std::map<std::string, std::string> notes;
};
struct Training {
  nn::MLP<> model;
  std::map<std::string, std::vector<Array>> more;
  Array absent;
  Settings settings;
  std::optional<Sharding> sharding;
  Shape shape;
  std::vector<bool> flags;
};
bool equal(const Settings& a, const Settings& b) {
  return a.epoch == b.epoch && a.step == b.step && a.seed == b.seed && a.tiny == b.tiny && a.done == b.done &&
         a.rate == b.rate && a.scale == b.scale && a.name == b.name && a.kind == b.kind &&
         a.plain == b.plain && a.letter == b.letter && a.best == b.best && a.sizes == b.sizes &&
         a.notes == b.notes;
}
Settings filled() {
  return {.epoch = -7,
          .step = std::numeric_limits<std::int64_t>::min(),
          .seed = ~std::uint64_t{0},
          .tiny = -128,
          .done = true,
          .rate = 0.1F,
          .scale = std::nextafter(1.0 / 3, 1),
          .name = "a \"name\"\n\u2713",
          .kind = Kind::large,
          .plain = second,
          .letter = '\x7f',
          .best = 3,
          .sizes = {1, 2},
          .notes = {{"k", "v"}, {"", ""}}};
}
Settings empty_like(const Settings& s) {
  Settings r;
  if (s.best) r.best = 0;
  r.sizes.resize(s.sizes.size());
  for (const auto& [key, value] : s.notes) r.notes[key] = "";
  return r;
}
Training training(std::uint32_t seed) {
  const auto keys = random::split(random::key(seed), 3);
  return {.model = nn::MLP<>::init(4, 2, 8, 2, keys[0]),
          .more = {{"a", {random::normal(keys[1], {3, 5}), random::bits(keys[2], {4})}}, {"b", {}}},
          .absent = Array(),
          .settings = filled(),
          .sharding = std::nullopt,
          .shape = {},
          .flags = {}};
}

}  // namespace

TEST_CASE("files: empty braces are the default options") {
  const TemporaryFolder folder;
  const Array x = arange(6.0f).reshape(2, 3);
  const std::map<std::string, Array> arrays{{"x", x}};
  save_npz(folder.file("a.npz"), arrays, {});
  CHECK(array_equal(load_npz(folder.file("a.npz"), {}).at("x"), x));
  save_safetensors(folder.file("a.safetensors"), arrays, {});
  CHECK(array_equal(load_safetensors(folder.file("a.safetensors"), {}).arrays.at("x"), x));
  save(folder.file("tree"), arrays);
  CHECK(
      tree_equal(load(folder.file("tree"), std::map<std::string, Array>{{"x", zeros({2, 3})}}, {}), arrays));
  data::save_csv(folder.file("a.csv"), x, {});
  CHECK(array_equal(data::load_csv(folder.file("a.csv"), {}), x));
  CHECK(array_equal(data::load_table(folder.file("a.csv"), {}).columns[1], x[{all, 1}]));
}

TEST_CASE(
    "files: a tree is what it was: arrays, numbers and texts, in the shardings of the tree it is loaded "
    "into") {
  const TemporaryFolder folder;
  const std::string path = folder.file("training.safetensors");
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  Training saved = training(0);
  saved.sharding = NamedSharding(mesh, P("x"));
  saved.shape = {1, 2};
  saved.flags = {true};
  saved.model = filter_shard(saved.model, NamedSharding(mesh, P()));
  save(path, saved);
  CHECK(folder.count() == 1);
  Training like = training(1);
  like.settings = empty_like(saved.settings);
  like.flags = {false, true};
  like.model.layers[0].weight = device_put(like.model.layers[0].weight, NamedSharding(mesh, P("x", "y")));
  like.more["a"][0] = device_put(like.more["a"][0], devices()[5]);
  const Training loaded = load(path, like);
  CHECK(tree_equal(tree_leaves(loaded), tree_leaves(saved)));
  CHECK(equal(loaded.settings, saved.settings));
  CHECK(!loaded.absent.has_value());
  // where the arrays lie, and what is not written, is of the tree that it is loaded into
  const std::vector<Array> got = tree_leaves(loaded), asked = tree_leaves(like);
  REQUIRE(got.size() == asked.size());
  for (std::size_t k = 0; k < got.size(); k++) {
    CHECK(got[k].sharding() == asked[k].sharding());
    CHECK(got[k].committed() == asked[k].committed());
  }
  CHECK(!loaded.sharding.has_value());
  CHECK(loaded.shape == Shape{});
  CHECK(loaded.flags == like.flags);
  // every reader of the format reads it
  const Safetensors file = load_safetensors(path);
  CHECK(file.metadata.at("settings.epoch") == "-7");
  CHECK(file.metadata.at("settings.done") == "true");
  CHECK(file.metadata.at("settings.kind") == "200");
  CHECK(file.metadata.at("settings.rate") == "0.1");
  CHECK(file.metadata.at("settings.name") == saved.settings.name);
  CHECK(file.metadata.at("settings.notes.k") == "v");
  CHECK(file.metadata.at("__tree__") == "1");
  CHECK(file.metadata.size() ==
        17 + 2 * saved.model.layers.size());  // layers say which of their sides are scalars
  for (const std::string& leaf : tree_paths(saved)) CHECK(file.arrays.contains(leaf));
}

TEST_CASE("files: floats are read as the same numbers, infinite ones and NaN too") {
  const TemporaryFolder folder;
  const std::string path = folder.file("floats");
  const auto inf = std::numeric_limits<double>::infinity();
  for (const double x :
       {0.0, -0.0, 1e-320, 5e-324, 1.7976931348623157e308, 0.1, 1.0 / 3, inf, -inf, std::nan("")}) {
    const std::pair values(x, static_cast<float>(x));
    save(path, values);
    const auto [d, f] = load(path, std::pair(7.0, 7.0F));
    CHECK(std::bit_cast<std::uint64_t>(d) == std::bit_cast<std::uint64_t>(values.first));
    CHECK(std::bit_cast<std::uint32_t>(f) == std::bit_cast<std::uint32_t>(values.second));
  }
}

TEST_CASE("files: training goes on from a file as if it had never ended") {
  const TemporaryFolder folder;
  const std::string path = folder.file("checkpoint.safetensors");
  const auto optim = optim::adam(1e-2);
  const Sharding rows = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  const Array x = device_put(random::normal(random::key(1), {16, 4}), rows);
  const auto step = jit([=](auto model, auto state, const Array& data) {
    const auto loss = [](const nn::MLP<>& m, const Array& d) { return mean(square(vmap(m)(d))); };
    const auto grads = grad(loss)(model, data);
    const auto [updates, next] = optim.update(grads, state);
    return std::pair(apply_updates(model, updates), next);
  });
  auto model = nn::MLP<>::init(4, 2, 8, 1, random::key(0));
  auto state = optim.init(model);
  for (int k = 0; k < 3; k++) std::tie(model, state) = step(model, state, x);
  save(path, std::tuple(model, state));
  const auto fresh = nn::MLP<>::init(4, 2, 8, 1, random::key(9));
  const auto like = filter_shard(std::tuple(fresh, optim.init(fresh)), tree_leaves(model)[0].sharding());
  auto [again, again_state] = load(path, like);
  for (int k = 0; k < 3; k++) {
    std::tie(model, state) = step(model, state, x);
    std::tie(again, again_state) = step(again, again_state, x);
  }
  CHECK(tree_equal(again, model));
  CHECK(tree_equal(again_state, state));
}

TEST_CASE("files: an array, a vector and a file of another program are trees") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  save(path, arange(3));
  CHECK(array_equal(load(path, zeros({3}, int32)), arange(3)));
  save(path, std::vector<Array>{});
  CHECK(load(path, std::vector<Array>{}).empty());
  save_safetensors(path, {{"[0]", arange(2)}}, {{"format", "pt"}});
  const auto [x, k] = load(path, std::pair(zeros({2}, int32), 5));
  CHECK(array_equal(x, arange(2)));
  CHECK(k == 5);  // it has no number: the tree keeps its own
  // a literal stays one: jitted functions are not traced again
  save(path, Array(2.0));
  CHECK(load(path, Array(1.0)).weak_type());
  CHECK(!load(path, ones({})).weak_type());
}

TEST_CASE("files: weights of Equinox by PyTorch's names") {
  auto model = nn::MLP<>::init(3, 2, 5, 2, random::key(0));
  const Sharding rows = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  for (nn::Linear& l : model.layers) l.weight = device_put(l.weight, rows);
  std::map<std::string, std::string> names{{"[1]", "x"}, {"[2]", "y"}};
  for (const std::string k : {"0", "1", "2"})
    for (const std::string part : {".weight", ".bias"})
      names["[0].layers[" + k + "]" + part] = "layers." + k + part;
  const auto [loaded, x, y] = load(data_file("files/mlp.safetensors"),
                                   std::tuple(model, zeros({4, 3}), zeros({4, 2})), {.names = names});
  CHECK(loaded.layers[0].weight.sharding() == rows);
  CHECK(allclose(vmap(loaded)(x), y, {.rtol = 1e-6, .atol = 1e-6}));
}

TEST_CASE("files: two arrays of a tree may have one name in a file; names are of the tree's arrays") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  save_safetensors(path, {{"embedding", arange(4.0F)}, {"head", ones({2})}});
  const std::map<std::string, Array> like{{"in", zeros({4})}, {"out", zeros({4})}, {"head", zeros({2})}};
  const LoadTreeOptions options{.names = {{"in", "embedding"}, {"out", "embedding"}}};
  const auto tied = load(path, like, options);
  CHECK(array_equal(tied.at("in"), arange(4.0F)));
  CHECK(array_equal(tied.at("out"), arange(4.0F)));
  CHECK(array_equal(tied.at("head"), ones({2})));
  CHECK(
      said_of<TreeError>(path,
                         [&] {
                           (void)load(path, like, {.names = {{"in", "embedding"}, {"body", "embedding"}}});
                         }) ==
      "load: `names` has `body`, and the tree has no array, number or text there. Its keys are the paths of "
      "these, as save() writes them. Check it.");
  CHECK(said_of<TreeError>(path,
                           [&] {
                             (void)load(path, like, {.names = {{"in", "embedding"}, {"out", "unembed"}}});
                           }) ==
        "load: PATH: `unembed` f32[4] is missing. The file has exactly the leaves of the tree that it is "
        "loaded "
        "into. Make that as it was when it was saved.");
}

TEST_CASE("files: numbers and texts of a tree whose fields have other names by now") {
  struct Before {
    Array w;
    int steps = 0;
    std::string kind;
  };
  struct Now {
    Array weight;
    int count = 0;
    std::string what;
  };
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  save(path, Before{arange(3.0F), 7, "adam"});
  const Now now =
      load(path, Now{zeros({3}), 0, ""}, {.names = {{"weight", "w"}, {"count", "steps"}, {"what", "kind"}}});
  CHECK(array_equal(now.weight, arange(3.0F)));
  CHECK(now.count == 7);
  CHECK(now.what == "adam");
}

TEST_CASE("files: a number that its enum does not have is refused") {
  enum class Mode : std::uint8_t { first, second, third };
  struct Model {
    Array x;
    Mode mode = Mode::first;
    Kind kind = Kind::small;  // with a gap: any number
    Plain plain = first;
  };
  struct Numbers {  // the same leaves
    Array x;
    std::uint8_t mode = 0, kind = 0;
    int plain = 0;
  };
  const TemporaryFolder folder;
  const std::string path = folder.file("enum.safetensors");
  const auto loaded = [&](int mode, int kind, int plain) {
    save(path, Numbers{ones(2), static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(kind), plain});
    return load(path, Model{zeros(2)});
  };
  CHECK(loaded(2, 200, 5).mode == Mode::third);
  CHECK(static_cast<int>(loaded(1, 77, 1000).kind) == 77);
  for (const int bad : {3, 255})
    CHECK(
        message_of<IoError>([&] { loaded(bad, 0, 0); }) ==
        "load: " + path + ": `mode` is " + std::to_string(bad) +
            " in the file, and its enum has the values 0 to 2. Code relies on one of these. Check where the "
            "file comes from.");
}

TEST_CASE("files: the first leaf that differs is named, and nothing is changed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  struct Model {
    std::vector<nn::Linear> layers;
    int epoch = 0;
  };
  const auto model = [](std::int64_t size, std::size_t layers) {
    Model m;
    for (std::size_t k = 0; k < layers; k++) m.layers.push_back(nn::Linear::init(2, size, random::key(0)));
    return m;
  };
  save(path, model(3, 2));
  const std::string rule =
      ". The file has exactly the leaves of the tree that it is loaded into. Make that as it was when it was "
      "saved.";
  CHECK(said_of<TreeError>(path, [&] { load(path, model(3, 3)); }) ==
        "load: PATH: `layers[2].weight` f32[3,2] is missing" + rule);
  CHECK(said_of<TreeError>(path, [&] {
          load(path, model(3, 1));
        }).starts_with("load: PATH: `layers[1].bias` f32[3] is in the file and not in the tree"));
  CHECK(
      said_of<ShapeError>(path, [&] { load(path, model(4, 2)); }) ==
      "load: PATH: `layers[0].weight` is f32[3,2] in the file and f32[4,2] in the tree. Every leaf keeps its "
      "shape and dtype. Give the tree an array of that shape.");
  Model other = model(3, 2);
  other.layers[1].bias = other.layers[1].bias.astype(float16);
  CHECK(said_of<DTypeError>(path, [&] { load(path, other); }) ==
        "load: PATH: `layers[1].bias` is f32[3] in the file and f16[3] in the tree. Every leaf keeps its "
        "shape and "
        "dtype. Give the tree an array of that dtype, and cast it then.");
  // numbers and texts
  save(path, std::map<std::string, int>{{"a", 1}, {"b", 300}});
  using Bytes = std::map<std::string, std::int8_t>;
  CHECK(said_of<TreeError>(path, [&] {
          load(path, Bytes{{"a", 1}, {"b", 3}});
        }) == "load: PATH: `b` is `300` in the file and an integer of 8 bits in the tree" + rule);
  CHECK(said_of<TreeError>(path, [&] {
          load(path, Bytes{{"a", 1}, {"c", 3}});
        }) == "load: PATH: `c`, 3, is missing; instead the file has `b` 300" + rule);
  CHECK(said_of<TreeError>(path, [&] {
          load(path, Bytes{{"a", 1}});
        }) == "load: PATH: `b`, `300`, is in the file and not in the tree" + rule);
  CHECK(said_of<TreeError>(path, [&] {
          load(path, std::map<std::string, bool>{{"a", 1}, {"b", 1}});
        }) == "load: PATH: `a` is `1` in the file and a bool in the tree" + rule);
  save(path, std::string("text"));
  CHECK(load(path, std::string()) == "text");
  for (const std::string text : {"1.", "", "x", "-1", "18446744073709551616"}) {
    save(path, text);
    CHECK(said_of<TreeError>(path, [&] { load(path, 1U); }) ==
          "load: PATH: `` is `" + text + "` in the file and an unsigned integer of 32 bits in the tree" +
              rule);
  }
  save(path, std::string("one"));
  CHECK(said_of<TreeError>(path, [&] { load(path, 1.0F); }) ==
        "load: PATH: `` is `one` in the file and a float of 32 bits in the tree" + rule);
  // what cannot be told apart, or is no text
  CHECK_SAYS(save(path, std::tuple(std::map<std::string, Array>{{"a.b", Array(1)}})), "nothing was thrown",
             TreeError);
  const std::map<std::string, std::map<std::string, Array>> twice{{"a", {{"b.c", Array(1)}}},
                                                                  {"a.b", {{"c", Array(2)}}}};
  CHECK_SAYS(save(path, twice),
             "save: two leaves have the path `a.b.c`. A file has its leaves by path. Rename one.", TreeError);
  CHECK(said_of(path, [&] {
          save(path, std::string("\xff"));
        }).starts_with("save: PATH: the text `\\xff` is not UTF-8."));
  CHECK_SAYS(save(path, std::map<std::string, int>{{"__tree__", 1}}),
             "save: two leaves have the path `__tree__`. A file has its leaves by path. Rename one.",
             TreeError);
  // a few of what it has under other names
  const std::string foreign = folder.file("foreign.safetensors");
  std::map<std::string, Array> weights{{"fc.weight", ones({2, 3})}, {"x", ones({2})}};
  const std::map<std::string, Array> like{{"weight", ones({2, 3})}, {"x", ones({2})}};
  save_safetensors(foreign, weights);
  CHECK(said_of<TreeError>(foreign, [&] { load(foreign, like); }) ==
        "load: PATH: `weight` f32[2,3] is missing; instead the file has `fc.weight` f32[2,3]" + rule);
  for (const char* const name : {"a", "b", "c", "d", "e"}) weights[name] = ones({1});
  save_safetensors(foreign, weights);
  CHECK(said_of<TreeError>(foreign, [&] { load(foreign, like); }) ==
        "load: PATH: `weight` f32[2,3] is missing; instead the file has `a` f32[1], `b` f32[1], `c` f32[1], "
        "`d` "
        "f32[1] and 2 more" +
            rule);
}

// A process that is killed while it saves leaves the old file or the new one.
TEST_CASE("files: a process that is killed while it saves leaves a whole file") {
  if (is_sanitized()) return;  // they know no process with threads that forks
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const auto tree = [](int k) { return std::pair(full({1 << 18}, k), k); };
  std::vector<std::pair<Array, int>> trees;
  for (int k = 0; k < 3; k++) {
    trees.push_back(tree(k));
    eval(trees.back().first);
  }
  save(path, trees[0]);
  for (int round = 0; round < 10; round++) {
    const pid_t child = fork();
    if (child == 0) {
      for (int k = 0;; k++) save(path, trees[static_cast<std::size_t>(k % 3)]);
    }
    usleep(3000 + 2500 * round);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto [x, k] = load(path, tree(7));
    CHECK(allclose(x, full({1 << 18}, k)));
  }
}

}  // namespace files_tree_test
