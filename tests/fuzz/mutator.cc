// libFuzzer's custom mutator for scripts.
#include <algorithm>

#include "field_mutator.h"
#include "script.h"

extern "C" std::size_t LLVMFuzzerMutate(unsigned char *data, std::size_t size, std::size_t most);

namespace dcs::fuzz {
namespace {

void mutate_raw(std::string &payload) {
    const std::size_t size = payload.size();
    payload.resize(size + 64);
    payload.resize(LLVMFuzzerMutate(reinterpret_cast<unsigned char *>(payload.data()), size, size + 64));
}

void mutate_one(Item &item, Random &random) {
    std::optional<wire::AnyMessage> message = decoded(item);
    if (!message || random.below(8) == 0) return mutate_raw(item.payload);
    mutate_field(*message, random);
    item.payload = payload_of(*message);
    item.payload.resize(std::min<std::size_t>(item.payload.size(), 0xffff));
}

void mutate(std::vector<Item> &items, Random &random) {
    const std::size_t n = items.size();
    const std::size_t at = random.below(n);
    const std::uint64_t what = n == 0 ? 0 : random.below(16);
    if (what == 0 && n < most_items) {
        Item fresh = item(static_cast<std::uint8_t>(random.below(8)), samples()[random.below(kinds)]);
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(random.below(n + 1)), std::move(fresh));
    } else if (what == 1 && n < most_items) {
        const Item twice = items[at];
        items.insert(items.begin() + static_cast<std::ptrdiff_t>(random.below(n + 1)), twice);
    } else if (what == 2) {
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (what == 3) {
        std::swap(items[at], items[random.below(n)]);
    } else if (what == 4) {
        items[at].who = static_cast<std::uint8_t>(random.below(8));
    } else if (what == 5) {
        items[at].kind = static_cast<std::uint8_t>(random.below(kinds));
    } else if (n > 0) {
        mutate_one(items[at], random);
    }
}

}  // namespace
}  // namespace dcs::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(unsigned char *data, std::size_t size, std::size_t most, unsigned seed) {
    using namespace dcs::fuzz;
    Random random(seed);
    std::vector<Item> items = items_of({reinterpret_cast<const char *>(data), size});
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) mutate(items, random);
    const std::string bytes = bytes_of(items);
    if (bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
}

// The first items of one, then the rest of the other.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const unsigned char *one, std::size_t one_size,
                                                 const unsigned char *other, std::size_t other_size, unsigned char *out,
                                                 std::size_t most, unsigned seed) {
    using namespace dcs::fuzz;
    Random random(seed);
    std::vector<Item> front = items_of({reinterpret_cast<const char *>(one), one_size});
    const std::vector<Item> back = items_of({reinterpret_cast<const char *>(other), other_size});
    front.resize(random.below(front.size() + 1));
    front.insert(front.end(), back.begin() + static_cast<std::ptrdiff_t>(random.below(back.size() + 1)), back.end());
    const std::string bytes = bytes_of(front);
    if (bytes.size() > most) return 0;
    std::copy(bytes.begin(), bytes.end(), out);
    return bytes.size();
}
