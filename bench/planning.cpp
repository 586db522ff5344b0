// The cost of planning: explain() of programs of about a thousand nodes on meshes of 8 to 1,024 virtual devices. Every case runs in its own
// process, which allocates no arrays: CPU time, and the growth of the process's memory.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <shardarray/shardarray.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

namespace sa = shardarray;
using sa::Array;
using sa::none;
using sa::P;
using Arrays = std::vector<Array>;

namespace {

struct Graph {
  Arrays args;
  std::function<Arrays(const Arrays&)> f;
};

// Mesh axes in turn, cyclically.
class Placer {
 public:
  explicit Placer(const std::vector<std::int64_t>& sizes) : mesh_(mesh_of(sizes)), axes_(sizes.size()) {}
  std::string axis(std::size_t k) const { return std::string(1, "abc"[k % axes_]); }
  bool has(std::size_t axes) const { return axes_ >= axes; }
  Array put(const sa::Shape& shape, const P& spec) const {
    return sa::device_put(sa::zeros(shape), sa::NamedSharding(mesh_, spec));
  }

 private:
  static sa::Mesh mesh_of(const std::vector<std::int64_t>& s) {
    return s.size() == 1   ? sa::make_mesh({{"a", s[0]}})
           : s.size() == 2 ? sa::make_mesh({{"a", s[0]}, {"b", s[1]}})
                           : sa::make_mesh({{"a", s[0]}, {"b", s[1]}, {"c", s[2]}});
  }
  sa::Mesh mesh_;
  std::size_t axes_;
};

constexpr std::int64_t width = 2048;

// x = 2 tanh(x): nothing moves.
Graph chain(const Placer& p, int layers) {
  return {{p.put({width, width}, p.has(2) ? P("a", "b") : P("a"))}, [=](const Arrays& v) {
            Array x = v[0];
            for (int k = 0; k < layers; k++) x = sa::tanh(x) * 2.0;
            return Arrays{x};
          }};
}
// x = tanh(x + x^T): each is an all-to-all.
Graph turns(const Placer& p, int layers) {
  return {{p.put({width, width}, P("a"))}, [=](const Arrays& v) {
            Array x = v[0];
            for (int k = 0; k < layers; k++) x = sa::tanh(x + x.T());
            return Arrays{x};
          }};
}
// Gradients of layers relu(x W + b), whose weights are sharded over the axes in turn.
Graph train(const Placer& p, int layers) {
  Arrays args{p.put({width, width}, P("a"))};
  for (int k = 0; k < layers; k++) {
    const auto n = static_cast<std::size_t>(k);
    args.push_back(p.put({width, width}, p.has(2) ? P(p.axis(n), p.axis(n + 1)) : P("a")));
  }
  for (int k = 0; k < layers; k++) args.push_back(p.put({width}, P()));
  const auto loss = [layers](const Arrays& v) {
    Array x = v[0];
    for (int k = 0; k < layers; k++)
      x = sa::relu(sa::matmul(x, v[static_cast<std::size_t>(k + 1)]) +
                   v[static_cast<std::size_t>(layers + 1 + k)]);
    return sa::mean(x * x);
  };
  return {args, [loss](const Arrays& v) { return sa::grad(loss)(v); }};
}
// Gradients of transformer blocks: the batch over a, heads and features over the last axis.
Graph blocks(const Placer& p, int layers) {
  const std::string last = p.axis(p.has(3) ? 2 : p.has(2) ? 1 : 0), first = p.has(2) ? "a" : "";
  const P columns(none, last), rows(last);
  Arrays args{p.put({width, 64, 512}, p.has(2) ? P("a") : P())};
  for (int k = 0; k < layers; k++)
    for (const auto& [shape, spec] :
         std::initializer_list<std::pair<sa::Shape, P>>{{{512, 1024, 16}, columns},
                                                        {{512, 1024, 16}, columns},
                                                        {{512, 1024, 16}, columns},
                                                        {{1024, 16, 512}, rows},
                                                        {{512, 4096}, columns},
                                                        {{4096, 512}, rows}})
      args.push_back(p.put(shape, spec));
  const auto loss = [layers](const Arrays& v) {
    Array x = v[0];
    for (int k = 0; k < layers; k++) {
      const auto w = [&](int j) { return v[static_cast<std::size_t>(1 + 6 * k + j)]; };
      const auto heads = [&](int j) { return sa::einsum("bsd,dhe->bshe", x, w(j)); };
      const Array a = sa::softmax(sa::einsum("bqhe,bkhe->bhqk", heads(0), heads(1)) * 0.25);
      x = x + sa::einsum("bqhe,hed->bqd", sa::einsum("bhqk,bkhe->bqhe", a, heads(2)), w(3));
      x = x + sa::matmul(sa::relu(sa::matmul(x, w(4))), w(5));
    }
    return sa::mean(x * x);
  };
  return {args, [loss](const Arrays& v) { return sa::grad(loss)(v); }};
}

struct Figures {
  double cpu = 0;  ///< seconds
  std::int64_t nodes = 0, transfers = 0, bytes = 0, kilobytes = 0;
};

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}
std::int64_t most_kilobytes() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

Figures measure(Graph (*make)(const Placer&, int), int layers, const std::vector<std::int64_t>& sizes) {
  sa::set_cpu_device_count(
      static_cast<int>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>())));
  const Graph g = make(Placer(sizes), layers);
  const auto f = sa::jit(g.f);
  const std::string graph = sa::print_graph(f, g.args);
  Figures r;
  r.nodes = std::count(graph.begin(), graph.end(), '\n');
  const std::int64_t before = most_kilobytes();
  const double start = cpu_seconds();
  const sa::Explanation e = sa::explain(f, g.args);
  r.cpu = cpu_seconds() - start;
  r.kilobytes = most_kilobytes() - before;
  r.transfers = std::ssize(e.transfers());
  r.bytes = e.received_bytes_per_device();
  return r;
}

// Runs in a process of its own; none: it failed or did not end in time.
std::optional<Figures> apart(Graph (*make)(const Placer&, int), int layers,
                             const std::vector<std::int64_t>& sizes, int limit) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(limit));
    const Figures r = measure(make, layers, sizes);
    _exit(write(ends[1], &r, sizeof r) == sizeof r ? 0 : 1);
  }
  close(ends[1]);
  Figures r;
  const bool is_there = child > 0 && read(ends[0], &r, sizeof r) == sizeof r;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return is_there ? std::optional(r) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("CPU time and memory of explain(), as a table in Markdown");
  int nodes = 1000, most_devices = 1024, limit = 120;
  std::vector<std::string> only;
  app.add_option("--nodes", nodes, "about so many in each program");
  app.add_option("--devices", most_devices, "at most");
  app.add_option("--seconds", limit, "a case that takes longer is left");
  app.add_option("--only", only, "chain, turns, train, blocks")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  struct Kind {
    const char* name;
    Graph (*make)(const Placer&, int);
    int nodes;  // of a layer, about
  };
  const std::vector<std::vector<std::int64_t>> meshes = {{8},       {4, 2},    {2, 2, 2}, {64},
                                                         {8, 8},    {4, 4, 4}, {256},     {16, 16},
                                                         {8, 8, 4}, {1024},    {32, 32},  {16, 8, 8}};
  fmt::print(
      "| program | mesh | nodes | ms | us a node | KB | transfers | bytes a device "
      "|\n|--|--|--|--|--|--|--|--|\n");
  for (const Kind& k : {Kind{"chain", chain, 2}, Kind{"turns", turns, 3}, Kind{"train", train, 15},
                        Kind{"blocks", blocks, 60}}) {
    if (!only.empty() && std::find(only.begin(), only.end(), k.name) == only.end()) continue;
    for (const auto& sizes : meshes) {
      if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()) > most_devices)
        continue;
      const auto r = apart(k.make, std::max(1, nodes / k.nodes), sizes, limit);
      if (r)
        fmt::print("| {} | {} | {} | {:.1f} | {:.1f} | {} | {} | {} |\n", k.name, fmt::join(sizes, "x"),
                   r->nodes, r->cpu * 1e3, r->cpu * 1e6 / static_cast<double>(r->nodes), r->kilobytes,
                   r->transfers, r->bytes);
      else
        fmt::print("| {} | {} | | more than {} s, or failed | | | | |\n", k.name, fmt::join(sizes, "x"),
                   limit);
      std::fflush(stdout);
    }
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
