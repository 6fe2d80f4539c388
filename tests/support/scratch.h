#pragma once
// A directory of a test's own, gone at its end with all that is in it.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>

#include "support/catch.h"

namespace dcs::test {

struct Folder {
    Folder() {
        char name[] = "/tmp/dcs-test-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder() { CHECK(std::system(("rm -rf " + path).c_str()) == 0); }

    std::string at(const std::string &name) const { return path + "/" + name; }
    std::string read(const std::string &name) const {
        std::ifstream in(at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void write(const std::string &name, const std::string &text) const {
        std::ofstream out(at(name), std::ios::binary | std::ios::trunc);
        out << text;
        REQUIRE(out.flush());
    }
    void program(const std::string &name, mode_t mode) const {
        write(name, "#!/bin/sh\n");
        REQUIRE(::chmod(at(name).c_str(), mode) == 0);
    }
    void remove(const std::string &name) const { REQUIRE(std::remove(at(name).c_str()) == 0); }
    // Replaces the first `from` in the file; it must be there.
    void edit(const std::string &name, const std::string &from, const std::string &to) const {
        std::string text = read(name);
        const std::size_t found = text.find(from);
        INFO(from << " in " << name);
        REQUIRE(found != std::string::npos);
        write(name, text.replace(found, from.size(), to));
    }

    std::string path;
};

}  // namespace dcs::test
