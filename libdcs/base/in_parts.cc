#include "base/in_parts.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace dcs {

void in_parts(std::size_t count, const std::function<void(std::size_t)> &part) {
    constexpr std::size_t most_threads = 4;
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) part(i);
    };
    const std::size_t threads = std::min({count, most_threads, std::size_t{std::thread::hardware_concurrency()}});
    std::vector<std::thread> helpers;
    try {
        while (helpers.size() + 1 < threads) helpers.emplace_back(work);
    } catch (const std::system_error &) {}  // there can be no more threads; this one does their parts
    work();
    for (std::thread &helper : helpers) helper.join();
}

}  // namespace dcs
