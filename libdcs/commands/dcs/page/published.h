#pragma once
// What the connections hand out: made once for each look at the pool, and shared by all of them.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dcs::commands::page {

inline constexpr const char *html_type = "text/html; charset=utf-8", *picture_type = "image/svg+xml";

using Text = std::shared_ptr<const std::string>;
inline Text text_of(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

struct Panel {
    const char *id, *heading;
    std::string html;
    std::uint64_t changed = 0;  // the look at which it became as it is
};

struct Published {
    std::string run;           // of this process: numbers of another one mean nothing
    std::uint64_t number = 0;  // of the look
    std::vector<Panel> panels;
    Text first_page, update;  // `update`: for those who have the look before
    Text metrics, open_metrics;

    std::string id() const { return run + "-" + std::to_string(number); }
    // An event of the stream: the panels that have changed since the look that `last_id` names; all if it names none
    // of this process.
    Text update_since(const std::string &last_id) const;
};

// A whole document. `live`: the id of the look whose panels it has; empty: it does not change.
std::string document(const std::string &title, const std::string &body, const std::string &live = "");
std::string first_page_of(const Published &p);

}  // namespace dcs::commands::page
