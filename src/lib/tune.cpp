// tune(): tries choices of shardings by their predicted times, and runs the best ones.
#include "shardarray/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <ostream>
#include <set>

#include "base/bytes_text.h"
#include "base/count_text.h"
#include "base/duration_text.h"
#include "base/quoted.h"
#include "execute/constraint.h"
#include "execute/launch.h"
#include "execute/without_value.h"
#include "runtime/machine.h"
#include "shardarray/error.h"

namespace shardarray {

using core::TunedLeaf;

/// The search. A choice says for each array and each mesh axis which dimension the axis shards, -1 for none.
class Tuning {
 public:
  Tuning(std::vector<TunedLeaf> leaves, const core::TunePlan& plan, const core::TuneRun& run,
         const TuneOptions& o)
      : leaves_(std::move(leaves)),
        plan_(plan),
        run_(run),
        options_(o),
        mesh_(o.mesh ? *o.mesh : all_devices()) {
    for (const auto& [name, size] : mesh_.shape())
      if (size > 1) {
        axes_.push_back(name);
        sizes_.push_back(size);
      }
    for (const Device& d : mesh_.devices())
      if (d.process_index != mesh_.devices()[0].process_index)
        throw DeviceError(
            "tune: the mesh has devices of several processes, which would choose apart. Choose in one, and "
            "use what it says: Tuned::code().");
    machine_ = o.machine ? *o.machine : known_machine();
    check_machine(machine_);
    most_memory_ = o.memory_per_device > 0 ? o.memory_per_device : static_cast<std::int64_t>(machine_.memory);
    if (memory_budget() > 0) most_memory_ = std::min(most_memory_, memory_budget());
  }

  Tuned run() {
    clock_.restart();
    try_sizes();
    improve();
    Tuned t;
    t.mesh_ = mesh_;
    t.machine_ = machine_.name;
    t.tried_ = static_cast<std::int64_t>(known_.size());
    t.all_tried_ = !out_of_time_;
    for (const TunedLeaf& l : leaves_) {
      t.paths_.push_back(l.path);
      t.types_.push_back(fmt::format("{}{}", short_name(l.dtype), to_string(l.shape)));
    }
    const std::vector<Choice> best = ranked();
    if (refused_ && known_.at(best[0]).price.missing == kRefused) std::rethrow_exception(refused_);
    if (known_.at(best[0]).price.missing > 0)
      throw OutOfMemory(
          fmt::format("tune: of {} of shardings none needs {} a device or less; the least is {}. Allow more, "
                      "shard over more devices, or let the function keep less (checkpoint).",
                      count_text(known_.size(), "choice"), bytes_text(most_memory_),
                      bytes_text(known_.at(best[0]).choice.peak_bytes_per_device)));
    constexpr std::size_t kShown = 10;
    const bool can_run = run_ && described_machine(mesh_.devices()[0].platform) == nullptr;
    const auto measured = static_cast<std::size_t>(can_run ? options_.measured : 0);
    for (std::size_t k = 0, runs = 0; k < best.size() && t.choices_.size() < std::max(kShown, measured);
         k++) {
      const Tried& tried = known_.at(best[k]);
      if (tried.price.missing > 0) break;
      t.choices_.push_back(tried.choice);
      if (runs == measured) continue;
      if (measure(t.choices_.back())) runs++;
      else t.choices_.pop_back();
    }
    if (t.choices_.empty()) std::rethrow_exception(does_not_fit_);
    const auto first = std::ranges::find_if(t.choices_, [](const TunedChoice& c) { return c.measured > 0; });
    t.predicted_first_ = first == t.choices_.end() ? 0 : first->measured;
    std::ranges::stable_sort(t.choices_, {},
                             [](const TunedChoice& c) { return c.measured > 0 ? c.measured : HUGE_VAL; });
    return t;
  }

 private:
  using Choice = std::vector<std::vector<int>>;
  /// What is compared: bytes over the limit, seconds, peak bytes.
  struct Price {
    std::int64_t missing;
    double seconds;
    std::int64_t peak;
    friend auto operator<=>(const Price&, const Price&) = default;
  };
  struct Tried {
    TunedChoice choice;
    Price price;
  };

  static Mesh all_devices() { return make_mesh({{"x", device_count()}}); }
  Machine known_machine() const {
    const Machine* const described = described_machine(mesh_.devices()[0].platform);
    return described ? *described : this_machine(mesh_.devices());
  }

  Choice whole() const { return Choice(leaves_.size(), std::vector<int>(axes_.size(), -1)); }
  /// Whether each dimension is sharded evenly.
  bool divides(std::size_t leaf, const std::vector<int>& cut) const {
    std::vector<std::int64_t> parts(leaves_[leaf].shape.size(), 1);
    for (std::size_t a = 0; a < axes_.size(); a++)
      if (cut[a] >= 0) parts[static_cast<std::size_t>(cut[a])] *= sizes_[a];
    for (std::size_t d = 0; d < parts.size(); d++)
      if (leaves_[leaf].shape[d] % parts[d] != 0) return false;
    return true;
  }
  std::vector<NamedSharding> shardings(const Choice& c) const {
    std::vector<NamedSharding> all;
    for (std::size_t k = 0; k < leaves_.size(); k++) {
      std::vector<SpecEntry> dims;
      for (std::size_t d = 0; d < leaves_[k].shape.size(); d++) {
        AxisNames names;
        for (std::size_t a = 0; a < axes_.size(); a++)
          if (c[k][a] == static_cast<int>(d)) names.names.push_back(axes_[a]);
        dims.push_back(names.names.empty()       ? SpecEntry(none)
                       : names.names.size() == 1 ? SpecEntry(names.names[0])
                                                 : SpecEntry(names));
      }
      while (!dims.empty() && dims.back().names.empty()) dims.pop_back();
      all.emplace_back(mesh_, PartitionSpec(dims));
    }
    return all;
  }

  /// Plans a choice, if it is new and there is time.
  const Tried* price(const Choice& c) {
    if (const auto at = known_.find(c); at != known_.end()) return &at->second;
    if (!known_.empty() && clock_.seconds() > options_.seconds) {
      out_of_time_ = true;
      return nullptr;
    }
    Tried t{{.shardings = shardings(c)}, {kRefused, 0, 0}};
    std::optional<Explanation> planned;
    try {
      planned = plan_(t.choice.shardings).on(machine_);
    } catch (const ShardingError&) {  // policy strict
      refused_ = std::current_exception();
      return &known_.emplace(c, std::move(t)).first->second;
    }
    const Explanation& e = *planned;
    t.choice.results = e.results();
    t.choice.received_bytes_per_device = e.received_bytes_per_device();
    t.choice.peak_bytes_per_device = e.peak_bytes_per_device;
    t.choice.at_least = std::max(e.compute_seconds, e.transfer_seconds);
    t.choice.predicted = e.compute_seconds + e.transfer_seconds;
    t.price = {std::max<std::int64_t>(0, e.peak_bytes_per_device - most_memory_), t.choice.predicted,
               e.peak_bytes_per_device};
    return &known_.emplace(c, std::move(t)).first->second;
  }

  /// Each axis shards dimensions of one size in all arrays, in each the first or the last of that size, or none.
  void try_sizes() {
    std::set<std::pair<std::int64_t, bool>> sizes{{-1, false}};  // none
    for (const TunedLeaf& l : leaves_)
      for (std::size_t d = 0; d < l.shape.size(); d++)
        for (const std::int64_t parts : sizes_)
          if (l.shape[d] > 1 && l.shape[d] % parts == 0) {
            sizes.emplace(l.shape[d], false);
            if (std::ranges::count(l.shape, l.shape[d]) > 1) sizes.emplace(l.shape[d], true);
          }
    const std::vector<std::pair<std::int64_t, bool>> all(sizes.begin(), sizes.end());
    std::vector<std::size_t> of_axis(axes_.size(), 0);
    for (bool more = true; more;) {
      Choice c = whole();
      for (std::size_t k = 0; k < leaves_.size(); k++)
        for (std::size_t a = 0; a < axes_.size(); a++) {
          const auto [size, last] = all[of_axis[a]];
          const Shape& shape = leaves_[k].shape;
          std::vector<int> cut = c[k];
          for (std::size_t d = 0; d < shape.size(); d++)
            if (shape[d] == size && (cut[a] < 0 || last)) cut[a] = static_cast<int>(d);
          if (divides(k, cut)) c[k] = cut;
        }
      if (price(c) == nullptr) return;
      more = false;
      for (std::size_t a = 0; a < axes_.size() && !more; a++) {
        of_axis[a] = (of_axis[a] + 1) % all.size();
        more = of_axis[a] != 0;
      }
    }
  }

  /// All ways to shard a leaf evenly.
  std::vector<std::vector<int>> cuts(std::size_t leaf) const {
    const int rank = static_cast<int>(leaves_[leaf].shape.size());
    std::vector<std::vector<int>> all{{}};
    for (std::size_t a = 0; a < axes_.size(); a++) {
      std::vector<std::vector<int>> longer;
      for (const std::vector<int>& c : all)
        for (int d = -1; d < rank; d++) {
          longer.push_back(c);
          longer.back().push_back(d);
        }
      all = std::move(longer);
    }
    std::erase_if(all, [&](const std::vector<int>& c) { return !divides(leaf, c); });
    return all;
  }

  /// Improves the best ones: changes one array, or all arrays of one type, while that helps.
  void improve() {
    constexpr std::size_t kStarts = 3;
    std::vector<Choice> starts = ranked();
    starts.resize(std::min(starts.size(), kStarts));
    std::map<std::pair<std::vector<std::int64_t>, DType>, std::vector<std::size_t>> alike;
    for (std::size_t k = 0; k < leaves_.size(); k++)
      alike[{{leaves_[k].shape.begin(), leaves_[k].shape.end()}, leaves_[k].dtype}].push_back(k);
    std::vector<std::vector<std::size_t>> groups;
    groups.reserve(alike.size() + leaves_.size());
    for (auto& [type, group] : alike) groups.push_back(group);
    for (std::size_t k = 0; k < leaves_.size(); k++)
      if (std::ranges::none_of(groups, [&](const auto& g) { return g == std::vector{k}; }))
        groups.push_back({k});
    for (Choice c : starts)
      for (bool better = true; better && !out_of_time_;) {
        better = false;
        for (const std::vector<std::size_t>& group : groups)
          for (const std::vector<int>& cut : cuts(group[0])) {
            Choice other = c;
            for (const std::size_t k : group) other[k] = cut;
            const Tried *const now = price(c), *const then = price(other);
            if (then == nullptr) return;
            if (then->price < now->price) c = other, better = true;
          }
      }
  }

  std::vector<Choice> ranked() const {
    std::vector<Choice> all;
    for (const auto& [choice, tried] : known_) all.push_back(choice);
    std::ranges::stable_sort(all, {}, [&](const Choice& c) { return known_.at(c).price; });
    return all;
  }

  /// False: it does not fit, as arguments are not donated here and the caller holds its own.
  bool measure(TunedChoice& c) try {
    const Timing runs = run_(c.shardings);
    c.measured = runs.median();
    Timing apart;
    for (const double r : runs.runs) apart.runs.push_back(std::abs(r - c.measured));
    c.spread = apart.median() / c.measured;
    return true;
  } catch (const OutOfMemory&) {
    does_not_fit_ = std::current_exception();
    return false;
  }

  std::vector<TunedLeaf> leaves_;
  const core::TunePlan& plan_;
  const core::TuneRun& run_;
  const TuneOptions& options_;
  Mesh mesh_;
  Machine machine_;
  std::int64_t most_memory_ = 0;
  std::vector<std::string> axes_;
  std::vector<std::int64_t> sizes_;
  std::map<Choice, Tried> known_;
  Timer clock_;
  bool out_of_time_ = false;
  std::exception_ptr refused_, does_not_fit_;
  static constexpr std::int64_t kRefused = std::numeric_limits<std::int64_t>::max();
};

namespace core {

Tuned tune(std::vector<TunedLeaf> leaves, const TunePlan& plan, const TuneRun& run,
           const TuneOptions& options, Where w) {
  const Site site(w, "tune");
  if (options.memory_per_device < 0 || options.measured < 0 || !(options.seconds > 0))
    throw Error(
        fmt::format("tune: memory_per_device is {}, measured {}, seconds {}. The first two are 0 or more, "
                    "seconds is above 0.",
                    options.memory_per_device, options.measured, options.seconds));
  if (leaves.empty())
    throw Error("tune: the arguments have no arrays. There is nothing to choose. Pass some.");
  return Tuning(std::move(leaves), plan, run, options).run();
}

bool has_values(const Array& a) { return !is_without_value(a); }
Array elsewhere(const Array& a, const Sharding& s, Where w) {
  check_fits(a, s, "", "tune");
  return without_value(type_of(a), s, w);
}

}  // namespace core

std::map<std::string, Sharding> Tuned::shardings() const {
  std::map<std::string, Sharding> all;
  for (std::size_t k = 0; k < paths_.size(); k++) all.emplace(paths_[k], choices_.at(0).shardings[k]);
  return all;
}

double Tuned::regret() const {
  return choices_.empty() || choices_[0].measured == 0 ? 0 : predicted_first_ / choices_[0].measured - 1;
}

static std::string spec_of(const NamedSharding& s) { return s.spec().to_string(); }

std::string Tuned::report() const {
  if (choices_.empty()) return "nothing was tried\n";
  std::string text = fmt::format("{} of shardings tried{}, {}, times of {}\n", count_text(tried_, "choice"),
                                 all_tried_ ? "" : " until time was up", mesh_->to_string(), machine_);
  text += fmt::format("{:>3}  {:>21}  {:>9}  {:>5}  {:>9}  {:>9}  {}\n", "", "predicted", "measured", "+-%",
                      "received", "peak", "cut");
  for (std::size_t k = 0; k < choices_.size(); k++) {
    const TunedChoice& c = choices_[k];
    std::vector<std::string> differs;
    for (std::size_t i = 0; i < paths_.size(); i++)
      if (k == 0 ? spec_of(c.shardings[i]) != spec_of(NamedSharding(*mesh_, P()))
                 : spec_of(c.shardings[i]) != spec_of(choices_[0].shardings[i]))
        differs.push_back(fmt::format("{} {}", paths_[i], spec_of(c.shardings[i])));
    constexpr std::size_t kNamed = 3;
    const std::size_t more = differs.size() > kNamed ? differs.size() - kNamed : 0;
    differs.resize(differs.size() - more);
    text += fmt::format("{:>3}  {:>21}  {:>9}  {:>5}  {:>9}  {:>9}  {}{}{}\n", k + 1,
                        fmt::format("{} to {}", duration_text(c.at_least), duration_text(c.predicted)),
                        c.measured > 0 ? duration_text(c.measured) : "-",
                        c.measured > 0 ? fmt::format("{:.1f}", 100 * c.spread) : "-",
                        bytes_text(c.received_bytes_per_device), bytes_text(c.peak_bytes_per_device),
                        k == 0 ? "" : "but ",
                        differs.empty() ? "nothing" : fmt::format("{}", fmt::join(differs, ", ")),
                        more > 0 ? fmt::format(" and {} more", more) : "");
  }
  if (choices_[0].measured > 0)
    text += fmt::format("the fastest by prediction takes {:.1f} % longer than the fastest measured\n",
                        100 * regret());
  text += "the first choice\n";
  for (std::size_t i = 0; i < paths_.size(); i++)
    text += fmt::format("  {} {}: {}\n", paths_[i], types_[i], spec_of(choices_[0].shardings[i]));
  text += "and its results\n";
  for (const std::string& type : choices_[0].results) text += fmt::format("  {}\n", type);
  return text;
}

std::string Tuned::code() const {
  if (choices_.empty()) return "";
  std::vector<std::string> axes;
  for (const auto& [name, size] : mesh_->shape())
    axes.push_back(fmt::format("{{{}, {}}}", in_quotes(name), size));
  std::string text =
      fmt::format("const Mesh mesh = make_mesh({{{}}});\nconst std::map<std::string, Sharding> shardings{{\n",
                  fmt::join(axes, ", "));
  for (std::size_t i = 0; i < paths_.size(); i++) {
    std::vector<std::string> dims;
    for (const SpecEntry& e : choices_[0].shardings[i].spec().entries()) {
      std::vector<std::string> names;
      for (const std::string& n : e.names) names.push_back(in_quotes(n));
      dims.push_back(names.empty()       ? "none"
                     : names.size() == 1 ? names[0]
                                         : fmt::format("axes({})", fmt::join(names, ", ")));
    }
    text +=
        fmt::format("    {{{}, NamedSharding(mesh, P({}))}},\n", in_quotes(paths_[i]), fmt::join(dims, ", "));
  }
  return text + "};\n";
}

std::ostream& operator<<(std::ostream& os, const Tuned& t) { return os << t.report(); }

}  // namespace shardarray
