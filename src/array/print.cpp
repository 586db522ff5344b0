// Printing like numpy's str() with default options: at most 8 digits after the point, 75 columns, and for more than 1000 elements the first
// and last 3 of each dimension.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <ostream>

#include "base/complex_parts.h"
#include "base/per_thread.h"
#include "execute/evaluate.h"
#include "layout/spelling.h"
#include "ops/record.h"
#include "shardarray/ops.h"
#include "shardarray/print_options.h"

namespace shardarray {

namespace {

/// The format set by this thread's guard.
struct ThreadFormat : ArrayFormat {};
ArrayFormat& thread_format() { return PerThread<ThreadFormat>::get(); }

// ---------------------------------------------------------------- digits of one number
// |v| = 0.d1d2d3... * 10^point. `digits` is the shortest text that reads back as v in its dtype.
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal parse_scientific(const std::string& text) {
  Decimal r;
  const std::size_t e = text.find('e');
  for (char c : text.substr(0, e))
    if (c >= '0' && c <= '9') r.digits += c;
  r.point = std::atoi(text.c_str() + e + 1) + 1;
  while (r.digits.size() > 1 && r.digits.back() == '0') r.digits.pop_back();
  return r;
}

std::string scientific_text(double v, int fraction) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v, std::chars_format::scientific, fraction).ptr;
  return {text, end};
}

// float16 and bfloat16: tries increasing precision until the text reads back as the same value.
Decimal shortest(double v, DType t) {
  v = std::abs(v);
  char text[64];
  if (t == DType::float64 || t == DType::float32) {
    const auto end =
        t == DType::float64
            ? std::to_chars(text, text + sizeof text, v, std::chars_format::scientific).ptr
            : std::to_chars(text, text + sizeof text, static_cast<float>(v), std::chars_format::scientific)
                  .ptr;
    return parse_scientific({text, end});
  }
  std::string s;
  for (int fraction = 0; fraction < 8; fraction++) {
    s = scientific_text(v, fraction);
    if (primitive::bits_of(t, std::strtod(s.c_str(), nullptr)) == primitive::bits_of(t, v)) break;
  }
  return parse_scientific(s);
}

// `ddd.ddd` without trailing zeros; at most `limit` digits after the point, rounded from the exact value.
std::string positional(double v, DType t, int limit) {
  const Decimal d = shortest(v, t);
  const int n = static_cast<int>(d.digits.size());
  std::string s = std::signbit(v) ? "-" : "";
  if (v != 0 && n - d.point > limit) {
    char text[512];
    const auto end =
        std::to_chars(text, text + sizeof text, std::abs(v), std::chars_format::fixed, limit).ptr;
    s.append(text, end);
    if (limit == 0) return s + '.';
    while (s.back() == '0') s.pop_back();
    return s;
  }
  if (v == 0) return s + "0.";
  for (int k = 0; k < d.point; k++) s += k < n ? d.digits[static_cast<std::size_t>(k)] : '0';
  if (d.point <= 0) s += '0';
  s += '.';
  for (int k = d.point; k < n; k++) s += k < 0 ? '0' : d.digits[static_cast<std::size_t>(k)];
  return s;
}

// The parts of `d.ddde+xx`; at most `limit` digits after the point.
struct Scientific {
  std::string whole, fraction, exponent;  // "-1", "25", "+02": at least two exponent digits
};
Scientific parts_of(const Decimal& d, bool is_negative) {
  const int e = d.point - 1;
  std::string size = std::to_string(std::abs(e));
  if (size.size() < 2) size.insert(0, "0");
  return {(is_negative ? "-" : "") + d.digits.substr(0, 1), d.digits.substr(1), (e < 0 ? "-" : "+") + size};
}
Scientific scientific(double v, DType t, int limit) {
  Decimal d = shortest(v, t);
  if (v == 0) d = {"0", 1};
  if (static_cast<int>(d.digits.size()) > limit + 1)
    d = parse_scientific(scientific_text(std::abs(v), limit));
  return parts_of(d, std::signbit(v));
}

std::string padded_left(std::string s, std::size_t width) {
  if (s.size() < width) s.insert(0, width - s.size(), ' ');
  return s;
}
std::string not_finite(double v) { return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf"; }
// Prepends "+" to non-negative numbers.
std::string with_sign(std::string s) { return s[0] == '-' ? s : "+" + s; }

// ---------------------------------------------------------------- a common width for all elements
using Formatter = std::function<std::string(std::size_t)>;  // element index -> text

struct FloatWidths {
  bool exponent = false, plus = false;  // plus: print a sign for every number
  std::size_t whole = 0, fraction = 0, exponent_digits = 0;
};

// From this magnitude on numbers are printed with exponent; since numpy 2.3 it depends on the dtype's precision.
double exponent_from(DType t, double most) {
  return t == DType::float64 ? most : t == DType::float16 ? 1e3 : 1e6;
}
template <class T> bool needs_exponent(T largest, T smallest, double limit) {
  return largest > 0 && (largest >= static_cast<T>(limit) ||
                         (!thread_format().suppress && (smallest < T(1e-4) || largest / smallest > T(1e3))));
}

FloatWidths float_widths(const std::vector<double>& shown, DType t, bool plus = false) {
  FloatWidths w;
  w.plus = plus;
  double largest = 0, smallest = INFINITY;
  bool all_finite = true, negative_inf = plus;
  for (double v : shown) {
    all_finite &= std::isfinite(v);
    negative_inf |= v == -INFINITY;
    if (!std::isfinite(v) || v == 0) continue;
    largest = std::max(largest, std::abs(v));
    smallest = std::min(smallest, std::abs(v));
  }
  const double limit = exponent_from(t, 1e8);
  w.exponent = t == DType::float64
                   ? needs_exponent(largest, smallest, limit)  // numpy compares in the dtype
                   : needs_exponent(static_cast<float>(largest), static_cast<float>(smallest), limit);
  for (double v : shown) {
    if (!std::isfinite(v)) continue;
    if (w.exponent) {
      const Scientific s = scientific(v, t, thread_format().precision);
      w.whole = std::max(w.whole, plus ? with_sign(s.whole).size() : s.whole.size());
      w.fraction = std::max(w.fraction, s.fraction.size());
      w.exponent_digits = std::max(w.exponent_digits, s.exponent.size() - 1);
    } else {
      const std::string s = positional(v, t, thread_format().precision);
      w.whole = std::max(w.whole, plus ? with_sign(s).find('.') : s.find('.'));
      w.fraction = std::max(w.fraction, s.size() - s.find('.') - 1);
    }
  }
  if (!all_finite) {
    const std::size_t behind = (w.exponent ? w.exponent_digits + 2 + w.fraction : w.fraction) + 1,
                      need = negative_inf ? 4 : 3;
    w.whole = std::max(w.whole, need - std::min(need, behind));
  }
  return w;
}

std::string format_float(double v, DType t, const FloatWidths& w) {
  const std::size_t behind = w.exponent ? w.exponent_digits + 2 + w.fraction : w.fraction;
  const auto signed_as_asked = [&](std::string s) { return w.plus ? with_sign(std::move(s)) : s; };
  if (!std::isfinite(v)) return padded_left(signed_as_asked(not_finite(v)), w.whole + behind + 1);
  if (w.exponent) {
    Scientific s = scientific(v, t, thread_format().precision);
    if (s.fraction.size() < w.fraction && v != 0)  // further digits are those of the exact value
      s = parts_of(parse_scientific(scientific_text(std::abs(v), static_cast<int>(w.fraction))),
                   std::signbit(v));
    s.fraction.resize(w.fraction, '0');
    s.exponent.insert(1, w.exponent_digits - (s.exponent.size() - 1), '0');
    return padded_left(signed_as_asked(s.whole), w.whole) + "." + s.fraction + "e" + s.exponent;
  }
  std::string s = signed_as_asked(positional(v, t, thread_format().precision));
  const std::size_t fraction = s.size() - s.find('.') - 1;
  s.insert(0, w.whole - std::min(w.whole, s.find('.')), ' ');
  return s + std::string(w.fraction - fraction, ' ');
}

template <class T> Formatter integer_formatter(const Array& x, const std::vector<std::size_t>& shown) {
  auto v = x.to_vector<T>(Where());
  std::size_t width = 0;
  for (std::size_t k : shown) width = std::max(width, std::to_string(v[k]).size());
  return [v = std::move(v), width](std::size_t k) { return padded_left(std::to_string(v[k]), width); };
}

// `1.+2.j`: separate widths for both parts, the j directly after the digits.
Formatter complex_formatter(const Array& x, const std::vector<std::size_t>& shown) {
  auto v = x.to_vector<std::complex<double>>(Where());
  const DType t = part_type(x.dtype());
  std::vector<double> re, im;
  for (std::size_t k : shown) re.push_back(v[k].real()), im.push_back(v[k].imag());
  return [v = std::move(v), t, r = float_widths(re, t), i = float_widths(im, t, true)](std::size_t k) {
    std::string imaginary = format_float(v[k].imag(), t, i);
    imaginary.insert(imaginary.find_last_not_of(' ') + 1, "j");
    return format_float(v[k].real(), t, r) + imaginary;
  };
}

Formatter formatter(const Array& x, const std::vector<std::size_t>& shown) {
  const DType t = x.dtype();
  if (t == DType::bool_)
    return [v = x.to_vector<std::uint8_t>(Where())](std::size_t k) {
      return std::string(v[k] ? " True" : "False");
    };
  if (t == DType::uint64) return integer_formatter<std::uint64_t>(x, shown);
  if (is_integer(t)) return integer_formatter<std::int64_t>(x, shown);
  if (is_complex(t)) return complex_formatter(x, shown);
  auto v = x.to_vector<double>(Where());
  std::vector<double> visible;
  visible.reserve(shown.size());
  for (std::size_t k : shown) visible.push_back(v[k]);
  return
      [v = std::move(v), t, w = float_widths(visible, t)](std::size_t k) { return format_float(v[k], t, w); };
}

// ---------------------------------------------------------------- brackets and lines
class ArrayPrinter {
 public:
  ArrayPrinter(const Shape& shape, bool summary) : shape_(shape), summary_(summary) {}

  /// The printed indices along dimension d; -1 is the gap.
  std::vector<std::int64_t> positions(std::size_t d) const {
    std::vector<std::int64_t> r;
    const bool gap = summary_ && shape_[d] > 2 * thread_format().edge_items;
    for (std::int64_t k = 0; k < shape_[d]; k++) {
      if (gap && k == thread_format().edge_items) {
        r.push_back(-1);
        k = shape_[d] - thread_format().edge_items;
      }
      r.push_back(k);
    }
    return r;
  }
  /// All printed elements.
  std::vector<std::size_t> shown() const {
    std::vector<std::size_t> r{0};
    for (std::size_t d = 0; d < shape_.size(); d++) {
      std::vector<std::size_t> next;
      for (std::size_t base : r)
        for (std::int64_t k : positions(d))
          if (k >= 0)
            next.push_back(base * static_cast<std::size_t>(shape_[d]) + static_cast<std::size_t>(k));
      r = std::move(next);
    }
    return r;
  }
  std::string print(const Formatter& element) const {
    return block(element, 0, 0, " ", thread_format().line_width);
  }

 private:
  // Dimensions from d on at flat position `base`; later lines start with `indent`, lines are shorter than `width`.
  std::string block(const Formatter& element, std::size_t d, std::size_t base, const std::string& indent,
                    int width) const {
    if (d + 1 == shape_.size()) return "[" + row(element, base, indent, width) + "]";
    std::string s;
    const std::string separator(shape_.size() - d - 1, '\n');
    for (std::int64_t k : positions(d)) {
      if (!s.empty()) s += separator + indent;
      s += k < 0 ? "..."
                 : block(element, d + 1,
                         base * static_cast<std::size_t>(shape_[d]) + static_cast<std::size_t>(k),
                         indent + " ", width - 1);
    }
    return "[" + s + "]";
  }
  std::string row(const Formatter& element, std::size_t base, const std::string& indent, int width) const {
    std::string done, line = indent;
    const auto limit = static_cast<std::size_t>(std::max(width - 1, 0));  // room for the bracket
    bool first = true;
    for (std::int64_t k : positions(shape_.size() - 1)) {
      const std::string word =
          k < 0 ? "..."
                : element(base * static_cast<std::size_t>(shape_.back()) + static_cast<std::size_t>(k));
      if (!first) line += " ";
      first = false;
      if (line.size() + word.size() > limit && line.size() > indent.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        done += line + "\n";
        line = indent;
      }
      line += word;
    }
    return (done + line).substr(indent.size());
  }
  const Shape& shape_;
  bool summary_;
};

std::string float_text(double v, DType t) {
  if (!std::isfinite(v)) return not_finite(v);
  if (v == 0 || (std::abs(v) >= 1e-4 && std::abs(v) < exponent_from(t, 1e16))) {
    const std::string s = positional(v, t, 1000);
    return s.back() == '.' ? s + "0" : s;
  }
  const Scientific s = scientific(v, t, 1000);
  return s.whole + (s.fraction.empty() ? "" : "." + s.fraction) + "e" + s.exponent;
}
// `(1+2j)`: integral parts without a point; a zero real part is omitted.
std::string complex_text(std::complex<double> z, DType t) {
  const auto short_text = [&](double v) {
    std::string s = float_text(v, t);
    return s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
  };
  if (z.real() == 0 && !std::signbit(z.real())) return short_text(z.imag()) + "j";
  return "(" + short_text(z.real()) + with_sign(short_text(z.imag())) + "j)";
}

// A scalar as in Python: all digits.
std::string scalar_text(const Array& x) {
  const DType t = x.dtype();
  if (t == DType::bool_) return x.to_vector<std::uint8_t>(Where())[0] ? "True" : "False";
  if (t == DType::uint64) return std::to_string(x.to_vector<std::uint64_t>(Where())[0]);
  if (is_integer(t)) return std::to_string(x.to_vector<std::int64_t>(Where())[0]);
  if (is_complex(t)) return complex_text(x.to_vector<std::complex<double>>(Where())[0], part_type(t));
  return float_text(x.to_vector<double>(Where())[0], t);
}

}  // namespace

static std::string printed(const ShardedArray& x, const char* function) {
  if (!x.has_value()) return "none";
  const Shape& shape = type_of(x, function).shape;
  force(x, function);
  if (shape.empty()) return scalar_text(x);
  const std::int64_t size = num_elements(shape);
  if (size == 0) return "[]";
  const ArrayPrinter printer(shape, size > thread_format().threshold);
  return printer.print(formatter(x, printer.shown()));
}

print_options::print_options(const ArrayFormat& wanted, Where w) : previous_(thread_format()) {
  const Site site(w, "print_options");
  if (wanted.precision < 0 || wanted.precision > 100 || wanted.edge_items < 1 || wanted.line_width < 1 ||
      wanted.threshold < 0)
    throw Error(fmt::format(
        "print_options: precision {}, threshold {}, edge_items {}, line_width {}. A number has 0 to 100 "
        "digits after the point, an end and a line have something, no threshold is negative. Correct them.",
        wanted.precision, wanted.threshold, wanted.edge_items, wanted.line_width));
  thread_format() = wanted;
}
print_options::~print_options() { thread_format() = previous_; }

std::string to_string(const ShardedArray& x, Where w) {
  const Site site(w, "to_string");
  return printed(x, "to_string");
}
// operator<< cannot pass a line: uses that of the array.
std::ostream& operator<<(std::ostream& os, const ShardedArray& x) {
  const Site site(x.has_value() ? Where(x.node()->where) : Where(), "<<");
  return os << printed(x, "<<");
}

namespace {

// The placement of an array, if it can be known before compiling.
struct FuturePlace {
  const Layout* layout = nullptr;
  const Mesh* mesh = nullptr;
  int nodes_left = 64;  // limits the number of inspected nodes

  bool take(const Layout* l, const Mesh* m) {
    if (layout && layout != l) return false;
    layout = l;
    if (!mesh) mesh = m;
    return true;
  }
  // False if unknown. Literals, and what is made of them, can be anywhere.
  bool add(const Array& a) {
    const Node& n = *a.node();
    if (--nodes_left < 0) return false;
    if (is_literal(n)) return true;
    if (const Value* v = n.out()[a.index()].value.get())  // evaluated, or a placeholder with a placement
      return v->number || take(v->layout, mesh_of(v->sharding));
    if (n.evaluated()) return false;
    const Attrs& attrs = n.attrs();
    if (n.op->form == Form::constraint && attrs.lo.empty() && attrs.hi.empty())
      return take(layout_of(*attrs.sharding, static_cast<int>(n.type().shape.size())),
                  mesh_of(*attrs.sharding));
    if (n.op->form == Form::map) return is_literal(*n.in()[0].node());
    // Results of partial sums are mostly combined, so their placement is unknown.
    return is_elementwise(n.op->form) && !n.in().empty() &&
           std::all_of(n.in().begin(), n.in().end(), [&](const Array& x) { return add(x); }) &&
           (!layout || layout->unreduced().empty());
  }
};

}  // namespace

std::string ShardedArray::type_string(Where w) const {
  const Type& t = type("type_string", w);
  FuturePlace place;
  const std::lock_guard lock(graph_mutex());
  if (!place.add(*this) || !place.layout) return to_string(t);
  return shardarray::type_string(t.dtype, t.shape, *place.layout, place.mesh);
}

}  // namespace shardarray
