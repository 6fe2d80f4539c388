#include "base/option_table.h"

#include "support/catch.h"

using namespace dcs;

namespace {

const OptionTable table = {{"slots", 's', "N", whole_number(1, 8), "so many", "Numbers"},
                           {"interval", 0, "S", seconds_from(0.5, 3600), "how long"},
                           {"class", 0, "MASK", class_names_or_mask, "which"},
                           {"role", 0, "ROLE", one_of("server|client|backup"), "what it is\nand is not", "Words"},
                           {"dir", 'd', "DIR", some_text, "where", "", Given::always},
                           {"file", 0, "[NAME=]PATH-OF-IT", {}, "which go along", "", Given::many},
                           {"yes", 'y', nullptr, {}, "do not ask"},
                           {"new", 'n', nullptr, {}, "begin anew"}};

// "name=value " of each option, a word by itself; or what is wrong.
std::string read(const std::vector<std::string> &line) {
    OptionReader reader{line, table};
    std::string found;
    for (std::string value;;) {
        const auto row = reader.next(value);
        if (!row) return row.status().text;
        if (*row != nullptr) found += std::string((*row)->name) + "=" + value + " ";
        else if (reader.at == line.size()) return found;
        else found += line[reader.at++] + " ";
    }
}

}  // namespace

TEST_CASE("options are read in each of their forms, words stay where they are") {
    CHECK(read({"--slots", "3", "a", "--slots=4", "-s", "5", "-s6", "-"}) == "slots=3 a slots=4 slots=5 slots=6 - ");
    CHECK(read({"-yn", "-yns7", "-y", "x"}) == "yes= new= yes= new= slots=7 yes= x ");
    CHECK(read({"--file=", "--file=--", "--", "--slots", "9"}) == "file= file=-- --slots 9 ");
    CHECK(read({}).empty());
}

TEST_CASE("an error names the option, its value and what it may be") {
    const struct {
        std::vector<std::string> line;
        const char *wrong;
    } cases[] = {
        {{"--slots", "0"}, "--slots 0: a whole number from 1 to 8"},
        {{"--slots=9"}, "--slots 9: a whole number from 1 to 8"},
        {{"-sx"}, "--slots x: a whole number from 1 to 8"},
        {{"--interval", "2h"},
         "--interval 2h: a number of seconds from 0.5 to 3600, or such as 90s, 5m, 2h, 7d, 1:30:00"},
        {{"--interval", "0.4"},
         "--interval 0.4: a number of seconds from 0.5 to 3600, or such as 90s, 5m, 2h, 7d, 1:30:00"},
        {{"--class", "1a"}, "--class 1a: names of host classes, or a mask such as 0x3"},
        {{"--role", "chef"}, "--role chef: server, client or backup"},
        {{"--dir="}, "--dir '': it is empty"},
        {{"--slots"}, "--slots needs a value: N"},
        {{"--slots", "--", "4"}, "--slots needs a value: N"},
        {{"--yes=1"}, "--yes takes no value"},
        {{"--slosts", "1"}, "unknown option --slosts; did you mean --slots?"},
        {{"--slosts=1"}, "unknown option --slosts; did you mean --slots?"},
        {{"-yz"}, "unknown option -z"},
        {{std::string("-\0", 2)}, "unknown option -"},
    };
    for (const auto &one : cases) {
        CAPTURE(one.line);
        CHECK(read(one.line).substr(0, std::string(one.wrong).size()) == one.wrong);
    }
    CHECK(check_value({"n", 0, "N", whole_number(1, INT32_MAX), ""}, "0").text == "--n 0: a whole number, at least 1");
    CHECK(check_value({"s", 0, "S", seconds_from(0.5), ""}, "x").text ==
          "--s x: a number of seconds, at least 0.5, or such as 90s, 5m, 2h, 7d, 1:30:00");
    CHECK(read({"--interval", "30m", "--class=0x3", "--role", "client"}) == "interval=30m class=0x3 role=client ");
}

TEST_CASE("the list of options is aligned, under headings") {
    CHECK(option_list(table) == R"(Numbers:
  -s, --slots N  so many
  --interval S   how long
  --class MASK   which

Words:
  --role ROLE    what it is
                 and is not
  -d, --dir DIR  where
  --file [NAME=]PATH-OF-IT
                 which go along
  -y, --yes      do not ask
  -n, --new      begin anew
)");
    CHECK(option_list({}).empty());
}

TEST_CASE("the usage has every option, wrapped under the first") {
    CHECK(usage_line("dcs it", table, "NAME...") ==
          "Usage: dcs it [--slots N] [--interval S] [--class MASK] [--role ROLE] --dir DIR"
          " [--file [NAME=]PATH-OF-IT]...\n"
          "              [--yes] [--new] NAME...\n");
    CHECK(usage_line("dcs it", {}, "") == "Usage: dcs it\n");
}

TEST_CASE("programs read the table line by line") {
    CHECK(table_for_programs({table[3], table[6]}) ==
          "option\trole\t\tROLE\twhat it is\\nand is not\tWords\noption\tyes\ty\t\tdo not ask\t\n");
    CHECK(line_for_programs("about", "a\\b\n") == "about\ta\\\\b\\n\n");
}

TEST_CASE("numbers") {
    CHECK(number_of("0", 0, 10) == 0);
    CHECK(number_of("10", 0, 10) == 10);
    CHECK(number_of("0x1f", 0, 100) == 31);
    CHECK_FALSE(number_of("11", 0, 10));
    CHECK_FALSE(number_of("-1", 0, 10));
    CHECK_FALSE(number_of("", 0, 10));
    CHECK_FALSE(number_of("1x", 0, 10));
    CHECK_FALSE(number_of("0x", 0, 10));
    CHECK_FALSE(number_of("0x-1", -5, 10));
    CHECK_FALSE(number_of("99999999999999999999", 0, INT64_MAX));
    CHECK(class_of("0xffffffff") == 0xffffffffu);
    CHECK_FALSE(class_of("0x100000000"));
}

TEST_CASE("seconds") {
    CHECK(seconds_of_text("1.5") == 1.5);
    CHECK(seconds_of_text("90s") == 90.0);
    CHECK(seconds_of_text("5m") == 300.0);
    CHECK(seconds_of_text("0.5h") == 1800.0);
    CHECK(seconds_of_text("0") == 0.0);
    CHECK(seconds_of_text("1.5d") == 129600.0);
    CHECK(seconds_of_text("5:30") == 330.0);
    CHECK(seconds_of_text("1:30:00") == 5400.0);
    CHECK(seconds_of_text("100:00:59") == 360059.0);
    CHECK(seconds_of_text("1-00:00:00") == 86400.0);
    CHECK(seconds_of_text("2-03:04:05") == 183845.0);
    CHECK(seconds_of_text("1-12:30") == 131400.0);  // hours come first after days
    CHECK(seconds_of_text("0-6") == 21600.0);
    for (const char *text :
         {"",    "s",   "-1",   "1w",   "nan",   "inf",        "1e99",   "1 s",   ":",        "1:",
          ":30", "1:5", "1:60", "1:-5", "-1:30", "1:00:00:00", "1.5:30", "1:30m", "0:00:0x5", "999999999:00:00"}) {
        CAPTURE(text);
        CHECK_FALSE(seconds_of_text(text));
    }
    for (const char *days :
         {"1-", "-12:00:00", "1-24:00:00", "1--1:00", "1-1:00:00:00", "1-12:5", "1-1h", "1.5-0", "99999-00:00:00"}) {
        CAPTURE(days);
        CHECK_FALSE(seconds_of_text(days));
    }
}

TEST_CASE("megabytes") {
    CHECK(megabytes_of_text("0") == 0);
    CHECK(megabytes_of_text("512") == 512);
    CHECK(megabytes_of_text("512 MiB") == 512);
    CHECK(megabytes_of_text("1.5GiB") == 1536);
    CHECK(megabytes_of_text("2048 KiB") == 2);
    CHECK(megabytes_of_text("1 TiB") == 1 << 20);
    CHECK(megabytes_of_text("4G") == 4096);
    CHECK(megabytes_of_text("2048K") == 2);
    CHECK(megabytes_of_text("1.5 T") == 3 << 19);
    CHECK(megabytes_of_text("1 GB") == 953);
    CHECK(megabytes_of_text("1100 kB") == 1);
    CHECK(megabytes_of_text("1g") == 1024);
    CHECK(megabytes_of_text("512m") == 512);
    CHECK(megabytes_of_text("1 mib") == 1);
    CHECK(megabytes_of_text("2048KIB") == 2);
    CHECK(megabytes_of_text("1gb") == 953);
    CHECK(megabytes_of_text("1TB") == 953674);
    for (const char *text : {"",
                             " ",
                             "MiB",
                             "-1",
                             "1.5",
                             "1 ",
                             "1  MiB",
                             "1 b",
                             "1 _",
                             "1 mi",
                             "1 mbb",
                             "1 ibm",
                             "1000 kB",
                             "1 KiB",
                             "1e3",
                             "1.2.3",
                             "99999999999999999999 TiB",
                             "nan",
                             "0x10",
                             "1 MiB "}) {
        CAPTURE(text);
        CHECK_FALSE(megabytes_of_text(text));
    }
    CHECK(check_value({"m", 0, "N", megabytes_from(1, 4096), ""}, "8 GiB").text ==
          "--m 8 GiB: a number of megabytes from 1 to 4096, or such as 512 MiB, 4 GiB");
}

TEST_CASE("did you mean") {
    const std::vector<std::string> verbs = {"session", "status", "grain", "host", "up", "down", "map", "run"};
    CHECK(nearest("sesion", verbs) == "session");
    CHECK(nearest("sessions", verbs) == "session");
    CHECK(nearest("stauts", verbs) == "status");
    CHECK(nearest("stat", verbs) == "status");
    CHECK(nearest("lss", {"ls", "show", "close"}) == "ls");
    CHECK(nearest("frobnicate", verbs).empty());
}
