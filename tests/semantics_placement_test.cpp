// Placement: gradients of moves, *_like, roll, rows of pmap's results, captured arrays, devices that do not exist.
#include <functional>
#include <set>

#include "golden.h"
#include "program_of.h"

namespace semantics_placement_test {

namespace sa = shardarray;
using namespace program_test;

namespace {

template <class E, class F> std::string message(F f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "nothing was thrown";
}
bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return true;
  MESSAGE(text);
  return false;
}

sa::Device cpu(int k) { return sa::devices()[static_cast<std::size_t>(k)]; }
sa::Sharding on(int k) { return sa::SingleDeviceSharding(cpu(k)); }
// Devices first .. first + 3 as a mesh.
sa::Sharding on_four(int first, const sa::P& spec) {
  std::vector<sa::Device> four;
  for (int k = 0; k < 4; k++) four.push_back(cpu(first + k));
  return sa::NamedSharding(sa::make_mesh({{"x", 4}}, four), spec);
}
// One device, meshes over the first and the last four, all of them.
std::vector<sa::Sharding> places() {
  return {on(0),
          on(1),
          on_four(0, sa::P("x")),
          on_four(4, sa::P("x")),
          on_four(4, sa::P(sa::none, "x")),
          on_four(4, sa::P()),
          on_xy(sa::P("x", "y"))};
}
std::set<int> devices_of(const Array& x) {
  std::set<int> ids;
  for (const sa::Device& d : x.devices()) ids.insert(d.id);
  return ids;
}
std::vector<double> mapped(const Array& x, double (*f)(double)) {
  std::vector<double> v = values(x);
  for (double& e : v) e = f(e);
  return v;
}
double cube4(double v) { return 4 * v * v * v; }  // of x^4
double square12(double v) { return 12 * v * v; }

struct Put {
  const char* name;
  Array (*move)(const Array&, const sa::Sharding&);
};
const Put puts[] = {
    {"device_put", [](const Array& x, const sa::Sharding& s) { return sa::device_put(x, s); }},
    {"filter_shard", [](const Array& x, const sa::Sharding& s) { return sa::filter_shard(x, s); }},
    {"with_sharding_constraint",
     [](const Array& x, const sa::Sharding& s) { return sa::with_sharding_constraint(x, s); }}};

}  // namespace

// ---------------------------------------------------------------- gradients of moves
TEST_CASE("placement: a gradient comes back to where its variable is") {
  for (const sa::Sharding& source : places())
    for (const sa::Sharding& target : places())
      for (const Put& put : puts) {
        CAPTURE(source.to_string());
        CAPTURE(target.to_string());
        CAPTURE(std::string(put.name));
        const Array x = sa::device_put(numbers({8, 4}), source);
        // what is computed before the move and after it
        const auto loss = [&](Array v) { return sa::sum(sa::square(put.move(v * v, target))); };
        const Array g = sa::grad(loss)(x);
        CHECK(values(x - 0.5 * g) == mapped(x, [](double v) { return v - 2 * v * v * v; }));
        CHECK(devices_of(g) == devices_of(x));
        const auto direct = [&](Array v) { return sa::sum(put.move(v, target) * put.move(v, target)); };
        const Array d = sa::grad(direct)(x);
        CHECK(devices_of(d) == devices_of(x));
        CHECK(values(x + d) == mapped(x, [](double v) { return 3 * v; }));
      }
}

TEST_CASE("placement: second derivatives of moves come back, too") {
  const auto all = places();
  for (const sa::Sharding& source : {all[1], all[2]})
    for (const sa::Sharding& target : {all[0], all[3], all[6]}) {
      CAPTURE(source.to_string());
      CAPTURE(target.to_string());
      const Array x = sa::device_put(numbers({8, 4}), source);
      const auto loss = [&](Array v) { return sa::sum(sa::square(sa::device_put(v * v, target))); };
      const auto slope = [&](Array v) { return sa::sum(sa::grad(loss)(v)); };
      const Array reverse = sa::grad(slope)(x);
      CHECK(values(reverse) == mapped(x, square12));
      CHECK(devices_of(reverse) == devices_of(x));
      const auto [g, forward] =
          sa::jvp([&](Array v) { return sa::grad(loss)(v); }, std::tuple(x), std::tuple(sa::ones_like(x)));
      CHECK(values(g) == mapped(x, cube4));
      CHECK(values(forward) == mapped(x, square12));
      CHECK(devices_of(forward) == devices_of(x));
      // a move of the gradient itself
      const auto moved = [&](Array v) { return sa::sum(sa::device_put(sa::grad(loss)(v), target)); };
      CHECK(values(sa::grad(moved)(x)) == mapped(x, square12));
    }
}

TEST_CASE("placement: gradients of several variables on different devices") {
  const Array a = sa::device_put(numbers({8}), on(0)),
              b = sa::device_put(numbers({8}, sa::float32, 1), on(1)),
              c = sa::device_put(numbers({8}, sa::float32, 2), on_four(4, sa::P("x"))),
              free = numbers({8}, sa::float32, 3);
  const auto loss = [](Array p, Array q, Array r, Array s) {
    const Array first = sa::device_put(p * s, on(1)) * q;
    return sa::sum(sa::device_put(first, on_four(4, sa::P("x"))) * r);
  };
  const auto [ga, gb, gc, gs] = sa::grad<0, 1, 2, 3>(loss)(a, b, c, free);
  const std::vector<double> x = values(a), y = values(b), z = values(c), w = values(free);
  const auto product = [](const std::vector<double>& p, const std::vector<double>& q,
                          const std::vector<double>& r) {
    std::vector<double> v;
    for (std::size_t k = 0; k < p.size(); k++) v.push_back(p[k] * q[k] * r[k]);
    return v;
  };
  CHECK(values(ga) == product(w, y, z));
  CHECK(values(gb) == product(x, w, z));
  CHECK(values(gc) == product(x, w, y));
  CHECK(values(gs) == product(x, y, z));
  CHECK(devices_of(ga) == std::set{0});
  CHECK(devices_of(gb) == std::set{1});
  CHECK(devices_of(gc) == std::set{4, 5, 6, 7});
  CHECK(devices_of(gs) == std::set{0});  // on the way it met what is bound to cpu:0
  CHECK(values(a - ga).size() == 8);
  CHECK(values(b - gb).size() == 8);
  CHECK(values(c - gc).size() == 8);
}

TEST_CASE("placement: gradients of moves through jit, vmap and pmap") {
  for (const sa::Sharding& source : {on(1), on(6), on_four(4, sa::P("x"))}) {
    CAPTURE(source.to_string());
    const Array x = sa::device_put(numbers({8, 4}), source);
    const auto sum_of_squares = sa::jit([](Array v) { return sa::sum(sa::square(v)); });
    const auto by_jit = [&](Array v) { return sum_of_squares(sa::device_put(v * v, on(0))); };
    const Array j = sa::grad(by_jit)(x);
    CHECK(values(j) == mapped(x, cube4));
    CHECK(devices_of(j) == devices_of(x));

    const auto row = [](Array v) { return sa::sum(sa::square(sa::device_put(v * v, on(0)))); };
    const Array v = sa::vmap(sa::grad(row))(x);
    CHECK(values(v) == mapped(x, cube4));
    CHECK(devices_of(v) == devices_of(x));
    const Array of_vmap = sa::grad([&](Array u) { return sa::sum(sa::vmap(row)(u)); })(x);
    CHECK(values(of_vmap) == mapped(x, cube4));
    CHECK(devices_of(of_vmap) == devices_of(x));

    // pmap brings its operands over by itself
    const auto squares = sa::pmap([](Array u) { return sa::square(u); });
    const auto by_pmap = [&](Array u) { return sa::sum(squares((u * u).reshape({4, 8}))); };
    const Array p = sa::grad(by_pmap)(x);
    CHECK(values(p) == mapped(x, cube4));
    CHECK(devices_of(p) == devices_of(x));
    const Array again = sa::grad([&](Array u) { return sa::sum(sa::grad(by_pmap)(u)); })(x);
    CHECK(values(again) == mapped(x, square12));
  }
  // an array of the outside among mapped rows: of another rank than the gradient on its way
  const Array scale = sa::device_put(Array(3.0f), on(5)), rows = sa::device_put(numbers({4, 2}), on(0));
  const auto loss = [&](Array s) {
    return sa::sum(sa::vmap([&](Array r) { return r * sa::device_put(s * s, on(0)); })(rows));
  };
  const Array g = sa::grad(loss)(scale);
  CHECK(devices_of(g) == std::set{5});
  CHECK(g.item<float>() == 6 * sa::sum(rows).item<float>());
}

TEST_CASE("placement: the gradient of a variable that is bound to no device stays where its value went") {
  const Array x = numbers({8});
  const auto loss = [](Array v) { return sa::sum(sa::square(sa::device_put(v, on_four(4, sa::P("x"))))); };
  const Array g = sa::grad(loss)(x);
  CHECK(devices_of(g) == std::set{4, 5, 6, 7});
  CHECK(values(x - g) == mapped(x, [](double v) { return -v; }));
}

// ---------------------------------------------------------------- *_like
TEST_CASE("placement: *_like is where its model is") {
  const auto check = [](const Array& model, const sa::Sharding& s) {
    const auto made = {sa::zeros_like(model),
                       sa::ones_like(model),
                       sa::full_like(model, 3),
                       sa::empty_like(model),
                       sa::full_like(model, 2.5f, sa::float64),
                       sa::zeros_like(model, sa::int8)};
    for (const Array& x : made) {
      CHECK(x.sharding() == s);
      CHECK(x.committed() == model.committed());
      CHECK(x.shape() == model.shape());
    }
    const std::vector<double> v = values(sa::full_like(model, 3));
    CHECK(v == std::vector<double>(v.size(), 3));
  };
  for (const sa::Sharding& s : places()) {
    CAPTURE(s.to_string());
    const Array x = sa::device_put(numbers({8, 4}), s);
    check(x, s);
    check(x * 2, s);  // not computed yet
    check(sa::device_put(sa::ones({7, 3}), s), s);
    // nothing of the model is read or moved
    CHECK(planned([](Array v) { return sa::zeros_like(v) + 1; }, x) == "");
    CHECK(values(sa::grad([](Array v) { return sa::sum(v * sa::ones_like(v)); })(x)) ==
          std::vector<double>(32, 1));
    CHECK(values(sa::grad([&](Array v) { return sa::sum(x * sa::full_like(x, v)); })(Array(2.0f))) ==
          values(sa::sum(x)));
    CHECK(values(sa::vmap([](Array r) { return sa::ones_like(r) + r; })(x)) == values(x + 1));
    CHECK(values(sa::jit([](Array v) { return sa::zeros_like(v); })(x)) == std::vector<double>(32, 0));
  }
  check(numbers({4}), on(0));
  CHECK_FALSE(sa::zeros_like(numbers({4})).committed());
  const auto to_other = [](Array v) {
    return sa::filter_shard(sa::zeros_like(v), on_xy(sa::P(sa::none, "x")));
  };
  CHECK(planned(to_other, sa::device_put(numbers({8, 4}), on_xy(sa::P("x")))) == "");  // made there
}

TEST_CASE(
    "placement: an optimizer's zeros lie where the parameters lie, computed or not, in a trace or not") {
  const Array x = sa::device_put(numbers({8, 4}), on_xy(sa::P("x")));
  const auto adam = sa::optim::adam(0.1);
  const Array lazy = x * 2;
  for (const auto& state :
       {adam.init(x), adam.init(lazy), sa::jit([&](Array v) { return adam.init(v * 2); })(x)})
    for (const Array& zeros : {state.mu, state.nu}) {
      CHECK(zeros.sharding() == sa::Sharding(on_xy(sa::P("x"))));
      CHECK(zeros.committed());
      CHECK(values(zeros) == std::vector<double>(32, 0));
    }
}

// ---------------------------------------------------------------- roll
namespace {

// The bytes that the busiest device lacks: what no program can avoid to move.
std::int64_t lacking(const Shape& shape, const sa::Sharding& s, const std::vector<std::int64_t>& shifts) {
  const auto map = s.devices_indices_map(shape);
  const std::int64_t rows = shape[0], cols = shape[1];
  std::int64_t most = 0;
  for (const auto& [device, index] : map) {
    const auto inside = [&index = index](std::size_t d, std::int64_t i) {
      return index[d].whole || (i >= index[d].start && i < index[d].stop);
    };
    std::int64_t missing = 0;
    for (std::int64_t r = 0; r < rows; r++)
      for (std::int64_t c = 0; c < cols; c++) {
        const std::int64_t from_r = ((r - shifts[0]) % rows + rows) % rows,
                           from_c = ((c - shifts[1]) % cols + cols) % cols;
        missing += inside(0, r) && inside(1, c) && !(inside(0, from_r) && inside(1, from_c));
      }
    most = std::max(most, missing * 4);
  }
  return most;
}
std::vector<double> rolled(const std::vector<double>& v, const Shape& shape,
                           const std::vector<std::int64_t>& shifts) {
  std::vector<double> r(v.size());
  const std::int64_t rows = shape[0], cols = shape[1];
  for (std::int64_t k = 0; k < rows; k++)
    for (std::int64_t c = 0; c < cols; c++) {
      const std::int64_t to_r = ((k + shifts[0]) % rows + rows) % rows,
                         to_c = ((c + shifts[1]) % cols + cols) % cols;
      r[static_cast<std::size_t>(to_r * cols + to_c)] = v[static_cast<std::size_t>(k * cols + c)];
    }
  return r;
}

}  // namespace

TEST_CASE("placement: roll is one exchange of what must move") {
  for (const Shape& shape : {Shape{16, 4}, Shape{10, 6}, Shape{7, 5}})
    for (const sa::P& spec : {sa::P("x"), sa::P("x", "y"), sa::P(sa::none, sa::axes("y", "x")), sa::P()})
      for (const auto& shifts : std::vector<std::vector<std::int64_t>>{
               {1, 0}, {-1, 0}, {4, 0}, {5, 0}, {0, 1}, {2, -1}, {-17, 9}, {0, 0}}) {
        const sa::Sharding s = on_xy(spec);
        CAPTURE(s.to_string());
        CAPTURE(sa::to_string(shape));
        CAPTURE(shifts[0]);
        CAPTURE(shifts[1]);
        const Array x = placed(shape, s);
        const auto f = [&](Array v) { return sa::roll(v, {shifts[0], shifts[1]}, {0, 1}); };
        CHECK(values(f(x)) == rolled(values(x), shape, shifts));
        const auto moved = sa::explain(sa::jit(f), x).transfers();
        const std::int64_t least = lacking(shape, s, shifts);
        CHECK(moved.size() == (least > 0 ? 1 : 0));
        if (!moved.empty()) CHECK(moved[0].bytes_per_device == least);
        check_received(sa::jit(f), x);
        const Array w = placed(shape, s, 5);
        const Array g = sa::grad([&](Array v) { return sa::sum(f(v) * w); })(x);
        CHECK(values(g) == rolled(values(w), shape, {-shifts[0], -shifts[1]}));
        const Array both = sa::vmap(f)(sa::stack({x, w}));
        CHECK(values(both[1]) == rolled(values(w), shape, shifts));
      }
}

TEST_CASE("placement: roll of one axis, of all elements, of nothing") {
  const Array x = numbers({3, 4});
  CHECK(values(sa::roll(x, 5, 1)) == rolled(values(x), {3, 4}, {0, 5}));
  CHECK(values(sa::roll(x, -1, -2)) == rolled(values(x), {3, 4}, {-1, 0}));
  CHECK(values(sa::roll(x, 7)) == rolled(values(x), {1, 12}, {0, 7}));
  CHECK(values(sa::roll(x, {1, 2}, {1, 1})) == rolled(values(x), {3, 4}, {0, 3}));
  CHECK(sa::roll(sa::zeros({0, 3}), 2, 0).shape() == Shape{0, 3});
  CHECK(message<sa::ShapeError>([&] {
          sa::roll(x, Shape{1, 2}, Shape{0});
        }) == "roll: shifts [1,2] for axes [0]. Every axis has one shift. Give as many shifts as axes.");
}

// ---------------------------------------------------------------- rows of pmap's results
TEST_CASE("placement: a row of pmap's result moves that row at most") {
  const auto f = sa::pmap([](Array v) { return v * 2; });
  const Array y = f(numbers({8, 6}));
  for (int k : {0, 3, 7}) {
    const auto pick = [k](Array v) { return v[k]; };
    const sa::Explanation e = sa::explain(sa::jit(pick), y);
    // to where the result begins, then a part of it to every device
    CHECK(program_test::bytes_received(e) <= 6 * 4 + 4);
    check_received(sa::jit(pick), y);
    const Array row = y[k];
    CHECK(values(row) == values(numbers({8, 6})[k] * 2));
  }
}

// ---------------------------------------------------------------- captured arrays
TEST_CASE("placement: an array that a jitted function captures is a leaf with its placement") {
  const Array captured = sa::device_put(numbers({8}), on(1)), free = numbers({8});
  const auto f = sa::jit([=](Array x) { return x + captured; });
  CHECK(devices_of(f(free)) == std::set{1});
  CHECK(f(free).committed());
  const Array beside = sa::device_put(free, on(1)), apart = sa::device_put(free, on(2));
  CHECK(values(f(beside)) == values(free + free));
  const std::string platform = sa::devices()[0].platform;
  CHECK(has(message<sa::DeviceError>([&] { f(apart); }),
            "jit: Received incompatible devices for jitted computation. Got argument 0 with shape f32[8] "
            "with device "
            "ids [2] on platform " +
                platform + " and a captured array f32[8] with device ids [1] on platform " + platform + "."));
  const Array sharded = sa::device_put(free, on_xy(sa::P("x")));
  const auto g = sa::jit([=](Array x) { return x + sharded; });
  CHECK(g(free).sharding() == sharded.sharding());
  const auto h = sa::jit([=](Array x) { return x + free; });
  CHECK_FALSE(h(free).committed());
  CHECK(values(sa::grad([=](Array x) { return sa::sum(f(x) * captured); })(free)) == values(captured));
}

TEST_CASE("placement: devices that do not exist are named at once") {
  const Array x = numbers({8});
  const sa::Device none_such{99};
  const std::string rest =
      ": there is no device cpu:99. The platform has 8 devices, numbered from 0. Use one of devices().";
  CHECK(message<sa::DeviceError>([&] { sa::device_put(x, none_such); }) == "device_put" + rest);
  CHECK(message<sa::DeviceError>([&] { sa::filter_shard(x, none_such); }) == "filter_shard" + rest);
  const auto in_jit = sa::jit([&](Array v) { return sa::filter_shard(v, none_such); });
  CHECK(message<sa::DeviceError>([&] { in_jit(x); }) == "filter_shard" + rest);
  CHECK(message<sa::DeviceError>([&] {
          sa::make_array_from_callback({8}, sa::SingleDeviceSharding(none_such),
                                       [&](const auto&) { return x; });
        }) == "make_array_from_callback" + rest);
  CHECK(message<sa::DeviceError>([&] { sa::device_put(x, sa::Device{-1}); }).find("cpu:-1") !=
        std::string::npos);
}

TEST_CASE("placement: messages of pieces say the rule and what to do") {
  const Array x = sa::device_put(numbers({4}), on_four(0, sa::P("x")));
  CHECK(message<sa::ShapeError>([&] { x.addressable_data(4); }) ==
        "addressable_data: shard 4 of 4 shards. They are numbered from 0, in the order of the sharding's "
        "devices. Give a "
        "number below 4.");
  const auto pieces = [&](std::vector<Array> given) {
    return message<sa::Error>(
        [&] { sa::make_array_from_single_device_arrays({4}, on_four(0, sa::P("x")), given); });
  };
  CHECK(has(pieces({x}),
            "Expected 4 per-device arrays (one per device of the sharding), but got 1. Every device holds "
            "one piece. Give one array for each device of NamedSharding("));
  CHECK(has(pieces({x, x, x, x}),
            "every array must have one shard, but f32[4] is on 4 devices. A piece lies on one "
            "device. Use addressable_data(i) of it, or device_put it to one device."));
  const auto piece = [](int k, sa::DType t, std::int64_t n) {
    return sa::device_put(sa::zeros({n}, t), on(k));
  };
  CHECK(has(pieces({piece(0, sa::float32, 1), piece(1, sa::int32, 1), piece(2, sa::float32, 1),
                    piece(3, sa::float32, 1)}),
            "Got int32, expected float32. A global array has one dtype. Cast the pieces with astype."));
  CHECK(has(pieces({piece(0, sa::float32, 2), piece(1, sa::float32, 1), piece(2, sa::float32, 1),
                    piece(3, sa::float32, 1)}),
            "Every piece has the shape that the sharding says. Slice or pad it, or change the sharding."));
}

// A placement that cuts along a part of an axis may be a little cheaper for little work, but no spec says so. (A product may be cut in both
// dimensions along one axis, which moves less.)
TEST_CASE("placement: results that nobody placed are spelled by the mesh, whatever their size") {
  using Function = std::function<Array(const Array&)>;
  const std::pair<const char*, Function> functions[] = {
      {"cumsum", [](const Array& x) { return sa::cumsum(x, 0); }},
      {"cummax", [](const Array& x) { return sa::cummax(x, {.axis = 0, .reverse = true}); }},
      {"sort", [](const Array& x) { return sa::sort(x, 0); }},
      {"softmax", [](const Array& x) { return sa::softmax(x, 0); }},
      {"roll", [](const Array& x) { return sa::roll(x, 3, 0); }}};
  const sa::Mesh line = sa::make_mesh({{"x", 8}}), grid = sa::make_mesh({{"x", 4}, {"y", 2}});
  for (const auto& [name, f] : functions)
    for (const std::int64_t n : {8, 16, 24, 32, 64, 256})
      for (const sa::Sharding& s : {sa::Sharding(sa::NamedSharding(line, sa::P("x"))),
                                    sa::Sharding(sa::NamedSharding(grid, sa::P("x", "y"))),
                                    sa::Sharding(sa::NamedSharding(grid, sa::P("x")))}) {
        const auto& function = name;
        CAPTURE(function);
        CAPTURE(n);
        CAPTURE(s.to_string());
        const Array x = numbers({n, 16}) / 16, got = sa::block_until_ready(f(sa::device_put(x, s)));
        CHECK(got.sharding().to_string().starts_with("NamedSharding"));
        CHECK(golden::close(values(got), values(f(x)), 1e-4, 1e-4));
      }
}

}  // namespace semantics_placement_test
