#pragma once

#include <cstddef>

namespace coir::detail {

// Lists of things that hold their links themselves: no list allocates, each step is O(1), and nothing is synchronised.
// The caller keeps a linked object in place until it has been taken out.
//
//   IntrusiveStack   one pointer     last in, first out
//   IntrusiveQueue   two pointers    first in, first out
//   IntrusiveSet     one pointer     no order; any member may leave
//   IntrusiveList    two pointers    in order, with two ends; any member may leave
//   CountedList      three words     a list that knows its size
//
// `Links` tells which members of T are the links; those of a set and of a list are `next` and `previous`, which also
// serve to walk it. T may be incomplete where the list is declared.
template <class T>
struct NextAndPrevious {
  static T*& next(T& one) noexcept { return one.next; }
  static T*& previous(T& one) noexcept { return one.previous; }
};

template <class T, class Links = NextAndPrevious<T>>
class IntrusiveStack {
 public:
  bool empty() const noexcept { return top_ == nullptr; }
  T* top() const noexcept { return top_; }

  void push(T& one) noexcept {
    Links::next(one) = top_;
    top_ = &one;
  }

  // pop takes the newest, or returns null.
  T* pop() noexcept {
    T* const one = top_;
    if (one != nullptr) top_ = Links::next(*one);
    return one;
  }

 private:
  T* top_ = nullptr;
};

template <class T, class Links = NextAndPrevious<T>>
class IntrusiveQueue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  T* front() const noexcept { return first_; }
  // back is the newest. It is null if the queue was never filled, and invalid once the queue was emptied.
  T* back() const noexcept { return last_; }

  void push(T& one) noexcept {
    Links::next(one) = nullptr;
    (first_ != nullptr ? Links::next(*last_) : first_) = &one;
    last_ = &one;
  }

  // pop takes the oldest, or returns null. Its link stays what it was.
  T* pop() noexcept {
    T* const one = first_;
    if (one != nullptr) first_ = Links::next(*one);
    return one;
  }

  // pop_after takes the one right behind `one`, which is not the last.
  T* pop_after(T& one) noexcept {
    T* const taken = Links::next(one);
    Links::next(one) = Links::next(*taken);
    if (last_ == taken) last_ = &one;
    return taken;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

template <class T, class Links = NextAndPrevious<T>>
class IntrusiveSet {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  T* first() const noexcept { return first_; }

  void add(T& one) noexcept {
    Links::previous(one) = nullptr;
    Links::next(one) = first_;
    if (first_ != nullptr) Links::previous(*first_) = &one;
    first_ = &one;
  }

  void remove(T& one) noexcept {
    T* const next = Links::next(one);
    T* const previous = Links::previous(one);
    (previous != nullptr ? Links::next(*previous) : first_) = next;
    if (next != nullptr) Links::previous(*next) = previous;
  }

 private:
  T* first_ = nullptr;
};

template <class T, class Links = NextAndPrevious<T>>
class IntrusiveList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  T* front() const noexcept { return first_; }
  T* back() const noexcept { return last_; }

  void push_back(T& one) noexcept {
    Links::next(one) = nullptr;
    Links::previous(one) = last_;
    (last_ != nullptr ? Links::next(*last_) : first_) = &one;
    last_ = &one;
  }

  void push_front(T& one) noexcept {
    Links::previous(one) = nullptr;
    Links::next(one) = first_;
    (first_ != nullptr ? Links::previous(*first_) : last_) = &one;
    first_ = &one;
  }

  void remove(T& one) noexcept {
    T* const next = Links::next(one);
    T* const previous = Links::previous(one);
    (previous != nullptr ? Links::next(*previous) : first_) = next;
    (next != nullptr ? Links::previous(*next) : last_) = previous;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

template <class T, class Links = NextAndPrevious<T>>
class CountedList : IntrusiveList<T, Links> {
  using List = IntrusiveList<T, Links>;

 public:
  using List::empty;
  using List::front;
  std::size_t size() const noexcept { return size_; }

  void push_back(T& one) noexcept {
    List::push_back(one);
    ++size_;
  }

  void remove(T& one) noexcept {
    List::remove(one);
    --size_;
  }

 private:
  std::size_t size_ = 0;
};

}  // namespace coir::detail
