#include "locks/life_limit.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include "base/planted.h"
#include "base/require.h"
#include "locks/files/world.h"

namespace dcs::locks {
namespace {

// A process that wakes up now and then only to poll does not make progress.
constexpr std::int64_t cpu_share = 100;  // one part in a hundred of one processor
constexpr std::int64_t io_bytes_per_second = 1024;
constexpr std::size_t io_text_max = 4096;

std::int64_t number_after(std::string_view text, std::string_view word) {
    const std::size_t at = text.find(word);
    std::int64_t value = 0;
    if (at != std::string_view::npos) std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
    return value;
}

std::int64_t io_of(const std::string &who) {
    const std::string text = kernel_text("/proc/" + who + "/io", io_text_max);
    return number_after(text, "rchar: ") + number_after(text, "wchar: ");
}

std::int64_t ns_of(const timeval &t) { return t.tv_sec * second + t.tv_usec * 1000; }

}  // namespace

Usage usage_of(RunTree &tree) {
    static const std::int64_t tick = second / ::sysconf(_SC_CLK_TCK);
    Usage sum;
    for (const ProcessStat &p : tree.look().processes) {
        ProcessStat now;
        if (!read_stat(p.pid, now) || now.start_time != p.start_time) continue;
        sum.cpu += static_cast<std::int64_t>(now.user_ticks + now.system_ticks) * tick;
        sum.io += io_of(std::to_string(p.pid));
        sum.wants = sum.wants || now.state == 'R';
    }
    rusage waited_for = {};
    ::getrusage(RUSAGE_CHILDREN, &waited_for);
    sum.cpu += ns_of(waited_for.ru_utime) + ns_of(waited_for.ru_stime);
    sum.io += (waited_for.ru_inblock + waited_for.ru_oublock) * std::int64_t{512};  // without the caller's own reads
    return sum;
}

LifeLimit::LifeLimit(std::int64_t soft, std::int64_t hard)
    : soft_(std::min(soft, hard)), hard_(hard), next_(soft_ == no_limit ? no_limit : soft_ - soft_ / 3) {
    DCS_REQUIRE(soft_ <= hard_, "the soft limit does not exceed the hard one");
}

// Checks are at 2/3, 1, 3/2, 9/4 ... of the soft limit: the previous check is always at the start of the last third.
bool LifeLimit::over(std::int64_t age, const Usage &usage) {
    if (next_ == no_limit || age < next_ || planted("locks.no_expiry")) return false;
    const std::int64_t passed = std::max<std::int64_t>(1, age - last_age_);
    progressing_ =
        usage.wants || usage.cpu - last_.cpu > passed / cpu_share ||
        usage.io - last_.io > static_cast<std::int64_t>(static_cast<double>(passed) / second * io_bytes_per_second);
    last_ = usage;
    last_age_ = age;
    if (age >= hard_ || (age >= soft_ && !progressing_)) return true;
    next_ = age < soft_ ? soft_ : std::min(hard_, age + age / 2);
    return false;
}

}  // namespace dcs::locks
