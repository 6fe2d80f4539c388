#include "work.h"

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "client/pool.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/map/plan.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/scheduler.h"
#include "base/require.h"

namespace dcs::commands {
namespace {

constexpr int job_results_at_once = 256;
constexpr std::size_t most_told_failures = 20;

// "fit 7"
std::string name_of_grain(const JobGrain &grain, std::int32_t number) {
    return grain.many ? grain.name + " " + grain.items[static_cast<std::size_t>(number - grain.first)] : grain.name;
}

}  // namespace

JobFlow::JobFlow(const JobFile &file)
    : file_(file), parts_(file.grains.size()), grains_(static_cast<std::size_t>(file.count) + 1) {
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].left = file.grains[i].count();
}

// One without items has nothing to wait for: it is done when it would start. One whose results an earlier run's grains
// gave before this run came to it is started all the same: a run must submit what it takes results of.
std::vector<std::size_t> JobFlow::take_startable() {
    std::vector<std::size_t> found;
    for (bool more = true; std::exchange(more, false);)
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const auto &after = file_.grains[i].after;
            const auto done = [&](std::size_t j) { return parts_[j].standing == Standing::done; };
            Part &part = parts_[i];
            const bool ended = part.standing == Standing::done || part.standing == Standing::failed;
            if (part.taken || (part.standing != Standing::waits && !ended) ||
                !std::all_of(after.begin(), after.end(), done))
                continue;
            part.taken = true;
            if (file_.grains[i].count() > 0) found.push_back(i);
            if (part.left > 0) part.standing = Standing::started;
            else if (!ended) part.standing = Standing::done, more = true;
        }
    return found;
}

std::size_t JobFlow::table_of(std::int32_t grain) const {
    const auto &all = file_.grains;
    const auto behind = std::upper_bound(all.begin(), all.end(), grain,
                                         [](std::int32_t number, const JobGrain &g) { return number < g.first; });
    const std::size_t at = static_cast<std::size_t>(behind - all.begin());
    return at > 0 && grain < all[at - 1].first + all[at - 1].count() ? at - 1 : all.size();
}

bool JobFlow::has_ended(std::int32_t grain) const {
    return grain >= 0 && static_cast<std::size_t>(grain) < grains_.size() && grains_[static_cast<std::size_t>(grain)];
}

void JobFlow::ended(std::int32_t grain, bool failed) {
    const std::size_t table = table_of(grain);
    if (table == parts_.size() || has_ended(grain)) return;
    grains_[static_cast<std::size_t>(grain)] = true;
    Part &part = parts_[table];
    DCS_REQUIRE(part.left > 0, "it has grains that have not ended");
    ++ended_;
    failed_ += failed;
    part.failed = part.failed || failed;
    if (--part.left > 0) return;
    part.standing = part.failed ? Standing::failed : Standing::done;
    if (part.failed) bar_dependents();
}

void JobFlow::bar_dependents() {
    for (bool more = true; std::exchange(more, false);)
        for (std::size_t i = 0; i < parts_.size(); ++i)
            for (const std::size_t j : file_.grains[i].after) {
                const bool never = parts_[j].standing == Standing::failed || parts_[j].standing == Standing::barred;
                if (!never || parts_[i].standing != Standing::waits) continue;
                parts_[i].standing = Standing::barred;
                parts_[i].because = j;
                more = true;
            }
}

bool JobFlow::over() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part &part) {
        return part.standing != Standing::waits && part.standing != Standing::started;
    });
}

std::string JobFlow::why_barred(std::size_t table) const {
    DCS_REQUIRE(parts_[table].standing == Standing::barred, "it does not run");
    const std::size_t because = parts_[table].because;
    return "after " + file_.grains[because].name +
           (parts_[because].standing == Standing::failed ? ", which failed" : ", which does not run either");
}

std::int64_t JobFlow::count_barred() const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
        if (parts_[i].standing == Standing::barred) n += file_.grains[i].count();
    return n;
}

JobWork::JobWork(const JobFile &file, const std::vector<JobPart> &parts, int session, Console &console)
    : file_(file),
      parts_(parts),
      session_(session),
      console_(console),
      flow_(file),
      told_(file.grains.size()),
      began_(boot_clock()) {}

Progress JobWork::progress() {
    return {.total = file_.count,
            .done = ended_.load(),
            .failed = failed_.load(),
            .elapsed_s = (boot_clock() - began_).seconds()};
}

// With what a file was when it ran, which may be gone by now.
bool JobWork::has_succeeded(std::int32_t grain) const {
    const auto row = grain_now("", session_, grain);
    return row && row->state == "finished" && !is_failed(*row);
}

std::optional<Failure> JobWork::submit_one(const d_grain_order &order) {
    for (;;) {
        const int error = d_pool_gexec_grain(&this_pool(), session_, order.grain_num, &order.grain);
        if (error == NO_ERROR) return std::nullopt;
        const std::string difference = d_errortext();
        if ((error == D_E_GRAIN_DIFFERS || error == D_E_NOT_FOUND) && has_succeeded(order.grain_num)) {
            this_pool().submitted(session_, {order.grain_num}, {.repeated = 1});
            return std::nullopt;
        }
        if (error != D_E_NO_SPACE)
            return call_failure(
                "grain " + std::to_string(session_) + ":" + std::to_string(order.grain_num) + " was not submitted",
                fail(static_cast<Code>(error), difference));
        console_.note("the scheduler's disk is full; waiting until there is room");
        pause_ms(1000);
    }
}

std::optional<Failure> JobWork::submit_some(const std::vector<d_grain_order> &orders) {
    std::size_t taken = 0;
    const int error = d_pool_gexec_many(&this_pool(), session_, orders.data(), orders.size(), &taken, nullptr);
    if (error == NO_ERROR) return std::nullopt;
    for (; taken < orders.size(); ++taken)  // one of them is refused
        if (auto failure = submit_one(orders[taken])) return failure;
    return std::nullopt;
}

std::optional<Failure> JobWork::submit(std::size_t table, const std::set<std::int32_t> *only) {
    const JobGrain &grain = file_.grains[table];
    const JobPart &part = parts_[table];
    const std::vector<char *> environment = pointers_to(part.environment);
    const std::int32_t end = grain.first + grain.count();
    for (std::int32_t next = grain.first; next < end;) {
        std::deque<GrainTexts> texts;
        std::vector<d_grain_order> orders;
        for (; next < end && orders.size() < limits::batch_grains; ++next) {
            if (only != nullptr && only->count(next) == 0) continue;
            GrainTexts &text = texts.emplace_back();
            text.words = words_of_grain(grain, part, next);
            text.label = shortened(name_of_grain(grain, next), 60);
            text.files = files_of_grain(grain, part, next);
            d_grain_order &order = orders.emplace_back();
            d_grain_order_init(&order, next);
            const bool own = grain.many && has_placeholder(grain.input);
            if (own) text.input = for_item(grain, next, grain.input);
            const std::string &input = own ? text.input : grain.input;
            order.grain.input = input.empty() ? nullptr : input.data();
            order.grain.input_length = input.size();
            text.put_into(order.grain, environment, part.demands, part.directory);
        }
        if (auto failure = submit_some(orders)) return failure;
        submitted_ += static_cast<std::int64_t>(orders.size());
    }
    return std::nullopt;
}

std::optional<Failure> JobWork::submit_again(const std::set<std::int32_t> &grains) {
    for (std::size_t table = 0; table < file_.grains.size(); ++table) {
        const JobGrain &grain = file_.grains[table];
        const auto first = grains.lower_bound(grain.first);
        if (first == grains.end() || *first >= grain.first + grain.count()) continue;
        for (const std::size_t before : grain.after)  // what it reads is as that left it
            for (std::int32_t i = 0; i < file_.grains[before].count() && !parts_[before].files.outputs.empty(); ++i)
                if (const std::int32_t number = file_.grains[before].first + i; !grains.contains(number))
                    (void)bring(file_.grains[before], parts_[before], number);
        if (auto failure = submit(table, &grains)) return failure;
    }
    return std::nullopt;
}

std::optional<Failure> JobWork::submit_startable() {
    for (const std::size_t table : flow_.take_startable())
        if (auto failure = submit(table)) return failure;
    return std::nullopt;
}

void JobWork::tell_barred() {
    for (std::size_t i = 0; i < told_.size(); ++i)
        if (flow_.standing(i) == JobFlow::Standing::barred && !told_[i]) {
            told_[i] = true;
            console_.note(file_.grains[i].name + " does not run: it comes " + flow_.why_barred(i));
        }
}

void JobWork::take(std::int32_t grain, bool failed) {
    flow_.ended(grain, failed);
    ended_ = flow_.count_ended();
    failed_ = flow_.count_failed();
    tell_barred();
}

// Outputs that the table names come to their places. False: not all did.
bool JobWork::bring(const JobGrain &grain, const JobPart &part, std::int32_t number) {
    bool all = true;
    for (const FileWords::Pair &output : files_of_grain(grain, part, number).outputs)
        if (const auto failure = write_output(session_, number, output)) {
            all = false;
            console_.note(name_of_grain(grain, number) + ": " + failure->message);
        }
    return all;
}

// Which one, how it ended, and the last line of its standard error.
void JobWork::tell_failed(const d_result &result) {
    if (told_failures_++ >= most_told_failures) return;
    // A long one is not in the result as a whole.
    std::string_view error(result.error, result.errlen <= limits::gwait_text_bytes ? result.errlen : 0), line;
    while (!error.empty())
        if (const std::string_view next = take_line(error); !next.empty()) line = next;
    const JobGrain &grain = file_.grains[flow_.table_of(result.grain_num)];
    console_.note(name_of_grain(grain, result.grain_num) + " (grain " + std::to_string(session_) + ":" +
                  std::to_string(result.grain_num) + ") failed with " +
                  (result.termsig != 0 ? "signal " + std::to_string(result.termsig)
                                       : "exit code " + std::to_string(result.retcode)) +
                  (line.empty() ? "" : ": " + shortened(std::string(line), 200)));
}

void JobWork::end(const d_result &result) {
    const std::size_t table = flow_.table_of(result.grain_num);
    if (table == file_.grains.size() || flow_.has_ended(result.grain_num)) return;
    const bool failed = result.termsig != 0 || result.retcode != 0;
    if (failed) tell_failed(result);
    // What comes after it needs its outputs.
    const bool brought = bring(file_.grains[table], parts_[table], result.grain_num);
    take(result.grain_num, failed || !brought);
}

// A killed grain gives no result: for what comes after it, it has failed.
std::optional<Failure> JobWork::take_killed() {
    Info info;
    if (const Status s = info.ask(wire::QueryType::grains, "", session_, -1, "killed"); !s)
        return call_failure("the grains of session " + std::to_string(session_), s);
    bool any = false;
    for (const wire::GrainRow &row : info.grains) {
        if (flow_.has_ended(row.grain)) continue;
        any = true;
        console_.note("grain " + std::to_string(session_) + ":" + std::to_string(row.grain) + " was killed");
        take(row.grain, true);
    }
    if (any) return std::nullopt;
    return Failure{exits::error, "no_results", "session " + std::to_string(session_) + " has no more results", ""};
}

std::optional<Failure> JobWork::take_some() {
    std::vector<d_result> results(job_results_at_once);
    d_result_init(results.data(), results.size());
    int count = 0;
    const int error = d_pool_gwait_many(&this_pool(), D_BLOCK, session_, job_results_at_once, results.data(), &count);
    if (error == D_E_NOTHING_LEFT) return take_killed();
    if (error == D_E_NO_SPACE) return pause_ms(1000), std::nullopt;
    if (error != NO_ERROR) {
        Failure failure = call_failure("the results of session " + std::to_string(session_), error);
        if (const std::string hint = lost_session_hint(error); !hint.empty()) failure.hint = hint;
        else if (error == D_E_CANNOT_RUN)
            failure.hint = "change the limits in the file or the hosts, then run the same command again";
        return failure;
    }
    for (int i = 0; i < count; ++i) end(results[static_cast<std::size_t>(i)]);
    return std::nullopt;
}

std::string JobWork::last_words() const {
    const std::string n = std::to_string(session_);
    const std::int64_t submitted = submitted_;
    return "interrupted; session " + n + " continues in the pool" +
           (submitted >= file_.count ? ""
                                     : " with " + std::to_string(submitted) + " of its " +
                                           counted(file_.count, "grain") + "; the rest is not submitted") +
           ". Run the same command again to go on; `dcs session close " + n + "` stops it";
}

std::optional<Failure> JobWork::run() {
    for (;;) {
        if (auto failure = submit_startable()) return failure;
        if (flow_.over()) return std::nullopt;
        if (auto failure = take_some()) return failure;
    }
}

}  // namespace dcs::commands
