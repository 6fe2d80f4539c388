#include "scheduler/record/read_blob.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/limits.h"
#include "scheduler/record/paths.h"

namespace dcs::record {
namespace {

constexpr std::uint64_t chunk_bytes = 1u << 20;

Status damaged(const Place &place, const char *what) { return fail(Code::io_error, place.path + ": " + what); }

Result<std::string> read_range(store::Store &store, const Place &place, std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return std::string();
    auto bytes = store.read(place.path, place.offset + offset, length);
    if (!bytes) return fail(Code::io_error, place.path + ": " + bytes.status().text);
    if (bytes->size() != length) return damaged(place, "it is shorter than recorded");
    return bytes;
}

Result<std::string> read_all(store::Store &store, const Place &place) {
    auto bytes = read_range(store, place, 0, place.length);
    if (bytes && crc32c(*bytes) != place.sum) return damaged(place, "its checksum is wrong");
    return bytes;
}

Part part_of(wire::Stream stream) {
    switch (stream) {
    case wire::Stream::out: return Part::out;
    case wire::Stream::err: return Part::err;
    case wire::Stream::checkpoint: return Part::checkpoint;
    case wire::Stream::message: return Part::message;
    case wire::Stream::input:
    case wire::Stream::file:
    case wire::Stream::log: break;
    }
    DCS_REQUIRE(false, "an input is part of the packed parameters, a file lies in the library");
    return Part::params;
}

}  // namespace

Place place_of(const GrainKey &key, const core::Grain &g, Part part) {
    const auto in_session = [&](const char *file, std::uint64_t offset) {
        return Place{session_directory(key.session) + "/" + file, offset, 0, 0};
    };
    const auto own = [&](const char *file) { return Place{grain_directory(key) + "/" + file, 0, 0, 0}; };
    const auto result = [&](const char *file, std::uint64_t before) {
        return g.own_tree ? own(file) : in_session(results_file, g.course->result_offset + before);
    };
    const auto with = [](Place place, std::uint64_t length, std::uint32_t sum) {
        place.length = length;
        place.sum = sum;
        return place;
    };
    switch (part) {
    case Part::params:
        return with(g.params_own_file ? own(params_file) : in_session(inputs_file, g.params_offset), g.params_length,
                    g.params_sum);
    case Part::out: return with(result(out_file, 0), g.course->out_length, g.course->out_sum);
    case Part::err: return with(result(err_file, g.course->out_length), g.course->err_length, g.course->err_sum);
    case Part::checkpoint:
        return with(result(checkpoint_files[g.course->second_checkpoint], g.course->out_length + g.course->err_length),
                    g.course->checkpoint_length, g.course->checkpoint_sum);
    case Part::message: break;
    }
    return with(result(message_file, g.course->out_length + g.course->err_length + g.course->checkpoint_length),
                g.course->message_length, g.course->message_sum);
}

Status check_all(store::Store &store, const Place &place) {
    std::uint32_t sum = 0;
    for (std::uint64_t at = 0; at < place.length; at += chunk_bytes) {
        auto chunk = read_range(store, place, at, std::min(chunk_bytes, place.length - at));
        if (!chunk) return chunk.status();
        sum = crc32c(*chunk, sum);
    }
    return sum == place.sum ? Status::ok() : damaged(place, "its checksum is wrong");
}

Result<std::string> read_params(store::Store &store, const GrainKey &key, const core::Grain &grain) {
    return read_all(store, place_of(key, grain, Part::params));
}

Result<std::string> read_checkpoint(store::Store &store, const GrainKey &key, const core::Grain &grain) {
    return read_all(store, place_of(key, grain, Part::checkpoint));
}

Result<std::string> read_message(store::Store &store, const GrainKey &key, const core::Grain &grain) {
    return read_all(store, place_of(key, grain, Part::message));
}

std::uint64_t length_of(const core::Grain &grain, wire::Stream stream) {
    if (stream == wire::Stream::input) return grain.input_length;
    return place_of(GrainKey(), grain, part_of(stream)).length;
}

void Verified::add(const Place &place) {
    if (places_.size() >= limits::verified_places) places_.clear();
    places_.insert(place);
}

Result<std::string> read_piece(store::Store &store, const GrainKey &key, const core::Grain &grain, wire::Stream stream,
                               std::uint64_t offset, std::uint64_t max, Verified *verified) {
    const Place place = place_of(key, grain, part_of(stream));
    if (offset >= place.length) return std::string();
    if (offset == 0 && max >= place.length) return read_all(store, place);
    const bool known = verified != nullptr && verified->has(place);
    if (offset == 0 && place.length <= limits::checked_at_once && !known) {
        if (Status s = check_all(store, place); !s) return s;
        if (verified != nullptr) verified->add(place);
    }
    return read_range(store, place, offset, std::min(max, place.length - offset));
}

std::uint64_t checked_bytes(const GrainKey &key, const core::Grain &grain, wire::Stream stream, std::uint64_t max,
                            const Verified &verified) {
    const Place place = place_of(key, grain, part_of(stream));
    const bool looked_at = max < place.length && (place.length > limits::checked_at_once || verified.has(place));
    return looked_at ? 0 : place.length;
}

Result<std::string> read_events(store::Store &store, const SessionKey &key, const core::SessionInfo &info,
                                std::uint64_t offset, std::uint64_t max) {
    if (offset >= info.events_length) return std::string();
    const Place place{session_directory(key) + "/" + events_file, offset, info.events_length - offset, 0};
    return read_range(store, place, 0, std::min(max, place.length));
}

namespace {
constexpr std::uint64_t ahead = 256 * 1024;
}

Result<std::string> ReadAhead::read(store::Store &store, const Place &place, std::uint64_t offset,
                                    std::uint64_t length) {
    if (length == 0) return std::string();
    const std::uint64_t from = place.offset + offset;
    const bool there = path_ == place.path && from >= start_ && from + length <= start_ + bytes_.size();
    if (!there) {
        auto bytes = store.read(place.path, from, std::max(length, ahead));
        if (!bytes) return fail(Code::io_error, place.path + ": " + bytes.status().text);
        bytes_ = std::move(*bytes);
        path_ = place.path;
        start_ = from;
    }
    if (from + length > start_ + bytes_.size())
        return fail(Code::io_error, place.path + ": it is shorter than recorded");
    DCS_REQUIRE(from >= start_, "what is returned was read");
    return bytes_.substr(from - start_, length);
}

Result<std::string> ReadAhead::read_whole(store::Store &store, const Place &place) {
    auto bytes = read(store, place, 0, place.length);
    if (bytes && crc32c(*bytes) != place.sum) return fail(Code::io_error, place.path + ": its checksum is wrong");
    return bytes;
}

}  // namespace dcs::record
