#include "cpu/codegen/code_spec.h"

namespace shardarray {

namespace {
// The first word of a key.
enum class KeyKind : std::uint64_t { nest, gemm, update, move, sequence };
Words begin_key(KeyKind k) { return {static_cast<std::uint64_t>(k)}; }

void put_list(const std::vector<std::int64_t>& list, Words& words) {
  words.push_back(list.size());
  for (const std::int64_t x : list) words.push_back(static_cast<std::uint64_t>(x));
}
}  // namespace

Words LoopNestSpec::key() const {
  Words words = begin_key(KeyKind::nest);
  words.insert(words.end(), {static_cast<std::uint64_t>(mode), static_cast<std::uint64_t>(outer),
                             static_cast<std::uint64_t>(inner), short_rows, streams, blocks});
  put_kernel(*kernel, words);
  for (const Stride s : strides) words.push_back(static_cast<std::uint64_t>(s));
  put_list(fixed, words);
  put_list(packed, words);
  words.insert(words.end(), goes_on.begin(), goes_on.end());
  words.insert(words.end(), adjacent.begin(), adjacent.end());
  words.push_back(real_parts.size());
  for (const std::int32_t a : real_parts) words.push_back(static_cast<std::uint64_t>(a + 1));
  return words;
}

Words GemmSpec::key() const {
  Words words = begin_key(KeyKind::gemm);
  words.push_back(static_cast<std::uint64_t>(type));
  put_list({batch, m, n, k, a_row, a_col, a_batch, b_row, b_col, b_batch, c_row, c_col, c_batch}, words);
  if (!epilogue) return words;
  words.insert(words.end(), {epilogue->product, epilogue->keep});
  put_kernel(*epilogue->kernel, words);
  for (const GemmEpilogue::Walk& w : epilogue->args) put_list({w.batch, w.row, w.col}, words);
  return words;
}

Words UpdateSpec::key() const {
  Words words = begin_key(KeyKind::update);
  words.insert(words.end(), {static_cast<std::uint64_t>(type), static_cast<std::uint64_t>(reducer)});
  words.push_back(static_cast<std::uint64_t>(batch));
  for (const Dim& d : dims) put_list({d.n, d.m, d.moves, static_cast<std::int64_t>(d.index), d.first}, words);
  return words;
}

Words MoveSpec::key() const {
  Words words = begin_key(KeyKind::move);
  put_list({itemsize, filled}, words);
  words.push_back(fill_bits);
  for (const Piece& p : pieces) {
    words.push_back(p.extents.size());
    for (const Shape* const s : {&p.extents, &p.src_strides, &p.dst_strides})
      for (const std::int64_t n : *s) words.push_back(static_cast<std::uint64_t>(n));
  }
  return words;
}

Words SequenceSpec::key() const {
  Words words = begin_key(KeyKind::sequence);
  words.push_back(kernels.size());
  for (const KernelSpec& k : kernels) {
    const Words own = key_of(k);
    words.push_back(own.size());
    words.insert(words.end(), own.begin(), own.end());
  }
  const auto put = [&](const Ref& r) { words.insert(words.end(), {r.base, r.offset}); };
  const auto put_inner = [&](const Inner& x) {
    const Words own = x.sequence->key();
    words.insert(words.end(), {own.size(), x.bases.size()});
    words.insert(words.end(), own.begin(), own.end());
    for (const ProgramCall::Binding& b : x.bases) words.push_back(static_cast<std::uint64_t>(b.stride));
  };
  for (const Step& step : steps) {
    words.push_back(step.index());
    if (const auto* const call = std::get_if<Call>(&step)) {
      words.insert(words.end(), {call->kernel, call->args.size()});
      put_list(call->numbers, words);
    } else if (const auto* const repeat = std::get_if<Repeat>(&step)) {
      words.push_back(static_cast<std::uint64_t>(repeat->trip));
      put_inner(repeat->body);
    } else if (const auto* const choose = std::get_if<Choose>(&step)) {
      words.push_back(choose->branches.size());
      for (const Inner& x : choose->branches) put_inner(x);
    } else if (const auto* const loop = std::get_if<While>(&step)) {
      put_inner(loop->condition);
      put_inner(loop->body);
      words.push_back(loop->carries.size());
      for (const ProgramLoop::Carry& c : loop->carries) words.push_back(c.bytes);
    }
    each_ref(step, put);
  }
  return words;
}

std::size_t call_count(const SequenceSpec& s) {
  std::size_t n = 0;
  for (const SequenceSpec::Step& step : s.steps) n += std::holds_alternative<SequenceSpec::Call>(step);
  each_inner(s, [&](const SequenceSpec::Inner& inner) { n += call_count(*inner.sequence); });
  return n;
}

Words key_of(const KernelSpec& s) {
  return std::visit([](const auto& x) { return x.key(); }, s);
}
Words key_of(const CodeSpec& s) {
  return std::visit([](const auto& x) { return x.key(); }, s);
}

}  // namespace shardarray
