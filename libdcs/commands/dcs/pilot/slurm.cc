// Slurm by its commands sbatch, squeue and scancel.
#include <algorithm>
#include <cmath>
#include <unistd.h>

#include "base/option_table.h"
#include "base/text.h"
#include "engine.h"

namespace dcs::commands {
namespace {

// Slurm signals up to a minute early (sbatch(1), --signal): with a short limit that would be at once.
constexpr double least_signalled_s = 600;

Result<std::string> slurm_says(const std::string &program, const std::vector<std::string> &arguments) {
    return engine_says("Slurm", program, arguments);
}

EngineJob job_of_line(std::string_view line) {
    std::string fields[7];
    for (int i = 0; i < 7; ++i) {
        const std::size_t end = i < 6 ? std::min(line.find('|'), line.size()) : line.size();
        fields[i] = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    EngineJob job{.id = fields[0], .name = fields[1], .node = fields[4], .state = fields[2]};
    job.waits = job.state == "PENDING";
    job.over = job.state == "COMPLETING";
    if (job.waits) job.reason = fields[6];
    job.held = job.waits && job.reason.starts_with("JobHeld");
    if (!job.waits) job.left_s = seconds_of_slurm(fields[3]);
    job.used_s = std::max(0.0, seconds_of_slurm(fields[5]));
    return job;
}

class Slurm : public Engine {
public:
    Status usable() override {
        const auto said = slurm_says("sbatch", {"--version"});
        if (!said) return said.status();
        if (said->find("DCS") == std::string::npos) return Status::ok();
        return fail(Code::refused, "sbatch in PATH is the one of DCS, which submits to a pool: put Slurm's before it");
    }

    std::string own_option_in(const std::vector<std::string> &options) const override {
        return option_among({"-t", "--time", "-J", "--job-name", "-o", "--output", "-a", "--array", "--signal", "-N",
                             "--nodes", "-n", "--ntasks", "--wrap", "-W", "--wait"},
                            options);
    }

    Result<std::vector<EngineJob>> list(const std::string &prefix) override {
        const auto said = slurm_says(
            "squeue", {"--noheader", "--user", std::to_string(::geteuid()), "--format", "%i|%j|%T|%L|%N|%M|%r"});
        if (!said) return said.status();
        std::vector<EngineJob> jobs;
        for (std::string_view text = *said; !text.empty();) {
            EngineJob job = job_of_line(take_line(text));
            if (job.name.compare(0, prefix.size(), prefix) == 0) jobs.push_back(std::move(job));
        }
        return jobs;
    }

    Result<std::string> submit(const JobOrder &order) override {
        std::vector<std::string> line = {"--parsable",
                                         "--job-name=" + order.name,
                                         "--output=" + order.log,
                                         "--open-mode=append",
                                         "--time=" + slurm_time(order.limit_s),
                                         "--nodes=1",
                                         "--ntasks=1",
                                         "--cpus-per-task=" + std::to_string(order.cores)};
        if (order.limit_s >= least_signalled_s)
            line.push_back("--signal=B:TERM@" + std::to_string(std::lround(order.margin_s)));
        line.insert(line.end(), order.options.begin(), order.options.end());
        line.push_back(order.script);
        const auto said = slurm_says("sbatch", line);
        return said ? job_of_sbatch(*said) : said.status();
    }

    // To what the job began with, and to no other process of it.
    Status ask_to_end(const EngineJob &job) override {
        return slurm_says("scancel", {"--batch", "--signal=TERM", job.id}).status();
    }
    Status cancel(const EngineJob &job) override { return slurm_says("scancel", {job.id}).status(); }
};

}  // namespace

std::unique_ptr<Engine> slurm(const std::string &) { return std::make_unique<Slurm>(); }

double seconds_of_slurm(std::string_view text) {
    const bool clock = text.find(':') != std::string_view::npos;  // it writes no other times
    return clock ? seconds_of_text(text).value_or(-1) : -1;
}

std::string slurm_time(double seconds) {
    const auto minutes = static_cast<long>(std::ceil(seconds / 60));
    return std::to_string(minutes / 60) + ":" + std::to_string(minutes / 10 % 6) + std::to_string(minutes % 10) + ":00";
}

}  // namespace dcs::commands
