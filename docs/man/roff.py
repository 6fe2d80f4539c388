"""Text, help texts and Markdown as the roff of manual pages."""
import pathlib
import re

URL = "https://"
VERSION = re.search(r'DCS_VERSION "(.*)"', (pathlib.Path(__file__).parents[2] / "libdcs/base/version.h").read_text())[1]


def escaped(text):
    """Ordinary text. A line may not begin with what roff takes for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    text = text.replace("\u00b7", "\\(md").replace("\u00d7", "\\(mu")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def running(text, stars=True):
    """A paragraph: `code` in bold, links as their words; stars mean emphasis, but not around C."""
    text = re.sub(r"\[([^]]*)\]\(([^)]*)\)", lambda m: m[1] + (f" ({m[2]})" if m[2].startswith(URL) else ""), text)
    emphasis = r"|\*\*.+?\*\*|(?<!\w)\*[^*\s][^*]*\*" if stars else ""
    parts = re.split(rf"(`[^`]*`{emphasis})", text)
    out = []
    for part in parts:
        if len(part) > 4 and part.startswith("**"):
            out.append("\\fB" + escaped(part[2:-2]) + "\\fR")
        elif len(part) > 1 and part[0] == part[-1] == "`":
            out.append("\\fB" + escaped(part[1:-1]) + "\\fR")
        elif len(part) > 2 and part[0] == part[-1] == "*":
            out.append("\\fI" + escaped(part[1:-1]) + "\\fR")
        else:
            out.append(escaped(part))
    return re.sub(r"^([.'])", r"\\&\1", "".join(out), flags=re.M)


def title(name, section, manual):
    return f'.TH {escaped(name.upper())} {section} "" "DCS {VERSION}" "{manual}"\n'


def heading(text):
    return f'.SH "{escaped(text.upper())}"\n'


def example(lines):
    return ".EX\n" + "".join(escaped(line) + "\n" for line in lines) + ".EE\n"


def option_lists(lines):
    """Blocks of a help text: paragraphs, option lists (two spaces and what is listed, wide space, words) and code."""
    out, i = [], 0
    while i < len(lines):
        if not lines[i].strip():
            i += 1
            continue
        block = []
        while i < len(lines) and lines[i].strip():
            block.append(lines[i])
            i += 1
        out.append(listed(block) if block[0].startswith("  ") else ".PP\n" + running("\n".join(block)) + "\n")
    return "".join(out)


def listed(block):
    out = []
    for line in block:
        item = re.match(r"  (\S.*?)(?:   *|$)(\S.*)?$", line) if not line.startswith("   ") else None
        if item:
            out.append(".TP\n.B \"" + escaped(item[1]).replace('"', '""') + "\"\n" + (running(item[2]) + "\n" if item[2] else ""))
        else:
            out.append(running(line.strip()) + "\n")
    return "".join(out)


# ---- Markdown, as far as docs/ use it ---------------------------------------------------------

def markdown(text):
    """The text behind the first heading, which is the page's name."""
    lines, out, i = text.split("\n"), [], 0
    while i < len(lines) and not lines[i].startswith("# "):
        i += 1
    name = lines[i][2:].strip()
    i += 1
    if any(line.strip() and not line.startswith("#") for line in lines[i:i + 3]):
        out.append(heading("description"))
    while i < len(lines):
        taken, roff = block_of(lines, i)
        out.append(roff)
        i += taken
    return name, "".join(out)


def block_of(lines, i):
    """How many lines the block at i has, and its roff."""
    line = lines[i]
    if not line.strip() or line.startswith(("<!--", "![")):
        return 1, ""
    if line.startswith("```"):
        end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith("```"))
        return end - i + 1, ".PP\n.RS 4\n" + example(lines[i + 1:end]) + ".RE\n"
    if line.startswith("## "):
        return 1, heading(re.sub(r"^[0-9]+\. ", "", line[3:]).replace("`", ""))
    if line.startswith("#"):
        return 1, f'.SS "{escaped(line.lstrip("# ").replace("`", ""))}"\n'
    end = i + 1
    if line.startswith("|"):
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        return end - i, table(lines[i:end])
    while end < len(lines) and lines[end].strip() and not lines[end].startswith(("```", "#", "|", "<!--")):
        if is_item(lines[end]):
            break
        end += 1
    text = "\n".join(part.strip() for part in lines[i:end])
    if is_item(line):
        mark, words = re.match(r"([-*]|[0-9]+\.) +(.*)", text, re.S).groups()
        return end - i, (".IP \\(bu 3\n" if mark in "-*" else f".IP {mark} 4\n") + running(words) + "\n"
    return end - i, ".PP\n" + running(text) + "\n"


def is_item(line):
    return re.match(r" *([-*]|[0-9]+\.) +\S", line)


def table(rows):
    """Each row as a list entry: tables of sentences are not read well in 80 columns."""
    cells = [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows]
    heads, out, last = cells[0], [], ""
    for row in cells[2:]:
        first = row[0] or last
        last = first
        out.append(".TP\n" + (running(first) or "\\&") + "\n")
        for head, cell in zip(heads[1:], row[1:]):
            if cell:
                out.append((running(head) + ": " if head and len(heads) > 2 else "") + running(cell) + ("\n.br\n" if len(heads) > 2 else "\n"))
    return re.sub(r"\n\.br\n(?=\.TP|$)", "\n", "".join(out)) + ".PP\n"
