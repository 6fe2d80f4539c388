#include "joblog.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {

Result<std::unique_ptr<JobLog>> JobLog::create(const std::string &path) {
    std::FILE *file = open_document(path, true);
    if (file == nullptr) return fail_errno(Code::io_error, path, errno);
    std::unique_ptr<JobLog> log(new JobLog(path, file));
    struct stat st = {};
    const bool any = ::fstat(::fileno(file), &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    if (const Status s = any ? Status::ok() : log->begin(); !s) return s;  // before there is a session
    return log;
}

Status JobLog::begin() {
    if (std::exchange(begun_, true)) return Status::ok();
    // A pipe or a terminal has nothing that could be cut.
    const bool cut = ::ftruncate(::fileno(file_.get()), 0) == 0 || errno == EINVAL;
    std::fputs("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n", file_.get());
    if (!cut || std::fflush(file_.get()) != 0) return fail_errno(Code::io_error, "cannot write " + path_, errno);
    return Status::ok();
}

Status JobLog::add(int session, const std::vector<JobLine> &lines) {
    if (session_ != session) {
        Session which;
        which.session = session_ = session;
        source_ = std::make_unique<EventSource>(which);
        history_ = {};
    }
    std::vector<wire::Event> events;
    if (Status s = source_->read(events); !s) return s;
    for (const wire::Event &event : events) history_.take(event);
    for (const JobLine &line : lines) {
        wire::Stay none, *stay = &none;
        const auto found = history_.grains.find(line.grain);
        if (found != history_.grains.end() && !found->second.stays.empty()) stay = &found->second.stays.back();
        std::fprintf(file_.get(), "%d\t%s\t%.3f\t%10.3f\t0\t%llu\t%d\t%d\t%s\n", line.grain, stay->host.c_str(),
                     static_cast<double>(stay->from_ms) / 1000,
                     static_cast<double>(std::max<std::int64_t>(0, stay->to_ms - stay->from_ms)) / 1000,
                     static_cast<unsigned long long>(line.received), line.exit_code, line.signal, line.command.c_str());
    }
    if (std::fflush(file_.get()) != 0) return fail_errno(Code::io_error, "cannot write " + path_, errno);
    return Status::ok();
}

}  // namespace dcs::commands
