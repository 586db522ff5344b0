#include "cpu/code_store.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "base/hash.h"
#include "base/print_time.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr std::size_t kept_modules = 256, most_known = 8192;

std::atomic<int> mode_setting{-1};

CodegenMode mode_from_environment() {
  const char* text = std::getenv("SHARDARRAY_CODEGEN");
  const std::string s = text ? text : "";
  if (s.empty() || s == "on") return CodegenMode::on;
  if (s == "off") return CodegenMode::off;
  if (s == "always") return CodegenMode::always;
  throw Error(
      fmt::format("environment: SHARDARRAY_CODEGEN={} is not understood. It must be on, off or always. "
                  "Correct the variable or unset it.",
                  s));
}

}  // namespace

CodegenMode codegen_mode() {
  int m = mode_setting.load(std::memory_order_relaxed);
  if (m < 0) {
    m = static_cast<int>(mode_from_environment());
    mode_setting.store(m, std::memory_order_relaxed);
  }
  return static_cast<CodegenMode>(m);
}
CodegenMode set_codegen_mode(CodegenMode m) {
  const CodegenMode before = codegen_mode();
  mode_setting.store(static_cast<int>(m), std::memory_order_relaxed);
  return before;
}

std::size_t CodeStore::KeyHash::operator()(const CodeKey& k) const {
  std::uint64_t h = k.size();
  for (const std::uint64_t w : k) h = hash_mix(h, w);
  return h;
}

CodeStore::CodeStore(std::unique_ptr<CodeGenerator> generator, std::string cache_folder)
    : generator_(std::move(generator)), cache_(std::move(cache_folder)) {}

CodeStore& CodeStore::instance() {
  static CodeStore* const store = new CodeStore(
      open_code_plugin(code_plugin_path()).make(nullptr, nullptr, nullptr), object_cache_folder());
  return *store;
}

CodeStore::Stats CodeStore::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

/// Code of a better tier serves too.
bool CodeStore::find(const CodeKey& key, CodeTier tier, MachineCode& code) {
  const auto it = known_.find(key);
  if (it == known_.end() || it->second.tier < tier) return false;
  code = {it->second.module.lock(), it->second.function};
  return code.module != nullptr;
}

void CodeStore::remember(const CodeKey& key, CodeTier tier, const MachineCode& code) {
  if (known_.size() > most_known)
    std::erase_if(known_, [](const auto& e) { return e.second.module.expired(); });
  known_[key] = {code.module, code.function, tier};
}

/// One object with all of these kernels, from the disk or compiled now.
std::shared_ptr<const LinkedCode> CodeStore::build(const std::vector<CodeSpec>& specs,
                                                   const std::vector<const CodeKey*>& keys, CodeTier tier) {
  std::vector<char> key(generator_->target().begin(), generator_->target().end());
  key.push_back(static_cast<char>(tier));
  for (const CodeKey* k : keys) {
    const std::uint64_t words = k->size();
    key.insert(key.end(), reinterpret_cast<const char*>(&words), reinterpret_cast<const char*>(&words + 1));
    key.insert(key.end(), reinterpret_cast<const char*>(k->data()),
               reinterpret_cast<const char*>(k->data() + words));
  }
  if (const auto object = cache_.find(key)) {
    try {
      auto code = timed("link", [&] { return generator_->link(*object, specs.size()); });
      stats_.loaded++;
      return code;
    } catch (const CompileError&) {}  // as good as none
  }
  const std::vector<char> object = timed(tier == CodeTier::quick ? "code, quick" : "code, full",
                                         [&] { return generator_->compile(specs, tier); });
  cache_.put(key, object);
  stats_.compiled++;
  return timed("link", [&] { return generator_->link(object, specs.size()); });
}

std::vector<MachineCode> CodeStore::get(const std::vector<CodeSpec>& specs, CodeTier tier) {
  std::vector<MachineCode> all(specs.size());
  std::unordered_map<CodeKey, std::size_t, KeyHash> missing;  // key -> its number in the module
  std::vector<CodeSpec> to_build;
  std::vector<std::ptrdiff_t> number(specs.size(), -1);
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0; k < specs.size(); k++) {
    CodeKey key = key_of(specs[k]);
    if (find(key, tier, all[k])) continue;
    const auto [it, fresh] = missing.try_emplace(std::move(key), to_build.size());
    if (fresh) to_build.push_back(specs[k]);
    number[k] = static_cast<std::ptrdiff_t>(it->second);
  }
  if (to_build.empty()) return all;
  std::vector<const CodeKey*> keys(to_build.size());
  for (const auto& [key, n] : missing) keys[n] = &key;
  const auto module = build(to_build, keys, tier);
  for (std::size_t n = 0; n < keys.size(); n++) remember(*keys[n], tier, {module, module->functions[n]});
  recent_.push_back(module);
  if (recent_.size() > kept_modules) recent_.pop_front();
  for (std::size_t k = 0; k < specs.size(); k++) {
    if (number[k] >= 0) all[k] = {module, module->functions[static_cast<std::size_t>(number[k])]};
  }
  return all;
}

std::optional<std::vector<MachineCode>> try_compile(const std::vector<CodeSpec>& specs, CodeTier tier) {
  static std::atomic<bool> failed{false};
  if (failed.load(std::memory_order_relaxed)) return std::nullopt;
  if (codegen_mode() != CodegenMode::always && !std::filesystem::exists(code_plugin_path())) {
    failed = true;  // a build without LLVM
    return std::nullopt;
  }
  try {
    return CodeStore::instance().get(specs, tier);
  } catch (const std::exception& e) {  // memory may be short as well
    if (!failed.exchange(true))
      fmt::print(stderr, "shardarray: {} Programs run in the interpreter.\n", e.what());
  }
  return std::nullopt;
}

}  // namespace shardarray
