#include "support/about.h"
#include "wire/checks.h"

#include "base/limits.h"
#include "samples.h"
#include "support/catch.h"
#include "wire/session_text.h"

using namespace dcs;
using namespace dcs::wire;

namespace {

const std::string some_digest(32, '\xab');

GrainFile file(FileRole role, std::string name, std::string binary_class = "") {
    if (role == FileRole::output) return {role, std::move(name), "", 0, ""};
    return {role, std::move(name), some_digest, 5, std::move(binary_class)};
}

Code checked(std::vector<GrainFile> files, std::string input = "", std::string directory = "") {
    GrainSpec spec;
    spec.argv = {"a"};
    spec.files = std::move(files);
    spec.input = std::move(input);
    spec.directory = std::move(directory);
    return check_files(spec).code;
}

}  // namespace

TEST_CASE("names of files stay below the working directory") {
    for (const char *good : {"a", "a/b.txt", "..a", ".a", "a/...", "a b"}) CHECK(good_file_name(good));
    for (const char *bad : {"", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"})
        CHECK_FALSE(good_file_name(bad));
    CHECK_FALSE(good_file_name(std::string("a\0b", 3)));
    CHECK_FALSE(good_file_name(std::string(256, 'a')));
    CHECK_FALSE(good_file_name(std::string(limits::file_name_bytes / 2, 'a') + "/" + std::string(2000, 'b')));
}

TEST_CASE("files of a submission that cannot be") {
    using R = FileRole;
    CHECK(checked({}) == Code::ok);
    CHECK(checked({file(R::data, "a"), file(R::executable, "b/c"), file(R::output, "b/d"), file(R::input, ""),
                   file(R::program, "", "x"), file(R::program, "", "y"), file(R::program, "")}) == Code::ok);
    CHECK(checked({file(R::data, "a"), file(R::output, "a")}) == Code::invalid);
    CHECK(checked({file(R::data, "a"), file(R::data, "a/b")}) == Code::invalid);
    CHECK(checked({file(R::data, "a/b"), file(R::data, "a.b"), file(R::data, "a")}) == Code::invalid);
    CHECK(checked({file(R::program, "", "x"), file(R::program, "", "x")}) == Code::invalid);
    CHECK(checked({file(R::input, ""), file(R::input, "")}) == Code::invalid);
    CHECK(checked({file(R::input, "")}, "in line too") == Code::invalid);
    CHECK(checked({file(R::input, "")}, "", "/some/where") == Code::ok);
    CHECK(checked({file(R::data, "a")}, "", "/some/where") == Code::invalid);
    CHECK(checked({file(R::output, "a")}, "", "/some/where") == Code::invalid);
    CHECK(checked({file(R::data, "")}) == Code::invalid);
    CHECK(checked({file(R::program, "name")}) == Code::invalid);
    CHECK(checked({file(R::data, "a", "x")}) == Code::invalid);
    GrainFile wrong = file(R::data, "a");
    wrong.digest.pop_back();
    CHECK(checked({wrong}) == Code::invalid);
    wrong = file(R::data, "a");
    wrong.size = limits::content_bytes + 1;
    CHECK(checked({wrong}) == Code::limit);
    wrong = file(R::output, "a");
    wrong.digest = some_digest;
    CHECK(checked({wrong}) == Code::invalid);
    std::vector<GrainFile> many;
    for (std::size_t i = 0; i <= limits::grain_files; ++i) many.push_back(file(R::data, std::to_string(i)));
    CHECK(checked(many) == Code::limit);
    many.pop_back();
    CHECK(checked(many) == Code::ok);
}

TEST_CASE("a grain has one image, and demands a host that runs containers") {
    GrainSpec spec;
    spec.argv = {"a"};
    spec.directory = "/in/the/image";
    spec.files = {file(FileRole::image, "")};
    CHECK(check_files(spec).text == about("image resource container"));
    spec.demands.resources = "container=1,gpu=1";
    CHECK(check_files(spec));
    spec.files = {file(FileRole::image, "name")};
    CHECK(check_files(spec).code == Code::invalid);
    spec.files = {file(FileRole::image, ""), file(FileRole::image, "")};
    CHECK(check_files(spec).text == about("2 images"));
}

TEST_CASE("an exported grain keeps its files, outputs as they came back") {
    GrainLine line;
    line.grain = samples::exported_grain();
    line.grain.spec.directory.clear();
    line.grain.state = "finished";
    line.grain.queued = false;
    line.grain.usage = Usage{};
    ExportedGrain &g = line.grain;
    g.usage = Usage();
    for (auto *stream : {&g.out, &g.err, &g.checkpoint, &g.message, &g.input}) *stream = {0, true, ""};
    GrainFile made = file(FileRole::output, "made");
    made.digest = some_digest;
    made.size = 7;
    g.spec.files = {file(FileRole::data, "a/\"b\""), file(FileRole::program, "", "x"), file(FileRole::input, ""), made,
                    file(FileRole::output, "not")};
    line.grain.input_position = 5;
    const auto back = grain_of_line(to_line(line));
    INFO((back ? "" : back.status().text));
    REQUIRE(back);
    CHECK(back->grain.spec.files == line.grain.spec.files);
    const auto wrong = [&](const ExportedGrain &grain) {
        const auto found = SessionCheck().add(grain);
        return found ? found->why : std::string();
    };
    CHECK(wrong(line.grain) == "");
    line.grain.input_position = 6;  // of 5
    CHECK(wrong(line.grain).find("beyond the end") != std::string::npos);
    line.grain.input_position = 0;
    line.grain.input = {1, true, "x"};
    CHECK(wrong(line.grain).find("twice") != std::string::npos);
    line.grain.input = {0, true, ""};
    line.grain.state = "ready";
    line.grain.result_index = -1;
    CHECK(wrong(line.grain) == about("made digest grain"));
    std::string text = to_line(line);
    text.replace(text.find("\"program\""), 9, "\"porgram\"");
    CHECK_FALSE(grain_of_line(text));
}
