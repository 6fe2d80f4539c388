#include "scheduler/shell/prober.h"

#include <algorithm>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/require.h"

namespace dcs::shell {
namespace {

constexpr Duration patience = seconds(2);          // for the name, and then for an answer
constexpr Duration look_again = milliseconds(50);  // whether a name can be looked up
constexpr std::size_t sockets_max = 512;           // the rest of the addresses wait for these
constexpr std::size_t lookups_max = 64;            // likewise their names
constexpr std::size_t places_max = 4;              // of one name
constexpr std::uint16_t common_ports[] = {7, 22};  // a live host listens or refuses

}  // namespace

Prober::Prober(net::Loop &loop, RawSocket raw_socket)
    : loop_(loop), raw_socket_(std::move(raw_socket)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    thread_ = std::thread([this] { work(); });
}

Prober::~Prober() {
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        stop_ = true;
    }
    wake();
    thread_.join();
    for (const Attempt &attempt : attempts_) ::close(attempt.socket.fd);
    if (wake_fd_ >= 0) ::close(wake_fd_);
}

void Prober::wake() {
    const std::uint64_t one = 1;
    if (::write(wake_fd_, &one, sizeof one) < 0) return;  // full: it is awake
}

void Prober::ask(const core::ProbeHost &probe) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (under_way_ >= probes_max) {
        const auto perhaps = [](const std::vector<std::string> &group) {
            return group.empty() ? std::optional<bool>() : true;
        };
        results_.push_back(
            {probe.host, probe.probe, perhaps(probe.check), perhaps(probe.file_server), perhaps(probe.gateway)});
        return loop_.wake();
    }
    ++under_way_;
    asked_.push_back(probe);
    wake();
}

std::vector<core::ProbeResult> Prober::take() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return std::exchange(results_, {});
}

void Prober::work() {
    while (take_in()) {
        const Instant now = boot_clock();
        try_targets(now);
        wait(now);
    }
}

// Probes requested in the meantime. False: stop.
bool Prober::take_in() {
    std::vector<core::ProbeHost> asked;
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (stop_) return false;
        asked = std::exchange(asked_, {});
    }
    for (core::ProbeHost &host : asked) {
        const std::uint64_t number = next_++;
        Probe &probe = probes_[number];
        probe.asked = std::move(host);
        for (const auto *group : {&probe.asked.check, &probe.asked.file_server, &probe.asked.gateway})
            for (const std::string &text : *group) join(number, probe, text);
        if (probe.left > 0) continue;
        answer(probe);
        probes_.erase(number);
    }
    return true;
}

void Prober::join(std::uint64_t number, Probe &probe, const std::string &text) {
    if (!probe.found.emplace(text, false).second) return;
    const auto address = net::parse_address(text);
    if (!address) return;  // no host can be there
    const auto [target, added] = targets_.try_emplace(text);
    target->second.probes.push_back(number);
    ++probe.left;
    if (!added) return;
    target->second.address = *address;
    target->second.until = boot_clock() + patience;
}

// What cannot be asked now is asked when it is looked at again.
void Prober::look_up(Target &target) {
    const auto &[host, port] = target.address;
    auto lookup = net::look_up(host, port, host.find(':') != std::string::npos ? AF_INET6 : AF_UNSPEC);
    if (!lookup) {
        target.named = lookup.status().code != Code::limit;
        return;
    }
    target.lookup = std::move(*lookup);
    ++lookups_;
}

void Prober::try_targets(Instant now) {
    for (auto next = targets_.begin(); next != targets_.end();) {
        const auto target = next++;
        Target &t = target->second;
        if (!t.named && !t.lookup && lookups_ < lookups_max) look_up(t);
        if (t.named && !t.trying) {
            if (attempts_.size() < sockets_max) try_target(target);
        } else if (now >= t.until) {
            settle(target, false);
        }
    }
}

void Prober::try_target(Targets::iterator target) {
    Target &t = target->second;
    DCS_REQUIRE(!t.trying && t.named, "a place is tried once, when its name is known");
    t.trying = true;
    t.until = boot_clock() + patience;
    for (const auto &[place, size] : t.places) {
        if (t.address.port != 0) {
            add(target, connect_probe(place, t.address.port));
        } else if (const std::optional<ProbeSocket> echo = echo_probe(place, next_cookie_++, raw_socket_)) {
            add(target, *echo);
        } else {
            for (const std::uint16_t port : common_ports) add(target, connect_probe(place, port));
        }
    }
    if (t.heard || t.open == 0) settle(target, t.heard);
}

void Prober::add(Targets::iterator target, const ProbeSocket &socket) {
    if (socket.seen == Seen::alive) target->second.heard = true;
    if (socket.seen != Seen::nothing_yet) return;
    attempts_.push_back({socket, target});
    ++target->second.open;
}

void Prober::wait(Instant now) {
    Instant until = Instant::never();
    std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0}};
    for (const Attempt &attempt : attempts_) polled.push_back({attempt.socket.fd, attempt.socket.events, 0});
    std::vector<Target *> asked;
    for (auto &[text, target] : targets_) {
        if (target.trying || !target.named) until = std::min(until, target.until);
        if (!target.named && !target.lookup) until = std::min(until, now + look_again);
        if (!target.lookup) continue;
        polled.push_back({target.lookup.get(), POLLIN, 0});
        asked.push_back(&target);
    }
    int ms = -1;
    if (until != Instant::never()) ms = static_cast<int>(std::max<std::int64_t>((until - now).ns, 0) / 1'000'000) + 1;
    if (::poll(polled.data(), polled.size(), ms) <= 0) return;
    std::uint64_t ignored = 0;
    if (polled[0].revents != 0 && ::read(wake_fd_, &ignored, sizeof ignored) < 0) return;
    for (std::size_t i = 0; i < asked.size(); ++i)
        if (polled[attempts_.size() + 1 + i].revents != 0) take_places(*asked[i]);
    read(polled);
}

void Prober::take_places(Target &target) {
    target.places = net::read_found(target.lookup.get()).places;
    if (target.places.size() > places_max) target.places.resize(places_max);
    target.lookup = Fd();
    target.named = true;
    --lookups_;
}

void Prober::read(const std::vector<pollfd> &polled) {
    DCS_REQUIRE(polled.size() > attempts_.size(), "one for each attempt, after the one that wakes");
    std::vector<Targets::iterator> touched;
    for (std::size_t i = 0; i < attempts_.size(); ++i) {
        if (polled[i + 1].revents == 0) continue;
        Attempt &attempt = attempts_[i];
        const Seen seen = look_at(attempt.socket);
        if (seen == Seen::nothing_yet) continue;
        ::close(attempt.socket.fd);
        attempt.socket.fd = -1;
        Target &target = attempt.target->second;
        target.heard = target.heard || seen == Seen::alive;
        DCS_REQUIRE(target.open > 0, "each attempt is counted until it is answered");
        --target.open;
        if (std::find(touched.begin(), touched.end(), attempt.target) == touched.end())
            touched.push_back(attempt.target);
    }
    std::erase_if(attempts_, [](const Attempt &attempt) { return attempt.socket.fd < 0; });
    for (const Targets::iterator target : touched)
        if (target->second.heard || target->second.open == 0) settle(target, target->second.heard);
}

void Prober::settle(Targets::iterator target, bool alive) {
    if (target->second.open > 0)
        std::erase_if(attempts_, [&](const Attempt &attempt) {
            return attempt.target == target && (::close(attempt.socket.fd), true);
        });
    for (const std::uint64_t number : target->second.probes) {
        const auto probe = probes_.find(number);
        DCS_REQUIRE(probe != probes_.end() && probe->second.left > 0, "a probe waits until all its places are known");
        probe->second.found[target->first] = alive;
        if (--probe->second.left > 0) continue;
        answer(probe->second);
        probes_.erase(probe);
    }
    if (target->second.lookup) --lookups_;
    targets_.erase(target);
}

void Prober::answer(const Probe &probe) {
    const auto any = [&](const std::vector<std::string> &group) -> std::optional<bool> {
        if (group.empty()) return {};
        return std::any_of(group.begin(), group.end(), [&](const std::string &text) { return probe.found.at(text); });
    };
    const core::ProbeHost &asked = probe.asked;
    const std::lock_guard<std::mutex> guard(mutex_);
    DCS_REQUIRE(under_way_ > 0, "each probe is answered once");
    --under_way_;
    results_.push_back({asked.host, asked.probe, any(asked.check), any(asked.file_server), any(asked.gateway)});
    loop_.wake();
}

}  // namespace dcs::shell
