// What the commands read where they parse text: selectors, options, figures, the file of a pool; and what they
// print of foreign text.
#include <climits>
#include "commands/dcs/frame/arguments.h"

#include "commands/dcs/frame/call.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/demand_options.h"
#include "commands/dcs/run/file_options.h"
#include "commands/dcs/host/host_changes.h"
#include "commands/dcs/map/plan.h"
#include "commands/dcs/run/placeholders.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/query/selector.h"
#include "commands/dcs/frame/table.h"
#include "fuzz.h"
#include "wire/json.h"

namespace dcs::fuzz {
namespace {

using namespace commands;

void read_selectors(const std::string &text) {
    if (const auto s = session_selector(text)) expect(s->number >= 0, "sessions have numbers from 0 on");
    for (const bool bare : {false, true}) {
        const auto g = grain_selector(text, bare);
        if (!g) continue;
        for (const GrainRange &range : g->ranges) {
            expect(range.first >= 0 && range.first <= range.last, "a range is one");
            expect(g->has(range.first) && g->has(range.last), "and has its ends");
        }
    }
}

void read_figures(const std::string &text) {
    if (const auto n = number_of(text, -5, 1000)) expect(*n >= -5 && *n <= 1000, "a number keeps its bounds");
    (void)number_of(text, INT64_MIN, INT64_MAX);
    if (const auto s = seconds_of_text(text)) expect(*s >= 0, "a time is not negative");
    (void)class_of(text);
    expect(nearest(text, {"session", "grain", "host"}) != "?", "some candidate or none");
    if (const auto numbers = numbers_of_pool_text(text)) {
        const auto again = numbers_of_pool_text(pool_text(*numbers));
        expect(again && *again == *numbers, "the file of a pool is read back as it was");
    }
    (void)undrain_change(text);
}

// As main() gets them.
std::vector<std::string> arguments_of(std::string_view text) {
    std::vector<std::string> words;
    for (Choices input(text); !input.empty() && words.size() < 40;)
        words.emplace_back(std::string(input.piece()).c_str());
    return words;
}

void read_line(std::string_view text) {
    const std::vector<std::string> line = arguments_of(text);
    const OptionTable known = with_demands({{"file", 'f', "FILE", {}, ""},
                                            {"output", 'o', "FILE", some_text, ""},
                                            {"json", 'j', nullptr, {}, ""},
                                            {"slots", 0, "N", whole_number(0, most_slots_of_a_host), ""},
                                            {"interval", 0, "S", seconds_from(least_time_s), ""},
                                            {"role", 0, "ROLE", one_of("server|client"), ""},
                                            {"alert", 0, "S", seconds_from(least_time_s), ""}});
    for (const bool follows : {false, true}) {
        Arguments found;
        if (!parse_arguments(line, known, follows, found)) continue;
        d_grain grain;
        d_grain_init(&grain);
        const auto class_name = [](const auto &o) { return o.first == "class" && !class_of(o.second); };
        std::erase_if(found.options, class_name);  // a pool would be asked for it
        wire::Demands demands;
        expect(!take_demands(found, demands), "what was parsed is understood");
        wire::put_demands(demands, grain);
        (void)check_word_count("NAME... [SES:G]", found.words);
        FileWords words;
        if (!take_file_words(found, words)) words.put_into(grain);
        HostOrder order;
        (void)take_host_order(found, order);
    }
}

void print(const std::string &text) {
    expect(valid_utf8(json_string(text)), "JSON is valid UTF-8");
    const std::string shown = printable(text);
    expect(shown.find_first_of("\n\r\x1b") == std::string::npos && valid_utf8(shown), "nothing drives the terminal");
    expect(width_of(shortened(shown, 10)) <= 10, "what is shortened is short");
    Table table{"NAME", ">SIZE"};
    table.add({text, text});
    (void)table.text();
}

void plan(const std::string &text) {
    const auto inputs = split_inputs(text, '\n');
    if (!inputs) return;
    for (const std::string &input : *inputs)
        expect(words_of({"cmd", "a{}b{#}{/.}"}, input, 1).size() == 2, "words stay words");
    MapPlan one{{"cmd", text}, "/", *inputs};
    expect(ident_of(one).size() == 28, "an ident has its length");
    (void)variables_that_differ({text}, {"A=1", text});
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const int what = input.byte() % 5;
    const std::string text(input.rest());
    if (what == 0) read_selectors(text);
    if (what == 1) read_figures(text);
    if (what == 2) read_line(text);
    if (what == 3) print(text);
    if (what == 4) plan(text);
}

std::vector<Seed> seeds() {
    std::vector<Seed> list;
    const auto add = [&](char what, const std::string &text) {
        list.push_back(
            {"what-" + std::to_string(what) + "-" + std::to_string(list.size()), std::string(1, what) + text});
    };
    for (const char *s : {"3", "ann/3", "last", "all", "ann/last", "3:1-20", "3:1,5-7", "ann/3:all", "3:2147483647"})
        add(0, s);
    for (const char *s : {"10", "1.5", "90s", "5m", "2h", "0x1f", "sesion",
                          "servers 2\nslots 1\ninterval 10\ncourtesy watch\n", "slots=0 interval=3"})
        add(1, s);
    std::string line;
    for (const char *word : {"--class",       "0x3",      "--attempts=2", "--cores", "2",        "--memory", "512",
                             "--wall",        "1h",       "--thrash",     "3",       "--notice", "5",        "--urgent",
                             "-fa=/etc/motd", "--output", "out/x=y",      "--json",  "--",       "cmd",      "-x"})
        line += piece_of(word);
    add(2, line);
    add(2, piece_of("--slots") + piece_of("0") + piece_of("--interval=2.5") + piece_of("h1") + piece_of("h2"));
    add(3, "caf\xc3\xa9 \xff\n\x1b[0m and more of it");
    add(4, "one\ntwo\nthree\n");
    add(4, "env[1]: recorded \"A=1\", now \"A=2\"\n");
    return list;
}

}  // namespace dcs::fuzz
