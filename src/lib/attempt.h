// What all processes do together: it is done in all of them or fails in all.
#pragma once
#include <exception>
#include <string>
#include <vector>

#include "runtime/processes.h"
#include "shardarray/detail/path.h"

namespace shardarray {

/// What `work` gives, for the others: or what went wrong in it, which is kept for this process.
class Attempt {
 public:
  Attempt() = default;
  Attempt(const char* function, detail::FunctionRef<std::string()> work);
  bool has_failed() const { return failure_ != nullptr; }
  /// What all processes say, in their order; `all` null: this one. What went wrong in one is thrown in all: there as it was, in the
  /// others as E (TransportError, IoError). They ask in one order, `what` says for what.
  template <class E> std::vector<std::string> agreed(const std::string& what, Processes* all) const {
    int failed = -1;
    std::vector<std::string> r = said_by_all(what, all, failed);
    if (failed >= 0) throw E(r[static_cast<std::size_t>(failed)]);
    return r;
  }

 private:
  /// Throws what went wrong here. `failed`: another process where something did, of which the text is what.
  std::vector<std::string> said_by_all(const std::string& what, Processes* all, int& failed) const;
  std::string said_ = "+";
  std::exception_ptr failure_;
};

}  // namespace shardarray
