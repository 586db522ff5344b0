#include "lib/attempt.h"

#include <fmt/format.h>

#include "shardarray/error.h"

namespace shardarray {

Attempt::Attempt(const char* function, detail::FunctionRef<std::string()> work) {
  const auto fail = [&](const std::string& text) {
    failure_ = std::current_exception();
    said_ = "-" + text;
  };
  try {
    said_ = "+" + work();
  } catch (const Error& e) { fail(e.text()); } catch (const std::exception& e) {
    fail(fmt::format("{}: {}", function, e.what()));
  }
}

std::vector<std::string> Attempt::said_by_all(const std::string& what, Processes* all, int& failed) const {
  std::vector<std::string> r{said_};
  // The others would wait for a process that failed, and take its next answer for the one to this question.
  try {
    if (all != nullptr) r = gather_texts(*all, what, said_);
  } catch (Error& e) {
    e.add_place(detail::place_of_call());  // another thread has found it
    if (!failure_) throw;                  // else it has failed here before
  }
  if (failure_) std::rethrow_exception(failure_);
  for (std::size_t p = r.size(); p-- > 0;) {
    const bool is_done = r[p][0] == '+';
    r[p].erase(0, 1);
    if (is_done) continue;
    failed = static_cast<int>(p);
    r[p] += fmt::format(" (in process {})", p);
  }
  return r;
}

}  // namespace shardarray
