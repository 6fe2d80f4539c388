#include "commands/dcs/run/caller_environment.h"

#include "commands/dcs/frame/table.h"

#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

using namespace dcs;
using namespace dcs::commands;
using Words = std::vector<std::string>;

namespace {

struct Environment {
    explicit Environment(Words w) : words(std::move(w)) {
        for (std::string &word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
    }
    Words words;
    std::vector<char *> pointers;
};

using test::Folder;

}  // namespace

TEST_CASE("a map's environment leaves out what differs between terminals") {
    Environment e({"B=2",
                   "A=1",
                   "OLDPWD=/x",
                   "PWD=/wrong",
                   "SHLVL=2",
                   "SSH_CLIENT=1",
                   "SSH_AUTH_SOCK=/s",
                   "_=/bin/dcs",
                   "DBUS_SESSION_BUS_ADDRESS=x",
                   "XDG_SESSION_ID=3",
                   "XDG_STATE_HOME=/keep",
                   "DCS_AUTH_FD=5",
                   "DCS_PATIENCE_S=1",
                   "DCS_GRAIN_DIR=/g",
                   "DCS_GRAIN_SEQUENCE=1",
                   "LINES=3",
                   "COLUMNS=9",
                   "WINDOWID=7",
                   "EMPTY=",
                   "WITH=a=b"});
    CHECK(steady_environment(e.pointers.data(), "", "/here") ==
          Words{"A=1", "B=2", "EMPTY=", "PWD=/here", "WITH=a=b", "XDG_STATE_HOME=/keep"});
}

TEST_CASE("a script of another batch system says which command obeys its lines") {
    CHECK(batch_lines_hint("#!/bin/sh\n#SBATCH -a 1-9\n").find("#SBATCH are ignored; DCS has an sbatch") !=
          std::string::npos);
    CHECK(batch_lines_hint("#PBS -N x").find("#PBS are ignored; DCS has a qsub") != std::string::npos);
    CHECK(batch_lines_hint("\n#$ -t 1-9\n").find("#$ are ignored; DCS has a qsub") != std::string::npos);
    const std::string lines(49, '\n');
    CHECK_FALSE(batch_lines_hint(lines + "#PBS -N x").empty());
    for (const std::string &text :
         {std::string(), std::string("echo '#SBATCH -a 1'\n #PBS -N x\n#$x\n##SBATCH -a 1\n"), lines + "\n#PBS -N x"})
        CHECK(batch_lines_hint(text).empty());
}

TEST_CASE("only a readable script has lines of another batch system") {
    const Folder folder;
    const auto file = [&](const char *text) {
        const std::string path = folder.at("job");
        std::FILE *f = std::fopen(path.c_str(), "w");
        std::fputs(text, f);
        std::fclose(f);
        return path;
    };
    const std::string path = file("#!/bin/sh\n#SBATCH -a 1-9\n");
    CHECK(batch_lines_of(path).starts_with("job: its lines #SBATCH are ignored"));
    CHECK(batch_lines_of(file("\x7f"
                              "ELF\n#SBATCH -a 1-9\n"))
              .empty());
    CHECK(batch_lines_of(folder.at("none")).empty());
    CHECK(batch_lines_of("").empty());
}

TEST_CASE("the whole environment lacks only what belongs to DCS") {
    Environment e({"B=2", "PWD=/x", "SSH_CLIENT=1", "DCS_AUTH_FD=5", "DCS_GRAIN_DIR=/g", "DCS_DIR=/p", "A=1",
                   "A=second", "=odd", "odd"});
    CHECK(whole_environment(e.pointers.data(), "") == Words{"A=1", "B=2", "DCS_DIR=/p", "PWD=/x", "SSH_CLIENT=1"});
    CHECK(whole_environment(e.pointers.data(), "/by/option") ==
          Words{"A=1", "B=2", "DCS_DIR=/by/option", "PWD=/x", "SSH_CLIENT=1"});
}

TEST_CASE("names that only begin like volatile ones stay") {
    CHECK(is_volatile("_"));
    CHECK(is_volatile("SSH_TTY"));
    CHECK_FALSE(is_volatile("_X"));
    CHECK_FALSE(is_volatile("SSHX"));
    CHECK_FALSE(is_volatile("LINES_OF_CODE"));
    CHECK_FALSE(is_volatile("PATH"));
    CHECK_FALSE(is_volatile("HOME"));
}

TEST_CASE("programs are found as a shell finds them") {
    Folder f;
    f.program("good", 0755);
    f.program("plain", 0644);
    const std::string folder = f.path;
    CHECK(*find_program("good", "/nonexistent:" + folder, "/") == folder + "/good");
    CHECK(*find_program("good", "", folder) == folder + "/good");  // empty entry: here
    CHECK(*find_program("good", "/nonexistent:.", folder) == folder + "/good");
    CHECK(*find_program("./good", "", folder) == folder + "/./good");
    CHECK(*find_program(folder + "/good", "", "/") == folder + "/good");
    CHECK(find_program("none", folder, "/").status().code == Code::not_found);
    CHECK(find_program("", folder, "/").status().code == Code::not_found);
    CHECK(find_program("/nonexistent/x", folder, "/").status().code == Code::not_found);
    CHECK(find_program("plain", folder, "/").status().code == Code::refused);
    CHECK(find_program(folder, "", "/").status().text.find("is a directory") != std::string::npos);
    const auto about = [&](const std::string &name) {
        return find_program(name, "/nonexistent", folder).status().text;
    };
    CHECK(about("good") == "there is no program good in PATH; there is a file ./good");
    CHECK(about("cd").ends_with(": it is a word of the shell, sh -c '...' takes it"));
    CHECK(about("A=1").ends_with(": --env NAME=VALUE sets a variable"));
    CHECK(about("none") == "there is no program none in PATH");
    // One that may not run does not hide one that may, further on in the path.
    Folder second;
    second.program("plain", 0755);
    CHECK(*find_program("plain", folder + ":" + second.path, "/") == second.path + "/plain");
}

TEST_CASE("labels are short and printable") {
    CHECK(label_of({"echo", "a\nb"}, 60) == "echo a?b");
    CHECK(label_of({"echo", std::string(1000, 'y')}, 10) == "echo yyy..");
}

TEST_CASE("an environment is the same, has more or fewer variables, or other values") {
    const std::vector<std::string> before = {"A=1", "PATH=/bin", "T=1"};
    CHECK(likeness(before, before).how == Alike::same);
    CHECK(likeness(before, {"A=1", "PATH=/usr/bin", "T=1"}).how == Alike::same);  // of the login
    CHECK(likeness(before, {"A=1", "T=1", "TERM=xterm"}).how == Alike::same);
    CHECK(likeness(before, {"A=1", "B=1", "PATH=/bin", "T=1"}).how == Alike::some_added);
    CHECK(likeness(before, {"A=1", "PATH=/bin"}).how == Alike::some_added);
    CHECK(likeness(before, {"A=1", "B=1", "PATH=/bin", "T=2"}).how == Alike::other_values);
}
