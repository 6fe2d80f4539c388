// A stream of bytes cut into frames: however it is cut, the same frames come out, and the same refusal.
#include "net/connection.h"

#include "base/limits.h"
#include "fuzz.h"
#include "script.h"

namespace dcs::fuzz {
namespace {

struct Cut {
    std::vector<net::Frame> frames;
    Status status;
};

Cut cut(std::string_view stream, std::size_t most, std::size_t step) {
    Cut all;
    net::FrameReader reader;
    while (!stream.empty() && all.status) {
        all.status = reader.feed(stream.substr(0, step), most, &all.frames);
        stream.remove_prefix(std::min(step, stream.size()));
    }
    return all;
}

bool same(const Cut &a, const Cut &b) {
    if (a.status.text != b.status.text || a.frames.size() != b.frames.size()) return false;
    for (std::size_t i = 0; i < a.frames.size(); ++i)
        if (a.frames[i].payload != b.frames[i].payload || a.frames[i].header.request != b.frames[i].header.request ||
            a.frames[i].header.kind != b.frames[i].header.kind)
            return false;
    return true;
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const std::size_t step = input.byte() % 67 + 1;
    const std::size_t most = input.byte() % 2 == 0 ? limits::hello_frame_bytes : limits::server_frame_bytes;
    const Cut whole = cut(input.rest(), most, SIZE_MAX);
    expect(same(whole, cut(input.rest(), most, step)), "frames do not depend on how the stream arrives");
    for (const net::Frame &frame : whole.frames) {
        expect(frame.payload.size() == frame.header.length && frame.payload.size() <= most, "a frame keeps its limit");
        (void)wire::decode_payload(frame.header, frame.payload);
    }
}

std::vector<Seed> seeds() {
    std::vector<Seed> list;
    std::string all(2, '\7');
    for (const wire::AnyMessage &message : samples()) {
        const std::string frame = wire::encode(message, 77);
        list.push_back({wire::kind_name(message), std::string(2, '\1') + frame});
        all += frame;
    }
    list.push_back({"all-in-a-row", all});
    return list;
}

}  // namespace dcs::fuzz
