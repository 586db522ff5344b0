#include "shardarray/debug.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "base/host_memory.h"
#include "execute/evaluate.h"
#include "graph/trace_state.h"
#include "shardarray/placement.h"
#include "transform/effects.h"

namespace shardarray {

namespace debug {

namespace {

// The argument positions that a format refers to, and whether they have a format spec or are a width in one.
std::map<std::size_t, bool> used_positions(const std::string& format) {
  std::map<std::size_t, bool> used;
  std::size_t next = 0;
  int depth = 0;
  for (std::size_t k = 0; k < format.size(); k++) {
    if (format[k] == '}' && depth > 0) depth--;
    if (format[k] != '{') continue;
    if (depth == 0 && k + 1 < format.size() && format[k + 1] == '{') {
      k++;
      continue;
    }
    std::size_t end = k + 1, at = 0;
    while (end < format.size() && std::isdigit(static_cast<unsigned char>(format[end])))
      at = at * 10 + static_cast<std::size_t>(format[end++] - '0');
    used[end > k + 1 ? at : next++] |= depth > 0 || (end < format.size() && format[end] == ':');
    depth++;
  }
  return used;
}

using Store = fmt::dynamic_format_arg_store<fmt::format_context>;

// Numbers keep their type for formatting. Complex numbers, arrays and bools become text.
void push(Store& store, const Array& a) {
  const DType t = a.dtype();
  if (a.ndim() > 0 || is_complex(t) || t == DType::bool_) store.push_back(to_string(a));
  else if (t == DType::uint64) store.push_back(a.item<std::uint64_t>());
  else if (is_integer(t)) store.push_back(a.item<std::int64_t>());
  else store.push_back(t == DType::float64 ? a.item<double>() : static_cast<double>(a.item<float>()));
}

// Arrays without a format spec print as in NumPy.
std::string formatted(const std::string& format, const std::vector<Printable>& args,
                      const std::vector<Array>& arrays) {
  Store store;
  const auto used = used_positions(format);
  std::size_t next = 0;
  for (std::size_t k = 0; k < args.size(); k++) {
    const Printable& p = args[k];
    if (std::holds_alternative<Array>(p.value)) {
      const Array& a = arrays[next++];
      const auto field = used.find(k);
      if (field != used.end() && field->second) push(store, a);
      else store.push_back(to_string(a));
    } else if (auto* i = std::get_if<std::int64_t>(&p.value)) store.push_back(*i);
    else if (auto* u = std::get_if<std::uint64_t>(&p.value)) store.push_back(*u);
    else if (auto* d = std::get_if<double>(&p.value)) store.push_back(*d);
    else store.push_back(std::get<std::string>(p.value));
  }
  return fmt::vformat(format, store);
}

// Formats zeros of the arguments' types, so that errors show where the call is recorded.
void check_format(const std::string& format, const std::vector<Printable>& args) {
  const auto used = used_positions(format);
  for (std::size_t k = 0; k < args.size(); k++)
    if (!used.contains(k))
      throw Error(
          fmt::format("debug::print: unused argument {} of {} in \"{}\". Every argument needs a {{}}.", k,
                      args.size(), format));
  std::vector<Array> zeros;
  for (const Printable& p : args)
    if (auto* a = std::get_if<Array>(&p.value)) {
      const std::vector<std::byte> none = host_bytes("debug::print", a->nbytes());
      zeros.push_back(core::make_array(none.data(), a->dtype(), a->shape(), {}));
    }
  try {
    formatted(format, args, zeros);
  } catch (const fmt::format_error& e) {
    throw Error(fmt::format(
        "debug::print: \"{}\" with {} argument{}: {}. Formats take one argument each; arrays take none.",
        format, args.size(), args.size() == 1 ? "" : "s", e.what()));
  }
}

std::vector<Array> arrays_of(const std::vector<Printable>& args) {
  std::vector<Array> arrays;
  for (const Printable& p : args)
    if (auto* a = std::get_if<Array>(&p.value)) arrays.push_back(*a);
  return arrays;
}

std::ostream& stream_of(const PrintOptions& o) { return o.stream ? *o.stream : std::cout; }

}  // namespace

Printable::Printable(const Shape& shape) : value(std::string()) {
  std::string text;
  for (std::int64_t d : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  value = fmt::format("({}{})", text, shape.size() == 1 ? "," : "");
}

void print(const std::string& format, std::vector<Printable> args, PrintOptions options, Where w) {
  const Site site(w, "debug::print");
  check_format(format, args);
  std::vector<Array> arrays = arrays_of(args);
  auto show = [format, args = std::move(args), options](const HostValues& v) {
    stream_of(options) << formatted(format, args, v.arrays) + "\n" << std::flush;
  };
  add_host_call({std::move(show)}, std::move(arrays), w);
}

Array id_print(const Array& x, std::vector<std::pair<std::string, Printable>> fields, PrintOptions options,
               Where w) {
  const Site site(w, "debug::id_print");
  type_of(x, "id_print");
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Printable> values;
  std::string format;
  for (const auto& [name, value] : fields) {
    format += format.empty() ? "" : " ";
    for (const char c : name) format += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
    format += ": {}";
    values.push_back(value);
  }
  std::vector<Array> arrays = arrays_of(values);
  arrays.push_back(x);
  auto show = [format, values, options](const HostValues& v) {
    std::string line = formatted(format, values, v.arrays);
    if (options.device && v.device)
      line += fmt::format("{}device: {}:{}", line.empty() ? "" : " ", v.device->platform, v.device->id);
    if (!line.empty()) line += "\n";
    stream_of(options) << line + to_string(v.arrays.back()) + "\n" << std::flush;
  };
  add_host_call({std::move(show), true}, std::move(arrays), w);
  return x;
}

void callback(HostFunction f, std::vector<Array> args, Where w) {
  const Site site(w, "debug::callback");
  if (!f) throw Error("debug::callback: the function is empty. Give one that can be called.");
  add_host_call({std::move(f)}, std::move(args), w);
}

}  // namespace debug

}  // namespace shardarray
