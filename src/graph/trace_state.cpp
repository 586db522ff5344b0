#include "graph/trace_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/sizes.h"

#include "base/per_thread.h"

namespace shardarray {

static std::atomic<std::uint64_t> sequence{1};
static std::atomic<std::uint64_t> trace_ids{1};

TraceState& trace_state() { return PerThread<TraceState>::get(); }

bool TraceState::is_open(std::uint64_t id) const {
  return std::find(open.begin(), open.end(), id) != open.end();
}

OpenTrace::OpenTrace() : id_(trace_ids.fetch_add(1, std::memory_order_relaxed)) {
  trace_state().open.push_back(id_);
  trace_state().effects.emplace_back();
}
OpenTrace::~OpenTrace() {
  trace_state().open.pop_back();
  trace_state().effects.pop_back();
}

ValueAlone::ValueAlone(bool on)
    : before_(std::exchange(trace_state().value_alone,
                            on ? std::optional<std::size_t>(trace_state().gradients.size()) : std::nullopt)) {
}
ValueAlone::~ValueAlone() { trace_state().value_alone = before_; }

namespace {

// The outermost open gradients of all threads: at most one per thread, so few.
struct OpenGradients {
  std::mutex mutex;
  struct Entry {
    std::uint64_t name;
    bool open = true;
    std::vector<Array> kept = {};
  };
  std::vector<Entry> entries;
  Entry* find(std::uint64_t name) {
    auto it = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
    return it == entries.end() ? nullptr : &*it;
  }
};
OpenGradients& open_gradients() {
  static auto* all = new OpenGradients;
  return *all;
}

}  // namespace

// On all threads.
static std::atomic<int> open_gradient_count{0};

bool others_differentiate() {
  const int own = trace_state().gradients.empty() ? 0 : 1;
  return open_gradient_count.load(std::memory_order_relaxed) > own;
}

std::uint64_t foreign_gradient(const Node& n) {
  const auto& mine = trace_state().gradients;
  if (n.variable == 0 || (!mine.empty() && n.variable == mine.front())) return 0;
  OpenGradients& all = open_gradients();
  const std::lock_guard lock(all.mutex);
  const OpenGradients::Entry* const e = all.find(n.variable);
  return e != nullptr && e->open ? n.variable : 0;
}

bool is_differentiated(const Node& n) {
  return !trace_state().gradients.empty() || (others_differentiate() && foreign_gradient(n) != 0);
}

std::uint64_t joined_gradient(std::uint64_t gradient, const Node& n, const char* function) {
  const std::uint64_t foreign = foreign_gradient(n);
  if (foreign == 0 || foreign == gradient) return gradient;
  if (gradient == 0) return foreign;
  throw TraceError(
      fmt::format("{}: {} depends on a variable by which another thread differentiates just now, and this is "
                  "part of another function that is differentiated: it would be lost to one of the "
                  "derivatives. Take stop_gradient of it, or compute both in one thread.",
                  function, to_string(n.out()[0].type)));
}

OpenGradient::OpenGradient(std::uint64_t oldest) {
  auto& mine = trace_state().gradients;
  mine.push_back(oldest);
  outermost_ = mine.front();
  if (mine.size() > 1) return;
  OpenGradients& all = open_gradients();
  const std::lock_guard lock(all.mutex);
  all.entries.push_back({oldest});
  open_gradient_count.fetch_add(1, std::memory_order_relaxed);
}
OpenGradient::~OpenGradient() {
  auto& mine = trace_state().gradients;
  mine.pop_back();
  if (!mine.empty()) return;
  OpenGradients& all = open_gradients();
  const std::lock_guard lock(all.mutex);
  OpenGradients::Entry* mine_there = all.find(outermost_);
  mine_there->open = false;
  open_gradient_count.fetch_sub(1, std::memory_order_relaxed);
  if (mine_there->kept.empty())
    std::erase_if(all.entries, [&](const auto& e) { return e.name == outermost_; });
}

bool keep_for_gradient(std::uint64_t name, Node* n) {
  OpenGradients& all = open_gradients();
  const std::lock_guard lock(all.mutex);
  OpenGradients::Entry* e = all.find(name);
  if (!e || !e->open) return false;
  e->kept.push_back(handle(n));
  return true;
}

std::vector<Array> take_kept(std::uint64_t name) {
  OpenGradients& all = open_gradients();
  std::vector<Array> kept;
  const std::lock_guard lock(all.mutex);
  OpenGradients::Entry* e = all.find(name);
  if (!e || e->open) return kept;
  kept = std::move(e->kept);
  std::erase_if(all.entries, [&](const auto& x) { return x.name == name; });
  return kept;
}

RecordingWalk::RecordingWalk() { trace_state().walks++; }
RecordingWalk::~RecordingWalk() { trace_state().walks--; }

std::uint64_t next_sequence() { return sequence.fetch_add(1, std::memory_order_relaxed); }

std::shared_ptr<const Axis> find_axis(const std::string& name, const char* function) {
  const auto& axes = trace_state().axes;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it)
    if ((*it)->name == name) return *it;
  std::string have;
  for (const auto& a : axes)
    have += (have.empty() ? "" : ", ") +
            (a->name.empty() ? "a map without a name" : fmt::format("'{}'", a->name));
  throw TraceError(fmt::format(
      "{}: unbound axis name '{}'. In scope: {}. A name is bound by vmap, pmap or shard_map with axis_name.",
      function, name, have.empty() ? "none" : have));
}

const char* current_function(const char* otherwise) {
  const char* const function = detail::call_site.function;
  return function ? function : otherwise;
}
std::int64_t check_type(const Type& t, const char* otherwise) {
  return check_size(current_function(otherwise), t.shape, t.dtype);
}

}  // namespace shardarray
