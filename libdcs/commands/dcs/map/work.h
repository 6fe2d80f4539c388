#pragma once
// The working part of `dcs map`: one thread submits, one takes results and prints them in the order of
// the inputs, both in batches. Any of them may be interrupted at any point; a rerun finds what was done.
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/instant.h"
#include "commands/dcs/frame/console.h"
#include "dcs.h"
#include "commands/dcs/run/file_options.h"
#include "joblog.h"
#include "plan.h"
#include "session.h"

namespace dcs::commands {

struct MapOptions {
    wire::Demands demands;
    std::vector<std::string> environment;
    FileWords files;
    bool brings = false;  // --bring: the program is one of this host
    Format format = Format::table;
    Shown shown = Shown::plain;
    JobLog *joblog = nullptr;
    std::int64_t at_once = 0;  // grains that are submitted and have not ended; 0: no limit
    bool tag = false;          // before each line its input
    std::string results;       // a directory for outputs, instead of the standard streams; empty: none
};

class MapWork {
public:
    MapWork(const MapPlan &plan, const MapOptions &options, const OpenedMap &opened, Console &console);

    // Until every grain has a result. Number of those that failed. Failures of DCS itself end the
    // process (Console::give_up): the session stays, and a rerun resumes it.
    std::int64_t run();
    // Hands the grains in, and takes nothing. Number of those that have no program.
    std::int64_t submit_only();
    // These alone, which the session has.
    void submit_again(const std::vector<int> &grains);
    Progress progress();                                                 // from any thread
    const std::atomic<std::int32_t> &shown() const { return printed_; }  // so many of the first grains have ended
    double cpu_s() const { return cpu_s_; }                              // after run(): of all grains
    bool nothing_ran() const { return !some_result_; }                   // after run(): no grain was ever started
    std::int64_t ran_and_failed() const;                                 // after run(): of the failed ones
    std::int64_t killed() const { return killed_; }                      // after run()
    std::int64_t lost() const { return lost_; }  // after run(): succeeded, but an output could not be written here
    const std::set<std::string> &ends() const {
        return ends_;
    }                                            // after run(): of failed ones: "exit code 2", "signal 9"
    bool uncopied() const { return uncopied_; }  // after run(): a grain made an output that could not be written here
    // ", with 20 of its 1000 grains"; empty: with all. From any thread.
    std::string submitted_part() const;

private:
    struct Taken {  // of one grain
        bool there = false, ran = false, failed = false;
        int session = -1;                  // that has it, if that is another one
        std::vector<std::string> missing;  // why outputs are not in their places
        std::uint64_t out_length = 0, err_length = 0;
    };
    struct Outputs {
        std::string out, err;
    };

    struct Batch;
    void submit_all();                           // body of the submitting thread
    std::int64_t room_for(std::int64_t wanted);  // waits until there is some, for --jobs
    int session_of(std::int32_t grain) const;
    std::string name_of(std::int32_t grain) const;     // "7:1"
    std::string command_of(std::int32_t grain) const;  // for --joblog
    void add(Batch &batch, std::int32_t grain, const std::vector<char *> &environment);
    void submit(const Batch &batch);
    void submit_one(const d_grain_order &order);
    void wait_for_room();
    [[noreturn]] void not_submitted(const std::string &which, int error);
    const Result<std::string> &program_path(const std::string &name);
    void take_earlier();  // before all others
    void take_ended(int session, const std::vector<EarlierResult> &results);
    bool look_elsewhere();  // false: nothing has ended
    bool take_elsewhere();
    void take(const d_result &result);
    void write_joblog();
    void show_taken();
    void print_ready();
    void print(std::int32_t grain);
    void print_outputs(std::int32_t grain);
    void print_stream(std::int32_t grain, const char *stream);
    bool print_text(std::int32_t grain, bool to_out, std::string_view text, bool &line_begins);
    void print_to_files(std::int32_t grain);
    bool bring_files(std::int32_t grain, const std::string &end);
    bool wait_for_submissions(std::int64_t seen);
    void fail_without_result(std::int32_t grain, int code, const std::string &why);
    void take_missing();            // inputs whose program is not there
    void finish_without_results();  // killed grains never report
    bool after_cannot_run();        // false: nothing can be done about it here
    std::vector<std::int32_t> waiting_grains();
    void start_again(const std::vector<std::int32_t> &grains);
    bool fail_unstartable(const std::vector<std::int32_t> &grains);
    std::string how_to_go_on() const;
    [[noreturn]] void give_up(const Failure &failure);
    [[noreturn]] void give_up(const std::string &what, const Status &status);  // with the hint that the session goes on
    [[noreturn]] void output_failed();
    void be_the_cause();  // does not return in another thread than the first
    [[noreturn]] void end_with(const Failure &failure);

    const MapPlan &plan_;
    const MapOptions &options_;
    const int session_;
    const bool fresh_;
    const std::int64_t total_, done_before_;
    const std::vector<EarlierResult> &earlier_;
    const Instant began_;
    Console &console_;

    std::mutex mutex_;  // of what follows, up to the blank line
    std::condition_variable submitted_more_, ended_more_;
    std::atomic<std::int64_t> submitted_{0};
    std::int64_t ended_ = 0;  // of those, as far as is known, and of all that another session has
    std::int64_t ahead_ = 0;  // that another session has, and submitted_ does not count yet
    struct Missing {
        std::int32_t grain = 0;
        Status why;
    };
    std::vector<Missing> missing_;

    // of the submitting thread
    std::unordered_map<std::string, Result<std::string>> programs_;  // name -> path
    bool told_no_space_ = false, told_files_ = false, some_submitted_ = false;

    std::atomic<bool> giving_up_{false};
    std::atomic<std::int64_t> done_{0}, failed_{0};
    std::vector<Taken> results_;  // by grain - 1; these belong to the waiting thread, but for the sessions
    std::unordered_map<std::int32_t, Outputs> kept_;  // came before their turn, while there is room
    std::size_t kept_bytes_ = 0;
    std::atomic<std::int32_t> printed_{0};
    std::vector<JobLine> job_lines_;  // taken, not in the log yet
    double cpu_s_ = 0;
    std::int64_t lost_ = 0, killed_ = 0;
    bool uncopied_ = false, some_result_ = false, started_again_ = false;
    std::map<int, std::vector<std::int32_t>> elsewhere_;  // grains that another session runs
    std::vector<int> to_run_;                             // that did not succeed there
    std::set<std::string> told_;                          // why items failed that did not run, each once
    std::set<std::string> ends_;
};

}  // namespace dcs::commands
