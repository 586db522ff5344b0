// Computes where a program ends: `exit WHERE... [used]`. Each place adds a check; prints what is wrong, if anything.
#include <shardarray/shardarray.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace sa = shardarray;
using sa::Array;

namespace {

// Shards, workers, jit, gradients, donation, several threads' state: right or the process fails.
void compute(const char* place) {
  const int n = 1 << 18;
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}});
  Array x = sa::device_put(sa::ones({n}), sa::NamedSharding(mesh, sa::P("x")));
  const auto f = sa::jit([](Array a) { return sa::tanh(a) * 0 + a * 2; });
  const Array y = f(f(std::move(x)));
  const auto loss = [](Array a) { return sa::sum(a * a); };
  const bool right = sa::sum(y).item<float>() == 4.0f * n &&
                     sa::grad(loss)(y + 1).to_vector<float>()[n - 1] == 10 &&
                     sa::matmul(sa::ones({64, 64}), sa::ones({64, 64})).to_vector<float>()[77] == 64 &&
                     sa::random::uniform(sa::random::key(1), {8}).shape() == sa::Shape{8};
  if (right) return;
  std::printf("wrong values in %s\n", place);
  std::fflush(stdout);
  std::_Exit(1);
}

bool chosen(const char* place) {
  static const char* text = std::getenv("COMPUTE_IN");
  return text && (" " + std::string(text) + " ").find(" " + std::string(place) + " ") != std::string::npos;
}
struct AtEnd {
  const char* place;
  ~AtEnd() {
    if (chosen(place)) compute(place);
  }
};
AtEnd in_static{"static"};           // made before main and before the library's first use
thread_local AtEnd in_main{"main"};  // of the main thread
thread_local AtEnd in_thread{"thread"};

// Only the child's own threads are there.
int fork_and_compute() {
  const pid_t child = fork();
  if (child == 0) {
    compute("child");
    compute("the child once more");
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

int main() {
  std::atexit([] {
    if (chosen("atexit")) compute("atexit");
  });
  sa::set_cpu_device_count(4);
  const bool used = chosen("used");
  if (used) compute("main()");
  if (chosen("main")) static_cast<void>(&in_main);
  in_main.place = "main";
  std::thread([used] {
    in_thread.place = "thread";
    if (used) compute("a thread");
  }).join();
  if (chosen("fork")) {
    compute("the parent");
    if (fork_and_compute() != 0) return std::puts("the child failed"), 1;
    compute("the parent after fork");
  }
  static AtEnd late{"late_static"};  // made after the library's first use, if there was one
  return 0;
}
