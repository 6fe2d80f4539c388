#include "why_waiting.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/frame/table.h"

namespace dcs::commands {
namespace {

constexpr std::int64_t other_s = 10, again_s = 600;
constexpr auto tick = std::chrono::milliseconds(500);
constexpr auto first_question = std::chrono::seconds(2), longest_pause = std::chrono::seconds(30);

// So many grains before this one, then fewer: that is no other reason.
std::string without_numbers(std::string text) {
    std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == ','; });
    return text;
}

// "root/23", or "23" of the caller's own: as a session is named there.
bool is_named(const Session &session, const std::string &name) {
    return name == session.user + "/" + std::to_string(session.session);
}

std::string who_goes_first(const wire::WhyRow &older, const std::vector<Session> &sessions) {
    std::int64_t grains = 0;
    std::string first;
    bool own = false;
    for (const std::string &name : older.names)
        for (const Session &session : sessions)
            if (is_named(session, name)) {
                grains += session.ready + session.running;
                if (first.empty()) first = session.name(), own = session.own();
            }
    if (first.empty()) return "older sessions go first";
    const std::string with = " with " + grouped_text(grains, ',') + (grains == 1 ? " grain" : " grains");
    if (older.names.size() == 1)
        return "session " + first + with + " goes first" +
               (own ? " (`dcs session set " + first + " --nice 10` lets others go before it)" : "");
    return counted(older.names.size(), "older session") + with + ", as session " + first + ", go first";
}

}  // namespace

std::string waiting_text(const wire::Explanation &why, const std::vector<Session> &sessions) {
    if (why.state != "ready") return "";
    std::string hosts, first;
    for (const wire::WhyRow &reason : why.reasons) {
        const std::string &word = reason.reason;
        if (word == "takes_it") return "";  // it is about to start
        if (word == "older_first") first = "; " + who_goes_first(reason, sessions);
        else if (word == "user_quota" || word == "user_denied" || word == "fewer_first") first += "; " + reason.text;
        if (reason.hosts == 0 || (word == "others_first" && !first.empty())) continue;
        hosts += (hosts.empty() ? "" : ", ") + counted(reason.hosts, "host") + ": " +
                 (word == "busy" ? "no free slot" : reason.text);
    }
    if (!why.can_run) return "no host can take it" + (hosts.empty() ? "" : ": " + hosts);
    return "ready, but waits for a host" + (hosts.empty() ? "" : ": " + hosts) + first;
}

std::string none_can_text(const Result<wire::Explanation> &why, const std::string &said) {
    if (!why || why->can_run) return said;
    const std::size_t hosts = said.find(": ", said.find("; for grain ")), rest = said.find("; ", hosts);
    return waiting_text(*why, {}) + (rest == std::string::npos ? "" : said.substr(rest));
}

std::string advice_of(const wire::Explanation &why) {
    for (const wire::WhyRow &reason : why.reasons)
        if (reason.hosts > 0 && !reason.names.empty())
            return reason.hint + (reason.hint.empty() ? "" : "; ") + "`dcs host show " + reason.names[0] +
                   "` shows what that host has";
    return "`dcs host ls` lists the hosts, `dcs host show HOST` what one has";
}

std::optional<wire::ProblemRow> ask_disk_problem() {
    const auto reply = ask_any<wire::DoctorReply>(wire::Doctor{});
    if (!reply) return {};
    std::optional<wire::ProblemRow> found;
    for (const wire::ProblemRow &row : reply->problems) {
        if (row.entity != "backing store" || row.affects.empty()) continue;
        const bool inodes = row.file == "inodes";
        if (inodes || (!found && (row.file.empty() || row.file == "reserve"))) found = row;
    }
    return found;
}

std::string ask_about_disk() {
    const auto row = ask_disk_problem();
    return row ? "the scheduler may have no room for results: " + row->problem + " (`dcs doctor`)" : "";
}

std::string ask_why_it_waits(const std::string &user, int session, int grain) {
    const auto why = explain(user, session, grain);
    if (!why) return "";
    if (why->state != "ready") return ask_about_disk();
    SessionSelector all_sessions{.which = SessionSelector::Which::all, .of_all_users = true};
    const SessionsAnswer all = sessions_of(all_sessions);
    return waiting_text(*why, all.sessions);
}

void tell_if_none_can(const char *program, int session, int grain) {
    const auto why = explain("", session, grain);
    if (!why || why->can_run) return;
    std::fprintf(stderr, "%s: grain %d: %s (`dcs grain explain %d:%d`)\n", program, grain,
                 printable(waiting_text(*why, {})).c_str(), session, grain);
}

std::string away_text(const std::string &pool_directory) {
    const std::string hint = this_pool().remote() ? "" : start_hint(pool_directory);
    return "the scheduler does not answer; waiting for it" + (hint.empty() ? "" : " (" + hint + ")");
}

bool WaitRhythm::due(const std::string &text, Instant now) {
    if (text.empty()) since_ = now;
    if (text.empty() || now < since_ + first_) return false;
    const std::string reason = without_numbers(text);
    if (ever_ && now < told_at_ + seconds(reason == told_ ? again_s : other_s)) return false;
    ever_ = true;
    told_ = reason;
    told_at_ = now;
    return true;
}

void Waiting::start() {
    std::thread([this] { ask(); }).detach();
    std::thread([this] { tell(); }).detach();
}

// Seldom in the long run: each question looks through all hosts.
void Waiting::ask() {
    for (auto pause = first_question;; pause = std::min(2 * pause, longest_pause)) {
        std::this_thread::sleep_for(pause);
        {
            std::lock_guard guard(mutex_);
            asked_ = boot_clock();
        }
        const std::string text = ask_why_it_waits("", session_, grain_);
        {
            std::lock_guard guard(mutex_);
            asked_ = Instant::never();
            text_ = text;
        }
    }
}

void Waiting::tell() {
    const std::string scheduler = directory_ + "/scheduler";
    const bool can_look = daemon_runs_in(scheduler);  // it is of this host
    WaitRhythm rhythm(boot_clock());
    while (true) {
        std::this_thread::sleep_for(tick);
        const Instant now = boot_clock();
        std::string text;
        {
            std::lock_guard guard(mutex_);
            const bool silent = asked_ != Instant::never() && asked_ + seconds(answer_s) < now;
            text = silent || (can_look && !daemon_runs_in(scheduler)) ? away_text(directory_) : text_;
        }
        if (rhythm.due(text, now) && !over_)
            std::fprintf(stderr, "%s: %s\n", program_.c_str(), printable(text).c_str());
    }
}

}  // namespace dcs::commands
