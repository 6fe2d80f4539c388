#include "grainserver/container/words.h"

#include <cerrno>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

namespace dcs::container {
namespace {

void add(std::string &bytes, const std::string &word) { bytes.append(word).push_back('\0'); }
void add(std::string &bytes, const std::vector<std::string> &words) {
    add(bytes, std::to_string(words.size()));
    for (const std::string &word : words) add(bytes, word);
}

struct Reading {
    const std::string &bytes;
    std::size_t at = 0;
    bool good = true;

    std::string word() {
        const std::size_t end = bytes.find('\0', at);
        good = good && end != std::string::npos;
        if (!good) return "";
        std::string found = bytes.substr(at, end - at);
        at = end + 1;
        return found;
    }
    unsigned long number() { return std::strtoul(word().c_str(), nullptr, 10); }
    void words(std::vector<std::string> &to) {
        for (unsigned long left = number(); good && left > 0; --left) to.push_back(word());
    }
};

}  // namespace

std::vector<char *> pointers(const std::vector<std::string> &words) {
    std::vector<char *> list;
    for (const std::string &word : words) list.push_back(const_cast<char *>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

int pack(const Words &words) {
    std::string bytes;
    add(bytes, std::to_string(words.rungs));
    add(bytes, std::to_string(words.umask));
    add(bytes, words.directory);
    add(bytes, words.program);
    add(bytes, words.argv);
    add(bytes, words.env);
    const int fd = ::memfd_create("dcs_container", MFD_CLOEXEC);
    for (std::size_t done = 0; fd >= 0 && done < bytes.size();) {
        const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno != EINTR) return -1;
        done += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    return fd;
}

bool unpack(int fd, Words &words) {
    std::string bytes;
    char buffer[65536];
    for (ssize_t n = 0; (n = ::pread(fd, buffer, sizeof buffer, static_cast<off_t>(bytes.size()))) > 0;)
        bytes.append(buffer, static_cast<std::size_t>(n));
    Reading reading{bytes};
    words.rungs = static_cast<std::uint32_t>(reading.number());
    words.umask = static_cast<std::uint32_t>(reading.number());
    words.directory = reading.word();
    words.program = reading.word();
    reading.words(words.argv);
    reading.words(words.env);
    return reading.good && !words.argv.empty();
}

}  // namespace dcs::container
