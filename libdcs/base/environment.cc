#include "base/environment.h"

#include <algorithm>

#include "base/text.h"

namespace dcs {

bool is_of_the_login(std::string_view name) {
    static const auto names = words_of(
        "PATH MANPATH INFOPATH TERM COLORTERM DISPLAY WAYLAND_DISPLAY XAUTHORITY LANG LANGUAGE LS_COLORS HOME USER "
        "LOGNAME SHELL MAIL HOSTNAME TMPDIR PWD KRB5CCNAME PS1 PROMPT_COMMAND HISTFILE HISTSIZE HISTCONTROL EDITOR "
        "VISUAL PAGER LESS LESSOPEN MOTD_SHOWN CONDA_SHLVL CONDA_PROMPT_MODIFIER GPG_AGENT_INFO MANAGERPID "
        "NOTIFY_SOCKET DIRENV_DIFF");
    static const auto families =
        words_of("LC_ XDG_ DCS_ TERM_ SUDO_ SLURM_ SYSTEMD_ GNOME_ KDE_ QT_ GTK_ LMOD_ __LMOD_");
    static const auto marks = words_of("SESSION UUID TTY");  // of prompts and terminals, as STARSHIP_SESSION_KEY
    if (name.starts_with("SLURM_ARRAY_TASK_")) return false;
    return std::ranges::find(names, name) != names.end() ||
           std::ranges::any_of(families, [&](std::string_view family) { return name.starts_with(family); }) ||
           std::ranges::any_of(marks, [&](std::string_view mark) { return name.find(mark) != name.npos; });
}

}  // namespace dcs
