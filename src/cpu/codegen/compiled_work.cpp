#include "cpu/codegen/compiled_work.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "cpu/address.h"
#include "cpu/codegen/small_works.h"

namespace shardarray {

void CompiledWork::Product::run(void* const* bases, std::int64_t begin, std::int64_t end) const {
  const std::int64_t box[] = {begin, end};
  code.function(ArgumentAddresses(bases, args).data(), nullptr, box);
}

void CompiledWork::FollowedProduct::run_part(void* const* bases, std::int64_t batch, std::int64_t i,
                                             std::int64_t rows, std::int64_t j, std::int64_t columns,
                                             const PartOfC::Place& place) const {
  std::int64_t box[2 * LoopPlan::max_rank];
  const std::int64_t first[] = {batch, i, j}, size[] = {1, rows, columns};
  for (std::size_t k = 0; k < loop.dimensions.size(); k++) {
    const int d = loop.dimensions[k];
    if (d < 0) continue;
    box[2 * d] = first[k];
    box[2 * d + 1] = first[k] + size[k];
  }
  const LoopNest::Elsewhere elsewhere{loop.product, place.at, loop.dimensions[1], place.row};
  nest.run_box(code.function, bases, box, place.at == nullptr ? nullptr : &elsewhere);
}

void CompiledWork::Sequence::run(void* const* bases, std::int64_t, std::int64_t) const {
  if (args.empty()) return code.function(bases, nullptr, nullptr);
  code.function(ArgumentAddresses(bases, args).data(), nullptr, nullptr);
}

namespace {

// Below this the cost of a call matters: extents and strides become part of the code.
constexpr double small_loop_ns = 1000;
constexpr double small_work_ns = 5;
// Compile times in the quick tier, where instruction selection dominates.
constexpr double compile_kernel_ns = 300'000, compile_instruction_ns = 15'000, compile_product_ns = 2'000'000,
                 compile_call_ns = 10'000;

double compile_cost_ns(const LoopNestSpec& s) {
  return compile_kernel_ns + compile_instruction_ns * static_cast<double>(s.kernel->code.size());
}
double compile_cost_ns(const GemmSpec&) { return compile_product_ns; }
double compile_cost_ns(const UpdateSpec&) { return compile_kernel_ns; }
double compile_cost_ns(const MoveSpec&) { return compile_kernel_ns; }
double compile_cost_ns(const SequenceSpec& s) {
  double ns = compile_call_ns * static_cast<double>(s.steps.size());
  for (const KernelSpec& k : s.kernels) ns += std::visit([](const auto& x) { return compile_cost_ns(x); }, k);
  each_inner(s, [&](const SequenceSpec::Inner& inner) { ns += compile_cost_ns(*inner.sequence); });
  return ns;
}
double compile_cost_ns(const CodeSpec& s) {
  return std::visit([](const auto& x) { return compile_cost_ns(x); }, s);
}
// One program's share of the last-level cache; with many cores, or in virtual machines, the system reports more.
std::atomic<std::int64_t>& cache_bytes() {
  static std::atomic<std::int64_t> bytes{std::int64_t{32} << 20};
  return bytes;
}
// The most kernels of a called program that are compiled with its caller, those of all branches and of programs that it calls among them:
// each is compiled again for every caller.
constexpr std::size_t most_calls = 50;
// How many works after a product to search for a loop over its elements, and then for another reader of C.
constexpr std::size_t most_between = 64, most_behind = 256;

bool overlap(const MemoryRanges& a, const MemoryRanges& b) {
  return std::any_of(a.begin(), a.end(), [&](const MemoryRange& x) {
    return std::any_of(b.begin(), b.end(), [&](const MemoryRange& y) { return overlap(x, y); });
  });
}
/// Whether two works must keep their order.
bool conflict(const Work& a, const Work& b) {
  return overlap(a.writes, b.writes) || overlap(a.writes, b.reads) || overlap(a.reads, b.writes);
}

}  // namespace

std::int64_t set_cache_bytes(std::int64_t bytes) { return cache_bytes().exchange(bytes); }

/// Turns works into code. Works set apart are not joined with others.
class WorkCompiler {
 public:
  WorkCompiler(const WorkList& works, CodeTier tier, const std::vector<bool>& apart)
      : works_(works), tier_(tier) {
    for (std::size_t w = 0; w < apart.size(); w++) cost_ns_ += add(w, apart[w]);
    join_epilogues();
  }

  /// Null if no code can be compiled, or if a joined piece failed: then its works are added to `apart`.
  std::unique_ptr<CompiledWork> run(double runs, std::vector<bool>& apart) {
    join_sequences(cost_ns_ < TaskGraph::small_ns);
    std::unique_ptr<CompiledWork> to(new CompiledWork);
    std::vector<CodeSpec> specs;
    const std::vector<bool> worth = choose(runs, *to, specs);
    std::vector<MachineCode> code;
    for (const CodeSpec& spec : specs) {
      auto one = try_compile(spec, tier_of(spec));
      if (!one) return nullptr;
      code.push_back(std::move(*one));
    }
    std::size_t next = 0;
    bool again = false;
    for (std::size_t k = 0; k < pieces_.size(); k++) {
      Candidate& p = pieces_[k];
      if (!worth[k]) {
        for (const std::size_t m : p.members) to->all_.push_back(works_.all()[m]);
        continue;
      }
      const MachineCode& c = code[next++];
      if (c.function == nullptr) {
        again = again || p.members.size() > 1;
        to->complete_ = false;
        for (const std::size_t m : p.members) apart[m] = true;
        p.work = works_.all()[p.members[0]];
      } else {
        give_code(p, c, *to);
      }
      to->all_.push_back(std::move(p.work));
    }
    if (again) return nullptr;
    BlockedWork::join(to->all_, to->blocked_);
    return to;
  }

 private:
  struct Candidate {
    Work work;
    std::variant<std::monostate, LoopNest, GemmSpec, SmallSpec, SequenceSpec> code =
        {};                                 // none: runs as before
    std::vector<Ref> args = {};             // for the function of a product, an update or a sequence
    std::vector<std::size_t> members = {};  // the works that it consists of
    LoopOverProduct over = {};              // if it follows members[0], a product without code
    bool apart = false;
    bool has_code() const { return !std::holds_alternative<std::monostate>(code); }
    bool follows() const { return members.size() > 1 && std::holds_alternative<LoopNest>(code); }
  };

  static CodeSpec spec_of(const Candidate& p) {
    if (const auto* const nest = std::get_if<LoopNest>(&p.code)) return nest->spec();
    if (const auto* const gemm = std::get_if<GemmSpec>(&p.code)) return *gemm;
    return std::get<SequenceSpec>(p.code);
  }

  // What code saves of a loop is the time of its calls, so that quick code could be slower.
  CodeTier tier_of(const CodeSpec& spec) const {
    bool calls = false;
    if (const auto* const sequence = std::get_if<SequenceSpec>(&spec))
      each_inner(*sequence, [&](const SequenceSpec::Inner&) { calls = true; });
    return calls ? CodeTier::full : tier_;
  }

  /// Which pieces get code, and their `specs`; decided kernel by kernel.
  std::vector<bool> choose(double runs, CompiledWork& to, std::vector<CodeSpec>& specs) const {
    struct Choice {
      double interpreted_ns = 0;
      std::optional<bool> worth;
    };
    std::unordered_map<Words, Choice, WordsHash> choices;
    std::vector<std::pair<CodeSpec, Choice*>> coded;  // pieces that can be compiled
    for (const Candidate& p : pieces_) {
      if (!p.has_code()) continue;
      CodeSpec spec = spec_of(p);
      const auto [it, fresh] = choices.try_emplace(key_of(spec));
      if (fresh) to.compile_ns_ += compile_cost_ns(spec);
      for (const std::size_t m : p.members)
        if (!p.follows() || works_.all()[m].loop)
          it->second.interpreted_ns += std::max(1.0, works_.all()[m].interpreted_ns);
      coded.emplace_back(std::move(spec), &it->second);
    }
    std::vector<bool> worth(pieces_.size(), false);
    std::size_t next = 0;
    for (std::size_t k = 0; k < pieces_.size(); k++) {
      if (!pieces_[k].has_code()) continue;
      auto& [spec, choice] = coded[next++];
      if (!choice->worth) {
        const CodeTier tier = tier_of(spec);
        const double cost = compile_cost_ns(spec) * (tier == tier_ ? 1 : full_tier_factor);
        choice->worth = runs * choice->interpreted_ns >= cost || code_is_at_hand(spec, tier);
        if (*choice->worth) to.worth_ns_ += cost;
      }
      worth[k] = *choice->worth;
      to.kernels_ += worth[k];
      to.all_worth_ = to.all_worth_ && worth[k];
      if (worth[k]) specs.push_back(std::move(spec));
    }
    return worth;
  }

  static void give_code(Candidate& p, const MachineCode& code, CompiledWork& to) {
    const double cost = p.work.units.cost_ns;
    const bool flush_denormals = p.work.units.flush_denormals;
    p.work.least_units = 1;
    if (p.follows()) {
      const GemmPlan& product = *p.work.gemm;
      p.work.units =
          task_of(to.followed_.emplace_back(&product, std::move(std::get<LoopNest>(p.code)), p.over, code), 0,
                  product.units(), cost);
    } else if (auto* const nest = std::get_if<LoopNest>(&p.code)) {
      p.work.grain = nest->grain();
      p.work.units = all_units(to.loops_.emplace_back(CompiledWork::UnitLoop{std::move(*nest), code}));
    } else if (const auto* const gemm = std::get_if<GemmSpec>(&p.code))
      p.work.units = task_of(to.products_.emplace_back(CompiledWork::Product{std::move(p.args), code}), 0,
                             gemm->batch, cost);
    else
      p.work.units =
          task_of(to.sequences_.emplace_back(CompiledWork::Sequence{std::move(p.args), code}), 0, 1, cost);
    p.work.units.flush_denormals = flush_denormals;
  }

  double add(std::size_t number, bool apart) {
    const Work& w = works_.all()[number];
    Candidate& p = pieces_.emplace_back(Candidate{w});
    p.members = {number};
    p.apart = apart;
    double& cost = p.work.units.cost_ns;
    if (w.loop) {
      LoopNest nest(w.loop->kernel, *w.item);
      if (!nest.has_points()) return 0;  // the interpreter writes empty sums
      cost = nest.cost_ns();
      if (streams(w)) nest.stream();
      if (cost < small_loop_ns) nest.fix_numbers();
      p.code = std::move(nest);
    } else if (w.gemm) {
      if (auto spec = w.gemm->spec()) p.code = std::move(*spec);
      p.args = {w.gemm->item().a, w.gemm->item().b, w.gemm->item().c};
    } else if (auto small = small_work(w)) {
      p.code = std::move(small->first);
      p.args = std::move(small->second);
      cost = small_work_ns;
    } else if (auto step =
                   std::visit([&](const auto& x) { return step_of(x, w.units.flush_denormals); }, w.calls)) {
      p.code = SequenceSpec{{}, {std::move(step->first)}};
      cost = step->second;
    }
    return cost;
  }

  // Steps that call programs, and the time of one run; none if a program has no code.
  using TimedStep = std::optional<std::pair<SequenceSpec::Step, double>>;
  using TimedInner = std::optional<std::pair<SequenceSpec::Inner, double>>;

  TimedStep step_of(std::monostate, bool) const { return std::nullopt; }
  TimedStep step_of(const CalledProgram* called, bool flush_denormals) const {
    auto body = inner_of(*called, flush_denormals);
    if (!body) return std::nullopt;
    const std::int64_t trip = called->call().trip;
    return {{SequenceSpec::Repeat{std::move(body->first), trip}, static_cast<double>(trip) * body->second}};
  }
  TimedStep step_of(const ChosenProgram* chosen, bool flush_denormals) const {
    SequenceSpec::Choose step{chosen->item().index, {}};
    std::size_t calls = 0;
    double longest = 0;
    for (const CalledProgram& called : chosen->branches()) {
      auto branch = inner_of(called, flush_denormals);
      if (!branch || (calls += call_count(*branch->first.sequence)) > most_calls) return std::nullopt;
      step.branches.push_back(std::move(branch->first));
      longest = std::max(longest, branch->second);
    }
    return {{std::move(step), longest}};
  }
  TimedStep step_of(const RepeatedProgram* repeated, bool flush_denormals) const {
    auto condition = inner_of(repeated->condition(), flush_denormals);
    auto body = inner_of(repeated->body(), flush_denormals);
    if (!condition || !body) return std::nullopt;
    const double run_ns = condition->second + body->second;
    return {{SequenceSpec::While{std::move(condition->first), std::move(body->first), repeated->item().answer,
                                 repeated->item().carries},
             RepeatedProgram::likely_runs * run_ns}};
  }

  /// A called program as one sequence. None for longer ones, in which the time of calls does not matter.
  TimedInner inner_of(const CalledProgram& called, bool flush_denormals) const {
    if (!called.is_plain() || called.works().all().size() > most_calls) return std::nullopt;
    WorkCompiler inside(called.works(), tier_, std::vector<bool>(called.works().all().size(), false));
    if (inside.cost_ns_ >= small_loop_ns) return std::nullopt;
    for (const Candidate& p : inside.pieces_)
      if (!p.has_code() || p.follows() || p.work.units.flush_denormals != flush_denormals)
        return std::nullopt;
    Candidate all = sequence(inside.pieces_, true);
    SequenceSpec::Inner inner{std::make_shared<SequenceSpec>(std::get<SequenceSpec>(std::move(all.code))),
                              {}};
    for (const Ref& r : all.args) {
      ProgramCall::Binding b = called.item().bases[r.base];
      for (Ref* const at : {&b.first, &b.even, &b.odd}) at->offset += r.offset;
      inner.bases.push_back(b);
    }
    return {{std::move(inner), inside.cost_ns_}};
  }

  // Whether to use non-temporal stores: the results would evict each other from the caches before they are read, and such stores do not
  // read the lines first.
  bool streams(const Work& w) const {
    std::int64_t bytes = 0;
    for (const MemoryRanges* all : {&w.reads, &w.writes})
      for (const MemoryRange& r : *all) bytes += static_cast<std::int64_t>(r.hi - r.lo);
    const auto reads_them = [&](const Work& other) { return overlap(other.reads, w.writes); };
    return bytes >= cache_bytes() && std::none_of(works_.all().begin(), works_.all().end(), reads_them);
  }

  // Fuses the first loop that touches a product with it, if it works element by element and may run that early.
  void join_epilogues() {
    std::vector<bool> gone(pieces_.size(), false);
    for (std::size_t k = 0; k < pieces_.size(); k++) {
      Candidate& p = pieces_[k];
      auto* const g = std::get_if<GemmSpec>(&p.code);
      const bool large = p.work.gemm && !g && p.work.gemm->takes_what_follows();
      if (p.apart || !(g || large)) continue;
      const MemoryRange c = p.work.writes[0];
      const std::size_t end = std::min(pieces_.size(), k + 1 + most_between);
      std::size_t j = k + 1;
      while (j < end && (gone[j] || !touches(pieces_[j].work, c))) j++;
      if (j == end || pieces_[j].apart || !std::holds_alternative<LoopNest>(pieces_[j].code)) continue;
      const Work& loop = pieces_[j].work;
      const auto found = over_product(loop, large ? p.work.gemm->shape() : *g, p.work.gemm->item().c, c);
      auto epilogue = found && g ? epilogue_of(loop, *found) : std::nullopt;
      // A loop slower than the product must not be split the way the product is.
      const bool joins = large ? loop.units.cost_ns <= p.work.units.cost_ns : epilogue.has_value();
      bool early = found && joins && loop.units.flush_denormals == p.work.units.flush_denormals &&
                   !overlap(loop.writes, p.work.reads);
      for (std::size_t i = k + 1; early && i < j; i++) early = gone[i] || !conflict(loop, pieces_[i].work);
      if (!early) continue;
      if (large) {
        p.code = LoopNest::of_dimensions(loop.loop->kernel, *loop.item);
        p.over = *found;
        // A part made apart from C has no adjacent rows, which the code may assume of C.
        p.over.keep = needed(c, j) || p.work.gemm->shape().c_row == 1;
        if (std::get<LoopNest>(pieces_[j].code).spec().streams) std::get<LoopNest>(p.code).stream();
      } else {
        epilogue->keep = needed(c, j);
        for (std::size_t a = 0; a < epilogue->args.size(); a++)
          if (a != epilogue->product) p.args.push_back(loop.item->args[a].ref);
        g->epilogue = std::move(epilogue);
      }
      p.work.units.cost_ns += loop.units.cost_ns;
      for (const MemoryRange& r : loop.reads)
        if (!overlap(r, c)) p.work.reads.push_back(r);
      p.work.writes.insert(p.work.writes.end(), loop.writes.begin(), loop.writes.end());
      p.members.push_back(pieces_[j].members[0]);
      gone[j] = true;
    }
    std::size_t kept = 0;
    for (std::size_t k = 0; k < pieces_.size(); k++)
      if (!gone[k] && kept++ != k) pieces_[kept - 1] = std::move(pieces_[k]);
    pieces_.resize(kept);
  }

  static bool touches(const Work& w, const MemoryRange& r) {
    return overlap(w.reads, {r}) || overlap(w.writes, {r});
  }

  // Whether someone reads what piece j finds in `r`.
  bool needed(const MemoryRange& r, std::size_t j) const {
    for (std::size_t k = j; k < pieces_.size(); k++) {
      const Work& w = pieces_[k].work;
      if (k > j + most_behind) return true;
      if (k > j && overlap(w.reads, {r})) return true;
      if (writes_all(w, r)) return false;
    }
    return r.base >= works_.scratch_bases();
  }
  // Only loops are known to; others may write part of a tile.
  static bool writes_all(const Work& w, const MemoryRange& r) {
    if (w.item == nullptr) return false;
    const MemoryRanges all = written_wholly(*w.loop, *w.item);
    return std::any_of(all.begin(), all.end(), [&](const MemoryRange& x) { return covers(x, r); });
  }

  // Joins consecutive pieces with code into one function: in a small program all, else those as cheap as their tasks' overhead.
  void join_sequences(bool small_program) {
    std::vector<Candidate> joined;
    for (std::size_t k = 0; k < pieces_.size();) {
      std::size_t end = k;
      double cost = 0;
      const auto joins = [&](const Candidate& p) {
        const double own = p.work.units.cost_ns;
        return p.has_code() && !p.follows() && !p.apart &&
               p.work.units.flush_denormals == pieces_[k].work.units.flush_denormals &&
               (small_program || (own < small_loop_ns && cost + own < chunk_ns));
      };
      while (end < pieces_.size() && joins(pieces_[end])) cost += pieces_[end++].work.units.cost_ns;
      const bool is_sequence = std::holds_alternative<SequenceSpec>(pieces_[k].code);
      if (std::holds_alternative<SmallSpec>(pieces_[k].code) && end - k < 2)
        pieces_[k].code = std::monostate();
      if (end - k > 1 || is_sequence)
        joined.push_back(
            sequence(std::span(pieces_).subspan(k, std::max<std::size_t>(1, end - k)), !small_program));
      else joined.push_back(std::move(pieces_[end = k]));
      k = std::max(end, k + 1);
    }
    pieces_ = std::move(joined);
  }

  static Candidate sequence(std::span<Candidate> pieces, bool own_args) {
    Candidate all{Work{{}, {}, Task{}}};
    SequenceSpec spec;
    std::map<Words, std::size_t> known;
    for (Candidate& p : pieces) {
      all.work.units.flush_denormals = p.work.units.flush_denormals;
      all.members.insert(all.members.end(), p.members.begin(), p.members.end());
      all.work.units.cost_ns += p.work.units.cost_ns;
      all.work.add_ranges(p.work);
      if (auto* const made = std::get_if<SequenceSpec>(&p.code)) {
        std::move(made->steps.begin(), made->steps.end(), std::back_inserter(spec.steps));
        continue;
      }
      SequenceSpec::Call call;
      std::optional<KernelSpec> kernel;
      if (auto* const nest = std::get_if<LoopNest>(&p.code)) {
        nest->fix_numbers();
        kernel = nest->spec();
        call.args = nest->refs();
        call.numbers = nest->numbers();
      } else {
        if (auto* const small = std::get_if<SmallSpec>(&p.code))
          kernel = std::visit([](auto& x) { return KernelSpec(std::move(x)); }, *small);
        else kernel = std::get<GemmSpec>(std::move(p.code));
        call.args = std::move(p.args);
      }
      const auto [it, fresh] = known.try_emplace(key_of(*kernel), spec.kernels.size());
      if (fresh) spec.kernels.push_back(std::move(*kernel));
      call.kernel = it->second;
      spec.steps.emplace_back(std::move(call));
    }
    if (own_args) number_args(spec, all.args);
    all.code = std::move(spec);
    return all;
  }

  /// Turns the addresses into bases of the sequence's own, numbered by first use.
  static void number_args(SequenceSpec& spec, std::vector<Ref>& args) {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> known;
    for (SequenceSpec::Step& step : spec.steps)
      each_ref(step, [&](Ref& r) {
        const auto [it, fresh] =
            known.try_emplace({r.base, r.offset}, static_cast<std::uint32_t>(args.size()));
        if (fresh) args.push_back(r);
        r = {it->second, 0};
      });
  }

  const WorkList& works_;
  CodeTier tier_;
  std::vector<Candidate> pieces_;
  double cost_ns_ = 0;  // of one run
};

std::unique_ptr<CompiledWork> CompiledWork::make(const WorkList& works, CodeTier tier, double runs) {
  std::vector<bool> apart(works.all().size(), false);
  for (;;) {  // each round sets more works apart; usually there is only one
    const std::vector<bool> before = apart;
    if (auto code = WorkCompiler(works, tier, apart).run(runs, apart)) return code;
    if (apart == before) return nullptr;
  }
}

}  // namespace shardarray
