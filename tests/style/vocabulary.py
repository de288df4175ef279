"""Find words and constructions that `words.toml` forbids, in the files that git tracks.

A file is read as chunks: identifiers, comments, docstrings, other strings, and text. A chunk is public if users read
it: documentation, interface files, messages, keys and help texts (the strings of the packages), and names and
docstrings of the packages that users import. Findings are counted by area: `public`, or the folder.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = Path(__file__).with_name("words.toml")

PUBLIC_FILES = (
    "*.md", "docs/*", "examples/*", "thrift/*", "packaging/*", "*.service", ".pre-commit-config.yaml", "pyproject.toml"
)  # fmt: skip
PUBLIC_STRINGS = (
    "algorithms/*", "blast_api/*", "blast_base/*", "blast_client/*", "blast_controller/*", "blast_engine/*",
    "blast_sim/*", "blast_transport/*", "clients/java/*/main/*", "mininet_topos/*", "optical_switch/*",
    "rack_fabric/src/*", "scripts/*", "tl1_driver/*",
)  # fmt: skip
PUBLIC_NAMES = (
    "algorithms/*", "blast_client/*", "blast_sim/plugins/*", "clients/java/*/main/*", "optical_switch/*", "tl1_driver/*"
)  # fmt: skip
NOT_OURS = (
    "tests/style/*", "tests/data/*", "benchmarks/regress/*", "*/vendor/*", "requirements/*", "LICENSE", "Cargo.lock",
    "CITATION.cff", "*.svg", "*.sqlite", "docs/values.json", "blast_api/*", "*_pb2.py*", "*/etcd_messages/*",
)  # fmt: skip

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HUMP = re.compile(r"[a-z][A-Z]|(?<=\w)_(?=\w)")
# Comments, strings and names of the languages with braces. Names of tests are judged where they are defined.
_BRACES = re.compile(
    r"(?P<doc>/\*\*.*?\*/|(?:///|//!)[^\n]*(?:\n\s*(?:///|//!)[^\n]*)*)|(?P<comment>/\*.*?\*/|//[^\n]*(?:\n\s*//[^\n]*)*)"
    r"|(?P<string>\"(?:\\.|[^\"\\])*\"|`(?:\\.|[^`\\])*`|'(?:\\.|[^'\\\n])+')|(?P<name>[A-Za-z_]\w*)",
    re.S,
)
_TEST_NAME = re.compile(r"\b\w*test_\w+|\b\w+_test\w*")
_CODE = (".rs", ".java", ".js", ".c", ".css")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text, or one identifier, that begins on a line of a file."""

    line: int
    text: str
    public: bool
    is_name: bool = False
    is_doc: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """Words, identifiers and phrases that are forbidden for one reason."""

    use: str
    words: frozenset[str]
    identifiers: frozenset[str]
    phrases: tuple[re.Pattern[str], ...]
    docstrings: tuple[re.Pattern[str], ...]
    allowed: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A forbidden word or phrase at a place."""

    path: str
    line: int
    found: str
    use: str
    public: bool

    @property
    def area(self) -> str:
        """Return `public`, or the first folder of the path."""
        return "public" if self.public else self.path.split("/", 1)[0]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: {self.use}"


def rules(path: Path = WORDS) -> list[Rule]:
    """Read the rules."""
    return [
        Rule(
            table["use"],
            frozenset(table.get("words", ())),
            frozenset(table.get("identifiers", ())) | frozenset(table.get("words", ())),
            tuple(re.compile(one, re.I) for one in table.get("phrases", ())),
            tuple(re.compile(one) for one in table.get("docstrings", ())),
            tuple(re.compile(one) for one in table.get("allowed", ())),
        )
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["rule"]
    ]


def tracked() -> list[str]:
    """Return the paths of the files that git tracks and that are written by us."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path and not _is(path, NOT_OURS) and (ROOT / path).is_file()]


def findings(paths: list[str]) -> Iterator[Finding]:
    """Yield what the rules forbid in these files."""
    given = rules()
    for path in paths:
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        yield from findings_in(path, text, given)


def findings_in(path: str, text: str, given: list[Rule]) -> Iterator[Finding]:
    """Yield what the rules forbid in the text of a file."""
    for chunk in chunks(path, text):
        for found, use in _forbidden(chunk, given):
            yield Finding(path, chunk.line, found, use, chunk.public)


def counts(found: Iterator[Finding]) -> dict[str, int]:
    """Count findings by area."""
    return dict(sorted(Counter(one.area for one in found).items()))


def _is(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _forbidden(chunk: Chunk, given: list[Rule]) -> Iterator[tuple[str, str]]:
    """Yield each forbidden word or phrase of a chunk with the words to use."""
    text = chunk.text if chunk.is_name else " ".join(_TEST_NAME.sub("", chunk.text).split())
    tokens = [(token, chunk.is_name or bool(_HUMP.search(token))) for token in _TOKEN.findall(text)]
    for rule in given:
        if any(pattern.search(text) for pattern in rule.allowed):
            continue
        for token, is_identifier in tokens:
            banned = rule.identifiers if is_identifier else rule.words
            if any(part.lower() in banned for part in _PART.findall(token)):
                yield token, rule.use
        if not chunk.is_name:
            for phrase in (*rule.phrases, *(rule.docstrings if chunk.is_doc else ())):
                for match in phrase.finditer(text):
                    yield match[0], rule.use


def chunks(path: str, text: str) -> Iterator[Chunk]:
    """Split a file into chunks."""
    if _is(path, PUBLIC_FILES):
        reader: Callable[[str, str], Iterator[Chunk]] = _paragraphs
    elif path.endswith((".py", ".pyi")):
        reader = _python
    elif path.endswith(_CODE):
        reader = _braces
    else:
        reader = _paragraphs
    return reader(path, text)


def _paragraphs(path: str, text: str) -> Iterator[Chunk]:
    """Split text at empty lines; list items, table rows and headings stand alone."""
    public = _is(path, PUBLIC_FILES) or _is(path, PUBLIC_STRINGS)
    line = begin = 1
    lines: list[str] = []
    for line, one in enumerate(text.splitlines(), 1):
        bare = one.strip().lstrip("#/*>").strip()
        if not bare or bare.startswith(("- ", "* ", "|", "```")) or re.match(r"\d+\. ", bare):
            if lines:
                yield Chunk(begin, " ".join(lines), public)
            lines = []
        if not lines:
            begin = line
        if bare:
            lines.append(bare.lstrip("-*| "))
    if lines:
        yield Chunk(begin, " ".join(lines), public)


def _python(path: str, text: str) -> Iterator[Chunk]:
    strings_public, names_public = _is(path, PUBLIC_STRINGS), _is(path, PUBLIC_NAMES)
    comment: list[str] = []
    begin = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if comment and token.start[0] == last + 1:
                comment.append(token.string.lstrip("# "))
            else:
                if comment:
                    yield Chunk(begin, " ".join(comment), False)
                comment, begin = [token.string.lstrip("# ")], token.start[0]
            last = token.start[0]
    if comment:
        yield Chunk(begin, " ".join(comment), False)
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_text(node.value)}
    yield from _python_nodes(tree, docstrings, strings_public, names_public, names_public)


def _python_nodes(node: ast.AST, docs: set[int], strings: bool, names: bool, public: bool) -> Iterator[Chunk]:
    """Yield the chunks below a node; `public` where no private name encloses it."""
    for child in ast.iter_child_nodes(node):
        inner = public
        line = getattr(child, "lineno", 0)
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                inner = public and (not child.name.startswith("_") or child.name.startswith("__"))
                yield Chunk(line, child.name, names and inner, True)
            case ast.arg(arg=name):
                yield Chunk(line, name, names and public, True)
            case ast.Name(id=name, ctx=ast.Store()):
                yield Chunk(line, name, False, True)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield Chunk(line, name, False, True)
            case ast.Constant(value=str(value)):
                is_doc = id(child) in docs
                yield Chunk(line, value, public and names if is_doc else strings, is_doc=is_doc)
        inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and isinstance(
            child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        )
        yield from _python_nodes(child, docs, strings, names, inner and not inside_function)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _braces(path: str, text: str) -> Iterator[Chunk]:
    strings, names = _is(path, PUBLIC_STRINGS), _is(path, PUBLIC_NAMES)
    seen: set[str] = set()
    for match in _BRACES.finditer(text):
        kind = match.lastgroup
        line = text.count("\n", 0, match.start()) + 1
        if kind == "name":
            # Each name once for a file: what counts is the definition.
            if match[0] not in seen:
                seen.add(match[0])
                declared = re.search(r"\bpublic [^;={]*$", text[max(0, match.start() - 80) : match.start()])
                yield Chunk(line, match[0], names and declared is not None, True)
        else:
            bare = re.sub(r"(?m)^\s*(?://[/!]?|\*/?|/\*\*?)|\*/", " ", match[0]) if kind != "string" else match[0][1:-1]
            yield Chunk(line, bare, strings if kind == "string" else names and kind == "doc", is_doc=kind == "doc")


if __name__ == "__main__":
    import sys

    found = list(findings(sys.argv[1:] or tracked()))
    for one in found:
        print(one, "(public)" if one.public else "")
    print(counts(iter(found)))
