#pragma once
// The control program of a job file: submits what may start, takes what has ended. It may be killed anywhere; the next
// run submits the same grains and takes the same results again, and goes on from there.
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "base/instant.h"
#include "commands/dcs/frame/console.h"
#include "commands/dcs/map/files.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/run/file_options.h"
#include "dcs.h"
#include "wire/demands.h"
#include "job_file.h"

namespace dcs::commands {

// Which grains of a job file may start, as others end. Pure: the same ends in the same order give the same starts.
class JobFlow {
public:
    enum class Standing { waits, started, done, failed, barred };

    explicit JobFlow(const JobFile &file);
    // Tables whose grains may start now; each is returned once.
    std::vector<std::size_t> take_startable();
    void ended(std::int32_t grain, bool failed);     // a second time, or of no table: ignored
    std::size_t table_of(std::int32_t grain) const;  // none: the number of tables
    bool has_ended(std::int32_t grain) const;
    bool over() const;  // nothing runs, and nothing can start
    Standing standing(std::size_t table) const { return parts_[table].standing; }
    std::string why_barred(std::size_t table) const;  // "after fit, which failed"
    std::int64_t count_ended() const { return ended_; }
    std::int64_t count_failed() const { return failed_; }
    std::int64_t count_barred() const;  // grains that do not run

private:
    struct Part {
        Standing standing = Standing::waits;
        std::int32_t left = 0;
        bool failed = false;
        bool taken = false;       // by take_startable()
        std::size_t because = 0;  // barred: of this table
    };
    void bar_dependents();

    const JobFile &file_;
    std::vector<Part> parts_;
    std::vector<bool> grains_;  // by number: has ended
    std::int64_t ended_ = 0, failed_ = 0;
};

// A table [[grain]], ready to be submitted.
struct JobPart {
    std::vector<std::string> environment;
    std::string directory, program;
    wire::Demands demands;
    FileWords files;
};
// Begins the idents of its sessions: the same for the same grains and directory, whatever they demand of hosts.
std::string ident_of_job(const std::string &directory, const JobFile &file);
// Its programs; of one that is found by PATH the script that it runs. Other files may be made by its grains.
std::vector<MapFile> files_of_job(const std::string &directory, const JobFile &file, const std::vector<JobPart> &parts);
struct JobChange {
    std::string words;   // for people: a file that a grain of the session names, written after it had succeeded
    bool since_failure;  // a file was written after a grain that names it had failed
};
// programs: which of files_of_job() is not as it was when the session began, if one is.
JobChange changed_in_job(const Session &session, const std::string &directory, const JobFile &file,
                         const std::vector<JobPart> &parts, const std::string &programs);
// What the tables say, and what this host says of their programs; each failure names its table.
std::vector<JobPart> prepare_job(const JobFile &file, const std::string &pool_directory,
                                 std::vector<std::string> &errors);
// Of a grain that is one of many: `text` with what takes the place of {} and the like.
std::string for_item(const JobGrain &grain, std::int32_t number, const std::string &text);
// The words of one of its grains.
std::vector<std::string> words_of_grain(const JobGrain &grain, const JobPart &part, std::int32_t number);

// Its files and outputs, these with absolute paths.
FileWords files_of_grain(const JobGrain &grain, const JobPart &part, std::int32_t number);
// The directories of outputs are there and can be written to, made where missing; each failure names its table.
void check_outputs(const JobFile &file, const std::vector<JobPart> &parts, std::vector<std::string> &errors);
// Before the first run: images and files of grains that start at once are there. Others may be made by grains.
void check_inputs(const JobFile &file, const std::vector<JobPart> &parts, std::vector<std::string> &errors);

class JobWork {
public:
    JobWork(const JobFile &file, const std::vector<JobPart> &parts, int session, Console &console);
    std::optional<Failure> submit_startable();
    // These alone, which the session has.
    std::optional<Failure> submit_again(const std::set<std::int32_t> &grains);
    std::optional<Failure> run();  // until nothing runs and nothing can start
    const JobFlow &flow() const { return flow_; }
    Progress progress();             // from any thread
    std::string last_words() const;  // likewise: the session outlives this process

private:
    // only: not all of it, but these; null: all.
    std::optional<Failure> submit(std::size_t table, const std::set<std::int32_t> *only = nullptr);
    std::optional<Failure> submit_some(const std::vector<d_grain_order> &orders);
    std::optional<Failure> submit_one(const d_grain_order &order);
    std::optional<Failure> take_some();
    std::optional<Failure> take_killed();
    bool has_succeeded(std::int32_t grain) const;
    void take(std::int32_t grain, bool failed);
    bool bring(const JobGrain &grain, const JobPart &part, std::int32_t number);
    void end(const d_result &result);
    void tell_failed(const d_result &result);
    void tell_barred();

    const JobFile &file_;
    const std::vector<JobPart> &parts_;
    const int session_;
    Console &console_;
    JobFlow flow_;
    std::vector<bool> told_;  // by table: that it does not run
    std::size_t told_failures_ = 0;
    const Instant began_;
    std::atomic<std::int64_t> ended_{0}, failed_{0}, submitted_{0};
};

}  // namespace dcs::commands
