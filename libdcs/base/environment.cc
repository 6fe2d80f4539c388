#include "base/environment.h"

#include <algorithm>

#include "base/text.h"

namespace dcs {

bool is_of_the_login(std::string_view name) {
    static const auto names = words_of(
        "PATH MANPATH INFOPATH TERM COLORTERM DISPLAY WAYLAND_DISPLAY XAUTHORITY LANG LANGUAGE LS_COLORS HOME USER "
        "LOGNAME SHELL MAIL HOSTNAME TMPDIR PWD KRB5CCNAME PS1 PROMPT_COMMAND HISTFILE HISTSIZE HISTCONTROL EDITOR "
        "VISUAL PAGER LESS LESSOPEN MOTD_SHOWN CONDA_SHLVL CONDA_PROMPT_MODIFIER GPG_AGENT_INFO MANAGERPID "
        "NOTIFY_SOCKET DIRENV_DIFF JOB_ID MAKELEVEL MAKEFLAGS MFLAGS");
    static const auto families = words_of(
        "LC_ XDG_ DCS_ TERM_ SUDO_ SYSTEMD_ GNOME_ KDE_ QT_ GTK_ LMOD_ __LMOD_ SLURM_ PBS_ LSB_ SGE_ FLUX_ PMI_ PMIX_ "
        "OMPI_ GITHUB_ CI_ PARALLEL_ JPY_");
    static const auto of_work = words_of(
        "SLURM_ARRAY_TASK_ SLURM_PROCID SLURM_LOCALID SLURM_NODEID PARALLEL_SEQ PBS_ARRAY LSB_JOBINDEX SGE_TASK_ID");
    static const auto marks = words_of("SESSION UUID TTY");  // of prompts and terminals, as STARSHIP_SESSION_KEY
    const auto begins = [&](std::string_view family) { return name.starts_with(family); };
    if (std::ranges::any_of(of_work, begins)) return false;
    const auto parts = words_of(name, "_");
    return std::ranges::find(names, name) != names.end() || std::ranges::any_of(families, begins) ||
           std::ranges::find_first_of(parts, marks) != parts.end();
}

}  // namespace dcs
