#include <vector>
#include <map>
#include <object>

template <typename T> struct Box { std::map<int, std::vector<T>> items; };

int main() { return static_cast<int>(Box<int>{}.items.size() < 3); }
