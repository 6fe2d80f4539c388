#pragma once
// The core with grains that have files.
#include "core_bench.h"

namespace bench {

inline std::string digest(char c) { return std::string(32, c); }
inline wire::GrainFile data(char c, std::uint64_t size) {
    return {wire::FileRole::data, std::string("f") + c, digest(c), size, ""};
}
inline wire::GrainFile output(const std::string &name) { return {wire::FileRole::output, name, "", 0, ""}; }
inline wire::GrainFile made_file(const std::string &name, char c, std::uint64_t size) {
    return {wire::FileRole::output, name, digest(c), size, ""};
}

struct ContentBench : Bench {
    explicit ContentBench(bool launcher = true) {
        connect();
        if (launcher) in(LauncherUp{});
        clear();
    }
    void launch_with(GrainId g, std::vector<wire::GrainFile> files, bool tentative = false) {
        wire::Launch m;
        m.key = wire::wire_of(g.key);
        m.incarnation = g.incarnation;
        m.argv = {"/bin/cat"};
        m.files = std::move(files);
        m.tentative = tentative;
        message(m);
        REQUIRE(one<WriteLaunch>().launch.files == m.files);
        in(LaunchWritten{g});
    }
    // The scheduler's answer to the question that is out.
    void piece(std::uint64_t bytes, std::uint64_t total) {
        const auto wants = sent<wire::WantContent>();
        REQUIRE(wants.size() == 1);
        message(wire::ContentPiece{wants[0].digest, total, wants[0].offset, std::string(bytes, 'x'), 0, ""});
    }
    // It goes to the disk.
    void write() {
        const auto keep = one<KeepPiece>();
        in(PieceKept{keep.digest, keep.offset + keep.bytes.size()});
    }
    void run_with_outputs(GrainId g, std::vector<wire::GrainFile> files) {
        launch_with(g, std::move(files));
        REQUIRE(one<PlaceFiles>().id == g);
        in(FilesPlaced{g});
        in(GrainStarted{g});
        clear();
    }
    void end(GrainId g, int code = 0) {
        ExitFacts e;
        e.code = code;
        exit(g, dir({{1, 5}}), e);
    }
    void taken(char c, std::uint64_t next, Code code = Code::ok) {
        message(wire::ContentTaken{digest(c), next, static_cast<int>(code), "words"});
    }
};

}  // namespace bench
