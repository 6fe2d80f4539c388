// dcs top: the whole pool on one screen, redrawn at intervals.
#include <algorithm>
#include <cstdio>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "commands/dcs/query/scheduler.h"
#include "base/option_table.h"
#include "base/text.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/console.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/query/row_text.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"

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

void take_grains(View &view) {
    for (const Session &session : view.sessions.sessions) {
        if (session.running == 0) continue;
        Info info;
        const bool there = bool(info.ask(wire::QueryType::grains, session.user, session.number, -1, "running"));
        if (!there) continue;  // closed meanwhile
        std::move(info.grains.begin(), info.grains.end(), std::back_inserter(view.grains));
    }
    std::stable_sort(view.grains.begin(), view.grains.end(),
                     [](const auto &a, const auto &b) { return a.cpu_s > b.cpu_s; });
}

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
    if (view.sessions.failed) {
        view.failure = view.sessions.failure;
        return;
    }
    auto &all = view.sessions.sessions;
    all.erase(std::remove_if(all.begin(), all.end(), [](const Session &s) { return s.terminated() || s.damaged(); }),
              all.end());
    take_grains(view);
}

std::string document(const View &view) {
    std::vector<std::string> hosts, sessions, grains;
    for (const wire::HostRow &row : view.hosts.hosts) hosts.push_back(wire::to_json(row));
    for (const Session &session : view.sessions.sessions) sessions.push_back(session.json);
    for (const wire::GrainRow &row : view.grains) grains.push_back(wire::to_json(row));
    return JsonObject()
        .add("schema", "dcs.top/1")
        .add_members(json_of_system(view.system.system))
        .add_raw("hosts", json_array(hosts))
        .add_raw("sessions", json_array(sessions))
        .add_raw("grains", json_array(grains))
        .text();
}

std::string summary_line(const View &view) {
    int slots = 0;
    for (const wire::HostRow &row : view.hosts.hosts) slots += row.state == "active" ? row.slots : 0;
    const wire::SystemRow &s = view.system.system;
    return std::to_string(s.hosts_active) + " of " + counted(s.hosts, "host") + " active, " +
           std::to_string(s.running) + " of " + counted(slots, "slot") + " busy, " + counted(s.ready, "grain") +
           " waiting; scheduler up " + whole_seconds_text(s.up_s);
}

// Sessions in the order in which they get hosts: the screen's upper rows matter most.
std::string sessions_text(const View &view) {
    Table table{">SESSION", "DONE", ">RUNNING", ">READY", ">KILLED", ">CPU SAVED", "COMMAND"};
    for (const Session &s : view.sessions.sessions) {
        Progress progress;
        progress.total = s.ready + s.running + s.finished;
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
        const bool known = row.last_call_in_s >= 0 && row.free_memory_kb >= 0;
        char load[32];
        std::snprintf(load, sizeof load, "%.2f", row.load);
        table.add({row.name, state_text(row), std::to_string(row.running) + "/" + std::to_string(row.slots),
                   known ? load : "-", known ? bytes_text(static_cast<std::uint64_t>(row.free_memory_kb) * 1024) : "-",
                   seconds_text(row.last_call_in_s), row.note});
    }
    return view.hosts.hosts.empty() ? "" : "\n" + table.text();
}

std::string grains_text(const View &view) {
    Table table{">GRAIN", "HOST", ">CPU", ">CHECKPOINT", ">RESTARTS", "MESSAGE OR LABEL"};
    for (const wire::GrainRow &row : view.grains) {
        table.add({std::to_string(row.session) + ":" + std::to_string(row.grain), row.host, seconds_text(row.cpu_s),
                   row.checkpoint_age_s < 0 ? "none" : seconds_text(row.checkpoint_age_s) + " ago",
                   std::to_string(row.restarts), row.message.empty() ? row.label : row.message});
    }
    return view.grains.empty() ? "" : "\n" + table.text();
}

std::string screen(const View &view) {
    if (view.failure) return view.failure->message + "\n";
    return summary_line(view) + "\n" + sessions_text(view) + hosts_text(view) + grains_text(view);
}

// A terminal of our own while it lasts; as it was at the end, however that comes.
class Terminal {
public:
    Terminal() {
        const sigset_t ending = block_ending_signals();
        signals_ = ::signalfd(-1, &ending, SFD_CLOEXEC);
        if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
            termios now = before_;
            now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
            keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
        }
        std::fputs("\033[?1049h\033[?25l", stdout);
    }
    ~Terminal() {
        std::fputs("\033[?25h\033[?1049l", stdout);
        std::fflush(stdout);
        if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
        ::close(signals_);
    }
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;

    void draw(const std::string &text) const {
        winsize size = {};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 3) size.ws_row = 24, size.ws_col = 80;
        std::string out = "\033[H";
        std::string_view rest = text;
        for (unsigned row = 0; row + 1 < size.ws_row && !rest.empty(); ++row)
            out += std::string(take_line(rest).substr(0, size.ws_col)) + "\033[K\r\n";
        out += "\033[J\033[" + std::to_string(size.ws_row) + ";1Hq ends this; the pool goes on\033[K";
        std::fputs(out.c_str(), stdout);
        std::fflush(stdout);
    }

    // True: the user wants to leave.
    bool pause(double s) const {
        pollfd fds[] = {{signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        if (::poll(fds, keys_ ? 2 : 1, static_cast<int>(s * 1000)) <= 0) return false;
        char key = 0;
        return fds[0].revents != 0 || ::read(STDIN_FILENO, &key, 1) != 1 || key == 'q';
    }

private:
    int signals_;  // readable when one came that ends us
    termios before_ = {};
    bool keys_ = false;
};

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
    const Terminal own;
    for (bool leave = false; !leave; leave = own.pause(interval_s)) {
        View view;
        look(view);
        own.draw(screen(view));
    }
    return exits::ok;
}

}  // namespace

extern const Verb top_verb = {
    .noun = "",
    .name = "top",
    .summary = "show the whole pool on one screen",
    .about = R"(Shows the pool on one screen, redrawn at intervals: the number of busy slots, your active
sessions with their progress, the hosts, and your running grains, those with the most processor
time first.

Examples:
  dcs top
  dcs top --once                   once, for a script or a mail
  dcs top -o json | jq .running
)",
    .options = {{"once", 0, nullptr, {}, "print it once; the default if standard output is not a terminal"},
                {"interval", 0, "S", seconds_from(least_pause_s),
                 "seconds from one drawing to the next (default 2, at least 0.5)"}},
    .notes = R"(The key q and Ctrl-C end it. If the scheduler is down, it says so, and continues when it is back.
)",
    .run = show_top};

}  // namespace dcs::commands
