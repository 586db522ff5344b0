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
  // After a failure too: else the others would wait, and take this process's next text for the answer.
  try {
    if (all != nullptr) r = gather_texts(*all, what, said_);
  } catch (Error& e) {
    e.add_place(detail::place_of_call());  // thrown by another thread, without a place
    if (!failure_) throw;                  // else the failure of this process goes first
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
