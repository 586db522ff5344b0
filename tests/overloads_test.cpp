// Calls that compile: with a line, and of functions of a user's own that have names of the library's.
#include <doctest/doctest.h>

#include <span>

#include "shardarray/shardarray.h"

namespace overloads_test {

namespace sa = shardarray;
using sa::Array;
using sa::Where;

TEST_CASE("overloads: every wrapper's call takes a line as its last argument") {
  const auto one = [](const Array& x) { return x * 2; };
  const auto two = [](const Array& x, const Array& y) { return x + y; };
  const Where constant = Where::here();
  Where w = constant;
  const Where& reference = w;
  const Array x = 3.0;
  const auto f = sa::jit(one);
  const auto g = sa::jit(two);
  const auto value = [](const Array& y) { return y.item<double>(); };
  for (const Array& y : {f(x), f(x, w), f(x, constant), f(x, reference), f(x, Where::here()), f(x, {})})
    CHECK(value(y) == 6);
  for (const Array& y : {g(x, x), g(x, x, w), g(x, x, reference), g(x, x, {})}) CHECK(value(y) == 6);
  CHECK(value(sa::jit([] { return Array(1.0); })(w)) == 1);
  CHECK(value(sa::grad([](const Array& y) { return y * y; })(x, w)) == 6);
  CHECK(value(sa::grad([](const Array& y) { return y * y; })(3.0, reference)) == 6);
  CHECK(value(sa::vmap(one)(sa::ones({1}), w)[0]) == 2);
  CHECK(value(sa::vmap(two)(sa::ones({1}), sa::ones({1}), w)[0]) == 2);
  CHECK(value(sa::checkpoint(one)(x, w)) == 6);
  CHECK(value(sa::pmap(one)(sa::ones({1}), w)[0]) == 2);
  CHECK(value(sa::jacfwd(one)(x, w)) == 2);
  CHECK(value(sa::hessian([](const Array& y) { return y * y; })(x, w)) == 2);
}

// Functions of any arguments are entered with those of the call, once.
TEST_CASE("overloads: functions of any arguments get as many as there are") {
  const auto all = [](auto&&... v) {
    static_assert(sizeof...(v) == 3);
    return (v + ...);
  };
  const Array x = 1.0;
  CHECK(sa::jit(all)(x, x, x).item<double>() == 3);
  CHECK(sa::jit(sa::vmap(all))(sa::ones({2}), sa::ones({2}), sa::ones({2})).to_vector<float>()[1] == 3);
  CHECK(sa::grad(all)(x, x, x).item<double>() == 1);
  struct Either {
    Array operator()(const Array& v) const { return v; }
    Array operator()(const Array& v, double factor) const { return v * factor; }
  };
  CHECK(sa::jit(Either())(x).item<double>() == 1);
  CHECK(sa::jit(Either())(x, 4.0).item<double>() == 4);
}

namespace mine {

struct Point {
  double x, y;
};
class Person {
 public:
  explicit Person(int age) : age_(age) {}
  [[nodiscard]] int age() const { return age_; }

 private:
  int age_;
};
template <class T> struct Net {
  explicit Net(T t) : inner(std::move(t)) {}
  [[nodiscard]] const T& get() const { return inner; }

 private:
  T inner;
};

using namespace shardarray;          // NOLINT(google-build-using-namespace)
using namespace shardarray::random;  // NOLINT(google-build-using-namespace)
template <class T, class F> auto map(const F& f, const std::vector<T>& v) {
  std::vector<decltype(f(v.front()))> r;
  for (const T& p : v) r.push_back(f(p));
  return r;
}
template <class F> double scan(const F& f, double init, const std::vector<Array>& xs) {
  for (const Array& x : xs) init = f(init, x);
  return init;
}
template <class T, class F> std::vector<T> filter(const std::vector<T>& v, const F& f) {
  std::vector<T> r;
  for (const T& x : v)
    if (f(x)) r.push_back(x);
  return r;
}
inline std::vector<int> permutation(std::size_t n) { return std::vector<int>(n); }
inline int categorical(std::span<const double> p) { return static_cast<int>(p.size()); }
template <class T> Net<T> stop_gradient(const Net<T>& n) { return n; }
template <class T> bool all_finite(const Net<T>&) { return true; }

TEST_CASE("overloads: a user's own functions of the library's names are taken where they fit better") {
  CHECK(map([](const auto& p) { return p.x + p.y; }, std::vector<Point>{{1, 2}, {3, 4}}) ==
        std::vector<double>{3, 7});
  const std::vector<Array> arrays{Array(1.0), Array(2.0)};
  CHECK(map([](const auto& a) { return a * 2; }, arrays)[1].item<double>() == 4);
  CHECK(scan([](auto s, const auto& x) { return s + x.template item<double>(); }, 0.5, arrays) == 3.5);
  CHECK(filter(std::vector<Person>{Person(3), Person(5)}, [](const auto& p) { return p.age() > 3; }).size() ==
        1);
  CHECK(permutation(10).size() == 10);
  CHECK(categorical(std::vector<double>{1, 2}) == 2);
  CHECK(stop_gradient(Net<Array>(Array(1.0))).get().item<double>() == 1);
  CHECK(all_finite(Net<Array>(Array(1.0))));
}

}  // namespace mine

}  // namespace overloads_test
