#include "base/resources.h"

#include <algorithm>

#include <sched.h>

#include "base/limits.h"
#include "base/planted.h"
#include "base/text.h"

namespace dcs {
namespace {

constexpr std::string_view variable_start = "DCS_RESOURCE_", cuda_devices = "CUDA_VISIBLE_DEVICES=";

Status bad_resource(std::string_view word, const std::string &why) {
    return fail(Code::invalid, "`" + std::string(word) + "`: " + why);
}

// Up to the next comma outside of brackets.
std::string_view take_word(std::string_view &text) {
    const std::size_t open = text.find('['), comma = text.find(',');
    std::size_t end = comma;
    if (open < comma) end = text.find(',', std::min(text.find(']', open), text.size()));
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
}

Status read_amount(std::string_view word, std::string_view text, std::int64_t least, std::int64_t &amount) {
    std::int32_t read = 0;
    if (!read_number(text, read) || read < least)
        return bad_resource(word, "the amount must be a whole number from " + std::to_string(least) + " to " +
                                      std::to_string(INT32_MAX));
    amount = read;
    return Status::ok();
}

// "[0,1,4-7]"
Status read_indices(std::string_view word, std::string_view text, Offer &offer) {
    constexpr std::int32_t greatest = 65535;
    const Status bad =
        bad_resource(word, "indices are written [0,1,4-7], each from 0 to " + std::to_string(greatest) + " and once");
    if (!text.ends_with(']')) return bad;
    for (const std::string_view part : words_of(text.substr(1, text.size() - 2), ",")) {
        const std::size_t dash = part.find('-');
        std::int32_t first = -1, last = -1;
        if (!read_number(part.substr(0, dash), first)) return bad;
        if (dash == std::string_view::npos) last = first;
        else if (!read_number(part.substr(dash + 1), last)) return bad;
        if (first < 0 || last < first || last > greatest) return bad;
        if (offer.indices.size() + static_cast<std::size_t>(last - first) >= limits::resource_indices)
            return bad_resource(word, "more than " + std::to_string(limits::resource_indices) + " indices");
        for (std::int32_t i = first; i <= last; ++i) offer.indices.push_back(i);
    }
    std::sort(offer.indices.begin(), offer.indices.end());
    if (std::adjacent_find(offer.indices.begin(), offer.indices.end()) != offer.indices.end()) return bad;
    offer.amount = static_cast<std::int64_t>(offer.indices.size());
    return offer.amount > 0 ? Status::ok() : bad;
}

// Each word's name and the text behind its "=".
template <class Take> Status each_resource(std::string_view text, std::size_t most, Take &&take) {
    std::size_t count = 0;
    while (!text.empty()) {
        const bool trailing = text.back() == ',';
        const std::string_view word = take_word(text);
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos || (text.empty() && trailing))
            return bad_resource(word, "a resource is written NAME=AMOUNT");
        const std::string_view name = word.substr(0, equals);
        if (!is_resource_name(name))
            return bad_resource(word, "a resource's name has a-z, 0-9 and _, begins with a letter, and is at most " +
                                          std::to_string(limits::resource_name) + " long");
        if (++count > most) return bad_resource(word, "more than " + std::to_string(most) + " resources");
        if (Status s = take(word, std::string(name), word.substr(equals + 1)); !s) return s;
    }
    return Status::ok();
}

std::string index_list(const std::vector<std::int32_t> &indices) {
    std::string text;
    for (const std::int32_t i : indices) text += (text.empty() ? "" : ",") + std::to_string(i);
    return text;
}

std::string variable_of(const std::string &name) {
    std::string variable(variable_start);
    for (const char c : name) variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return variable;
}

}  // namespace

bool is_resource_name(std::string_view name) {
    const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
    return !name.empty() && name.size() <= limits::resource_name && letter(name[0]) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

Result<Amounts> amounts_of(std::string_view demand) {
    Amounts amounts;
    const Status read = each_resource(demand, limits::grain_resources,
                                      [&](std::string_view word, std::string name, std::string_view value) {
                                          std::int64_t amount = 0;
                                          if (Status s = read_amount(word, value, 1, amount); !s) return s;
                                          if (!amounts.emplace(std::move(name), amount).second)
                                              return bad_resource(word, "it occurs twice");
                                          return Status::ok();
                                      });
    if (!read) return read;
    return amounts;
}

Result<Offers> offers_of(std::string_view offer) {
    Offers offers;
    const Status read = each_resource(
        offer, limits::host_resources, [&](std::string_view word, std::string name, std::string_view value) {
            Offer one;
            const Status s =
                value.starts_with('[') ? read_indices(word, value, one) : read_amount(word, value, 0, one.amount);
            if (!s) return s;
            if (!offers.emplace(std::move(name), std::move(one)).second) return bad_resource(word, "it occurs twice");
            return Status::ok();
        });
    if (!read) return read;
    return offers;
}

std::string resource_text(const Amounts &amounts) {
    std::string text;
    for (const auto &[name, amount] : amounts) text += (text.empty() ? "" : ",") + name + "=" + std::to_string(amount);
    return text;
}

std::string resource_text(const Offers &offers) {
    std::string text;
    for (const auto &[name, offer] : offers)
        text += (text.empty() ? "" : ",") + name + "=" +
                (offer.indices.empty() ? std::to_string(offer.amount) : "[" + index_list(offer.indices) + "]");
    return text;
}

Result<Indices> choose_indices(const Amounts &asks, const Offers &offers, const std::vector<const Indices *> &taken) {
    Indices chosen;
    for (const auto &[name, amount] : asks) {
        const auto offer = offers.find(name);
        if (offer == offers.end() || offer->second.indices.empty()) continue;
        std::vector<std::int32_t> left = offer->second.indices;
        for (const Indices *others : taken)
            if (const auto used = others->find(name); used != others->end() && !planted("resources.index_twice"))
                for (const std::int32_t i : used->second) std::erase(left, i);
        if (left.size() < static_cast<std::size_t>(amount))
            return fail(Code::limit, "too few of " + name + " are free on this host");
        left.resize(static_cast<std::size_t>(amount));
        chosen.emplace(name, std::move(left));
    }
    return chosen;
}

Result<GivenResources> given_of(std::string_view demand, std::string_view offers,
                                const std::vector<const Indices *> &taken) {
    const Result<Amounts> amounts = amounts_of(demand);
    if (!amounts) return amounts.status();
    const Result<Offers> offered = offers_of(offers);
    if (!offered) return offered.status();
    Result<Indices> indices = choose_indices(*amounts, *offered, taken);
    if (!indices) return indices.status();
    return GivenResources{*amounts, std::move(*indices)};
}

std::vector<std::string> resource_environment(const GivenResources &given) {
    std::vector<std::string> env;
    for (const auto &[name, amount] : given.amounts) {
        const auto of_name = given.indices.find(name);
        const bool indexed = of_name != given.indices.end();
        env.push_back(variable_of(name) + "=" + (indexed ? index_list(of_name->second) : std::to_string(amount)));
        if (indexed && name == "gpu") env.push_back(std::string(cuda_devices) + index_list(of_name->second));
    }
    return env;
}

bool is_resource_variable(std::string_view item, const GivenResources &given) {
    return item.starts_with(variable_start) || (item.starts_with(cuda_devices) && given.indices.count("gpu") != 0);
}

std::string lacks_cpus(const std::vector<std::int32_t> &cpus) {
    cpu_set_t usable;
    if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return "";  // more than a set holds
    for (const std::int32_t cpu : cpus) {
        if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &usable)) continue;
        std::string all;
        for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &usable)) all += (all.empty() ? "" : ",") + std::to_string(i);
        return "grains cannot use CPU " + std::to_string(cpu) + " on this host, only " + all;
    }
    return "";
}

Result<Offers> offers_of_this_host(std::string_view offer) {
    Result<Offers> offers = offers_of(offer);
    if (!offers) return offers;
    const auto cpus = offers->find(cpu_resource);
    const std::string lacks = cpus == offers->end() ? "" : lacks_cpus(cpus->second.indices);
    if (lacks.empty()) return offers;
    return fail(Code::invalid, "`" + resource_text(Offers{*cpus}) + "`: " + lacks);
}

}  // namespace dcs
