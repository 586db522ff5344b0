#include "cpu/codegen/code_store.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/print_time.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr std::size_t kept_kernels = 1024, most_known = 8192, most_said = 8;

std::atomic<int> mode_setting{-1};
std::atomic<CodeStore*> chosen_store{nullptr}, lasting_store{nullptr};  // set by a test; of the process
std::atomic<bool> process_ends{false};                                  // exit() is at LLVM's objects

}  // namespace

CodegenMode codegen_mode() {
  int m = mode_setting.load(std::memory_order_relaxed);
  if (m < 0) {
    m = static_cast<int>(codegen_mode_of_environment());
    mode_setting.store(m, std::memory_order_relaxed);
  }
  return static_cast<CodegenMode>(m);
}
CodegenMode set_codegen_mode(CodegenMode m) {
  const CodegenMode before = codegen_mode();
  mode_setting.store(static_cast<int>(m), std::memory_order_relaxed);
  return before;
}

CodeStore::CodeStore(std::unique_ptr<CodeGenerator> generator, const std::string& cache_folder)
    : generator_(std::move(generator)), cache_(cache_folder) {
  if (!cache_.refusal().empty())
    fmt::print(stderr,
               "shardarray: kernels are not kept: {}. What is kept is executed, so nobody else may be able "
               "to change it. Let SHARDARRAY_CACHE_DIR name a folder that is yours alone, or nothing.\n",
               cache_.refusal());
}

CodeStore& CodeStore::instance() {
  if (CodeStore* const chosen = chosen_store.load()) return *chosen;
  static CodeStore* const store = [] {
    auto* const made = new CodeStore(open_code_plugin(code_plugin_path()).make(nullptr, nullptr, nullptr),
                                     object_cache_folder());
    lasting_store = made;
    made->close_at_exit();
    const auto unlock = [] { lasting_store.load()->mutex_.unlock(); };
    pthread_atfork([] { lasting_store.load()->mutex_.lock(); }, unlock,
                   unlock);  // a forked child may compile and exit like any process
    return made;
  }();
  return *store;
}
CodeStore* CodeStore::set_instance(CodeStore* store) { return chosen_store.exchange(store); }

/// LLVM's static objects are destroyed by exit(), in reverse order: nothing may be compiled or linked from before the first of them goes.
/// Some are created at first use, so this is called after the first uses too.
void CodeStore::close_at_exit() {
  constexpr int few = 8;
  if (this != lasting_store || exits_ == few) return;
  exits_++;
  std::atexit([] {
    const std::lock_guard lock(lasting_store.load()->mutex_);  // waits for a running compilation
    process_ends = true;
  });
}

CodeStore::Stats CodeStore::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

/// Code of a better tier will do.
bool CodeStore::find(const Words& key, CodeTier tier, MachineCode& code) {
  const auto it = known_.find(key);
  if (it == known_.end() || it->second.tier < tier) return false;
  code = {it->second.module.lock(), it->second.function};
  return code.module != nullptr;
}

void CodeStore::remember(const Words& key, CodeTier tier, const MachineCode& code) {
  if (known_.size() > most_known)
    std::erase_if(known_, [](const auto& e) { return e.second.module.expired(); });
  known_[key] = {code.module, code.function, tier};
}

std::vector<char> CodeStore::object_key(const Words& words, CodeTier tier) const {
  std::vector<char> key(generator_->target().begin(), generator_->target().end());
  key.push_back(static_cast<char>(tier));
  key.insert(key.end(), reinterpret_cast<const char*>(words.data()),
             reinterpret_cast<const char*>(words.data() + words.size()));
  return key;
}

bool CodeStore::has(const CodeSpec& spec, CodeTier tier) {
  const Words words = key_of(spec);
  MachineCode code;
  const std::lock_guard lock(mutex_);
  return find(words, tier, code) || cache_.has(object_key(words, tier));
}

/// The object of a kernel, from disk or compiled now.
std::shared_ptr<const LinkedCode> CodeStore::build(const CodeSpec& spec, const Words& words, CodeTier tier) {
  const std::vector<char> key = object_key(words, tier);
  if (const auto object = cache_.find(key)) {
    try {
      auto code = timed("link", [&] { return generator_->link(*object, 1); });
      stats_.loaded++;
      return code;
    } catch (const CompileError&) {}  // as if it were not cached
  }
  const std::vector<char> object = timed(tier == CodeTier::quick ? "code, quick" : "code, full", [&] {
    return generator_->compile({&spec, 1}, tier);
  });
  auto code = timed("link", [&] { return generator_->link(object, 1); });
  cache_.put(key, object);
  stats_.compiled++;
  return code;
}

/// On stderr, once per problem, and not endlessly.
void CodeStore::say(const std::string& problem) {
  stats_.failed++;
  if (said_.size() == most_said || std::find(said_.begin(), said_.end(), problem) != said_.end()) return;
  said_.push_back(problem);
  fmt::print(stderr, "shardarray: {} A kernel runs in the interpreter for now.\n", problem);
}

MachineCode CodeStore::code_of(const CodeSpec& spec, CodeTier tier) {
  const Words key = key_of(spec);
  MachineCode code;
  if (find(key, tier, code)) return code;
  if (process_ends) return {};
  try {
    const auto module = build(spec, key, tier);
    code = {module, module->functions.at(0)};
    remember(key, tier, code);
    recent_.push_back(module);
    if (recent_.size() > kept_kernels) recent_.pop_front();
    close_at_exit();
  } catch (const CompileError& e) {
    say(e.text());
    return {};
  } catch (const std::exception& e) {  // out of memory
    say(fmt::format("code generation: {}.", e.what()));
    return {};
  }
  return code;
}

std::vector<MachineCode> CodeStore::get(const std::vector<CodeSpec>& specs, CodeTier tier) {
  std::vector<MachineCode> all;
  all.reserve(specs.size());
  const std::lock_guard lock(mutex_);
  for (const CodeSpec& s : specs) all.push_back(code_of(s, tier));
  return all;
}

namespace {

/// Null if its plug-in cannot be opened, which is reported once.
CodeStore* store_of_process() {
  if (CodeStore* const chosen = chosen_store.load()) return chosen;
  static CodeStore* const own = []() -> CodeStore* {
    try {
      return &CodeStore::instance();
    } catch (const Error& e) {
      // Whoever built the library without the plug-in knows.
      const bool known = !has_code_plugin() && codegen_mode() != CodegenMode::always;
      if (!known) fmt::print(stderr, "shardarray: {} Programs run in the interpreter.\n", e.text());
      return nullptr;
    }
  }();
  return own;
}

}  // namespace

std::optional<MachineCode> try_compile(const CodeSpec& spec, CodeTier tier) {
  try {
    if (CodeStore* const store = store_of_process()) return store->get({spec}, tier)[0];
    return std::nullopt;
  } catch (const std::bad_alloc&) { return MachineCode(); }
}

bool code_is_at_hand(const CodeSpec& spec, CodeTier tier) {
  try {
    CodeStore* const store = store_of_process();
    return store != nullptr && store->has(spec, tier);
  } catch (const std::bad_alloc&) { return false; }
}

}  // namespace shardarray
