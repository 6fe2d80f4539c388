"""Finds in the sources every text that says an error: calls of the functions that make errors, literals that are returned
or kept as the reason for one, and Python's raise. A text is known by its file and its words, so lines may move."""
import ast
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("libdcs", "scheduler", "grainserver", "backupd")  # examples are the user's to copy: their words are not ours
# Calls that make an error, or write one where people read it.
MAKERS = {"fail", "fail_errno", "usage_failure", "not_found_failure", "call_failure", "failure_of", "file_error", "failed",
          "complain", "complain_as_flock", "log_warn", "log_error", "spoil", "lose", "fail_with", "damaged", "strange",
          "turn_away", "give_up", "invalid", "wrong_use", "die", "refuse_because", "about"}
# A sentence that is returned, or kept under one of these names, is the reason for an error.
REASONS = {"wrong", "why", "error", "reason", "problem", "text", "message", "hint", "advice"}
# Files that return sentences which are no errors: traces of decisions, pictures, tables, what a verb has done.
TALKERS = {"libdcs/locks/learn.cc"} | {
    f"libdcs/commands/dcs/{name}.cc" for name in (
        "query/session_events", "trace/svg", "pool/top", "trace/trace", "trace/flow", "frame/pool_directory",
        "host/client_host", "host/set_drain")}
TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
  | (?P<string>(?:u8)?"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\d(?:[\w.']|[eE][+-])*)
  | (?P<sign>::|->|==|!=|<=|>=|&&|\|\||\+=|<<|.)""", re.S | re.M | re.X)
KEYWORDS = {"return", "co_return", "else", "throw", "case", "do", "co_await", "co_yield"}
SENTENCE = re.compile(r"[A-Za-z`'\"] [A-Za-z`'\"]")


class Token:
    def __init__(self, kind, text, at):
        self.kind, self.text, self.at = kind, text, at


class Text:
    """One text: `key` names it; a build that notes which were made does so where source[at:end] is evaluated."""

    def __init__(self, path, words, line, at, end, is_call):
        self.path, self.words, self.line, self.at, self.end, self.is_call = path, words, line, at, end, is_call

    @property
    def key(self):
        return f"{self.path}: {self.words}"


def tokens_of(source):
    found, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match.lastgroup != "skip":
            kind = "string" if match.group("raw") else match.lastgroup
            found.append(Token(kind, match.group(), at))
        at = match.end()
    return found


def closing(tokens, i):
    """The index of the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].text in ("(", "{", "["):
            depth += 1
        elif tokens[j].text in (")", "}", "]"):
            depth -= 1
            if depth == 0:
                return j
    raise ValueError(f"a bracket at {tokens[i].at} is not closed")


def words_in(tokens):
    """The literals, `...` between them."""
    parts, last = [], None
    for i, token in enumerate(tokens):
        if token.kind != "string":
            continue
        text = token.text[token.text.index('"') + 1:-1]
        if last is not None and i == last + 1:
            parts[-1] += text
        else:
            parts.append(text)
        last = i
    return " ... ".join(parts)


def is_declaration(tokens, i):
    """Is the name at i that of a function being declared? Then a type stands before it."""
    while i >= 2 and tokens[i - 1].text == "::":
        i -= 2
    before = tokens[i - 1] if i else None
    return before is not None and ((before.kind == "word" and before.text not in KEYWORDS) or
                                   (before.text in ("*", "&") and tokens[i - 2].kind == "word" and
                                    tokens[i - 2].text not in KEYWORDS))


def opens_site(tokens, i):
    """The bracket that opens what makes an error at i, or None."""
    token, after = tokens[i], tokens[i + 1].text if i + 1 < len(tokens) else ""
    if token.kind == "word" and after == "(":
        method = tokens[i - 1].text in (".", "->")
        if token.text in MAKERS and not (method and token.text in ("fail", "error")) and not is_declaration(tokens, i):
            return i + 1
        if token.text in ("fprintf", "dprintf") and tokens[i + 2].text in ("stderr", "2"):
            return i + 1
        if token.text == "snprintf" and {t.text for t in tokens[i + 2:i + 5]} & {"wrong", "why", "refusal"}:
            return i + 1
    if token.text == "{" and after == "exits" and tokens[i + 4].text == ",":
        return i
    return None


class CppFile:
    def __init__(self, path, source):
        self.path, self.source, self.tokens, self.texts, self.taken = path, source, tokens_of(source), [], set()
        for i in range(len(self.tokens)):
            opened = opens_site(self.tokens, i)
            if opened is not None and opened not in self.taken:
                self.take(opened + 1, closing(self.tokens, opened), True)
        for i, token in enumerate(self.tokens):
            if token.kind == "string" and i not in self.taken and path not in TALKERS:
                self.take_reason(i)

    def add(self, inside, first, last, is_call):
        """A text of the literals `inside`, noted where the tokens from first to last are evaluated."""
        at, end = self.tokens[first].at, self.tokens[last].at + len(self.tokens[last].text)
        self.texts.append(Text(self.path, words_in(inside), self.source.count("\n", 0, at) + 1, at, end,
                               is_call))

    def literal_end(self, k):
        while self.tokens[k + 1].kind == "string":
            k += 1
        return k

    def take(self, first, end, is_call):
        """The texts in tokens[first:end]: what follows ? or : is one of its own, the rest together is another."""
        rest, starts = [], []
        k = first
        while k < end:
            token = self.tokens[k]
            if token.kind != "string":
                rest.append(token)
                k += 1
                continue
            last = self.literal_end(k)
            inside = self.tokens[k:last + 1]
            if self.tokens[k - 1].text in ("?", ":") and SENTENCE.search(words_in(inside)):
                self.add(inside, k, last, is_call)
            else:
                rest += inside
                starts.append(k)
            k = last + 1
        self.taken.update(range(first - 1, end))
        if not re.search(r"[a-z]{2}", words_in(rest)):
            return
        if not is_call:
            self.add(rest, starts[0], self.literal_end(starts[0]), is_call)
            return
        last = first  # the call's first argument: it is evaluated whenever the error is made
        while self.tokens[last].text != "," and last < end:
            last = closing(self.tokens, last) + 1 if self.tokens[last].text in ("(", "{", "[") else last + 1
        self.add(rest, first, last - 1, is_call)

    def take_reason(self, k):
        """`return ...;` and `why = ...;` with a sentence in it, outside of what was found before."""
        i = k - 1
        while i > 0 and self.tokens[i].text not in (";", "{", "}", "return", "="):
            i -= 1
        at, end = self.tokens[i].text, k
        if not (at == "return" or (at == "=" and self.tokens[i - 1].text in REASONS)):
            return
        while self.tokens[end].text not in (";", "{", "}"):
            end += 1
        if any(j in self.taken for j in range(i + 1, end)) or not SENTENCE.search(words_in(self.tokens[i + 1:end])):
            return
        self.take(i + 1, end, False)


def python_texts(path, source):
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            literals = [n.value for n in ast.walk(node.exc) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            if any(SENTENCE.search(text) for text in literals):
                line = source.split("\n")[node.exc.lineno - 1]
                at = sum(len(s) + 1 for s in source.split("\n")[:node.exc.lineno - 1])
                at += len(line.encode()[:node.exc.col_offset].decode())
                found.append(Text(path, " ... ".join(literals), node.lineno, at, at, True))
    return found


def texts_of(path, source):
    if path.endswith(".py"):
        found = python_texts(path, source)
    else:
        found = CppFile(path, source).texts
    seen = {}
    for text in sorted(found, key=lambda t: t.at):  # the same words twice in a file are two texts
        text.words = re.sub(r"\s+", " ", text.words).strip()
        seen[text.words] = seen.get(text.words, 0) + 1
        if seen[text.words] > 1:
            text.words += f" #{seen[text.words]}"
    return found


def all_texts(root=ROOT):
    found = []
    for folder in FOLDERS:
        for directory, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(directory, name), root)
                if name.endswith((".cc", ".h", ".c", ".py")):
                    with open(os.path.join(root, path)) as file:
                        found += texts_of(path, file.read())
    return found
