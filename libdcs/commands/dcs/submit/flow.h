#pragma once
// Which grains of a job file may start, as others end. Pure: the same ends in the same order give the same starts.
#include <string>
#include <vector>

#include "job_file.h"

namespace dcs::commands {

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
        std::size_t because = 0;  // barred: of this table
    };
    void bar_dependents();

    const JobFile &file_;
    std::vector<Part> parts_;
    std::vector<bool> grains_;  // by number: has ended
    std::int64_t ended_ = 0, failed_ = 0;
};

}  // namespace dcs::commands
