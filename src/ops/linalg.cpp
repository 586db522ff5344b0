// Products: the op dot, and matmul, dot, tensordot and einsum in terms of it. All are sums over letters of two operands.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/count_text.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "ops/contraction_order.h"
#include "ops/rules.h"
#include "shardarray/ops.h"

namespace shardarray {

using namespace rules;

static Types dot_type(const Call& c) {
  const Rule r = einsum_rule(c, c.attrs->letters);
  if (c.in[0].dtype != c.in[1].dtype || c.in[0].dtype == DType::bool_)
    throw InternalError(fmt::format("dot: operands {} and {}. They must be numbers of one dtype.",
                                    to_string(c.in[0]), to_string(c.in[1])));
  const Letters l = split_letters(c.attrs->letters);
  for (char letter : l.in[0] + l.in[1]) {
    auto has = [&](const std::string& s) { return s.find(letter) != std::string::npos; };
    if (has(l.in[0]) + has(l.in[1]) + has(l.out) < 2)
      throw InternalError(fmt::format("dot: letter '{}' of \"{}\" stands in one term. Sum it before.", letter,
                                      c.attrs->letters));
  }
  Type t{{}, c.in[0].dtype, c.in[0].weak && c.in[1].weak};
  for (const DimFactors& d : r.results[0]) t.shape.push_back(r.factors[static_cast<std::size_t>(d[0])].size);
  return {t};
}

static Batched dot_batch(const BatchArgs& b) {
  const std::string& letters = b.node.attrs().letters;
  const Letters l = split_letters(letters);
  char fresh = 'a';
  while (letters.find(fresh) != std::string::npos) fresh++;
  auto term = [&](int k) {
    return (b.mapped[static_cast<std::size_t>(k)] ? std::string(1, fresh) : "") +
           l.in[static_cast<std::size_t>(k)];
  };
  return mapped({primitive::dot(term(0) + "," + term(1) + "->" + fresh + l.out, b.in[0], b.in[1])});
}

// attrs.letters: each letter is in at least two of the three terms, and at most once in each.
SHARDARRAY_OP op_dot{
    .name = "dot",
    .form = Form::gemm,
    .rule = [](const Call& c) { return einsum_rule(c, c.attrs->letters); },
    .type = dot_type,
    .linearity = each_of_product,
    .jvp =
        [](const JvpArgs& v) {
          const std::string& l = v.node.attrs().letters;
          const auto& t = v.tangents;
          return Arrays{add_or(t[0].has_value() ? primitive::dot(l, t[0], v.in[1]) : Array(),
                               t[1].has_value() ? primitive::dot(l, v.in[0], t[1]) : Array())};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Letters l = split_letters(t.node.attrs().letters);
          const Array& g = t.cotangents[0];
          return Arrays{
              t.linear[0] ? primitive::dot(l.out + "," + l.in[1] + "->" + l.in[0], g, t.in[1]) : Array(),
              t.linear[1] ? primitive::dot(l.in[0] + "," + l.out + "->" + l.in[1], t.in[0], g) : Array()};
        },
    .batch = dot_batch,
    .on_parts = complex_ops::of_products<op_dot>};

namespace {

// An operand with a letter per dimension.
struct Term {
  Array x;
  std::string letters;
};
bool has(const std::string& s, char c) { return s.find(c) != std::string::npos; }

// After the letters come other characters: two operands of maximum rank have more dimensions than the alphabet has letters.
char letter(std::size_t k) {
  return static_cast<char>(k < 26 ? 'a' + k : k < 52 ? 'A' + (k - 26) : '0' + (k - 52));
}
std::string letters_from(std::size_t first, std::size_t count) {
  std::string s;
  for (std::size_t k = 0; k < count; k++) s += letter(first + k);
  return s;
}

// Sums over the letters not in `keep`.
Term summed(Term t, const std::string& keep) {
  Shape dims;
  std::string rest;
  for (std::size_t d = 0; d < t.letters.size(); d++) {
    if (has(keep, t.letters[d])) rest += t.letters[d];
    else dims.push_back(static_cast<std::int64_t>(d));
  }
  return {primitive::reduce(Reducer::sum, t.x, dims), rest};
}

// Transposes to the order of `order`, which has the same letters.
Array ordered(const Term& t, const std::string& order) {
  Shape perm;
  for (char c : order) perm.push_back(static_cast<std::int64_t>(t.letters.find(c)));
  return primitive::transpose(t.x, perm);
}

// Broadcasts to the letters of `all`.
Array aligned(const Term& t, const std::string& all, const Shape& shape) {
  std::string mine;
  Shape dims;
  for (std::size_t d = 0; d < all.size(); d++)
    if (has(t.letters, all[d])) {
      mine += all[d];
      dims.push_back(static_cast<std::int64_t>(d) - static_cast<std::int64_t>(all.size()));
    }
  return primitive::broadcast(ordered(t, mine), shape, dims);
}

// The product with those letters of `keep` that are in a or b; in the order of `out` if the letters are the same.
Term product(const Term& a0, const Term& b0, const std::string& keep, const std::string& out) {
  const Term a = summed(a0, keep + b0.letters), b = summed(b0, keep + a0.letters);
  std::string shared, only_a, only_b;
  bool contracts = false;
  for (char c : a.letters) {
    if (has(keep, c)) (has(b.letters, c) ? shared : only_a) += c;
    else contracts = true;
  }
  for (char c : b.letters)
    if (has(keep, c) && !has(a.letters, c)) only_b += c;
  std::string result = shared + only_a + only_b;
  if (std::is_permutation(result.begin(), result.end(), out.begin(), out.end())) result = out;
  if (contracts) return {primitive::dot(a.letters + "," + b.letters + "->" + result, a.x, b.x), result};
  Shape shape;
  for (char c : result) {
    const Term& t = has(a.letters, c) ? a : b;
    shape.push_back(t.x.shape()[t.letters.find(c)]);
  }
  return {primitive::mul(aligned(a, result, shape), aligned(b, result, shape)), result};
}

// Products of bools are computed in int32.
Array back_to(WeakType t, const Array& x) {
  return t.dtype == DType::bool_ ? primitive::cast(x, DType::bool_) : x;
}

Array two_term_product(const char* function, const Array& a, const std::string& la, const Array& b,
                       const std::string& lb, const std::string& out) {
  const WeakType t = api::promoted(function, {&a, &b}), c = api::counted(t);
  return back_to(t, product({api::cast(a, c), la}, {api::cast(b, c), lb}, out, out).x);
}

}  // namespace

// ---------------------------------------------------------------- matmul
namespace {

// An operand of a batched product without the size-1 dimensions to be broadcast, so that their letter is only in the other operand and the
// result.
Term batched(const Array& x, std::size_t matrix_dims, const std::string& matrix, const Shape& batch) {
  const Shape& s = x.shape();
  const std::size_t own = s.size() - matrix_dims, skipped = batch.size() - own;
  Shape kept;
  std::string letters;
  for (std::size_t d = 0; d < own; d++)
    if (s[d] == batch[skipped + d]) {
      kept.push_back(s[d]);
      letters += letter(3 + skipped + d);
    }
  for (std::size_t d = own; d < s.size(); d++) kept.push_back(s[d]);
  return {primitive::reshape(x, kept), letters + matrix};
}

}  // namespace

Array matmul_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "matmul");
  const Shape &sa = type_of(a, "matmul").shape, &sb = type_of(b, "matmul").shape;
  if (sa.empty() || sb.empty())
    throw ShapeError(
        fmt::format("matmul: operands {} and {}. Scalars have no dimension to contract. Use multiply.",
                    to_string(type_of(a)), to_string(type_of(b))));
  const std::size_t da = std::min<std::size_t>(2, sa.size()), db = std::min<std::size_t>(2, sb.size());
  if (const std::int64_t k = sb[sb.size() - db]; sa.back() != k)
    throw ShapeError(fmt::format(
        "matmul: {} @ {} contracts {} with {}. The last dimension of the left operand must equal "
        "the {} of the right one. {}.",
        to_string(type_of(a)), to_string(type_of(b)), sa.back(), k, db == 1 ? "only one" : "last but one",
        da == 2 && sa[sa.size() - 2] == k   ? "Transpose the left operand"
        : db == 2 && sb.back() == sa.back() ? "Transpose the right operand"
                                            : "Give operands that agree there"));
  const Shape batches[] = {Shape(sa.begin(), sa.end() - da), Shape(sb.begin(), sb.end() - db)};
  const Shape batch = api::common_shape("matmul", batches);
  const std::string m = da == 2 ? "a" : "", n = db == 2 ? "c" : "";
  const Term ta = batched(a, da, m + "b", batch), tb = batched(b, db, "b" + n, batch);
  return two_term_product("matmul", ta.x, ta.letters, tb.x, tb.letters,
                          letters_from(3, batch.size()) + m + n);
}

// ---------------------------------------------------------------- tensordot, dot
Array tensordot_fn::operator()(const Array& a, const Array& b, const Shape& axes_a, const Shape& axes_b,
                               Where w) const {
  const Site site(w, "tensordot");
  const Shape &sa = type_of(a, "tensordot").shape, &sb = type_of(b, "tensordot").shape;
  api::axes_of("tensordot", axes_a, sa);
  api::axes_of("tensordot", axes_b, sb);
  std::string la = letters_from(0, sa.size()), lb = letters_from(sa.size(), sb.size()), out = la + lb;
  bool fits = axes_a.size() == axes_b.size();
  for (std::size_t k = 0; fits && k < axes_a.size(); k++) {
    const std::size_t da = api::axis_of("tensordot", axes_a[k], sa),
                      db = api::axis_of("tensordot", axes_b[k], sb);
    fits = sa[da] == sb[db];
    std::erase(out, la[da]);
    std::erase(out, lb[db]);
    lb[db] = la[da];
  }
  if (!fits)
    throw ShapeError(
        fmt::format("tensordot: axes {} of {} with axes {} of {}. Paired axes must have equal sizes. Give "
                    "pairs that fit.",
                    to_string(axes_a), to_string(type_of(a)), to_string(axes_b), to_string(type_of(b))));
  return two_term_product("tensordot", a, la, b, lb, out);
}
Array tensordot_fn::over_last(const Array& a, const Array& b, std::int64_t axes, Where w) const {
  const Site site(w, "tensordot");
  const auto rank = static_cast<std::int64_t>(type_of(a, "tensordot").shape.size());
  if (axes < 0 || axes > rank || axes > static_cast<std::int64_t>(type_of(b, "tensordot").shape.size()))
    throw ShapeError(fmt::format("tensordot: {} of {} and {}. Both operands must have that many. Give fewer.",
                                 count_text(axes, "axis"), to_string(type_of(a)), to_string(type_of(b))));
  Shape axes_a, axes_b;
  for (std::int64_t k = 0; k < axes; k++) {
    axes_a.push_back(rank - axes + k);
    axes_b.push_back(k);
  }
  return (*this)(a, b, axes_a, axes_b, w);
}
Array dot_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "dot");
  const Shape &sa = type_of(a, "dot").shape, &sb = type_of(b, "dot").shape;
  if (sa.empty() || sb.empty()) return multiply(a, b);
  const std::int64_t axis = sb.size() == 1 ? -1 : -2;
  if (sa.back() != sb[sb.size() - (sb.size() == 1 ? 1 : 2)])
    throw ShapeError(fmt::format(
        "dot: {} with {}. The last dimension of the left operand must equal the {} of the right one. "
        "Transpose an operand.",
        to_string(type_of(a)), to_string(type_of(b)), sb.size() == 1 ? "only one" : "last but one"));
  return tensordot(a, b, Shape{-1}, Shape{axis});
}

// ---------------------------------------------------------------- einsum
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw ShapeError(fmt::format("einsum: \"{}\": {}", text, what));
}

// The terms on both sides. Without "->" the result has the ellipsis, then the letters that occur once, sorted.
Letters parsed(const std::string& text, std::size_t operands) {
  std::string s = text;
  std::erase(s, ' ');
  std::string names = s.substr(0, s.find("->"));
  const bool is_explicit = names.size() < s.size(), dotted = names.find("...") != std::string::npos;
  std::erase_if(names, [](char c) { return c == ',' || c == '.'; });
  if (!is_explicit) {
    std::string once;
    for (char c : names)
      if (std::count(names.begin(), names.end(), c) == 1) once += c;
    std::sort(once.begin(), once.end());
    s += std::string("->") + (dotted ? "..." : "") + once;
  }
  Letters l = split_letters(s);
  if (l.in.size() != operands)
    refuse(text, fmt::format("{} for {}. Every operand needs one. Separate terms by commas.",
                             count_text(l.in.size(), "term"), count_text(operands, "operand")));
  return l;
}

void check_letters(const std::string& text, const Letters& l) {
  std::string names;
  for (const std::string& term : l.in) names += term;
  for (char c : names + l.out)
    if (!std::isalpha(static_cast<unsigned char>(c)))
      refuse(text, fmt::format("'{}' is no letter. A dimension is one letter, \"...\" stands for leading "
                               "ones. Change the text.",
                               c));
  for (char c : l.out)
    if (!has(names, c) || std::count(l.out.begin(), l.out.end(), c) > 1)
      refuse(text, fmt::format("result letter '{}' stands {}. A result letter stands once there, and in an "
                               "operand. Change the result.",
                               c, has(names, c) ? "twice" : "in no operand"));
}

// Replaces "..." by unused letters. Size-1 dimensions of an operand that are broadcast are removed.
void expand_ellipses(const std::string& text, Letters& l, std::vector<Array>& operands) {
  const std::string dots = "...";
  auto dotted = [&](const std::string& term) { return term.find(dots) != std::string::npos; };
  std::vector<Shape> shapes;  // sizes of the dimensions under the dots
  for (std::size_t k = 0; k < operands.size(); k++) {
    const Shape& s = type_of(operands[k], "einsum").shape;
    const std::size_t named = dotted(l.in[k]) ? l.in[k].size() - 3 : s.size();
    shapes.push_back(Shape());
    for (std::size_t d = named; d < s.size(); d++) shapes.back().push_back(s[l.in[k].find(dots) + d - named]);
  }
  const Shape all_sizes = api::common_shape("einsum", shapes);
  std::string fresh;
  for (std::size_t k = 0; fresh.size() < all_sizes.size() && k < 52; k++)
    if (!has(text, letter(k))) fresh += letter(k);
  for (std::size_t k = 0; k < operands.size(); k++) {
    if (!dotted(l.in[k])) continue;
    const std::size_t at = l.in[k].find(dots), own = shapes[k].size(), skipped = all_sizes.size() - own;
    Shape shape = operands[k].shape();
    std::string mine;
    for (std::size_t d = own; d-- > 0;) {
      if (shapes[k][d] == all_sizes[skipped + d]) mine.insert(0, 1, fresh[skipped + d]);
      else shape.erase(at + d);
    }
    operands[k] = primitive::reshape(operands[k], shape);
    l.in[k].replace(at, 3, mine);
  }
  if (dotted(l.out)) l.out.replace(l.out.find(dots), 3, fresh);
}

// Removes size-1 dimensions whose letter has another size in other operands: they are broadcast.
void drop_ones(Letters& l, std::vector<Array>& operands) {
  std::int64_t size[128];
  std::fill(std::begin(size), std::end(size), 1);
  const auto each = [&](const auto& f) {
    for (std::size_t k = 0; k < operands.size(); k++)
      if (const Shape& shape = operands[k].shape(); shape.size() == l.in[k].size())
        for (std::size_t d = shape.size(); d-- > 0;) f(k, d, l.in[k][d], shape[d]);
  };
  each([&](std::size_t, std::size_t, char c, std::int64_t n) {
    if (n != 1) size[static_cast<unsigned char>(c)] = n;
  });
  std::vector<std::pair<std::size_t, std::size_t>>
      ones;  // (operand, dimension); last dimensions of an operand first
  each([&](std::size_t k, std::size_t d, char c, std::int64_t n) {
    if (n == 1 && size[static_cast<unsigned char>(c)] != 1 && std::ranges::count(l.in[k], c) == 1)
      ones.emplace_back(k, d);
  });
  for (const auto& [k, d] : ones) {
    Shape shape = operands[k].shape();
    shape.erase(d);
    operands[k] = primitive::reshape(operands[k], shape);
    l.in[k].erase(d, 1);
  }
}

void check_sizes(const std::string& text, const Letters& l, const std::vector<Array>& operands) {
  std::int64_t size[128];
  std::fill(std::begin(size), std::end(size), -1);
  for (std::size_t k = 0; k < operands.size(); k++) {
    const Shape& shape = type_of(operands[k], "einsum").shape;
    if (shape.size() != l.in[k].size())
      refuse(
          text,
          fmt::format(
              "operand {} is {} for term \"{}\". A term has one letter per dimension. Add or remove letters.",
              k, to_string(type_of(operands[k])), l.in[k]));
    for (std::size_t d = 0; d < shape.size(); d++) {
      std::int64_t& known = size[static_cast<unsigned char>(l.in[k][d])];
      if (known >= 0 && known != shape[d])
        refuse(text, fmt::format("letter '{}' is {} and {}. One letter has one size. Check operand {}, {}.",
                                 l.in[k][d], known, shape[d], k, to_string(type_of(operands[k]))));
      known = shape[d];
    }
  }
}

// Repeated letters in a term: takes the diagonal by masking and summing one of them.
Term on_diagonal(Term t) {
  for (std::size_t d = 0; d < t.letters.size(); d++) {
    const std::size_t first = t.letters.find(t.letters[d]);
    if (first == d) continue;
    const Shape& shape = t.x.shape();
    const Array same = primitive::binary(op_eq, primitive::iota(shape, first, DType::int32),
                                         primitive::iota(shape, d, DType::int32));
    t.x = primitive::reduce(Reducer::sum, primitive::select(same, t.x, zeros_of(type_of(t.x))),
                            {static_cast<std::int64_t>(d)});
    t.letters.erase(d--, 1);
  }
  return t;
}

// The order of multiplications.
std::vector<std::pair<std::size_t, std::size_t>> order_of(const std::vector<Term>& terms,
                                                          const std::string& result) {
  LetterSizes sizes{};
  std::vector<std::string> letters;
  letters.reserve(terms.size());
  for (const Term& t : terms) {
    letters.push_back(t.letters);
    for (std::size_t d = 0; d < t.letters.size(); d++)
      sizes[static_cast<unsigned char>(t.letters[d])] = static_cast<double>(t.x.shape()[d]);
  }
  return contraction_order(std::move(letters), result, sizes);
}

}  // namespace

Array einsum_fn::contract(const EinsumText& t, const std::vector<Array>& given) const {
  const Site site(t.where, "einsum");
  std::vector<Array> operands = given;
  Letters l = parsed(t.text, operands.size());
  expand_ellipses(t.text, l, operands);
  check_letters(t.text, l);
  drop_ones(l, operands);
  check_sizes(t.text, l, operands);
  WeakType type = api::weak_type_of(operands[0], "einsum");
  for (const Array& x : operands) type = promote_types(type, api::weak_type_of(x, "einsum"));
  const WeakType computed = api::counted(type);
  std::vector<Term> terms;
  for (std::size_t k = 0; k < operands.size(); k++)
    terms.push_back(on_diagonal({api::cast(operands[k], computed), l.in[k]}));
  for (const auto& [i, j] : order_of(terms, l.out)) {
    std::string keep = l.out;
    for (std::size_t k = 0; k < terms.size(); k++)
      if (k != i && k != j) keep += terms[k].letters;
    terms[i] = product(terms[i], terms[j], keep, l.out);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
  }
  return back_to(type, ordered(summed(terms[0], l.out), l.out));
}

}  // namespace shardarray
