// The same layouts by JAX: bench/peers/jax_layouts.py, run by a Python that has it.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "layouts_results.h"

namespace bench {

/// Fills LayoutRow::jax, after the own times are taken: both would disturb each other. Layouts that JAX refuses (sizes that do not
/// divide) stay without. Throws std::runtime_error where there is no such Python or script.
inline void add_jax(LayoutResults& x) {
  const std::filesystem::path script =
      std::filesystem::path(BENCH_SOURCE_FOLDER) / "peers" / "jax_layouts.py";
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("--jax {}: {}. It needs a Python that imports jax.", x.o.jax, why));
  };
  if (!std::filesystem::exists(script)) fail(script.string() + " is not there: it comes with the sources");
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
  char folder[] = "/tmp/layouts-XXXXXX";
  if (mkdtemp(folder) == nullptr) fail("no temporary folder can be made");
  const std::string in = std::string(folder) + "/asked.json", out = std::string(folder) + "/times.json";
  std::ofstream(in) << asked;
  const int status =
      std::system(fmt::format("'{}' -B '{}' '{}' '{}'", x.o.jax, script.string(), in, out).c_str());
  const nlohmann::json times = nlohmann::json::parse(std::ifstream(out), nullptr, false);
  std::filesystem::remove_all(folder);
  if (status != 0 || !times.is_object())
    fail(fmt::format("{} ended with status {}", script.string(), status));
  for (LayoutRow& r : x.rows) r.jax = times.value(r.name, 0.0);
}

}  // namespace bench
