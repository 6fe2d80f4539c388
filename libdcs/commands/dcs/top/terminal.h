#pragma once
// The terminal as a screen of lines and keys; as it was before, at the end and while the user has stopped us.
#include <csignal>
#include <string>
#include <string_view>
#include <termios.h>
#include <vector>

#include "base/fd.h"

namespace dcs::commands::top {

struct Size {
    std::size_t rows = 24, columns = 80;
    bool operator==(const Size &) const = default;
};

// The first `columns` columns of a line; sequences that set colours take none.
std::string cut(std::string_view line, std::size_t columns);

enum class Key { none, leave, up, down, page_up, page_down, home, end, next, first, second, third, fourth, fifth };
// Takes the first key away; `none`: it means nothing here.
Key take_key(std::string_view &typed);

class Terminal {
public:
    Terminal();
    ~Terminal();
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;

    Size size() const;
    // Writes the lines that differ from those there.
    void draw(const std::vector<std::string> &lines);
    // Until a key, a new size, a signal that ends us (`leave`), or until `news` is readable, which it reads.
    std::vector<Key> wait(int news);

private:
    void enter();
    void restore();
    void take_signal(std::vector<Key> &keys);

    Fd signals_;
    termios before_ = {};
    bool keys_ = false;
    Size drawn_size_ = {0, 0};
    std::vector<std::string> drawn_;
};

}  // namespace dcs::commands::top
