#include "work.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <thread>
#include <utility>

#include "client/pool.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/scheduler.h"
#include "base/clock.h"
#include "base/known_words.h"
#include "base/limits.h"
#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/run/placeholders.h"

namespace dcs::commands {
namespace {

constexpr std::int64_t first_batch = 16, largest_batch = limits::batch_grains;
constexpr int results_at_once = 256;
constexpr std::size_t kept_bytes_most = 64u << 20;  // outputs that wait for their turn in memory

}  // namespace

MapWork::MapWork(const MapPlan &plan, const MapOptions &options, const OpenedMap &opened, Console &console)
    : plan_(plan),
      options_(options),
      session_(opened.session),
      fresh_(opened.fresh),
      total_(static_cast<std::int64_t>(plan.inputs.size())),
      done_before_(opened.done_before),
      earlier_(opened.earlier),
      began_(boot_clock()),
      console_(console),
      results_(plan.inputs.size()) {
    for (const EarlierResult &result : earlier_)
        results_[static_cast<std::size_t>(result.grain - 1)].session = result.session;
    ended_ = ahead_ = std::ssize(earlier_);
}

Progress MapWork::progress() {
    const std::int64_t done = done_.load();
    return {.total = total_,
            .done = done,
            .failed = failed_.load(),
            .done_before = std::min(done_before_, done),
            .elapsed_s = (boot_clock() - began_).seconds()};
}

void MapWork::give_up(const Failure &failure) {
    be_the_cause();
    end_with(failure);
}

// What is wrong here does not end the session.
void MapWork::give_up(const std::string &what, const Status &status) {
    give_up(failure_of(what, status, how_to_go_on()));
}

std::string MapWork::how_to_go_on() const {
    const std::string n = std::to_string(session_);
    return "session " + n + " continues" + submitted_part() + ": run the same command again, or `dcs session close " +
           n + "`";
}

std::string MapWork::submitted_part() const {
    return submitted_ >= total_ ? "" : ", with " + std::to_string(submitted_) + " of its " + counted(total_, "grain");
}

void MapWork::output_failed() { give_up("", fail_errno(Code::io_error, "the outputs cannot be written", errno)); }

struct MapWork::Batch {
    std::deque<GrainTexts> texts;
    std::vector<d_grain_order> orders;
};

void MapWork::add(Batch &batch, std::int32_t number, const std::vector<char *> &environment) {
    const std::string &input = plan_.inputs[static_cast<std::size_t>(number - 1)];
    std::vector<std::string> words = plan_.words(number);
    const Result<std::string> &program = program_path(words[0]);
    if (!program && !fresh_ && grain_now("", session_, number)) {  // it was there when an earlier run submitted it
        this_pool().submitted(session_, {number}, {.repeated = 1});
        return;
    }
    if (!program) {
        std::lock_guard guard(mutex_);
        missing_.push_back({number, program.status()});
        return;
    }
    words[0] = *program;
    GrainTexts &texts = batch.texts.emplace_back();
    texts.words = std::move(words);
    texts.label = label_of(columns_of(input), 60);
    texts.files = options_.files.for_input(input, number);
    d_grain_order &order = batch.orders.emplace_back();
    d_grain_order_init(&order, number);
    texts.put_into(order.grain, environment, options_.demands, plan_.directory);
}

void MapWork::wait_for_room() {
    if (!std::exchange(told_no_space_, true))
        console_.note("the scheduler's disk is full; waiting until there is room");
    pause_ms(1000);
}

// A scheduler of release 0.1 does not let a grain that waits take another environment.
static bool only_files_or_environment_differ(std::string_view difference) {
    take_line(difference);
    if (difference.empty()) return false;
    while (!difference.empty())
        if (const std::string_view line = take_line(difference);
            !line.starts_with("input") && !line.starts_with("files[") && !line.starts_with("env"))
            return false;
    return true;
}

// A file that goes along may have changed while a grain of an interrupted run waited or ran.
void MapWork::submit_one(const d_grain_order &order) {
    for (;;) {
        const int error = d_pool_gexec_grain(&this_pool(), session_, order.grain_num, &order.grain);
        some_submitted_ |= error == NO_ERROR;
        if (error == NO_ERROR) return;
        if (error == D_E_GRAIN_DIFFERS && only_files_or_environment_differ(d_errortext())) {
            this_pool().submitted(session_, {order.grain_num}, {.repeated = 1});
            if (!std::exchange(told_files_, true))
                console_.note("warning: a file or the environment of grain " + name_of(order.grain_num) +
                              " has changed since it was submitted; it keeps what it was submitted with");
            return;
        }
        if (error != D_E_NO_SPACE) not_submitted("grain " + name_of(order.grain_num) + " was", error);
        wait_for_room();
    }
}

void MapWork::submit(const Batch &batch) {
    const d_grain_order *order = batch.orders.data(), *const end = order + batch.orders.size();
    while (order != end) {
        const auto left = static_cast<std::size_t>(end - order);
        std::size_t taken = 0, refused = 0;
        const int error = d_pool_gexec_many(&this_pool(), session_, order, left, &taken, &refused);
        some_submitted_ |= error == NO_ERROR || taken > 0;
        if (error == NO_ERROR) return;
        if (error == D_E_NO_SPACE) {
            order += taken;
            wait_for_room();
        } else if (error == D_E_GRAIN_DIFFERS && refused < left) {
            for (; order != end; ++order) submit_one(*order);
        } else if (refused < left) {
            not_submitted("grain " + name_of(order[refused].grain_num) + " was", error);
        } else {
            not_submitted("grains from " + name_of(order[taken].grain_num) + " on were", error);
        }
    }
}

// The first grains begin soon; then the scheduler has so many to give out that larger batches are in time.
void MapWork::submit_all() {
    const std::vector<char *> environment = pointers_to(options_.environment);
    std::int64_t next = 1;
    for (std::int64_t size = first_batch; next <= total_; size = std::min(2 * size, largest_batch)) {
        const std::int64_t before = next, most = room_for(size);
        std::int64_t earlier = 0;
        Batch batch;
        for (; next <= total_ && next < before + most; ++next) {
            const auto grain = static_cast<std::int32_t>(next);
            if (session_of(grain) != session_) ++earlier;
            else add(batch, grain, environment);
        }
        if (!batch.orders.empty()) submit(batch);
        std::lock_guard guard(mutex_);
        submitted_ = next - 1;
        ahead_ -= earlier;
        submitted_more_.notify_all();
    }
}

void MapWork::submit_again(const std::vector<int> &grains) {
    const std::vector<char *> environment = pointers_to(options_.environment);
    for (std::size_t next = 0; next < grains.size();) {
        Batch batch;
        for (; next < grains.size() && std::ssize(batch.orders) < largest_batch; ++next)
            if (grains[next] >= 1 && grains[next] <= total_) add(batch, grains[next], environment);
        if (!batch.orders.empty()) submit(batch);
    }
}

std::int64_t MapWork::room_for(std::int64_t wanted) {
    if (options_.at_once == 0) return wanted;
    std::unique_lock lock(mutex_);
    const auto room = [&] { return options_.at_once - (submitted_ - ended_ + ahead_); };
    ended_more_.wait(lock, [&] { return room() > 0; });
    return std::min(wanted, room());
}

std::int64_t MapWork::submit_only() {
    submit_all();
    take_missing();
    return failed_.load();
}

void MapWork::take(const d_result &result) {
    const int grain = result.grain_num;
    if (grain < 1 || grain > total_) return;  // of another program that used the session
    Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    if (taken.there) return;
    taken.there = taken.ran = some_result_ = true;
    const bool ended_well = result.termsig == 0 && result.retcode == 0;
    const std::string end = ended_well            ? ""
                            : result.termsig != 0 ? "signal " + std::to_string(result.termsig)
                                                  : "exit code " + std::to_string(result.retcode);
    const bool made_all = bring_files(grain, end);
    taken.failed = !ended_well || !made_all;
    if (!ended_well) ends_.insert(end);
    if (options_.joblog != nullptr)
        job_lines_.push_back({grain, result.outlen, ended_well && !made_all ? exits::error : result.retcode,
                              result.termsig, command_of(grain)});
    cpu_s_ += static_cast<double>(result.rusage.ru_utime.tv_sec + result.rusage.ru_stime.tv_sec) +
              static_cast<double>(result.rusage.ru_utime.tv_usec + result.rusage.ru_stime.tv_usec) / 1e6;
    taken.out_length = result.outlen;
    taken.err_length = result.errlen;
    ++done_;
    failed_ += taken.failed;
    const bool whole = std::max(result.outlen, result.errlen) <= limits::gwait_text_bytes;
    const std::size_t bytes = result.outlen + result.errlen;
    if (!whole || (grain != printed_ + 1 && kept_bytes_ + bytes > kept_bytes_most)) return;  // fetched again later
    kept_bytes_ += bytes;
    kept_.emplace(grain, Outputs{{result.output, result.outlen}, {result.error, result.errlen}});
}

// A piece of a grain's output, with its tags. False: it cannot be written.
bool MapWork::print_text(std::int32_t grain, bool to_out, std::string_view text, bool &line_begins) {
    const auto put = [&](std::string_view piece) { return to_out ? console_.out(piece) : console_.err(piece); };
    if (!options_.tag) return put(text);
    const std::string tag = shown_input(plan_.inputs[static_cast<std::size_t>(grain - 1)]) + "\t";
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
        if ((line_begins && !put(tag)) || !put(line)) return false;
        line_begins = end != std::string_view::npos;
        text.remove_prefix(line.size());
    }
    return true;
}

void MapWork::print_stream(std::int32_t grain, const char *stream) {
    FILE *file = nullptr;
    const int error = d_pool_grain_stream(&this_pool(), nullptr, session_of(grain), grain, stream, &file);
    if (error != NO_ERROR) give_up(call_failure("the output of grain " + name_of(grain), error));
    const bool to_out = stream[0] == 'o';
    bool line_begins = true;
    char buffer[65536];
    std::size_t n = 0;
    while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0)
        if (!print_text(grain, to_out, {buffer, n}, line_begins)) output_failed();
    const int why = errno;
    const bool good = std::ferror(file) == 0;
    std::fclose(file);
    if (!good) give_up("", fail_errno(Code::io_error, "the output of a grain cannot be read", why));
}

// NUM.out and NUM.err, whole or not there.
void MapWork::print_to_files(std::int32_t grain) {
    const Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    const auto kept = kept_.find(grain);
    for (const bool out : {true, false}) {
        const std::string path = options_.results + "/" + std::to_string(grain) + (out ? ".out" : ".err");
        const bool any = taken.ran && (out || taken.err_length > 0);
        if (!any) std::remove(path.c_str());  // of an earlier run, which had some
        if (!any) continue;
        const std::string *text = kept == kept_.end() ? nullptr : out ? &kept->second.out : &kept->second.err;
        if (auto failure = write_stream(session_of(grain), grain, out ? "out" : "err", text, path)) {
            if (failure->hint.empty()) failure->hint = how_to_go_on();
            give_up(*failure);
        }
    }
    if (kept == kept_.end()) return;
    kept_bytes_ -= kept->second.out.size() + kept->second.err.size();
    kept_.erase(kept);
}

void MapWork::print(std::int32_t grain) {
    const Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    if (taken.session >= 0 && taken.session != session_) bring_files(grain, "");
    if (options_.results.empty()) print_outputs(grain);
    else print_to_files(grain);
    for (const std::string &why : taken.missing) console_.note(why);
    lost_ += !taken.missing.empty() && !taken.failed;
}

void MapWork::print_outputs(std::int32_t grain) {
    if (const auto kept = kept_.find(grain); kept != kept_.end()) {
        const std::size_t bytes = kept->second.out.size() + kept->second.err.size();
        if (!options_.tag && kept->second.err.starts_with(given_up_words) && !told_.insert(kept->second.err).second)
            kept->second.err.clear();
        for (const bool out : {true, false})
            if (bool begins = true; !print_text(grain, out, out ? kept->second.out : kept->second.err, begins))
                output_failed();
        kept_bytes_ -= bytes;
        kept_.erase(kept);
        return;
    }
    const Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    if (taken.out_length > 0) print_stream(grain, "out");
    if (taken.err_length > 0) print_stream(grain, "err");
}

void MapWork::write_joblog() {
    if (options_.joblog == nullptr || job_lines_.empty()) return;
    if (Status s = options_.joblog->add(session_, job_lines_); !s) give_up("--joblog", s);
    job_lines_.clear();
}

void MapWork::show_taken() {
    write_joblog();
    print_ready();
}

void MapWork::print_ready() {
    bool printed = false;
    while (printed_ < total_ && results_[static_cast<std::size_t>(printed_)].there) {
        print(printed_ + 1);
        ++printed_;
        printed = true;
    }
    if (printed && !console_.flush()) output_failed();
}

// False when nothing is submitted any more and all that was had been at the time of `seen`.
bool MapWork::wait_for_submissions(std::int64_t seen) {
    std::unique_lock lock(mutex_);
    if (seen == total_) return false;
    ended_ = std::max(ended_, seen + ahead_);  // killed ones among them, which give no result
    ended_more_.notify_all();
    submitted_more_.wait(lock, [&] { return submitted_ != seen; });
    return true;
}

std::int64_t MapWork::run() {
    take_earlier();
    std::thread submitting([this] { submit_all(); });
    std::vector<d_result> results(results_at_once);
    d_result_init(results.data(), results.size());
    while (done_.load() < total_) {
        std::int64_t seen = 0;
        {
            std::lock_guard guard(mutex_);
            seen = submitted_;
        }
        take_missing();
        show_taken();
        if (done_.load() == total_) break;
        int count = 0;
        const int error = d_pool_gwait_many(&this_pool(), D_BLOCK, session_, results_at_once, results.data(), &count);
        if (error == NO_ERROR) {
            for (int i = 0; i < count; ++i) take(results[static_cast<std::size_t>(i)]);
            {
                std::lock_guard guard(mutex_);
                ended_ = std::max(ended_, done_.load());
                ended_more_.notify_all();
            }
            show_taken();
        } else if (error == D_E_NOTHING_LEFT || error == D_E_REPLAY_END) {
            if (wait_for_submissions(seen)) continue;
            if (!take_elsewhere()) finish_without_results();
            show_taken();
        } else if (error == D_E_NO_SPACE) {
            pause_ms(1000);
        } else {
            const std::string session = std::to_string(session_), hint = lost_session_hint(error);
            Failure failure = call_failure("the results of session " + session, error);
            if (error == D_E_CANNOT_RUN && (wait_for_submissions(seen) || after_cannot_run())) continue;
            if (!hint.empty()) failure.hint = hint;
            else if (error == D_E_CANNOT_RUN)
                failure.hint =
                    "change the limits or the hosts, then run the same command again to continue, or end it with `dcs "
                    "session close " +
                    session + "`";
            give_up(failure);
        }
    }
    submitting.join();
    return failed_.load();
}

std::int64_t MapWork::ran_and_failed() const {
    return std::count_if(results_.begin(), results_.end(),
                         [](const Taken &taken) { return taken.ran && taken.failed; });
}

}  // namespace dcs::commands
