#include "wire/content_check.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/resources.h"

namespace dcs::wire {
namespace {

Status bad(const std::string &why) { return fail(Code::invalid, why); }

Status check_one(const GrainFile &file) {
    const std::string what = to_text(file);
    const bool named = file.role != FileRole::program && file.role != FileRole::input && file.role != FileRole::image;
    if (named && !good_file_name(file.name))
        return bad("the file name \"" + file.name.substr(0, 80) +
                   "\" is not one below the working directory: give a relative one without \"..\", of at most " +
                   std::to_string(limits::file_name_bytes) + " bytes");
    if (!named && !file.name.empty())
        return bad(what + " has a name, which only files in the working directory may have");
    if (file.role != FileRole::program && !file.binary_class.empty())
        return bad(what + " has a binary class, which only programs may have");
    if (file.binary_class.size() > limits::name_bytes) return bad(what + ": its binary class is too long");
    if (file.role == FileRole::output)
        return file.digest.empty() && file.size == 0
                   ? Status::ok()
                   : bad(what + " is an output, and must have neither digest nor size");
    if (file.digest.size() != limits::digest_bytes) return bad(what + ": the digest must be a SHA-256 of 32 bytes");
    if (file.size > limits::content_bytes)
        return fail(Code::limit, what + " has " + std::to_string(file.size) + " bytes, the limit is " +
                                     std::to_string(limits::content_bytes) + ": put it onto a file server");
    return Status::ok();
}

// Only hosts that offer the resource run containers.
Status check_image(const GrainSpec &spec) {
    const auto images = std::count_if(spec.files.begin(), spec.files.end(),
                                      [](const GrainFile &file) { return file.role == FileRole::image; });
    if (images == 0) return Status::ok();
    if (images > 1) return bad("the grain has " + std::to_string(images) + " images: give one");
    const auto amounts = amounts_of(spec.demands.resources);
    if (amounts && amounts->contains(container_resource)) return Status::ok();
    return bad(std::string("a grain with an image must demand the resource ") + container_resource);
}

// Puts what lies below a name directly behind it.
bool before(std::string_view a, std::string_view b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        const auto place = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
        return place(x) < place(y);
    });
}

// No two in the same place, and none below another.
Status check_places(const GrainSpec &spec) {
    std::vector<std::string_view> names;
    for (const GrainFile &file : spec.files)
        if (!file.name.empty()) names.push_back(file.name);
    std::sort(names.begin(), names.end(), before);
    for (std::size_t i = 1; i < names.size(); ++i) {
        const std::string_view name = names[i - 1], next = names[i];
        if (name == next) return bad("two files have the name " + std::string(name));
        if (next.starts_with(name) && next[name.size()] == '/')
            return bad("the file " + std::string(next) + " would lie below the file " + std::string(name));
    }
    return Status::ok();
}

}  // namespace

bool good_file_name(const std::string &name) {
    if (name.empty() || name.size() > limits::file_name_bytes || name.find('\0') != std::string::npos) return false;
    for (std::size_t from = 0; from <= name.size();) {
        const std::size_t to = std::min(name.find('/', from), name.size());
        const std::string part = name.substr(from, to - from);
        if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
        from = to + 1;
    }
    return true;
}

Status check_files(const GrainSpec &spec) {
    if (spec.files.size() > limits::grain_files)
        return fail(Code::limit, "the grain has " + std::to_string(spec.files.size()) + " files, the limit is " +
                                     std::to_string(limits::grain_files) + ": pack them into an archive");
    std::set<std::string> classes;
    std::size_t bytes = 0;
    int inputs = 0;
    for (const GrainFile &file : spec.files) {
        if (Status s = check_one(file); !s) return s;
        bytes += file.name.size() + file.binary_class.size();
        inputs += file.role == FileRole::input;
        if (file.role == FileRole::program && !classes.insert(file.binary_class).second)
            return bad("two programs are for " +
                       (file.binary_class.empty() ? std::string("every binary class") : file.binary_class));
        const bool placed = !file.name.empty();
        if (placed && !spec.directory.empty())
            return bad("the file " + file.name +
                       " needs a working directory of the grain's own: "
                       "leave the directory out");
    }
    if (bytes > limits::file_names_bytes)
        return fail(Code::limit, "the names of the grain's files have " + std::to_string(bytes) +
                                     " bytes, the limit is " + std::to_string(limits::file_names_bytes));
    if (inputs > 1) return bad("the grain has " + std::to_string(inputs) + " standard inputs: give one");
    if (inputs == 1 && !spec.input.empty()) return bad("the input is given twice: as bytes and as a content");
    if (!classes.empty() && (spec.argv.empty() || spec.argv[0].empty()))
        return bad("argv[0], the path of the program, is missing");
    if (Status s = check_image(spec); !s) return s;
    return check_places(spec);
}

const GrainFile *input_of(const GrainSpec &spec) {
    for (const GrainFile &file : spec.files)
        if (file.role == FileRole::input) return &file;
    return nullptr;
}

std::uint64_t input_length(const GrainSpec &spec) {
    const GrainFile *content = input_of(spec);
    return content ? content->size : spec.input.size();
}

}  // namespace dcs::wire
