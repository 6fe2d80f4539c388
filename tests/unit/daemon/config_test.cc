// Configuration files of daemons: what they may say, and the text of each error.
#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/configuration.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/scratch.h"

using namespace dcs;

namespace {

struct Fields {
    std::string dir, level = "info", hosts, master;
    int ready_fd = -1, hold_mb = 4096, cpu_s = 0, slots = 1;
    Duration interval = seconds(10);
    bool once = false;
    std::vector<std::string> peers;

    CommandLine line() {
        return {
            .program = "dcs_example",
            .purpose = "Shows how configuration works.",
            // clang-format off
                .options =
                {{"dir", &dir, "DIR", "state directory", true},
                 {.name = "log-level", .into = &level, .value = "LEVEL", .help = "which", .where = Where::reload,
                  .takes = one_of("off|info|debug")},
                 {"hosts", &hosts, "FILE", "host table"},
                 {.name = "master", .into = &master, .value = "LOGIN[,..]", .help = "who", .where = Where::reload,
                  .list = true},
                 {"ready-fd", &ready_fd, "N", "where", false, Where::line},
                 {.name = "hold-mb", .into = &hold_mb, .value = "N", .help = "held", .where = Where::reload,
                  .takes = megabytes_from(1)},
                 {.name = "max-cpu-s", .into = &cpu_s, .value = "N", .help = "of a grain", .takes = seconds_from(0)},
                 {.name = "slots", .into = &slots, .value = "N", .help = "at a time", .takes = whole_number(1, 64)},
                 {"interval", &interval, "S", "seconds"},
                 {"once", &once, "", "one turn only"},
                 {"peer", &peers, "NAME", "may be repeated"}},
            // clang-format on
            .check = [this] {
                return slots > 1 && once ? fail(Code::invalid, "--slots goes without --once") : Status::ok();
            }};
    }
};

// The errors of one file, or what `fields` came to.
std::vector<std::string> errors_of(const std::string &text, Fields &fields) {
    std::vector<std::string> why;
    const CommandLine line = fields.line();
    const auto values = parse_config(line, {{"/etc/dcs/example.toml", text}}, why);
    const ParsedOptions parsed = parse_options(line, {"--dir=/d"}, values);
    if (!parsed.proceed) why.push_back(parsed.wrong);
    return why;
}

std::string one_error(const std::string &text) {
    Fields fields;
    const auto why = errors_of(text, fields);
    INFO(text);
    REQUIRE(why.size() == 1);
    return why[0];
}

std::vector<std::string> read_errors(const std::string &file) {
    std::vector<std::string> why;
    (void)read_config_files(file, why);
    return why;
}

void write(const std::string &path, const std::string &text) {
    std::ofstream file(path);
    file << text;
    REQUIRE(file.good());
    file.close();
    ::chmod(path.c_str(), 0644);
}

}  // namespace

TEST_CASE("a file says what the command line says, in the forms of TOML") {
    Fields f;
    CHECK(errors_of(R"(# all kinds
log-level = "debug"
hosts = '/a b/hosts'
master = ["ann", "bob"]
hold-mb = "2 GiB"
max-cpu-s = "1:30:00"
slots = 0x10
interval = 2.5
once = false
peer = ["a", "b,c"]
)",
                    f)
              .empty());
    CHECK(f.level == "debug");
    CHECK(f.hosts == "/a b/hosts");
    CHECK(f.master == "ann,bob");
    CHECK(f.hold_mb == 2048);
    CHECK(f.cpu_s == 5400);
    CHECK(f.slots == 16);
    CHECK(f.interval == milliseconds(2500));
    CHECK_FALSE(f.once);
    CHECK(f.peers == std::vector<std::string>{"a", "b,c"});
    Fields g;
    CHECK(errors_of("hold-mb = 512\nmax-cpu-s = '90m'\ninterval = '1d'\nmaster = 'ann,bob'\npeer = 'x'\n", g).empty());
    CHECK(g.hold_mb == 512);
    CHECK(g.cpu_s == 5400);
    CHECK(g.interval == seconds(86400));
    CHECK(g.master == "ann,bob");
    CHECK(g.peers == std::vector<std::string>{"x"});
    Fields empty;
    CHECK(errors_of("", empty).empty());
    CHECK(empty.slots == 1);
}

TEST_CASE("each mistake in a file is named with its line") {
    const std::string file = "/etc/dcs/example.toml:";
    struct {
        const char *text, *error;
    } cases[] = {
        {"\nlog_level = \"info\"", "2 `log_level` `log-level`?"},
        {"zzz = 1", "1: unknown option `zzz`"},
        {"[slots]\nslots = 1", "1 slots must whole number without quotes table"},
        {"[example]\nslots = 1", "1 `example` dcs_example"},
        {"ready-fd = 3", "1 ready-fd permitted"},
        {"help = true", "1 help permitted command"},
        {"config = \"x\"", "1 config permitted command"},
        {"log-level = 3", "1 log-level string quotes number"},
        {"log-level = \"loud\"", "1 \"loud\" not"},
        {"log-level = [\"info\"]", "1 log-level string quotes array"},
        {"hosts = true", "1 hosts string quotes false"},
        {"hosts = {a = 1}", "1 hosts string quotes table"},
        {"slots = \"3\"", "1 number without quotes string"},
        {"slots = 0", "1 0 not 64"},
        {"slots = -5", "1 -5 64"},
        {"slots = 65", "1 65 64"},
        {"slots = 1.5", "1 1.5 64"},
        {"slots = 9223372036854775807", "1 9223372036854775807 64"},
        {"hold-mb = 0", "1 512 MiB GiB"},
        {"hold-mb = \"1 MB\"", "1 \"1 MB\""},
        {"hold-mb = true", "1 hold-mb must megabytes size quotes \"512 MiB\" true false"},
        {"interval = -1", "1 interval -1 not number seconds least 0 90s 5m 2h 7d 1:30:00"},
        {"interval = nan", "1 interval nan not number seconds"},
        {"interval = 10:30:00", "1 interval must seconds time quotes \"90m\" \"1:30:00\", time day"},
        {"interval = 2026-01-01", "1 interval must seconds time quotes \"90m\" \"1:30:00\", date"},
        {"once = 1", "1 false number"},
        {"once = \"yes\"", "1 false string"},
        {"slots = true", "1 slots whole number false"},
        {"master = [\n\"ann\",\n\"b,c\"]", "3 \"b,c\" contains"},
        {"master = [\"ann\", 3]", "1 master string"},
        {"peer = [[]]", "1 peer string quotes array"},
        {"slots = 2\nslots = 3", "2: "},
        {"slots = ", "1: "},
        {"slots", "1: "},
        {"a = \"\xff\"", "1: "},
    };
    for (const auto &one : cases) { CHECK(one_error(one.text) == about(file + one.error)); }
    CHECK(one_error("slots = 2\nonce = true") == about("/etc/dcs/example.toml:1 /etc/dcs/example.toml:2 --slots"));
}

TEST_CASE("all errors are told at once") {
    Fields f;
    const auto why = errors_of("slots = 0\nlog-level = \"x\"\nfoo = 1\n", f);
    REQUIRE(why.size() == 3);
    CHECK(f.slots == 1);  // nothing counts
}

TEST_CASE("a file nests no deeper than its reader bears") {
    const std::string deep = "peer = " + std::string(100'000, '[') + std::string(100'000, ']');
    CHECK(one_error(deep).rfind("/etc/dcs/example.toml:1: ", 0) == 0);
}

TEST_CASE("a later file counts more, a flag most, and each origin is known") {
    Fields f;
    const CommandLine line = f.line();
    std::vector<std::string> why;
    const auto values = parse_config(line,
                                     {{"a.toml", "slots = 2\nhold-mb = 7\npeer = ['a', 'b']\nmaster = 'ann'\n"},
                                      {"a.toml.d/10.toml", "\nslots = 3\npeer = ['c']\nmaster = 'bob'\n"}},
                                     why);
    CHECK(why.empty());
    const ParsedOptions parsed = parse_options(line, {"--dir=/d", "--master", "eve", "--peer=x", "--peer=y"}, values);
    REQUIRE(parsed.proceed);
    CHECK(f.slots == 3);
    CHECK(f.hold_mb == 7);
    CHECK(f.master == "eve");
    CHECK(f.peers == std::vector<std::string>{"x", "y"});
    const auto setting = [&](const std::string &name) {
        for (const Setting &s : parsed.settings)
            if (s.name == name) return s.value + " " + s.origin;
        return std::string();
    };
    CHECK(setting("dir") == "/d command line");
    CHECK(setting("slots") == "3 a.toml.d/10.toml:2");
    CHECK(setting("hold-mb") == "7 a.toml:2");
    CHECK(setting("peer") == "x,y command line");
    CHECK(setting("interval") == "10 default");
    CHECK(setting("once") == "false default");
}

TEST_CASE("an option that is required may stand in a file, and may lack in a check") {
    Fields f;
    const CommandLine line = f.line();
    std::vector<std::string> why;
    const auto values = parse_config(line, {{"a.toml", "dir = '/x'"}}, why);
    CHECK(parse_options(line, {}, values).proceed);
    CHECK(f.dir == "/x");
    CHECK(parse_options(line, {}, {}).error.find("--dir DIR is required") != std::string::npos);
    const ParsedOptions lacks = parse_options(line, {}, {}, true);
    CHECK(lacks.proceed);
    CHECK_FALSE(lacks.complete);
}

TEST_CASE("the default file is for a daemon that is not told its directory") {
    Fields f;
    const CommandLine line = f.line();
    CHECK(!(config_words(line, {"--once"}).file || config_words(line, {"--dir=x", "--config", "usual"}).file));
    CHECK(config_words(line, {"--dir=x"}).file == "none");
    CHECK(config_words(line, {"--dir=x", "--config", "a"}).file == "a");
    CHECK(config_words(line, {"--config=a", "--check-config"}).check);
    CHECK(config_words(line, {"--config=a", "--help"}).asks);
    CHECK(config_words(line, {"--config=a", "--version"}).asks);
}

TEST_CASE("files are read in order, drop-ins by name") {
    test::Folder scratch;
    const std::string file = scratch.path + "/a.toml";
    CHECK(read_errors(file).empty());  // neither it nor its folder need be there
    write(file, "1");
    REQUIRE(::mkdir((file + ".d").c_str(), 0755) == 0);
    for (const char *name : {"20.toml", "10.toml", ".30.toml", "note.txt", "9.toml~", ".toml"})
        write(file + ".d/" + name, name);
    std::vector<std::string> why;
    const auto texts = read_config_files(file, why);
    CHECK(why.empty());
    REQUIRE(texts.size() == 3);
    CHECK(texts[0].file == file);
    CHECK(texts[1].text == "10.toml");
    CHECK(texts[2].file == file + ".d/20.toml");
}

TEST_CASE("what is no file of its owner's is refused, at once") {
    test::Folder scratch;
    const std::string file = scratch.path + "/a.toml";
    REQUIRE(::mkfifo(file.c_str(), 0644) == 0);
    CHECK(read_errors(file) == std::vector<std::string>{file + " is not a regular file"});
    ::unlink(file.c_str());
    REQUIRE(::mkdir(file.c_str(), 0755) == 0);
    CHECK(read_errors(file) == std::vector<std::string>{file + " is not a regular file"});
    ::rmdir(file.c_str());
    write(file, "");
    REQUIRE(::truncate(file.c_str(), 100 << 20) == 0);
    CHECK(read_errors(file) == std::vector<std::string>{file + " is larger than 1 MiB"});
    REQUIRE(::truncate(file.c_str(), 0) == 0);
    REQUIRE(::chmod(file.c_str(), 0646) == 0);
    CHECK(read_errors(file).at(0) == about(file + " written users not trusted chmod go-w " + file));
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    if (::geteuid() == 0) {
        REQUIRE(::chown(file.c_str(), 65534, 0) == 0);
        CHECK(read_errors(file).at(0) == about(file + " belongs uid 65534 not trusted chown root " + file));
        REQUIRE(::chown(file.c_str(), 0, 0) == 0);
        // A file that is not there any more may have been removed by who can write its directory.
        REQUIRE(::mkdir((file + ".d").c_str(), 0755) == 0);
        REQUIRE(::chmod((file + ".d").c_str(), 0777) == 0);
        CHECK(read_errors(file)[0] == about(file + ".d written users"));
        ::rmdir((file + ".d").c_str());
    }
    write(file + ".d", "");
    REQUIRE(read_errors(file).size() == 1);
    CHECK(read_errors(file)[0] == file + ".d: Not a directory");
}

TEST_CASE("texts come back from their packet, and nothing else does") {
    const std::vector<ConfigText> texts = {{"a", ""}, {"", "b 1\n"}, {"c d", std::string("\0x", 2)}};
    const auto back = unpack_config(pack(texts));
    REQUIRE(back);
    REQUIRE(back->size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK((*back)[i].file == texts[i].file);
        CHECK((*back)[i].text == texts[i].text);
    }
    for (const char *bytes : {"x", "1 2", "1 2\nab", "-1 2\nabc", " 1\na", "1 \na", "1 99999999999999999999999\na",
                              "18446744073709551615 1\nabc"}) {
        CAPTURE(bytes);
        CHECK_FALSE(unpack_config(bytes));
    }
}

TEST_CASE("the process beside a daemon reads what is there when it is asked") {
    test::Folder scratch;
    const std::string file = scratch.path + "/a.toml";
    auto reader = ConfigReader::start("dcs_example", file);
    REQUIRE(reader);
    std::vector<std::string> why;
    auto texts = (*reader)->read(why);
    REQUIRE(texts);
    CHECK(texts->empty());
    write(file, "slots = 2\n");
    texts = (*reader)->read(why);
    REQUIRE(texts);
    REQUIRE(texts->size() == 1);
    CHECK((*texts)[0].text == "slots = 2\n");
    CHECK(why.empty());
    ::chmod(file.c_str(), 0666);
    texts = (*reader)->read(why);
    REQUIRE(texts);
    CHECK(texts->empty());
    REQUIRE(why.size() == 1);
    CHECK(why[0] == about("written users"));
}

TEST_CASE("a configuration that is read again is taken whole or not at all") {
    test::Folder scratch;
    const std::string file = scratch.path + "/a.toml", record = scratch.path + "/" + configuration_name;
    const auto noted = [&] {
        std::ifstream in(record);
        const auto found = config_record_of(std::string(std::istreambuf_iterator<char>(in), {}));
        REQUIRE(found);
        return *found;
    };
    write(file, "dir = '/d'\nhosts = '/a'\nmaster = 'ann'\n");
    Fields f;
    std::string config = "--config=" + file, program = "dcs_example";
    char *argv[] = {program.data(), config.data(), nullptr};
    Configuration c = Configuration::take(f.line(), 2, argv);
    CHECK(f.master == "ann");
    REQUIRE(c.open(scratch.path));
    CHECK(noted().settings[0] == Setting{"dir", "/d", file + ":1"});
    CHECK(noted().refused.empty());

    Fields good;
    write(file, "dir = '/d'\nhosts = '/b'\n\nmaster = 'bob'\n");
    auto change = c.read(good.line());
    REQUIRE(change);
    CHECK(change->taken == std::vector<std::string>{"master"});
    CHECK(change->has("master"));
    CHECK_FALSE(change->has("hosts"));
    CHECK(noted().settings[2].value == "/a");  // nothing counts before it is taken
    c.take(*change);
    CHECK(noted().settings[2] == Setting{"hosts", "/a", file + ":2"});
    CHECK(noted().after_restart == std::vector<Setting>{{"hosts", "/b", file + ":2"}});
    CHECK(noted().settings[3] == Setting{"master", "bob", file + ":4"});

    Fields bad;
    write(file, "dir = '/d'\nhosts = 3\nmastr = 'eve'\n");
    change = c.read(bad.line());
    REQUIRE_FALSE(change);
    CHECK(change.status().text ==
          about(file + ":2 hosts must string quotes whole number " + file + ":3 unknown option mastr mean master"));
    c.refuse(configuration_stays, change.status());
    CHECK(noted().refused == change.status().text);
    CHECK(noted().settings[3].value == "bob");

    Fields again;
    write(file, "dir = '/d'\nhosts = '/a'\n");
    change = c.read(again.line());
    REQUIRE(change);
    c.take(*change);
    CHECK(noted().refused.empty());
    CHECK(noted().after_restart.empty());
    CHECK(noted().settings[3] == Setting{"master", "", "default"});
}

TEST_CASE("a record is read back, and nothing else is") {
    const ConfigRecord record{
        {{"a", "x\ty\\\n", "default"}, {"b", "", "/f:1"}}, {{"b", "2", "/f:2"}}, "why\nso", {"a\tb", "c"}};
    CHECK(config_record_of(to_text(record)) == record);
    CHECK(config_record_of(to_text(ConfigRecord{})) == ConfigRecord{});
    for (const char *text : {"", "end", "end\tx", "option\ta\nend\t\n", "option\ta\tb\nend\t\n",
                             "what\ta\tb\tc\nend\t\n", "end\t\nend\t\n", "end\n"}) {
        CAPTURE(text);
        CHECK_FALSE(config_record_of(text));
    }
}
