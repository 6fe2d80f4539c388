// Inputs of a map without a result of its session: another session has one; they were not submitted, their program is
// not there, no host could start them, or they were killed. And outputs that are not there.
#include <algorithm>
#include <map>
#include <utility>

#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/row_text.h"
#include "commands/dcs/query/scheduler.h"
#include "dcs.h"
#include "work.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_told = 20;  // reasons that are printed one by one

}  // namespace

int MapWork::session_of(std::int32_t grain) const {
    const int other = results_[static_cast<std::size_t>(grain - 1)].session;
    return other < 0 ? session_ : other;
}

std::string MapWork::name_of(std::int32_t grain) const {
    return std::to_string(session_of(grain)) + ":" + std::to_string(grain);
}

std::string MapWork::command_of(std::int32_t grain) const {
    const std::string input = options_.files.for_input(plan_.inputs[static_cast<std::size_t>(grain - 1)], grain).input;
    return shell_line(plan_.words(grain)) + (input.empty() ? "" : " <" + shell_word(input));
}

void MapWork::take_earlier() {
    std::map<int, std::vector<EarlierResult>> ended;
    for (const EarlierResult &result : earlier_)
        if (result.runs) elsewhere_[result.session].push_back(result.grain);
        else ended[result.session].push_back(result);
    for (const auto &[session, results] : ended) take_ended(session, results);
}

void MapWork::take_ended(int session, const std::vector<EarlierResult> &results) {
    std::vector<JobLine> lines;
    for (const EarlierResult &result : results) {
        Taken &taken = results_[static_cast<std::size_t>(result.grain - 1)];
        taken.there = taken.ran = true;
        taken.out_length = result.out_length;
        taken.err_length = result.err_length;
        cpu_s_ += result.cpu_s;
        ++done_;
        lines.push_back({result.grain, result.out_length, 0, 0, command_of(result.grain)});
    }
    if (options_.joblog == nullptr || lines.empty()) return;
    if (Status s = options_.joblog->add(session, lines); !s) give_up("--joblog", s);
}

bool MapWork::look_elsewhere() {
    bool any = false;
    for (auto &[session, grains] : elsewhere_) {
        const SessionsAnswer there = sessions_of({std::to_string(session)});
        Info info;
        Status s = there.failure ? Status::ok() : info.ask(wire::QueryType::grains, "", session);
        if (there.failure && there.failure->code != "not_found") give_up(*there.failure);
        if (!s && s.code != Code::session_unknown) give_up(call_failure("session " + std::to_string(session), s));
        std::map<std::int32_t, const wire::GrainRow *> rows;
        for (const wire::GrainRow &row : info.grains) rows.emplace(row.grain, &row);
        std::vector<EarlierResult> ended;
        std::erase_if(grains, [&](std::int32_t grain) {
            const auto row = rows.find(grain);
            const wire::GrainRow *now = row == rows.end() ? nullptr : row->second;
            if (now != nullptr && !is_over(*now) && !there.sessions[0].terminated()) return false;
            if (now == nullptr || now->state != "finished" || is_failed(*now)) to_run_.push_back(grain);
            else ended.push_back({grain, session, now->out_length, now->err_length, now->cpu_s});
            return any = true;
        });
        take_ended(session, ended);
    }
    std::erase_if(elsewhere_, [](const auto &of_session) { return of_session.second.empty(); });
    return any;
}

// Nothing is left to wait for here: waits until a grain of another session has ended, or runs what did not succeed
// there. False: there are none.
bool MapWork::take_elsewhere() {
    while (to_run_.empty()) {
        if (elsewhere_.empty()) return false;
        if (look_elsewhere()) return true;
        pause_ms(poll_ms);
    }
    const auto most = options_.at_once == 0 ? std::ssize(to_run_) : std::min(options_.at_once, std::ssize(to_run_));
    const std::vector<int> some(to_run_.begin(), to_run_.begin() + most);
    to_run_.erase(to_run_.begin(), to_run_.begin() + most);
    for (const int grain : some) results_[static_cast<std::size_t>(grain - 1)].session = -1;
    submit_again(some);
    return true;
}

// False: it did not make one. `end`: of a grain that failed.
bool MapWork::bring_files(std::int32_t grain, const std::string &end) {
    const std::string &input = plan_.inputs[static_cast<std::size_t>(grain - 1)];
    bool made_all = true;
    for (const FileWords::Pair &output : options_.files.for_input(input, grain).outputs) {
        const auto failure = write_output(session_of(grain), grain, output);
        if (!failure) continue;
        const bool made = failure->code != "not_found";
        made_all &= made;
        uncopied_ |= made;
        results_[static_cast<std::size_t>(grain - 1)].missing.push_back(
            "grain " + name_of(grain) + (end.empty() ? "" : ", " + end) + ": " + failure->message);
    }
    return made_all;
}

void MapWork::fail_without_result(std::int32_t grain, int code, const std::string &why) {
    Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    if (taken.there) return;
    taken.there = taken.failed = true;
    ++done_;
    ++failed_;
    if (options_.joblog != nullptr) job_lines_.push_back({grain, 0, code, 0, command_of(grain)});
    if (told_.size() < most_told && told_.insert(why).second) console_.note(why);
}

const Result<std::string> &MapWork::program_path(const std::string &name) {
    auto known = programs_.find(name);
    if (known == programs_.end()) {
        if (programs_.size() >= 1000) programs_.clear();
        known = programs_.emplace(name, program_of(options_.files, options_.brings, name, plan_.directory)).first;
    }
    return known->second;
}

// Other threads meet failures that follow from the first one, as in a session that was closed because of it.
void MapWork::be_the_cause() {
    while (giving_up_.exchange(true)) pause_ms(1000);
}

void MapWork::end_with(const Failure &failure) {
    console_.flush();
    console_.give_up(failure, options_.format, exits::map_failed);
}

void MapWork::not_submitted(const std::string &which, int error) {
    be_the_cause();
    Failure failure = call_failure(which + " not submitted", error);
    if (error == D_E_GRAIN_DIFFERS || error == D_E_REPLAY_END)
        failure.hint =
            "--new runs all inputs again in a new session, with the options as they are now; with the options of the "
            "first run, the same command runs only what has not succeeded";
    if (error == D_E_GRAIN_DIFFERS && failure.message.find("\nfiles") != std::string::npos)
        failure.hint =
            "the files that go with the grains differ from those of the first run: --new runs all inputs again in a "
            "new session, with everything as it is now";
    if (error == D_E_LIMIT && failure.message.find(" unfinished grains") != std::string::npos)
        failure.hint = "-j N submits no more than N at a time";
    if (error == D_E_LIMIT && failure.message.find(" gargv and genvv ") != std::string::npos)
        failure.hint =
            "these are the words of a grain's command and its environment: a smaller -n gives it fewer inputs";
    if (error == D_E_BROKEN || error == D_E_UNREACHABLE)
        failure.hint =
            (failure.hint.empty() ? "" : failure.hint + "; ") + std::string("run the same command again to continue");
    else if (fresh_ && !some_submitted_ && d_pool_close_ses(&this_pool(), session_) == NO_ERROR)
        (void)d_pool_clean_ses(&this_pool(), session_);  // it is empty
    end_with(failure);
}

// As in a shell: 127 it is not there, 126 it cannot be executed.
void MapWork::take_missing() {
    std::vector<Missing> missing;
    {
        std::lock_guard guard(mutex_);
        missing.swap(missing_);
    }
    for (const Missing &one : missing)
        fail_without_result(one.grain, one.why.code == Code::refused ? exits::not_executable : exits::no_program,
                            one.why.text);
}

void MapWork::finish_without_results() {
    take_missing();
    for (std::int32_t grain = 1; grain <= total_; ++grain)
        if (!results_[static_cast<std::size_t>(grain - 1)].there) {
            ++killed_;
            fail_without_result(grain, -1, "grain " + name_of(grain) + " was killed");
        }
}

std::vector<std::int32_t> MapWork::waiting_grains() {
    std::vector<std::int32_t> grains;
    Info info;
    if (const Status s = info.ask(wire::QueryType::grains, "", session_, -1, "ready"); !s)
        give_up(call_failure("the grains of session " + std::to_string(session_), s));
    for (const wire::GrainRow &row : info.grains)
        if (row.grain >= 1 && row.grain <= total_) grains.push_back(row.grain);
    return grains;
}

void MapWork::start_again(const std::vector<std::int32_t> &grains) {
    for (const std::int32_t grain : grains)
        if (const int error = d_pool_grestart(&this_pool(), nullptr, session_, grain); error != NO_ERROR)
            give_up(call_failure("grain " + name_of(grain), error));
}

// Those whose program no host can start have failed. When nothing else came of the session there is nothing to keep
// of it; otherwise they are killed, and the same map run again starts them again.
bool MapWork::fail_unstartable(const std::vector<std::int32_t> &grains) {
    std::map<std::string, std::string> reasons;  // by program; empty: it is not for that
    bool found = false;
    for (const std::int32_t grain : grains) {
        const std::string program = plan_.words(grain)[0];
        if (reasons[program].empty() && reasons.size() <= most_told) {
            const auto now = grain_now("", session_, grain);
            const std::vector<std::string> lines = now ? failed_starts(*now) : std::vector<std::string>();
            if (!lines.empty()) reasons[program] = lines[0];
        }
    }
    for (const std::int32_t grain : grains) {
        const std::string program = plan_.words(grain)[0];
        const auto reason = reasons.find(program);
        if (reason == reasons.end() || reason->second.empty()) continue;
        found = true;
        if (some_result_ || !fresh_) d_pool_gkill(&this_pool(), session_, grain);
        fail_without_result(grain, exits::not_executable, program + " was not started on " + reason->second);
    }
    return found;
}

// No host can run what remains. What an earlier run or another session could not start may be mended by now, so it is
// tried once more.
bool MapWork::after_cannot_run() {
    const std::vector<std::int32_t> grains = waiting_grains();
    if (fresh_ && fail_unstartable(grains)) return true;
    if (std::exchange(started_again_, true)) return fail_unstartable(grains);
    start_again(grains);
    return true;
}

}  // namespace dcs::commands
