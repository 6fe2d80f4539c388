// HTCondor by its commands condor_submit, condor_q and condor_rm.
//
// Jobs are found by attributes of our own. `condor_q -af:t` prints values with tabs between them in all releases since
// 7.8; HoldReason comes last, because it is free text.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "engine.h"

namespace dcs::commands {
namespace {

constexpr const char *attributes[] = {"ClusterId",           "ProcId",     "DcsPilot", "JobStatus", "RemoteHost",
                                      "JobCurrentStartDate", "ServerTime", "DcsLimit", "HoldReason"};
constexpr std::size_t fields_per_job = std::size(attributes);
struct CondorState {
    enum : int { idle = 1, running, removed, completed, held, transferring, suspended };
};

Result<std::string> condor_says(const std::string &program, const std::vector<std::string> &arguments) {
    return engine_says("HTCondor", program, arguments);
}

std::string rounded_up(double seconds) { return std::to_string(static_cast<long>(std::ceil(seconds))); }

const char *word_of_status(int status) {
    static constexpr const char *words[] = {"",          "IDLE", "RUNNING",      "REMOVED",
                                            "COMPLETED", "HELD", "TRANSFERRING", "SUSPENDED"};
    return status >= CondorState::idle && status <= CondorState::suspended ? words[status] : "UNKNOWN";
}

// "slot1_2@node7.example" is on node7.example; "undefined" nowhere.
std::string node_of(const std::string &slot) {
    return slot == "undefined" ? "" : slot.substr(slot.rfind('@') == std::string::npos ? 0 : slot.rfind('@') + 1);
}

EngineJob job_of_fields(const std::string (&fields)[fields_per_job], int status) {
    EngineJob job{.id = fields[0] + "." + fields[1], .name = fields[2], .node = node_of(fields[4])};
    job.state = word_of_status(status);
    job.held = status == CondorState::held;
    job.waits = status == CondorState::idle || job.held;
    job.over = status == CondorState::removed || status == CondorState::transferring;
    if (job.held && fields[8] != "undefined") job.reason = fields[8];
    std::int64_t since = 0, now = 0, limit = 0;
    if (job.waits || !read_number(fields[5], since) || !read_number(fields[6], now)) return job;
    job.used_s = static_cast<double>(std::max<std::int64_t>(0, now - since));
    if (read_number(fields[7], limit)) job.left_s = std::max(0.0, static_cast<double>(limit) - job.used_s);
    return job;
}

// In the form of `arguments`: in double quotes, a word in single ones; both are doubled within.
std::string argument(const std::string &word) {
    std::string text = "\"'";
    for (const char c : word) text += c == '\'' || c == '"' ? std::string(2, c) : std::string(1, c);
    return text + "'\"";
}

// The machine has no limit of its own, so the job takes one along: its server leaves before. The script is read where
// the pilot's certificate is read too, so nothing is transferred.
std::string description(const JobOrder &order) {
    const std::pair<const char *, std::string> lines[] = {
        {"universe", "vanilla"},
        {"executable", "/bin/sh"},
        {"transfer_executable", "false"},
        {"arguments", argument(order.script)},
        {"initialdir", order.script.substr(0, order.script.rfind('/'))},
        {"batch_name", order.name},
        {"log", order.log + ".condor"},
        {"request_cpus", std::to_string(order.cores)},
        {"notification", "never"},
        {"+DcsPilot", "\"" + order.name + "\""},
        {"+DcsLimit", rounded_up(order.limit_s)},
        {"periodic_remove", "JobStatus == 2 && time() - JobCurrentStartDate > " + rounded_up(order.limit_s)}};
    std::string text;
    for (const auto &[key, value] : lines) text += std::string(key) + " = " + value + "\n";
    return text + "queue\n";
}

class Condor : public Engine {
public:
    Status usable() override { return condor_says("condor_submit", {"-version"}).status(); }

    // Jobs at another place are not seen by condor_q.
    std::string own_option_in(const std::vector<std::string> &options) const override {
        for (const std::string &word : options)
            for (const char *own : {"-name", "-n", "-remote", "-r", "-pool", "-p", "-spool", "-s", "-interactive", "-i",
                                    "-dry-run", "-queue", "-terse", "-factory", "-batch-name"})
                if (word == own) return own;
        return "";
    }

    Result<std::vector<EngineJob>> list(const std::string &prefix) override {
        std::vector<std::string> line = {"-constraint", "regexp(\"^" + prefix + "\", DcsPilot)", "-af:t"};
        line.insert(line.end(), std::begin(attributes), std::end(attributes));
        const auto said = condor_says("condor_q", line);
        if (!said) return said.status();
        return jobs_of_condor(*said);
    }

    Result<std::string> submit(const JobOrder &order) override {
        const std::string file = order.script + ".condor";
        if (Status s = write_file(file, description(order)); !s) return s;
        std::vector<std::string> line = order.options;
        line.push_back(file);
        const auto said = condor_says("condor_submit", line);
        return said ? job_of_condor_submit(*said) : said.status();
    }

    // HTCondor sends SIGTERM to what the job began with, and kills the rest only after a time of the machine's.
    Status ask_to_end(const EngineJob &job) override { return cancel(job); }

    Status cancel(const EngineJob &job) override { return condor_says("condor_rm", {job.id}).status(); }
};

}  // namespace

std::unique_ptr<Engine> condor(const std::string &) { return std::make_unique<Condor>(); }

std::vector<EngineJob> jobs_of_condor(std::string_view text) {
    std::vector<EngineJob> jobs;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        std::string fields[fields_per_job];
        std::size_t count = 0;
        for (; count < fields_per_job; ++count) {
            const bool last = count + 1 == fields_per_job;
            const std::size_t end = last ? line.size() : line.find('\t');
            if (end == std::string_view::npos) break;
            fields[count] = line.substr(0, end);
            line.remove_prefix(std::min(end + 1, line.size()));
        }
        int status = 0;
        const bool whole_line = count == fields_per_job && read_number(fields[3], status);
        if (whole_line && status != CondorState::completed) jobs.push_back(job_of_fields(fields, status));
    }
    return jobs;
}

}  // namespace dcs::commands
