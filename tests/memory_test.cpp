// What a compiled program allocates, reuses and overwrites, and what survives a failure.
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "golden.h"
#include "memory_helpers.h"
#include "program_of.h"
#include "runtime/arena.h"
#include "runtime/memory_source.h"
#include "runtime/pool.h"

namespace memory_test {

namespace sa = shardarray;
using program_test::prepare;
using sa::Array;
using sa::P;
using sa::Shape;
using namespace memory_helpers;

namespace {

// ---- the training step of the autoparallelism example: a small MLP, data parallel on all devices
using Model = sa::nn::MLP<>;
Array compute_loss(const Model& model, const Array& x, const Array& y) {
  return sa::mean(sa::square(y - sa::vmap(model)(x)));
}
struct Training {
  sa::PositionalSharding sharding = sa::PositionalSharding(sa::create_device_mesh({sa::device_count(), 1}));
  Model model;
  decltype(sa::optim::adam(3e-4).init(std::declval<Model>())) state;
  Array x, y;

  Training() {
    const sa::Sharding replicated = sharding.replicate();
    model = sa::filter_shard(Model::init(4, 4, 32, 1, sa::random::key(0)), replicated);
    state = sa::filter_shard(sa::optim::adam(3e-4).init(model), replicated);
    x = sa::filter_shard(sa::reshape(numbers(64), {16, 4}) * 0.1, sharding);
    y = sa::filter_shard(sa::sin(x), sharding);
    sa::eval(model, state, x, y);
  }
  auto step() const {
    return sa::jit(
        [s = sharding](Model m, decltype(state) st, Array a, Array b) {
          const sa::Sharding replicated = s.replicate();
          std::tie(m, st) = sa::filter_shard(std::tuple(m, st), replicated);
          std::tie(a, b) = sa::filter_shard(std::tuple(a, b), s);
          const auto grads = sa::grad(compute_loss)(m, a, b);
          auto [updates, next] = sa::optim::adam(3e-4).update(grads, st);
          return sa::filter_shard(std::tuple(sa::apply_updates(m, updates), next), replicated);
        },
        {.name = "training_step"});
  }
  template <class Step> void run(const Step& step, int times) {
    for (int k = 0; k < times; k++) std::tie(model, state) = step(std::move(model), std::move(state), x, y);
  }
  Values parameters() const {
    Values all;
    for (const auto& layer : model.layers)
      for (const Array& a : {layer.weight, layer.bias})
        for (double v : values(a)) all.push_back(v);
    return all;
  }
  template <class F> void each_array(const F& f) const {
    sa::tree_map(
        [&](const Array& a) {
          f(a);
          return a;
        },
        std::tuple(model, state));
  }
};

}  // namespace

// ---------------------------------------------------------------- programs
TEST_CASE("memory: an elementwise expression is one loop") {
  const auto f = sa::jit([](const Array& x) { return sa::exp(-x * x) * x + sa::tanh(x); });
  const Array x = numbers(100);
  const auto p = prepare(f, x);
  REQUIRE(p.program().steps.size() == 1);
  CHECK(std::holds_alternative<sa::Loop>(p.program().steps[0].body));
  CHECK(p.program().scratch_bytes == std::vector<std::uint64_t>{0});
  CHECK(p.program().peak_bytes == std::vector<std::uint64_t>{800});  // x and the result
}

TEST_CASE("memory: a training step has at most 30 steps per device") {
  Training t;
  const auto step = t.step();
  const sa::Explanation e = sa::explain(step, sa::donated(t.model), sa::donated(t.state), t.x, t.y);
  CAPTURE(e.to_string());
  CHECK(e.steps_per_device <= 30);
  for (const sa::DonationInfo& d : e.donations()) CHECK_MESSAGE(d.reused, d.path);
  CHECK(e.donations().size() == 13);  // two layers with a weight and a bias, their two means, a count
}

TEST_CASE("memory: vmap records one node per operation, not per example") {
  const auto f = sa::jit(
      [](const Array& x) { return sa::vmap([](const Array& v) { return sa::sum(sa::sin(v) * 2 + v); })(x); });
  const auto nodes = [&](std::int64_t n) { return prepare(f, sa::ones({n, 5})).entry->flat.nodes.size(); };
  CHECK(nodes(2) == nodes(1000));
  CHECK(nodes(2) < 12);
}

TEST_CASE("memory: a training step lives in its arguments' buffers, and needs no more after a thousand") {
  Training t;
  const auto step = t.step();
  t.run(step, 2);
  std::vector<const void*> before;
  t.each_array([&](const Array& a) {
    for (const void* p : addresses(a)) before.push_back(p);
  });
  t.run(step, 1);
  t.each_array([&](const Array& a) {
    for (const void* p : addresses(a)) CHECK(std::find(before.begin(), before.end(), p) != before.end());
  });
  sa::Backend& b = sa::backend("cpu");
  std::vector<std::size_t> high, in_use, held;
  for (int d = 0; d < b.device_count(); d++) {
    high.push_back(b.memory_stats(d).high_water);
    in_use.push_back(b.memory_stats(d).in_use);
    held.push_back(b.memory_stats(d).held);
  }
  t.run(step, 1000);
  for (int d = 0; d < b.device_count(); d++) {
    CHECK(b.memory_stats(d).high_water == high[static_cast<std::size_t>(d)]);
    CHECK(b.memory_stats(d).in_use == in_use[static_cast<std::size_t>(d)]);
    CHECK(b.memory_stats(d).held == held[static_cast<std::size_t>(d)]);
  }
  CHECK(step.traces() == 1);
}

TEST_CASE("memory: workers, replicas and old contents do not show in a training step") {
  const auto trained = [] {
    Training t;
    t.run(t.step(), 5);
    return t.parameters();
  };
  const Values want = trained();
  CHECK(std::none_of(want.begin(), want.end(), [](double v) { return std::isnan(v); }));
  const int workers = sa::ThreadPool::instance().worker_count();
  for (int n : {1, 2, 5}) {
    sa::set_worker_count(n);
    CHECK(trained() == want);
  }
  sa::set_worker_count(workers);
  sa::set_share_replicas(false);
  const Values separate = trained();
  sa::set_share_replicas(true);
  CHECK(separate == want);
  const bool filled = sa::set_debug_fill(true);
  const Values over_nan = trained();
  sa::set_debug_fill(filled);
  CHECK(over_nan == want);
}

TEST_CASE("memory: what is added to a sum of nothing is read when it has been made") {
  const sa::Sharding one = sa::SingleDeviceSharding(sa::devices()[0]);
  using Function = Array (*)(const Array&);
  const Function sums[] = {[](const Array& x) { return sa::sum(x, 2); },
                           [](const Array& x) { return sa::prod(x, 2) - 1; },
                           [](const Array& x) { return sa::any(x > 0, 2).astype(sa::float32); },
                           [](const Array& x) { return sa::cumsum(sa::sum(x, 2) * 2, 0); }};
  for (const std::int64_t n : {32, 512})
    for (const Function of_nothing : sums) {
      const Array a = sa::device_put(sa::reshape(numbers(n * n), {n, n}), one),
                  x = sa::device_put(sa::zeros({n, n, 0}), one);
      const auto f = sa::jit([&](const Array& v, const Array& w) {
        const Array b = sa::matmul(v, v);
        return std::tuple(of_nothing(w) + b, sa::sort(sa::maximum(b, 0), 1));
      });
      const Values want = values(sa::matmul(a, a));
      for (int run = 0; run < 3; run++) CHECK(values(std::get<0>(f(a, x))) == want);
    }
}

TEST_CASE("memory: separate replicas are separate buffers") {
  const sa::Sharding whole = sa::NamedSharding(sa::make_mesh({{"i", 8}}), P());
  sa::set_share_replicas(false);
  const Array x = sa::device_put(numbers(6), whole), y = sa::jit([](const Array&v) { return v * 2; })(x);
  sa::set_share_replicas(true);
  CHECK(sa::value_of(x)->buffers.size() == 8);
  CHECK(sa::value_of(y)->buffers.size() == 8);
  const Array z = sa::jit([](const Array& v) { return v * 2; })(y);  // now shared
  CHECK(sa::value_of(z)->buffers.size() == 1);
  CHECK(values(z) == values(numbers(6) * 4));
}

// ---------------------------------------------------------------- faults
namespace {

/// Makes memory short while it lives: the system grants this many requests.
class ShortMemory final : public sa::MemorySource {
 public:
  explicit ShortMemory(int grants) : left_(grants), real_(sa::set_system_memory(*this)) {}
  ~ShortMemory() override { sa::set_system_memory(real_); }
  void* map(std::size_t bytes) override { return left_-- > 0 ? real_.map(bytes) : nullptr; }
  void unmap(void* p, std::size_t bytes) override { real_.unmap(p, bytes); }
  void fill(void* p, unsigned char byte, std::size_t bytes) override { real_.fill(p, byte, bytes); }

 private:
  int left_;
  sa::MemorySource& real_;
};

/// Runs the first `failing` steps of a program, then fails.
class FailingExecutable : public sa::Executable {
 public:
  FailingExecutable(std::unique_ptr<sa::Executable> part, std::size_t failing)
      : part_(std::move(part)), failing_(failing) {}
  sa::CompletionRef run(std::span<void* const> bases, sa::RunReport* report, std::uint64_t) const override {
    sa::wait(part_->run(bases, report));
    throw sa::TransportError("step " + std::to_string(failing_) + " failed");
  }

 private:
  std::unique_ptr<sa::Executable> part_;
  std::size_t failing_;
};
/// The CPU's backend whose programs fail at a step, while it is switched on. Loaded programs stay in caches: it is never destroyed.
class FailingBackend : public sa::Backend {
 public:
  explicit FailingBackend(std::size_t failing) : failing_(failing) {}
  const char* platform() const override { return real_.platform(); }
  int device_count() const override { return real_.device_count(); }
  const sa::Target& target() const override { return real_.target(); }
  sa::BufferRef allocate(int device, std::size_t bytes) override { return real_.allocate(device, bytes); }
  void deallocate(sa::Buffer* b) override { real_.deallocate(b); }
  void copy_from_host(const sa::BufferRef& to, const void* from, std::size_t n) override {
    real_.copy_from_host(to, from, n);
  }
  void copy_to_host(void* to, const sa::BufferRef& from, std::size_t n) override {
    real_.copy_to_host(to, from, n);
  }
  std::unique_ptr<sa::Executable> load(std::shared_ptr<const sa::Program> program) override {
    auto part = std::make_shared<sa::Program>(*program);
    steps = part->steps.size();
    part->steps.resize(std::min(failing_, steps));
    return std::make_unique<FailingExecutable>(real_.load(std::move(part)), failing_);
  }
  sa::MemoryStats memory_stats(int device) const override { return real_.memory_stats(device); }

  std::size_t steps = 0;  ///< of the last program

 private:
  sa::Backend& real_ = sa::backend("cpu");
  std::size_t failing_;
};
FailingBackend& kept_backend(std::size_t failing) {
  static auto* const all = new std::vector<std::unique_ptr<FailingBackend>>;
  return *all->emplace_back(std::make_unique<FailingBackend>(failing));
}
/// Programs that are loaded while it lives fail at step `failing`.
struct Fault {
  explicit Fault(std::size_t failing)
      : backend(kept_backend(failing)), real(sa::set_backend("cpu", &backend)) {}
  ~Fault() { sa::set_backend("cpu", real); }
  FailingBackend& backend;
  sa::Backend* real;
};

/// Scratch, an output that takes over x's memory, and one with memory of its own.
auto two_results(const char* name) {
  return sa::jit(
      [](const Array& x, const Array& y) {
        const Array m = sa::sort(x * 2 + y);
        return std::pair(m + x, sa::cos(sa::sort(m * y)));
      },
      {.name = name});
}

}  // namespace

TEST_CASE("memory: a call without memory takes nothing") {
  int failures = 0;
  for (int grants = 0;; grants++) {
    REQUIRE(grants < 10);
    constexpr std::int64_t n = 400'000;  // 1.6 MB: a block of its own
    {                                    // free blocks go back to the system when it refuses
      const ShortMemory memory(0);
      CHECK_THROWS_AS(sa::backend("cpu").allocate(0, 1 << 30), sa::OutOfMemory);
    }
    const auto f = two_results("starved");
    Array x = sa::block_until_ready(numbers(n)), y = sa::block_until_ready(sa::ones({n}));
    const auto in_use = sa::backend("cpu").memory_stats(0).in_use;
    bool failed = false;
    {
      const ShortMemory memory(grants);
      const std::string text = error<sa::OutOfMemory>([&] { f(std::move(x), y); });
      failed = text != "no such error";
      if (failed) CHECK(text.starts_with("starved: the system refused"));
    }
    CHECK(x.is_deleted() == !failed);
    if (!failed) break;
    failures++;
    CHECK(sa::backend("cpu").memory_stats(0).in_use == in_use);
    CHECK(x[5].item<float>() == -3);
    CHECK(y[5].item<float>() == 1);
    const auto [a, b] = f(std::move(x), y);  // with memory it works
    CHECK(x.is_deleted());
    CHECK(a[0].item<float>() == -15 - 8);  // the smallest of 2x + 1, and x[0]
    CHECK(b.shape() == Shape{n});
  }
  CHECK(failures >= 1);
}

TEST_CASE("memory: after a failing step donated memory is lost and says so; all else lives") {
  const Values xs = values(numbers(40)), ys(40, 1.0);
  const auto healthy = two_results("healthy")(numbers(40), sa::ones({40}));
  std::size_t steps = 1;
  for (std::size_t k = 0; k < steps; k++) {
    CAPTURE(k);
    const auto f = two_results("broken");
    Array x = sa::block_until_ready(numbers(40)), y = sa::block_until_ready(sa::ones({40})),
          z = sa::block_until_ready(numbers(40)), kept = z;
    {
      const Fault fault(k);
      const std::string want = "step " + std::to_string(k) + " failed";
      CHECK(error<sa::TransportError>([&] { f(std::move(x), y); }) == want);
      CHECK(error<sa::TransportError>([&] { f(std::move(z), y); }) ==
            want);  // another owner: a copy was used
      CHECK(error<sa::TransportError>([&] { two_results("kept")(kept, y); }) == want);
      steps = fault.backend.steps;
    }
    CHECK(x.is_deleted());
    CHECK(error<sa::DonationError>([&] {
            values(x);
          }).find("broken, which failed and may have overwritten it") != std::string::npos);
    CHECK(values(y) == ys);
    CHECK(values(z) == xs);
    CHECK(values(kept) == xs);
    const auto [a, b] = two_results("after")(kept, y);
    CHECK(values(a) == values(healthy.first));
    CHECK(values(b) == values(healthy.second));
  }
  CHECK(steps >= 3);
}

TEST_CASE("memory: a failing step leaves arrays donated by option lost for every handle") {
  Array x = sa::block_until_ready(numbers(8)), other = x;
  {
    const Fault fault(0);
    const auto f = sa::jit([](const Array& v) { return v + 1; }, {.donate = sa::Donate::all, .name = "dies"});
    CHECK_THROWS_AS(f(x), sa::TransportError);
  }
  CHECK(x.is_deleted());
  CHECK(error<sa::DonationError>([&] {
          values(other);
        }).find("dies, which failed and may have overwritten it") != std::string::npos);
}

TEST_CASE("memory: a call that cannot be compiled takes nothing") {
  const sa::Mesh mesh = sa::make_mesh({{"i", 8}});
  Array x = sa::device_put(numbers(16), sa::NamedSharding(mesh, P("i")));
  const auto f = sa::jit([](const Array& v) { return sa::sort(v); });
  {
    const sa::policy::strict guard;
    CHECK_THROWS_AS(f(std::move(x)), sa::ShardingError);
  }
  CHECK(values(x) == values(numbers(16)));
  CHECK(values(f(std::move(x))) == values(sa::sort(numbers(16))));
}

TEST_CASE("memory: a failing eager evaluation can be repeated") {
  const Array x = sa::block_until_ready(numbers(8));
  const Array y = sa::exp(x) * 3 - 1;
  {
    const Fault fault(0);
    CHECK_THROWS_AS(values(y), sa::TransportError);
  }
  CHECK(values(y) == values(sa::exp(numbers(8)) * 3 - 1));
}

}  // namespace memory_test
