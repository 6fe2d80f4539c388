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
