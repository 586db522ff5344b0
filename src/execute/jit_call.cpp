// One call's arguments: their key, their storage, checks of static ones.
#include <fmt/core.h>

#include <cstring>

#include "base/count_text.h"
#include "base/per_thread.h"
#include "runtime/modes.h"
#include "shardarray/jit.h"

namespace shardarray {

namespace core {

void JitCall::text(std::string_view s) {
  word(s.size());
  for (std::size_t i = 0; i < s.size(); i += 8) {
    std::uint64_t w = 0;
    std::memcpy(&w, s.data() + i, std::min<std::size_t>(8, s.size() - i));
    word(w);
  }
}
void JitCall::clear() {
  key.clear();
  leaves.clear();
  results.clear();
  moved.clear();
  dies.clear();
  paths.clear();
  statics.clear();
}

namespace {
// Calls nest (a jit inside a jit's trace), so the thread keeps several.
struct SpareCalls : std::vector<std::unique_ptr<JitCall>> {};
SpareCalls& spare_calls() { return PerThread<SpareCalls>::get(); }
}  // namespace

ReusedCall::ReusedCall(const char* function) {
  auto& spare = spare_calls();
  if (spare.empty()) call_ = std::make_unique<JitCall>();
  else {
    call_ = std::move(spare.back());
    spare.pop_back();
  }
  call_->function = function;
  call_->word(reinterpret_cast<std::uintptr_t>(&current_modes()));
}
ReusedCall::~ReusedCall() {
  call_->clear();
  spare_calls().push_back(std::move(call_));
}

}  // namespace core

namespace detail {

void check_static_args(const JitOptions& options, std::size_t arguments, std::span<const std::string> paths) {
  for (const int position : options.donate_args)
    if (position < 0 || static_cast<std::size_t>(position) >= arguments)
      throw TreeError(fmt::format(
          "{}: donate_args names argument {}, the call has {}. Positions count from 0. Correct donate_args.",
          options.name, position, count_text(arguments, "argument")));
  for (const int position : options.static_args) {
    if (position < 0 || static_cast<std::size_t>(position) >= arguments)
      throw TreeError(fmt::format(
          "{}: static_args names argument {}, the call has {}. Positions count from 0. Correct static_args.",
          options.name, position, count_text(arguments, "argument")));
    const std::string root = std::to_string(position);
    for (const std::string& path : paths)
      if (path.substr(0, path.find_first_of(".[")) == root)
        throw TreeError(fmt::format(
            "{}: argument {} is static and holds an array at `{}`. Static arguments are part of the "
            "program. Remove {} from static_args, or pass a number.",
            options.name, position, path, position));
  }
}

}  // namespace detail

}  // namespace shardarray
