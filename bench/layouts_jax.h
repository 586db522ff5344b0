// The same layouts in JAX: bench/peers/jax_layouts.py, run by a Python that has JAX.
#pragma once
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "layouts_process.h"
#include "layouts_results.h"

namespace bench {

namespace detail {
[[noreturn]] inline void jax_fails(const std::string& python, const std::string& why) {
  throw std::runtime_error(fmt::format("--jax {}: {}. It needs a Python that imports jax.", python, why));
}

/// Removed with all its contents by the destructor.
class TemporaryFolder {
 public:
  /// path() is empty if none can be made.
  TemporaryFolder() {
    std::error_code error;
    std::string name = std::filesystem::temp_directory_path(error) / "layouts-XXXXXX";
    if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
}  // namespace detail

/// Called before anything is measured. Throws std::runtime_error if JAX will not run.
inline void check_jax(const std::string& python, const std::filesystem::path& script) {
  if (!std::filesystem::exists(script))
    detail::jax_fails(python, script.string() + " is not there: it comes with the sources");
  if (detail::TemporaryFolder().path().empty())
    detail::jax_fails(python, "no temporary folder can be made, TMPDIR names where");
  if (const std::string why = run_process({python, "-B", "-c", "import jax"}); !why.empty())
    detail::jax_fails(python, "asked to import jax, " + why);
}

/// Fills LayoutRow::jax, after the library's own measurements: both would disturb each other. Layouts that JAX refuses (sizes that do not
/// divide) have none. Throws std::runtime_error if it does not run to its end.
inline void add_jax(LayoutResults& x, const std::filesystem::path& script) {
  nlohmann::json asked = {{"m", x.o.m},           {"k", x.o.k},
                          {"n", x.o.n},           {"dtype", x.o.dtype},
                          {"rounds", x.o.rounds}, {"seconds", x.o.sample},
                          {"threads", x.workers}, {"layouts", nlohmann::json::array()}};
  for (const MeshAxis& a : x.product.mesh) asked["mesh"].push_back({std::string(1, a.name), a.size});
  const auto dims = [](const Cut& c) { return nlohmann::json{c.rows, c.columns}; };
  for (const LayoutRow& r : x.rows) {
    const bool any_c = !r.c_spelling.empty() || r.layout.picked;
    asked["layouts"].push_back({{"name", r.name},
                                {"a", dims(r.layout.a)},
                                {"b", dims(r.layout.b)},
                                {"v", r.layout.v ? dims(*r.layout.v) : nlohmann::json()},
                                {"c", any_c ? nlohmann::json() : dims(r.layout.c)}});
  }
  const detail::TemporaryFolder folder;
  if (folder.path().empty())
    detail::jax_fails(x.o.jax, "no temporary folder can be made, TMPDIR names where");
  const std::string in = folder.path() / "asked.json", out = folder.path() / "times.json";
  if (!(std::ofstream(in) << asked << std::flush))
    detail::jax_fails(x.o.jax, fmt::format("{} cannot be written ({})", in, std::strerror(errno)));
  if (const std::string why = run_process({x.o.jax, "-B", script, in, out}); !why.empty())
    detail::jax_fails(x.o.jax, fmt::format("running {}, {}", script.string(), why));
  const nlohmann::json times = nlohmann::json::parse(std::ifstream(out), nullptr, false);
  if (!times.is_object()) detail::jax_fails(x.o.jax, script.string() + " has written no times");
  for (LayoutRow& r : x.rows)
    if (const auto t = times.find(r.name); t != times.end() && t->is_number()) r.jax = t->get<double>();
}

}  // namespace bench
