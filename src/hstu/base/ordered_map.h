// The members of a JSON object, in the order in which they were added.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include <nlohmann/ordered_map.hpp>

namespace hstu {

// nlohmann's map with an index of the keys of large objects. Its own compares every key that is read with all
// before it: an object of 2 MB took half a minute, and a server reads what anyone sends.
template <typename Key, typename T, typename Less, typename Allocator>
class OrderedMap : public nlohmann::ordered_map<Key, T, Less, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, Less, Allocator>;

 public:
  using Base::Base;
  using typename Base::const_iterator;
  using typename Base::iterator;
  using typename Base::size_type;
  using typename Base::value_type;

  template <typename K>
  iterator find(const K& key) {
    add_to_index();
    return this->begin() + place(key);
  }
  template <typename K>
  const_iterator find(const K& key) const {
    return this->begin() + place(key);
  }
  template <typename K>
  size_type count(const K& key) const {
    return find(key) == this->end() ? 0 : 1;
  }
  template <typename K>
  std::pair<iterator, bool> emplace(K&& key, T&& value) {
    if (const iterator found = find(key); found != this->end()) return {found, false};
    this->emplace_back(std::forward<K>(key), std::move(value));
    add_to_index();
    return {std::prev(this->end()), true};
  }
  template <typename K>
  T& operator[](K&& key) {
    return emplace(std::forward<K>(key), T{}).first->second;
  }
  std::pair<iterator, bool> insert(const value_type& member) {
    return emplace(member.first, T(member.second));
  }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) insert(*first);
  }
  // What follows a member that is erased moves.
  template <typename... Arguments>
  auto erase(Arguments&&... arguments) {
    places_.clear();
    return Base::erase(std::forward<Arguments>(arguments)...);
  }
  void clear() {
    places_.clear();
    Base::clear();
  }

 private:
  static constexpr std::size_t kFew = 32;  // members that are found faster without an index

  void add_to_index() {
    if (this->size() <= kFew) return;
    for (std::size_t i = places_.size(); i < this->size(); ++i)
      places_.try_emplace(Base::Container::operator[](i).first, static_cast<std::ptrdiff_t>(i));
  }
  // Of the member with the key; the number of members if there is none.
  template <typename K>
  std::ptrdiff_t place(const K& key) const {
    if (!places_.empty() && places_.size() == this->size()) {
      const auto found = places_.find(key);
      return found == places_.end() ? std::ssize(*this) : found->second;
    }
    return std::find_if(this->begin(), this->end(), [&](const value_type& m) { return m.first == key; }) -
           this->begin();
  }

  std::map<Key, std::ptrdiff_t, std::less<>> places_;  // of all members, or of none
};

}  // namespace hstu
