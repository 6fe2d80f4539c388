#include "sim/faults.h"

#include "sim/world.h"

namespace dcs::sim {
namespace {
constexpr std::uint32_t faults_mark = 0x4641;
enum What : std::uint32_t { begins, ends };
}  // namespace

Faults::Faults(World &world) : w_(world), random_(random_for(world.plan.seed, "faults")) {}

void Faults::begin() {
    for (std::size_t i = 0; i < fault_count; ++i)
        if (w_.plan.every[i].ns > 0) plan_next(i);
}

void Faults::plan_next(std::size_t fault) {
    const Duration wait = between(random_, Duration{1}, w_.plan.every[fault] * 2);
    w_.clock.put(w_.clock.now + wait, this, faults_mark, begins, fault);
}

void Faults::happen(std::uint32_t what, std::uint64_t arg) {
    if (what == ends) {
        const auto found = undo_.find(arg);
        if (found == undo_.end()) return;
        const Undo undo = std::move(found->second);
        undo_.erase(found);
        return undo();
    }
    if (off_) return;
    strike(static_cast<Fault>(arg));
    plan_next(arg);
}

void Faults::later(Duration after, Undo undo) {
    undo_.emplace(next_undo_, std::move(undo));
    w_.clock.put(w_.clock.now + after, this, faults_mark, ends, next_undo_++);
}

void Faults::heal() {
    off_ = true;
    while (!undo_.empty()) {
        const Undo undo = std::move(undo_.begin()->second);
        undo_.erase(undo_.begin());
        undo();
    }
}

int Faults::some_host() { return static_cast<int>(random_.below(w_.hosts.size())); }
int Faults::some_site(int host) const { return w_.hosts[static_cast<std::size_t>(host)]->site; }

void Faults::note(Fault fault, const std::string &what) {
    ++count_;
    if (w_.clock.tracing) w_.clock.note(std::string("FAULT ") + name_of(fault) + " " + what);
}

void Faults::strike(Fault fault) {
    if (fault == Fault::forget) strike_control(fault);
    else if (fault <= Fault::reread) strike_scheduler(fault);
    else if (fault <= Fault::slow) strike_link(fault);
    else if (fault <= Fault::bad_host) strike_host(fault);
    else if (fault <= Fault::control_twin) strike_control(fault);
    else strike_backup(fault);
}

void Faults::strike_scheduler(Fault fault) {
    SchedulerNode &s = w_.scheduler;
    note(fault, "");
    switch (fault) {
    // With a backup it stays away long enough to be missed.
    case Fault::kill: return s.lose(false, span(milliseconds(50), seconds(w_.backup ? 4 * 3600 : 600)));
    case Fault::power: return s.lose(true, span(seconds(20), seconds(w_.backup ? 4 * 3600 : 3600)));
    case Fault::pause: return s.pause(span(seconds(60), seconds(4 * 3600)));
    case Fault::disk_full:
        s.fill_disk(true);
        return later(span(seconds(10), seconds(3600)), [&s] { s.fill_disk(false); });
    case Fault::sync_fail: return s.fail_next_sync();
    default: break;
    }
    // reread: a host goes, or its limit changes; both come back.
    const int host = some_host();
    const auto put_back = [this, host] {
        w_.unlisted.erase(host);
        w_.other_slots.erase(host);
        w_.scheduler.reread();
    };
    if (random_.chance(40)) w_.unlisted.insert(host);
    else w_.other_slots[host] = static_cast<std::int32_t>(random_.below(4));
    s.reread();
    later(span(seconds(10), seconds(4 * 3600)), put_back);
}

void Faults::strike_link(Fault fault) {
    Links &links = w_.links;
    const int host = some_host(), site = some_site(host);
    note(fault, host_name(host));
    const auto silent_for = [&](int where, Duration length) {
        links.silence(where, true);
        later(length, [&links, where] { links.silence(where, false); });
    };
    switch (fault) {
    case Fault::cut:
        if (random_.chance(80)) return links.cut(site);
        return links.cut(static_cast<int>(random_.below(w_.hosts.size() + w_.controls.size())));
    case Fault::silence: return silent_for(site, span(seconds(1), seconds(1200)));
    case Fault::refuse:
        links.refuse(site, true);
        return later(span(seconds(5), seconds(1800)), [&links, site] { links.refuse(site, false); });
    case Fault::slow:
        links.slow(site, true);
        return later(span(seconds(5), seconds(1800)), [&links, site] { links.slow(site, false); });
    case Fault::partition: {
        const Duration length = span(seconds(30), seconds(4 * 3600));
        const auto percent = static_cast<unsigned>(between(random_, 10, 90));
        for (const auto &h : w_.hosts)
            if (random_.chance(percent)) silent_for(h->site, length);
        return;
    }
    default: return swizzle();
    }
}

// One after the other falls silent, and they come back in another order.
void Faults::swizzle() {
    Links &links = w_.links;
    Duration at{};
    const Duration all = span(seconds(60), seconds(1800));
    for (const auto &h : w_.hosts) {
        if (!random_.chance(50)) continue;
        at = at + between(random_, milliseconds(10), seconds(20));
        const int site = h->site;
        const Duration back = all + between(random_, seconds(1), seconds(600));
        later(at, [this, &links, site, back] {
            if (off_) return;
            links.silence(site, true);
            later(back, [&links, site] { links.silence(site, false); });
        });
    }
}

void Faults::strike_host(Fault fault) {
    const int number = some_host();
    Host &host = *w_.hosts[static_cast<std::size_t>(number)];
    ServerNode &server = *w_.servers[static_cast<std::size_t>(number)];
    note(fault, host.name);
    const auto for_a_while = [&](Duration least, Duration most, void (Host::*make)(bool)) {
        (host.*make)(true);
        later(span(least, most), [&host, make] { (host.*make)(false); });
    };
    switch (fault) {
    case Fault::server_kill:
        server.kill();
        return later(span(milliseconds(100), seconds(3600)), [&server] { server.start(); });
    case Fault::launcher_kill: return host.kill_launcher();
    case Fault::server_pause:
        server.stop(true);
        return later(span(seconds(1), seconds(4 * 3600)), [&server] { server.stop(false); });
    case Fault::owner: {
        const auto how = static_cast<Host::Owner>(random_.below(3));
        host.owner_comes(how);
        return later(span(seconds(60), seconds(4 * 3600)), [&host, how] { host.owner_leaves(how); });
    }
    case Fault::host_full: return for_a_while(seconds(10), seconds(3600), &Host::fill_disk);
    case Fault::no_binary: return for_a_while(seconds(10), seconds(1800), &Host::hide_programs);
    case Fault::bad_host: return for_a_while(seconds(60), seconds(3600), &Host::make_bad);
    default: return host_down(fault, number);
    }
}

void Faults::host_down(Fault fault, int number) {
    Host &host = *w_.hosts[static_cast<std::size_t>(number)];
    ServerNode &server = *w_.servers[static_cast<std::size_t>(number)];
    Links &links = w_.links;
    const int site = host.site;
    const auto alone = [&links, site, backup = w_.backup_links.get()](bool on) {
        links.silence(site, on);
        if (backup) backup->silence(site, on);
    };
    if (fault == Fault::away) {
        alone(true);
        return later(span(seconds(600), seconds(12 * 3600)), [alone] { alone(false); });
    }
    if (fault == Fault::host_pause) {
        alone(true);
        server.stop(true);
        host.stop(true);
        return later(span(seconds(10), seconds(6 * 3600)), [alone, &server, &host] {
            host.stop(false);
            server.stop(false);
            alone(false);
        });
    }
    if (!host.on()) return;
    server.machine_lost();
    host.power_off();
    if (fault == Fault::lost && lost_ < w_.plan.hosts / 10 - 1 && random_.chance(50)) {  // permanently
        ++lost_;
        return;
    }
    later(span(seconds(30), seconds(8 * 3600)), [&server, &host] {
        host.power_on();
        server.start();
    });
}

void Faults::strike_backup(Fault fault) {
    BackupNode &b = *w_.backup;
    note(fault, "");
    const auto silent_for = [this](Links &links, int site, Duration length) {
        links.silence(site, true);
        later(length, [&links, site] { links.silence(site, false); });
    };
    switch (fault) {
    case Fault::backup_kill: return b.lose(false, false, span(milliseconds(50), seconds(3600)));
    case Fault::backup_power: return b.lose(true, false, span(seconds(20), seconds(3600)));
    case Fault::backup_lost: return b.lose(true, true, span(seconds(20), seconds(4 * 3600)));
    case Fault::backup_full:
        b.fill_disk(true);
        return later(span(seconds(10), seconds(3600)), [&b] { b.fill_disk(false); });
    case Fault::backup_silence: {
        const int site = some_site(some_host());
        return silent_for(*w_.backup_links, site, span(seconds(1), seconds(1200)));
    }
    default: return silent_for(w_.links, b.site(), span(seconds(1), seconds(3600)));
    }
}

void Faults::strike_control(Fault fault) {
    ControlNode &control = *w_.controls[random_.below(w_.controls.size())];
    if (!control.runs()) return;
    note(fault, control.where());
    if (fault == Fault::control_twin) return control.start_twin();
    if (fault == Fault::forget) return control.wish_to_forget();
    control.kill(span(milliseconds(100), seconds(3600)));
}

}  // namespace dcs::sim
