// The library is a guest in its process: it leaves unchanged what it does not own.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <locale>
#include <map>
#include <new>
#include <string>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "codegen_helpers.h"
#include "cpu/codegen/code_store.h"
#include "cpu/products/blas.h"
#include "cpu_helpers.h"
#include "kernel_helpers.h"
#include "process_helpers.h"
#include "shardarray/shardarray.h"
#include "sources.h"

namespace guest_test {

namespace fs = std::filesystem;
namespace sa = shardarray;
using namespace shardarray;
using cpu_test::contains;
using testing::plugin;

namespace {

using Folder = testing::TemporaryFolder;
using testing::Ended;
using testing::own_program;
using testing::run_case;

void check_case(const std::string& name, const std::string& settings) {
  const Ended e = run_case(name, settings);
  CHECK_MESSAGE(e.status == 0, e.text);
  CHECK_MESSAGE(contains(e.text, "1 passed | 0 failed |"), e.text);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) n++;
  return n;
}

/// Products, with a vector by the BLAS, kernels, threads.
void use_the_library() {
  const Array a = sa::ones({300, 300});
  CHECK(sa::sum(sa::matmul(a, a)).item<float>() == 300.f * 300 * 300);
  CHECK(sa::sum(sa::matmul(a, sa::ones(300))).item<float>() == 300.f * 300);
  const auto f = sa::jit([](Array x) { return sa::sum(sa::exp(x * 0) + x); });
  for (int k = 0; k < 3; k++) CHECK(f(sa::arange(1000.0)).item<float>() == 500500.f);
}

}  // namespace

// --- another user of OpenBLAS ---

namespace {

struct OtherBlas {  // as a program or another library uses it
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  template <class F> F symbol(const char* name) const { return reinterpret_cast<F>(dlsym(library, name)); }
  int threads() const { return symbol<int (*)()>("openblas_get_num_threads")(); }
  int cores() const { return symbol<int (*)()>("openblas_get_num_procs")(); }
  void set_threads(int n) const { symbol<void (*)(int)>("openblas_set_num_threads")(n); }
  std::string core() const { return symbol<const char* (*)()>("openblas_get_corename")(); }
};

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** e = environ; *e != nullptr; e++) all.emplace_back(*e);
  return all;
}

std::ptrdiff_t thread_count() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

}  // namespace

TEST_CASE("guest process: OpenBLAS before the library" * doctest::skip()) {
  const OtherBlas other;
  if (other.library == nullptr) return;
  const std::string core = other.core();
  other.set_threads(3);
  const auto before = environment();
  use_the_library();
  REQUIRE(blas() != nullptr);
  CHECK(other.threads() == 3);
  CHECK(other.core() == core);
  CHECK(environment() == before);
  CHECK(reinterpret_cast<void*>(blas()->sgemm) != other.symbol<void*>("cblas_sgemm"));
}

TEST_CASE("guest process: OpenBLAS after the library" * doctest::skip()) {
  const auto before = environment();
  use_the_library();
  if (blas() == nullptr) return;
  CHECK(dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD) == nullptr);  // nobody else sees ours
  // It runs on its caller's thread.
  const std::ptrdiff_t threads = thread_count();
  std::vector<float> a(600 * 600, 1.f), c(a.size());
  blas()->sgemm(Blas::row_major, Blas::no_trans, Blas::no_trans, 600, 600, 600, 1, a.data(), 600, a.data(),
                600, 0, c.data(), 600);
  CHECK(c[7] == 600.f);
  CHECK(thread_count() == threads);
  const OtherBlas other;
  REQUIRE(other.library != nullptr);
  CHECK(other.threads() == other.cores());
  CHECK(environment() == before);
}

TEST_CASE("guest: another user of OpenBLAS keeps his threads, his kernels and his environment") {
  const std::string unset = "-u OPENBLAS_NUM_THREADS -u OPENBLAS_CORETYPE -u OMP_NUM_THREADS";
  check_case("guest process: OpenBLAS before the library", unset);
  check_case("guest process: OpenBLAS after the library", unset);
  check_case("guest process: OpenBLAS before the library", unset + " OPENBLAS_CORETYPE=Haswell");
}

// --- a BLAS that is named ---

TEST_CASE("guest process: a product of large matrices" * doctest::skip()) {
  const sa::Array a = sa::ones({600, 600});
  try {
    std::printf("is %g\n", static_cast<double>(sa::matmul(a, a).to_vector<float>()[7]));
  } catch (const sa::Error& e) { std::printf("throws %s\n", e.what()); }
}

TEST_CASE("guest: products are those of the library that SHARDARRAY_BLAS names") {
  const auto product = [](const std::string& library) {
    return run_case("guest process: a product of large matrices", "SHARDARRAY_BLAS=" + library).text;
  };
  CHECK(contains(product("''"), "is 600\n"));
  const std::string gemv = "extern \"C\" void cblas_sgemv() {}\nextern \"C\" void cblas_dgemv() {}\n";
  const shardarray::test::CompiledText fives(
      gemv +
      "extern \"C\" void cblas_dgemm() {}\n"
      "extern \"C\" void cblas_sgemm(int, int, int, int m, int n, int, float, const float*, int, const "
      "float*,\n"
      "                            int, float, float* c, int ldc) {\n"
      "  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) c[i * ldc + j] = 5;\n"
      "}\n");
  CHECK(contains(product(fives.path()), "is 5\n"));
  const std::string rule =
      " It names a library with cblas_sgemm, cblas_dgemm, cblas_sgemv and cblas_dgemv, whose integers have "
      "32 "
      "bits. Correct the variable, or unset it for OpenBLAS.";
  const shardarray::test::CompiledText half(gemv);
  CHECK(contains(product(half.path()), "throws environment: SHARDARRAY_BLAS=" + half.path() +
                                           ": these functions are not in it." + rule));
  const std::string nowhere = product("/nowhere/libblas.so");
  CHECK(contains(nowhere,
                 "throws environment: SHARDARRAY_BLAS=/nowhere/libblas.so: /nowhere/libblas.so: "
                 "cannot open shared object file: No such file or directory."));
  CHECK(contains(nowhere, rule));
}

TEST_CASE("guest process: a factorisation" * doctest::skip()) {
  const sa::Array a = 4 * sa::eye(3);
  try {
    std::printf("is %g\n", static_cast<double>(sa::linalg::cholesky(a).to_vector<float>()[4]));
  } catch (const sa::Error& e) { std::printf("throws %s\n", e.what()); }
}

TEST_CASE(
    "guest: factorisations are those of OpenBLAS where the library that SHARDARRAY_BLAS names has none") {
  const shardarray::test::CompiledText no_lapack(
      "extern \"C\" {\nvoid cblas_sgemm() {}\nvoid cblas_dgemm() {}\nvoid cblas_sgemv() {}\nvoid "
      "cblas_dgemv() {}\n}\n");
  for (const std::string& library : {std::string("''"), no_lapack.path()})
    CHECK(contains(run_case("guest process: a factorisation", "SHARDARRAY_BLAS=" + library).text, "is 2\n"));
}

// --- all that belongs to a process ---

namespace {

using State = std::map<std::string, std::string>;

template <class T> std::string bytes_of(const T& x) { return {reinterpret_cast<const char*>(&x), sizeof x}; }

void add_signals(State& s) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int n = 1; n < 32; n++) {
    struct sigaction a {};
    sigaction(n, nullptr, &a);
    s["signal " + std::to_string(n)] =
        bytes_of(a.sa_handler) + std::to_string(a.sa_flags) + std::to_string(sigismember(&mask, n));
  }
}

void add_limits(State& s) {
  for (int r = 0; r < RLIM_NLIMITS; r++) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource_t>(r), &limit);
    s["limit " + std::to_string(r)] = std::to_string(limit.rlim_cur) + " " + std::to_string(limit.rlim_max);
  }
}

State process_state() {
  State s;
  for (const std::string& e : environment()) s["environment"] += e + "\n";
  add_signals(s);
  add_limits(s);
  s["rounding"] = std::to_string(std::fegetround());
#if defined(__x86_64__)
  s["float modes"] = std::to_string(_mm_getcsr() & ~0x3fu);  // less what has happened
#endif
  s["C locale"] = std::setlocale(LC_ALL, nullptr);
  s["C++ locale"] = std::locale().name();
  const mode_t mask = umask(0);
  umask(mask);
  s["umask"] = std::to_string(mask);
  s["folder"] = fs::current_path().string();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  s["cores"] = bytes_of(cores);
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  s["name"] = name;
  s["timer slack"] = std::to_string(prctl(PR_GET_TIMERSLACK));
  s["dumpable"] = std::to_string(prctl(PR_GET_DUMPABLE));
  s["priority"] = std::to_string(getpriority(PRIO_PROCESS, 0));
  s["terminate"] = bytes_of(std::get_terminate());
  s["new"] = bytes_of(std::get_new_handler());
  s["cout"] = std::to_string(std::cout.flags()) + " " + std::to_string(std::cout.precision());
  return s;
}

std::map<std::string, int> open_files() {
  std::map<std::string, int> all;
  std::error_code gone;
  for (const auto& f : fs::directory_iterator("/proc/self/fd"))
    all[fs::read_symlink(f.path(), gone).string()]++;
  return all;
}

}  // namespace

TEST_CASE("guest process: everything is used" * doctest::skip()) {
  std::srand(5);
  const int first = std::rand();
  std::srand(5);
  const State before = process_state();
  auto files = open_files();
  use_the_library();
  CHECK(std::rand() == first);
  const State after = process_state();
  for (const auto& row : before) {
    const auto& what = row.first;
    const auto& value = row.second;
    CAPTURE(what);
    CHECK((after.at(what) == value));
  }
  // What stays open is the folder of compiled kernels.
  const std::string cache = fs::canonical(std::getenv("SHARDARRAY_CACHE_DIR")).string();
  for (const auto& row : open_files()) {
    const auto& file = row.first;
    const auto& count = row.second;
    CAPTURE(file);
    CHECK((count == files[file] || (file == cache && count == 1)));
  }
  if (plugin()) CHECK(CodeStore::instance().stats().compiled > 0);
}

TEST_CASE("guest: signals, floating point, locale, umask, limits, names, files stay as they were") {
  const Folder folder;
  check_case("guest process: everything is used",
             "SHARDARRAY_CODEGEN=always SHARDARRAY_CACHE_DIR=" + folder.path + "/cache");
}

// --- the plug-in ---

TEST_CASE("guest process: a small program" * doctest::skip()) {
  for (int k = 1; k < 4; k++)
    CHECK(sa::sum(sa::ones({10 * k}) * 2).item<float>() == static_cast<float>(20 * k));
}

TEST_CASE("guest process: a program that runs often" * doctest::skip()) {
  const auto f = sa::jit([](const sa::Array& x) { return sa::tanh(x * 2) + 1; });
  const sa::Array x = sa::ones({100'000});
  for (int k = 0; k < 50; k++) CHECK(f(x).block_until_ready().shape() == x.shape());
}

TEST_CASE("guest: the plug-in is opened beside the library or where the variable says, nowhere else") {
  const fs::path program = own_program();
  CHECK(code_plugin_path() == program.parent_path() / "libshardarray_llvm.so");
  // A program in app/, with a plug-in of somebody else above it.
  const Folder folder(program.parent_path());
  const std::string app = folder.path + "/app";
  fs::create_directory(app);
  fs::create_hard_link(program, app + "/program");
  (void)cpu_test::stderr_of([&] {  // it is opened here as well
    const shardarray::test::CompiledText planted(
        "#include <cstdio>\n"
        "__attribute__((constructor)) static void run() { std::fputs(\"PLANTED\\n\", stderr); }\n");
    fs::copy_file(planted.path(), folder.path + "/libshardarray_llvm.so");
  });
  const std::string set = "-u SHARDARRAY_PLUGIN_DIR SHARDARRAY_CODEGEN=always ";
  const auto run = [&](const std::string& settings) {
    const Ended e = run_case("guest process: a small program", settings, app + "/program");
    CHECK_MESSAGE(e.status == 0, e.text);
    CHECK(count_of(e.text, "Programs run in the interpreter.") == 1);
    return e.text;
  };
  const std::string nowhere = run(set);
  CHECK(!contains(nowhere, "PLANTED"));
  CHECK(contains(nowhere, "shardarray: code generation: " + app +
                              "/libshardarray_llvm.so: cannot open shared object file"));
  CHECK(contains(nowhere,
                 "Install the plug-in beside the library, with LLVM 19.1, or name its folder in "
                 "SHARDARRAY_PLUGIN_DIR. Programs run in the interpreter.\n"));
  // Without a word in the environment it is said too, once, when something would be compiled.
  const Ended untold = run_case("guest process: a program that runs often",
                                "-u SHARDARRAY_PLUGIN_DIR -u SHARDARRAY_CODEGEN", app + "/program");
  CHECK(untold.status == 0);
  CHECK(count_of(untold.text, "Programs run in the interpreter.") == 1);
  const std::string there = run(set + "SHARDARRAY_PLUGIN_DIR=" + folder.path);
  CHECK(contains(there, "PLANTED"));
  CHECK(contains(there, folder.path + "/libshardarray_llvm.so is no plug-in"));
  CHECK(contains(
      run(set + "SHARDARRAY_PLUGIN_DIR=../lib"),
      "shardarray: environment: SHARDARRAY_PLUGIN_DIR=../lib is not understood. It must be an absolute path. "
      "Correct the variable or unset it. Programs run in the interpreter.\n"));
}

TEST_CASE(
    "guest: a library that was found by a relative path knows its folder after the program has left it") {
  const Folder folder;
  const std::string source = shardarray::testing::source_folder();
  fs::create_directory(folder.path + "/lib");
  std::ofstream(folder.path + "/abi_hash.h")
      << "#define SHARDARRAY_ABI_HASH 0\n#define SHARDARRAY_PLUGIN_VERSION \"\"\n"
         "#define SHARDARRAY_HAS_PLUGIN 1\n";
  std::ofstream(folder.path + "/library.cpp") << "#include \"runtime/plugin.cpp\"\n"
                                                 "extern \"C\" const char* path() { static std::string p = "
                                                 "shardarray::plugin_path(\"llvm\"); return p.c_str(); }\n";
  const char* const compiler = std::getenv("CXX");
  const std::string command = std::string(compiler ? compiler : "c++") + " -std=c++20 -O0 -shared -fPIC -I" +
                              source + "/src -I" + source + "/include -I" + folder.path + " " + folder.path +
                              "/library.cpp -o " + folder.path + "/lib/library.so -lfmt";
  REQUIRE((std::system(command.c_str()) == 0));
  const fs::path before = fs::current_path();
  fs::current_path(folder.path);
  void* const library = dlopen("lib/library.so", RTLD_LAZY | RTLD_LOCAL);
  fs::current_path(before);
  REQUIRE_MESSAGE(library != nullptr, dlerror());
  const auto path = reinterpret_cast<const char* (*)()>(dlsym(library, "path"));
  CHECK(std::string(path()) == folder.path + "/lib/libshardarray_llvm.so");
  dlclose(library);
}

}  // namespace guest_test
