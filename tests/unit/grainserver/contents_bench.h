#pragma once
#include <functional>
#include <string>
#include <vector>

#include "process/table.h"
#include "grainserver/shell/contents.h"
#include "scratch_dir.h"

namespace bench {
using namespace dcs;
using namespace dcs::server;
using wire::FileRole;

// A server's Contents, with one grain.
struct Shell {
    ScratchDir dir;
    GrainFiles files;
    ContentCache::Names needed;
    std::vector<Input> told;
    std::vector<wire::PutContent> put;
    Contents contents{files, [this](Input input) { told.push_back(std::move(input)); },
                      [this](wire::AnyMessage m) { put.push_back(std::get<wire::PutContent>(std::move(m))); }};
    GrainId id{{{"ann", 3}, 1}, 1};

    Shell() {
        REQUIRE(files.open(dir.path, "local1", boot_id()));
        REQUIRE(contents.open(dir.path, "here-linux", 1u << 30, [this] { return needed; }));
    }
    wire::GrainFile fetched(FileRole role, const std::string &name, const std::string &bytes,
                            const std::string &binary_class = "") {
        const std::string digest = pki::sha256_text(bytes);
        contents.keep(KeepPiece{digest, bytes.size(), 0, bytes});
        REQUIRE(take<PieceKept>().next == bytes.size());
        return {role, name, digest, bytes.size(), binary_class};
    }
    std::string room() { return dir.path + "/grains/" + files.name_of(id) + "/" + files::room_name; }
    std::string work() { return room() + "/work"; }
    void prepare(std::vector<wire::GrainFile> list, const std::string &program = "/bin/none",
                 const std::string &checkpoint = "", std::uint64_t base = 0) {
        wire::Launch launch;
        launch.argv = {program};
        launch.files = std::move(list);
        launch.input = checkpoint;
        launch.checkpoint_length = checkpoint.size();
        launch.input_base = base;
        REQUIRE(files.prepare(id, launch, 1));
    }
    void run() {
        for (int slices = 0; contents.busy(); contents.go_on()) REQUIRE(++slices < 10'000);
    }
    template <class T> T take() {
        REQUIRE(told.size() == 1);
        T *x = std::get_if<T>(&told[0]);
        if (auto *bad = std::get_if<FilesUnplaced>(&told[0])) UNSCOPED_INFO(bad->text);
        REQUIRE(x != nullptr);
        T value = std::move(*x);
        told.clear();
        return value;
    }
    void place() {
        contents.place(id);
        run();
        take<FilesPlaced>();
    }
    std::string program() {
        const auto grain = files.directory_of(id);
        REQUIRE(grain);
        const auto record = files.launch_of(grain->get());
        REQUIRE(record);
        return record->program;
    }
    OutputsKept outputs(std::vector<std::string> names) {
        std::vector<wire::GrainFile> list;
        for (const std::string &name : names) list.push_back({FileRole::output, name, "", 0, ""});
        prepare(list);
        place();
        make();
        contents.keep_outputs(id);
        run();
        return take<OutputsKept>();
    }
    std::function<void()> make = [] {};
};

}  // namespace bench
