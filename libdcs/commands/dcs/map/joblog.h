#pragma once
// `dcs map --joblog FILE`: a line for each grain, in the order in which they finished, as GNU parallel writes it. Where
// and when a grain ran is what the session's event log says.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/streams.h"
#include "commands/dcs/query/session_events.h"

namespace dcs::commands {

struct JobLine {
    std::int32_t grain = 0;
    std::uint64_t received = 0;  // bytes of standard output
    int exit_code = 0, signal = 0;
    std::string command;
};

class JobLog {
public:
    // Opens the file, begins it if it is empty, and leaves what it has: another command with this file may still run.
    static Result<std::unique_ptr<JobLog>> create(const std::string &path);
    // Begins it anew: a rerun gets all results again. By the command that has the session.
    Status begin();
    // Of grains of this session that have ended; they are there when it returns.
    Status add(int session, const std::vector<JobLine> &lines);

private:
    JobLog(std::string path, std::FILE *file) : path_(std::move(path)), file_(file) {}

    const std::string path_;
    client::File file_;
    bool begun_ = false;
    int session_ = -1;
    std::unique_ptr<EventSource> source_;
    wire::History history_;
};

}  // namespace dcs::commands
