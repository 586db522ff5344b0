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
      : object_(shared(new std::decay_t<F>(std::forward<F>(f)),
                       [](void* p) { delete static_cast<std::decay_t<F>*>(p); })),
        call_([](void* p, A... a) -> R {
          if constexpr (std::is_void_v<R>) (void)(*static_cast<std::decay_t<F>*>(p))(std::forward<A>(a)...);
          else return (*static_cast<std::decay_t<F>*>(p))(std::forward<A>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_->at, std::forward<A>(a)...); }
  explicit operator bool() const { return call_ != nullptr; }

 private:
  // Not a shared_ptr<void>: that is 25 functions to compile for each F.
  struct Object {
    Object(void* p, void (*d)(void*)) : at(p), destroy(d) {}
    Object(const Object&) = delete;
    ~Object() { destroy(at); }
    void* at;
    void (*destroy)(void*);
  };
  static std::shared_ptr<Object> shared(void* at, void (*destroy)(void*)) {
    return std::make_shared<Object>(at, destroy);
  }
  std::shared_ptr<Object> object_;
  R (*call_)(void*, A...) = nullptr;
};

}  // namespace shardarray::testing
