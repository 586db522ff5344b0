#include "lib/checkpoints/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "shardarray/error.h"

namespace shardarray::checkpoints {

using nlohmann::json;

Attempt::Attempt(const char* function, shardarray::detail::FunctionRef<json()> work) {
  const auto fail = [&](const std::string& text) {
    failure_ = std::current_exception();
    said_ = {{"error", text}};
  };
  try {
    said_ = {{"done", work()}};
  } catch (const Error& e) {
    fail(e.text());
  } catch (const std::exception& e) {  // the others would wait for this process
    fail(fmt::format("{}: {}", function, e.what()));
  }
}

std::vector<json> Attempt::agreed(const char* function, Processes* all, const char* what) const {
  std::vector<json> r{said_};
  if (all != nullptr) {
    r.clear();
    const std::string mine = said_.dump(-1, ' ', false, json::error_handler_t::replace);
    try {
      for (const std::string& text : all->all_gather(fmt::format("{}: {}", function, what), mine))
        r.push_back(json::parse(text));
    } catch (const Error&) {
      if (!failure_) throw;  // else it has failed here before
    }
  }
  if (failure_) std::rethrow_exception(failure_);
  for (std::size_t p = 0; p < r.size(); p++)
    if (r[p].contains("error"))
      throw IoError(fmt::format("{} (in process {})", r[p]["error"].get<std::string>(), p));
  for (json& x : r) x = std::move(x["done"]);
  return r;
}

bool all_say(bool mine, const char* function, Processes* all, const char* what) {
  const auto said = Attempt(function, [&] { return mine; }).agreed(function, all, what);
  return std::all_of(said.begin(), said.end(), [](const json& x) { return x.get<bool>(); });
}

}  // namespace shardarray::checkpoints
