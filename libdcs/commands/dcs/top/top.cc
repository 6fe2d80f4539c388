// dcs top: the pool on a terminal, in five screens that follow it; once, as text, elsewhere.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/option_table.h"
#include "client/call.h"
#include "client/remote.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/console.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/row_text.h"
#include "screens.h"
#include "terminal.h"

namespace dcs::commands {
namespace {

constexpr double least_pause_s = 0.5, usual_interval_s = 2;
constexpr std::size_t bar_columns = 44;

// What the scheduler said, once.
struct View {
    Info system, hosts;
    SessionsAnswer sessions;             // the caller's active ones
    std::vector<wire::GrainRow> grains;  // running, those with the most processor time first
    std::optional<Failure> failure;
};

void look(View &view) {
    if (const Status s = view.system.ask(wire::QueryType::system); !s) {
        view.failure = call_failure("the pool's state", s);
        return;
    }
    if (const Status s = view.hosts.ask(wire::QueryType::hosts); !s) {
        view.failure = call_failure("the pool's hosts", s);
        return;
    }
    view.sessions = own_sessions();
    if ((view.failure = view.sessions.failure)) return;
    std::erase_if(view.sessions.sessions, [](const Session &s) { return !s.is_active(); });
    view.grains = top::running_grains(view.sessions.sessions);
}

std::string document(const View &view) {
    return JsonObject("dcs.top/1")
        .add_members(json_of_system(view.system.system, sessions_of_all_users()))
        .add_list("hosts", view.hosts.hosts, row_json)
        .add_list("sessions", view.sessions.sessions, row_json)
        .add_list("grains", view.grains, row_json)
        .text();
}

std::string summary_line(const View &view) {
    int slots = 0;
    for (const wire::HostRow &row : view.hosts.hosts) slots += row.state == "active" ? row.slots : 0;
    const wire::SystemRow &s = view.system.system;
    return std::to_string(s.hosts_active) + " of " + counted(s.hosts, "host") + " active, " +
           std::to_string(s.running) + " of " + counted(slots, "slot") + " busy, " + counted(s.ready, "grain") +
           " ready; scheduler up " + whole_seconds_text(s.up_s);
}

// Sessions in the order in which they get hosts: the screen's upper rows matter most.
std::string sessions_text(const View &view) {
    Table table{">SESSION", "FINISHED", ">RUNNING", ">READY", ">KILLED", ">CPU SAVED", "COMMAND"};
    for (const Session &s : view.sessions.sessions) {
        Progress progress;
        progress.total = s.grains() - s.killed;
        progress.done = progress.done_before = s.finished;
        table.add({s.name(), progress_text(progress, bar_columns), std::to_string(s.running), std::to_string(s.ready),
                   std::to_string(s.killed), s.saved_cpu_s > 0 ? seconds_text(s.saved_cpu_s) : "-",
                   s.what(bar_columns)});
    }
    return view.sessions.sessions.empty() ? "" : "\n" + table.text();
}

std::string hosts_text(const View &view) {
    Table table{"HOST", "STATE", ">BUSY", ">LOAD", ">FREE MEMORY", ">LAST CALL-IN", "NOTE"};
    for (const wire::HostRow &row : view.hosts.hosts) {
        table.add({row.name, state_text(row), std::to_string(row.running) + "/" + std::to_string(row.slots),
                   load_of(row), free_memory_of(row), seconds_text(row.last_call_in_s), row.note});
    }
    return view.hosts.hosts.empty() ? "" : "\n" + table.text();
}

std::string grains_text(const View &view) {
    return view.grains.empty() ? "" : "\n" + top::running_grains_text(view.grains, view.grains.size());
}

std::string screen(const View &view) {
    if (view.failure) return view.failure->message + "\n";
    return summary_line(view) + "\n" + sessions_text(view) + hosts_text(view) + grains_text(view);
}

// The last look, on its way from the thread that looks.
class Newest {
public:
    Newest() : news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    void put(std::shared_ptr<const top::Look> look) {
        const std::lock_guard lock(mutex_);
        look_ = std::move(look);
        ::eventfd_write(news_.get(), 1);
    }
    std::shared_ptr<const top::Look> get() {
        const std::lock_guard lock(mutex_);
        return look_;
    }
    int news() const { return news_.get(); }  // readable after each put

private:
    const Fd news_;
    std::mutex mutex_;
    std::shared_ptr<const top::Look> look_;
};

// Which screen is shown, and from which of its lines.
class Viewer {
public:
    void take(top::Key key, std::size_t page) {
        std::size_t &line = from_[chosen_];
        switch (key) {
        case top::Key::up: line -= std::min<std::size_t>(1, line); break;
        case top::Key::page_up: line -= std::min(page, line); break;
        case top::Key::down: ++line; break;
        case top::Key::page_down: line += page; break;
        case top::Key::home: line = 0; break;
        case top::Key::end: line = SIZE_MAX / 2; break;
        case top::Key::next: chosen_ = (chosen_ + 1) % top::screen_names.size(); break;
        case top::Key::first: chosen_ = 0; break;
        case top::Key::second: chosen_ = 1; break;
        case top::Key::third: chosen_ = 2; break;
        case top::Key::fourth: chosen_ = 3; break;
        case top::Key::fifth: chosen_ = 4; break;
        case top::Key::none:
        case top::Key::leave: break;
        }
    }
    // Head, a part of the screen, and the keys in the last line.
    top::Lines lines(const top::Look &look, top::Size size) {
        top::Lines shown = top::head_lines(look, chosen_);
        const top::Lines all = top::screen_lines(look, chosen_, size.columns);
        const std::size_t room = page_of(size);
        std::size_t &from = from_[chosen_];
        from = std::min(from, all.size() - std::min(all.size(), room));
        for (std::size_t i = from; i < all.size() && i < from + room; ++i) shown.push_back(all[i]);
        shown.resize(size.rows - 1);
        std::string keys = "1-5 screens, q quits";
        if (all.size() > room)
            keys += "; lines " + std::to_string(from + 1) + "-" + std::to_string(std::min(all.size(), from + room)) +
                    " of " + std::to_string(all.size()) + ", arrows scroll";
        shown.push_back(std::move(keys));
        return shown;
    }
    std::size_t chosen() const { return chosen_; }
    static std::size_t page_of(top::Size size) { return size.rows - 3; }

private:
    std::size_t chosen_ = 0;
    std::array<std::size_t, top::screen_names.size()> from_ = {};
};

void follow(const std::string &directory, double interval_s) {
    // They outlive this function: the thread that looks may wait for a scheduler that does not answer.
    static Newest newest;
    static std::atomic<bool> flow_is_shown{false};
    top::Terminal terminal;
    top::look_repeatedly(
        directory, interval_s, [] { return flow_is_shown.load(); },
        [](std::shared_ptr<const top::Look> look) { newest.put(std::move(look)); });
    Viewer viewer;
    for (;;) {
        if (const auto look = newest.get()) terminal.draw(viewer.lines(*look, terminal.size()));
        else terminal.draw({"Asking the scheduler ..."});
        for (const top::Key key : terminal.wait(newest.news())) {
            if (key == top::Key::leave) return;
            viewer.take(key, Viewer::page_of(terminal.size()));
            flow_is_shown = viewer.chosen() == top::flow_screen;
        }
    }
}

int show_top(const Call &call) {
    const double interval_s = call.arguments.seconds("interval").value_or(usual_interval_s);
    const bool terminal = call.format == Format::table && ::isatty(STDOUT_FILENO) == 1;
    if (!terminal || call.arguments.has("once")) {
        View view;
        look(view);
        if (view.failure) return call.fail(*view.failure);
        std::printf("%s", call.format == Format::json ? (document(view) + "\n").c_str() : screen(view).c_str());
        return exits::ok;
    }
    const bool elsewhere = client::adopt_remote(this_pool()) && this_pool().remote();
    follow(elsewhere ? "" : call.directory, interval_s);
    std::fflush(nullptr);
    std::_Exit(exits::ok);
}

}  // namespace

extern const Verb top_verb = {
    .noun = "",
    .name = "top",
    .summary = "show the pool on a terminal",
    .about = R"(Shows the pool on a terminal and follows it, on five screens:

  1 Hosts      each host with its slots; those to look at first
  2 Sessions   in the order in which they get hosts, with their progress; your running grains
  3 Time line  what ran in each slot in the last hour, checkpoints, and grains that left a host
  4 Events     the latest entries of the sessions' logs
  5 Dataflow   of your first session: each decision of its control program, and the grains that followed

If standard output is not a terminal it prints the pool's state once: busy slots, your active sessions, hosts, and
your running grains.

Examples:
  dcs top
  dcs top --once                   once, for a script or a mail
  dcs top -o json | jq .running
)",
    .options = {{"once", 0, nullptr, no_value, "print it once; the default if standard output is not a terminal"},
                {"interval", 0, "S", seconds_from(least_pause_s),
                 "seconds between queries of the pool (default 2, at least 0.5); longer if queries are slow"}},
    .notes = R"(Keys: 1 to 5 and Tab choose a screen; arrows, j, k, PgUp, PgDn, g and G scroll; q and Ctrl-C quit.
It works over ssh, and has colours as other commands do (--color, NO_COLOR). If the scheduler does not answer, the first
line says so.
)",
    .run = show_top};

}  // namespace dcs::commands
