// Erased: what std::function does, with a third of the code to compile for each function: tables of tests hold thousands.
#pragma once
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace shardarray::testing {

template <class Signature> class Erased;
/// Any function; copies share it.
template <class R, class... A> class Erased<R(A...)> {
 public:
  Erased() = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Erased> && std::is_invocable_r_v<R, std::decay_t<F>&, A...>)
      Erased(F&& f)
      : object_(static_cast<void*>(new std::decay_t<F>(std::forward<F>(f))),
                [](void* p) { delete static_cast<std::decay_t<F>*>(p); }),
        call_([](void* p, A... a) -> R {
          if constexpr (std::is_void_v<R>) (void)(*static_cast<std::decay_t<F>*>(p))(std::forward<A>(a)...);
          else return (*static_cast<std::decay_t<F>*>(p))(std::forward<A>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_.get(), std::forward<A>(a)...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  std::shared_ptr<void> object_;
  R (*call_)(void*, A...) = nullptr;
};

}  // namespace shardarray::testing
