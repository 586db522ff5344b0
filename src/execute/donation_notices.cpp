#include "execute/donation_notices.h"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "base/per_thread.h"
#include "graph/node.h"

namespace shardarray {

namespace {

struct Said {
  std::mutex mutex;
  std::set<DonationNotice> notices;  // also those of temporaries, which are never printed
};
Said& said() {
  static auto* s = new Said;
  return *s;
}
constexpr std::size_t most_notices = 256, most_watched = 16;

// Marks it; true if it was not marked before.
bool mark(const DonationNotice& n) {
  const std::lock_guard lock(said().mutex);
  return said().notices.size() < most_notices && said().notices.insert(n).second;
}

struct Watched {
  DonationNotice notice;
  std::string text;
  const Node* node;      // held by this handle alone
  const Array* address;  // of the handle
};
struct WatchedOfThread {
  std::vector<Watched> list;
};

}  // namespace

bool is_news(const DonationNotice& n) {
  const std::lock_guard lock(said().mutex);
  return said().notices.size() < most_notices && !said().notices.contains(n);
}

void say(const DonationNotice& n, const std::string& text) {
  if (mark(n)) fmt::print(stderr, "shardarray: {}\n", text);
}

void say_if_named(const DonationNotice& n, const std::string& text, const Array& handle) {
  auto& list = PerThread<WatchedOfThread>::get().list;
  if (list.size() < most_watched) list.push_back({n, text, handle.node(), &handle});
}

void say_of_names(Where now) {
  auto* const watched = PerThread<WatchedOfThread>::find();
  if (!watched || watched->list.empty()) return;
  std::erase_if(watched->list, [&](const Watched& w) {
    if (w.notice.line == now.line && w.notice.file == now.file) return false;
    say(w.notice, w.text);
    return true;
  });
}

// Assignment swaps handles, so the node of a named handle dies at another address.
void given_away_ends(const Node* n, const Array* handle) {
  auto* const watched = PerThread<WatchedOfThread>::find();
  if (!watched) return;
  std::erase_if(watched->list, [&](const Watched& w) {
    if (w.node != n) return false;
    if (w.address != handle) say(w.notice, w.text);
    else mark(w.notice);
    return true;
  });
}

}  // namespace shardarray
