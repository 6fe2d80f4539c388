#include "scheduler/record/read_blob.h"

#include <algorithm>

#include "scheduler/record/paths.h"
#include "scheduler/record/templates.h"

namespace dcs::record {
namespace {

Result<std::string> read_exactly(store::Store &store, const std::string &path,
                                 std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return std::string();
    auto bytes = store.read(path, offset, length);
    if (!bytes) return fail(Code::io_error, path + ": " + bytes.status().text);
    if (bytes->size() != length)
        return fail(Code::io_error, path + ": it is shorter than recorded");
    return bytes;
}

std::string own_file(const GrainKey &key, const char *name) {
    return grain_directory(key) + "/" + name;
}

// Does the grain's output lie in its session's results? Only a finished one's can.
bool packed(const core::Grain &grain) { return !grain.own_tree; }

}  // namespace

Result<std::string> read_params(store::Store &store, const GrainKey &key,
                                const core::Grain &grain) {
    if (grain.params_own_file)
        return read_exactly(store, own_file(key, params_file), 0, grain.params_length);
    return read_exactly(store, session_directory(key.session) + "/" + inputs_file,
                        grain.params_offset, grain.params_length);
}

Result<std::string> read_checkpoint(store::Store &store, const GrainKey &key,
                                    const core::Grain &grain) {
    return read_exactly(store, own_file(key, checkpoint_file), 0, grain.checkpoint_length);
}

Result<std::string> read_message(store::Store &store, const GrainKey &key,
                                 const core::Grain &grain) {
    return read_exactly(store, own_file(key, message_file), 0, grain.message_length);
}

std::uint64_t length_of(const core::Grain &grain, wire::Stream stream) {
    switch (stream) {
    case wire::Stream::out: return grain.out_length;
    case wire::Stream::err: return grain.err_length;
    case wire::Stream::checkpoint: return grain.checkpoint_length;
    case wire::Stream::message: return grain.message_length;
    case wire::Stream::input: return grain.input_length;
    }
    return 0;
}

Result<std::string> read_piece(store::Store &store, const GrainKey &key, const core::Grain &grain,
                               wire::Stream stream, std::uint64_t offset, std::uint64_t max) {
    const std::uint64_t total = length_of(grain, stream);
    if (offset >= total) return std::string();
    const std::uint64_t length = std::min(max, total - offset);
    switch (stream) {
    case wire::Stream::out:
    case wire::Stream::err: {
        const bool err = stream == wire::Stream::err;
        if (!packed(grain))
            return read_exactly(store, own_file(key, err ? err_file : out_file), offset, length);
        const std::uint64_t start = grain.result_offset + (err ? grain.out_length : 0);
        return read_exactly(store, session_directory(key.session) + "/" + results_file,
                            start + offset, length);
    }
    case wire::Stream::checkpoint:
        return read_exactly(store, own_file(key, checkpoint_file), offset, length);
    case wire::Stream::message:
        return read_exactly(store, own_file(key, message_file), offset, length);
    case wire::Stream::input: break;
    }
    return fail(Code::internal, "an input is part of the packed parameters");
}

}  // namespace dcs::record
