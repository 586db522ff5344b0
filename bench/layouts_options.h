// The options of matmul_layouts: element types, checks and their messages.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "layouts.h"
#include "shardarray/dtype.h"

namespace bench {

/// An element type, and the type that the library computes and sums in: every result is rounded once, at the end.
struct ElementType {
  const char* name;
  shardarray::DType dtype, sums;
  int digits;  ///< significant bits of a result
  bool f32() const { return sums == shardarray::float32; }
  bool half() const { return dtype != sums; }
  /// An integer below 2^24 rounded to this type: to nearest, ties to even.
  double rounded(double v) const {
    int exponent = 0;
    std::frexp(v, &exponent);
    const double r = std::ldexp(std::nearbyint(std::ldexp(v, digits - exponent)), exponent - digits);
    return dtype == shardarray::float16 && std::abs(r) >= 65536 ? std::copysign(HUGE_VAL, r) : r;
  }
};
inline constexpr std::array element_types{
    ElementType{"f32", shardarray::float32, shardarray::float32, 24},
    ElementType{"f64", shardarray::float64, shardarray::float64, 53},
    ElementType{"f16", shardarray::float16, shardarray::float32, 11},
    ElementType{"bf16", shardarray::bfloat16, shardarray::float32, 8},
    ElementType{"tf32", shardarray::float32, shardarray::float32, 24},  // operands are rounded to TF32
};

struct LayoutOptions {
  std::string platform = "cpu", mesh = "x=8", dtype = "f32", machine, json_file, csv_file, markdown_file;
  std::int64_t m = 1024, k = 1024, n = 1024;
  std::vector<std::string> layouts = {"all"}, columns;
  std::string sweep;      // `m=64..8192` or `m=64,100,1000`
  std::int64_t most = 0;  // measures only this many, those predicted to be the fastest; 0: all
  std::string jax;        // a Python that has JAX
  int top = 0, rounds = 9;
  double sample = 0.01;           // seconds
  std::int64_t peak_size = 8192;  // the side of the product that gives a GPU's peak
  bool share = false, chain = false;
  bool cuda() const { return platform == "cuda"; }
  bool described() const { return !machine.empty(); }  ///< nothing is measured
  const char* kind_of_devices() const {
    return described() ? "described" : cuda() ? "logical CUDA" : "virtual CPU";
  }
  const ElementType& type() const {
    return *std::find_if(element_types.begin(), element_types.end(),
                         [&](const ElementType& t) { return dtype == t.name; });
  }
  Product product() const {
    return {parse_mesh(mesh),
            m,
            k,
            n,
            static_cast<std::int64_t>(shardarray::itemsize(type().dtype)),
            static_cast<std::int64_t>(shardarray::itemsize(type().sums)),
            chain};
  }
};

constexpr std::int64_t kMostSize = 1'000'000;

namespace detail {

// A validator for CLI11: empty, or what is wrong with the word, the rule, what to do.
using Check = std::function<std::string(const std::string&)>;

inline Check whole_number(std::int64_t last, std::int64_t example) {
  return [=](const std::string& word) -> std::string {
    std::int64_t v = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), v);
    if (error == std::errc() && end == word.data() + word.size() && v >= 1 && v <= last) return "";
    return fmt::format("'{}' is no whole number from 1 to {}. Write {}, for example.", word, last, example);
  };
}
inline Check seconds_from_0_to(double last, const char* example) {
  return [=](const std::string& word) -> std::string {
    char* end = nullptr;
    const double v = std::strtod(word.c_str(), &end);
    if (!word.empty() && *end == 0 && v >= 0 && v <= last) return "";
    return fmt::format("'{}' is no number of seconds from 0 to {}. Write {}, for example.", word, last,
                       example);
  };
}
inline Check one_of(const char* what, std::vector<std::string> words) {
  return [=](const std::string& word) -> std::string {
    if (std::find(words.begin(), words.end(), word) != words.end()) return "";
    return fmt::format("'{}' is no {}. Write one of {}.", word, what, fmt::join(words, ", "));
  };
}
// Checked before hours are spent on what goes to a file. Creates none: another option may be wrong.
inline std::string writable(const std::string& path) {
  if (path.starts_with("--"))
    return fmt::format("'{0}' is an option. Name a file, or write ./{0} if that is its name.", path);
  const int error = [&] {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return EISDIR;
    if (access(path.c_str(), W_OK) == 0) return 0;
    if (errno != ENOENT || path.empty()) return errno;
    const std::filesystem::path folder = std::filesystem::absolute(path, ignored).parent_path();
    return access((folder / ".").c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  }();
  if (error == 0) return "";
  return fmt::format("'{}' cannot be written ({}). Name a file in a folder that exists and is yours.", path,
                     std::strerror(error));
}

/// `top:12` -> 12, `all` -> 0.
inline std::int64_t layouts_to_measure(const std::string& word) {
  return word == "all" ? 0 : std::stoll(word.substr(4));
}
inline std::string measure_word(const std::string& word) {
  if (word == "all" || (word.starts_with("top:") && whole_number(1'000'000, 12)(word.substr(4)).empty()))
    return "";
  return fmt::format("'{}' is neither all nor top:N. Write top:12, for example.", word);
}

}  // namespace detail

/// The sizes of `m=64..8192` (each twice the one before) or `m=64,100,1000`, and which of m, k and n they are. Throws
/// std::invalid_argument.
struct Sweep {
  char size = 0;
  std::vector<std::int64_t> values;
};
inline Sweep parse_sweep(const std::string& text) {
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("--sweep {}: {}. Write one of m, k and n with sizes: m=64..8192 (each twice the one "
                    "before) or m=64,100,1000.",
                    text, why));
  };
  const auto number = [&](const std::string& word) -> std::int64_t {
    if (!detail::whole_number(kMostSize, 64)(word).empty())
      fail(fmt::format("'{}' is no whole number from 1 to {}", word, kMostSize));
    return std::stoll(word);
  };
  Sweep s;
  if (text.size() < 2 || text[1] != '=' || std::string("mkn").find(text[0]) == std::string::npos)
    fail("it names none of m, k and n");
  if (text.size() == 2) fail(fmt::format("it has no sizes of {}", text[0]));
  s.size = text[0];
  const std::string list = text.substr(2);
  if (const std::size_t dots = list.find(".."); dots != list.npos) {
    const std::int64_t first = number(list.substr(0, dots)), last = number(list.substr(dots + 2));
    for (std::int64_t v = first; v <= last; v *= 2) s.values.push_back(v);
  } else {
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      s.values.push_back(number(list.substr(at, end - at)));
      at = end + 1;
    }
  }
  if (s.values.size() < 2) fail("it is less than two sizes");
  if (!std::ranges::is_sorted(s.values, std::less_equal<>())) fail("its sizes do not rise");
  return s;
}

inline void add_sizes(CLI::App& app, LayoutOptions& o) {
  app.add_option("--mesh", o.mesh, "Axes of one letter with sizes, up to three: x=8 or x=2,y=4")
      ->capture_default_str();
  app.add_option("--m", o.m, "Rows of A and C")
      ->check(detail::whole_number(kMostSize, 1024))
      ->capture_default_str();
  app.add_option("--k", o.k, "Columns of A, rows of B")
      ->check(detail::whole_number(kMostSize, 1024))
      ->capture_default_str();
  app.add_option("--n", o.n, "Columns of B and C")
      ->check(detail::whole_number(kMostSize, 1024))
      ->capture_default_str();
  std::vector<std::string> names;
  names.reserve(std::size(element_types));
  for (const ElementType& t : element_types) names.emplace_back(t.name);
  app.add_option("--dtype", o.dtype,
                 "Of A, B and C: f32, f64, f16, bf16 (both computed and summed in float32, results rounded\n"
                 "once), or on a GPU tf32: float32 by way of TF32")
      ->check(detail::one_of("type of elements", names))
      ->capture_default_str();
  app.add_option(
         "--layouts", o.layouts,
         "all, random:N, A,B or A,B,C ...: each matrix as rows and columns, '.' whole, x cut by axis x,\n"
         "x+y by both: x.,.y,xy is A in rows by x, B in columns by y, C by both. 'any' is every cut. C may\n"
         "be 'auto', which the library picks; with 'any', or without a C, all are measured, and it is said\n"
         "how far what the library picks is from the best")
      ->capture_default_str();
}

inline void add_options(CLI::App& app, LayoutOptions& o) {
  app.add_option(
         "--platform", o.platform,
         "cpu, or cuda: as many logical devices as the mesh has, unless SHARDARRAY_CUDA_LOGICAL_DEVICES\n"
         "says otherwise")
      ->check(detail::one_of("platform", {"cpu", "cuda"}))
      ->capture_default_str();
  add_sizes(app, o);
  app.add_flag(
      "--chain", o.chain,
      "Two products, C[m,k] = A[m,k] B[k,n] V[n,k], as in an MLP: layouts are A,B,V,C, 81 on one axis");
  app.add_option("--peak-size", o.peak_size, "Rows of the square product that a GPU's peak is taken from")
      ->check(detail::whole_number(32768, 8192))
      ->capture_default_str();
  app.add_option("--top", o.top, "Prints only the N fastest")->check(detail::whole_number(1'000'000, 12));
  app.add_option("--rounds", o.rounds, "Samples of each layout, in rounds of shuffled order")
      ->check(detail::whole_number(1000, 9))
      ->capture_default_str();
  app.add_option("--min-time", o.sample, "Seconds that a sample lasts at least")
      ->check(detail::seconds_from_0_to(60, "0.01"))
      ->capture_default_str();
  app.add_flag("--share-replicas", o.share,
               "Measures besides how fast it is when replicas share memory and work");
  app.add_option_function<std::string>(
         "--measure", [&o](const std::string& word) { o.most = detail::layouts_to_measure(word); },
         "all, or top:N: only the N that are predicted to be the fastest")
      ->check(detail::measure_word)
      ->default_str("all");
  app.add_option(
      "--machine", o.machine,
      "Predicts the table for a machine that need not be here: h200, h200x8, h200x64, tpu-v5p-64 or a\n"
      "file NAME.json; its first devices are the mesh. Nothing is measured");
  app.add_option("--sweep", o.sweep,
                 "Once for each size of m, k or n: m=64..8192 (each twice the one before) or m=64,100,1000;\n"
                 "prints the fastest of each and where one overtakes another");
  app.add_option(
         "--columns", o.columns,
         "What the table shows, with commas between: A,B,V,C,collectives,bytes/dev,least,FLOP/dev,memory,\n"
         "floor,t_lo,t_hi,time,+-%,p99,/t_hi,GFLOP/s,peak,busbw,bound,shared,wins,JAX,/JAX")
      ->delimiter(',');
  app.add_option("--jax", o.jax,
                 "A Python that has JAX, which then runs the same layouts; from the sources alone");
  app.add_option("--json", o.json_file, "Writes all figures to this file")->check(detail::writable);
  app.add_option("--csv", o.csv_file, "Writes the table to this file")->check(detail::writable);
  app.add_option("--markdown", o.markdown_file, "Writes the table to this file, in Markdown")
      ->check(detail::writable);
  app.add_flag_callback(
      "--quick", [&o] { o.rounds = 3, o.sample = 1e-4, o.peak_size = 256; },
      "Few short samples, and a small peak: to see that it runs");
}

/// Checks combinations of options. Throws std::invalid_argument.
inline void check(const LayoutOptions& o) {
  if (o.described()) {
    for (const auto& [given, option] :
         {std::pair(o.cuda(), "--platform cuda"), std::pair(o.most > 0, "--measure"),
          std::pair(o.share, "--share-replicas"), std::pair(!o.jax.empty(), "--jax")})
      if (given)
        throw std::invalid_argument(
            fmt::format("--machine {}: {} asks for a measurement, and nothing is measured of a machine that "
                        "is described. "
                        "Leave one of both out.",
                        o.machine, option));
  }
  if (!o.jax.empty() && (o.cuda() || !o.sweep.empty()))
    throw std::invalid_argument(
        fmt::format("--jax {}: JAX runs layouts of one size on virtual devices of the CPU. Leave {} out.",
                    o.jax, o.cuda() ? "--platform cuda" : "--sweep"));
  if (!o.sweep.empty()) {
    static_cast<void>(parse_sweep(o.sweep));
    if (!o.json_file.empty() || !o.csv_file.empty() || !o.markdown_file.empty())
      throw std::invalid_argument(fmt::format(
          "--sweep {}: files hold the table of one size. Leave --json, --csv and --markdown out.", o.sweep));
  }
  if (o.dtype == "tf32" && !o.cuda() && !o.described())
    throw std::invalid_argument(
        "--dtype tf32: the CPU has no TF32, a mode of NVIDIA's GPUs. Add --platform cuda, or write --dtype "
        "f32.");
  const std::int64_t largest = std::max({o.m * o.k, o.k * o.n, o.m * o.n});
  if (largest >= std::int64_t{1} << 31)
    throw std::invalid_argument(fmt::format(
        "--m {} --k {} --n {}: a matrix of {} elements is too large. It has fewer than 2^31. Make one of the "
        "sizes smaller.",
        o.m, o.k, o.n, largest));
  static_cast<void>(select_layouts(o.layouts, parse_mesh(o.mesh), o.chain));
}

}  // namespace bench
