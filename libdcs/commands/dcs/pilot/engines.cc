// The engines by name, and what their implementations share.
#include <algorithm>
#include <iterator>

#include "commands/dcs/pool/start_daemon.h"
#include "engine.h"

namespace dcs::commands {
namespace {

constexpr EngineKind kinds[] = {
    {"slurm", "Slurm", "sbatch", slurm}, {"pbs", "PBS", "qsub", pbs}, {"condor", "HTCondor", "condor_submit", condor}};

}  // namespace

const EngineKind *engine_kind(std::string_view name) {
    const auto found =
        std::find_if(std::begin(kinds), std::end(kinds), [&](const EngineKind &kind) { return name == kind.name; });
    return found == std::end(kinds) ? nullptr : &*found;
}

Result<std::string> engine_says(const char *title, const std::string &program,
                                const std::vector<std::string> &arguments) {
    auto ran = run_program(program, arguments, "", engine_patience_s);
    if (!ran && ran.status().code == Code::not_found)
        return fail(Code::not_found,
                    program + " is not in PATH: run this where the commands of " + title + " are installed");
    if (!ran) return ran.status();
    if (ran->exit_code == 0) return std::move(ran->output);
    const std::string said = ran->errors.empty() ? "exit code " + std::to_string(ran->exit_code) : ran->errors;
    return fail(Code::refused, said.rfind(program, 0) == 0 ? said : program + ": " + said);
}

namespace {

Status no_job_in(const char *program, const std::string &output, const char *list) {
    const std::string text = last_lines(output, 1);
    return fail(Code::refused, std::string(program) + " ended without an error, but printed no number of a job" +
                                   (text.empty() ? "" : ": `" + text.substr(0, text.find('\n')) + "`") + "; `" + list +
                                   "` shows whether there is one");
}

// "17" of "17;cluster" or "17.server"; empty: it begins with no number, or goes on otherwise.
std::string_view number_before(std::string_view line, char end) {
    const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    const bool whole = digits == line.size() || line[digits] == end;
    return whole && line.find_first_of(" \t") == std::string_view::npos ? line.substr(0, digits) : std::string_view();
}

std::string last_line(const std::string &output) {
    const std::string text = last_lines(output, 1);
    return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

Result<std::string> job_of_sbatch(const std::string &output) {
    const std::string line = last_line(output);
    const std::string_view number = number_before(line, ';');
    if (number.empty()) return no_job_in("sbatch", output, "squeue");
    return std::string(number);
}

Result<std::string> job_of_qsub(const std::string &output) {
    const std::string line = last_line(output);
    if (number_before(line, '.').empty()) return no_job_in("qsub", output, "qstat");
    return line;
}

Result<std::string> job_of_condor_submit(const std::string &output) {
    const std::string_view mark = "submitted to cluster ";
    const std::size_t at = output.find(mark);
    const std::string line = at == std::string::npos ? "" : output.substr(at + mark.size());
    const std::string number = line.substr(0, line.find_first_not_of("0123456789"));
    if (number.empty()) return no_job_in("condor_submit", output, "condor_q");
    return number + ".0";
}

std::string option_among(const std::vector<const char *> &own, const std::vector<std::string> &options) {
    for (const std::string &word : options)
        for (const char *name : own) {
            const std::string text = name;
            const bool is_long = text.starts_with("--");
            const bool glued = is_long ? word.starts_with(text + "=") : text.size() == 2 && word.starts_with(text);
            if (word == text || (glued && (is_long || !word.starts_with("--")))) return text;
        }
    return "";
}

}  // namespace dcs::commands
