"""Text of any origin in source code, in pages and on terminals: the one way for names into all of them.

A name comes from a file or a plant, and may hold anything: line ends, quotes, ends of comments, escapes of
terminals. Identifiers keep letters and digits only. A text in a comment has nothing that ends a comment,
begins another or goes on in the next line in any of the languages, so that one function serves all of them.
"""

from __future__ import annotations

import html
import json
import keyword
import re
from collections.abc import Sequence
from typing import Any

C = """
    asm auto bool break case char const continue default do double else enum extern false float for goto if
    inline int long nullptr register restrict return short signed sizeof static struct switch true typedef
    typeof typeof_unqual union unsigned void volatile while alignas alignof and and_eq bitand bitor catch
    char8_t char16_t char32_t class compl concept consteval constexpr constinit const_cast co_await co_return
    co_yield decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
    operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template
    this thread_local throw try typeid typename using virtual wchar_t xor xor_eq linux unix i386 main int8_t
    int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint_fast16_t uint_fast32_t
"""
"""Words of C, GNU C and C++ that no variable may have, the types of <stdint.h> among them."""
PYTHON = " ".join(["float map zip", *map(str.lower, keyword.kwlist)])
"""Words of Python, and the functions that exported code calls."""
JAVASCRIPT = """
    arguments await break case catch class const continue debugger default delete do else enum eval export
    extends false finally for function if implements import in instanceof interface let new null package
    private protected public return static super switch this throw true try typeof undefined var void while
    with yield
"""
RUST = """
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for
    gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super
    trait true try type typeof union unsafe unsized use virtual where while yield
"""
OCTAVE = """
    arguments break case catch classdef continue do double else elseif end end_try_catch end_unwind_protect
    endclassdef endenumeration endevents endfor endfunction endif endmethods endparfor endproperties endspmd
    endswitch endwhile enumeration events false for function global if isempty methods otherwise parfor
    persistent properties return spmd switch true try until unwind_protect unwind_protect_cleanup while
"""
"""Words of MATLAB and Octave, and the functions that exported code calls."""
STRUCTURED_TEXT = """
    abs acos action and array asin at atan bool by byte case configuration constant cos date date_and_time
    dint do dt dword else elsif end exit exp expt false for from function if in initial int interval ln log
    lreal lword max min mod move mux not of on or program read_only read_write real repeat resource retain
    return rol ror sel shl shr sin single sint sqrt step string struct sub tan task then time time_of_day to
    tod transition true type udint uint ulint until usint var while with word wstring xor
"""
ST_LIBRARY = """
    add concat ctd ctu ctud delete derivative div eq f_trig find ge gt hysteresis insert integral le left len
    limit lt mid mul ne pid r_trig ramp replace right rs rtc sema sr tof ton tp trunc
"""
"""Functions and function blocks of its standard library, whose names some compilers refuse for variables."""
_BETWEEN = re.compile(
    r"(?<=\*)(?=[/)])|(?<=[/(])(?=\*)|(?<=/)(?=/)|(?<=<)(?=[/!])"
    r'|(?<=")(?=")|(?<=\?)(?=\?)|(?<=`)(?=`)|(?<=~)(?=~)|(?<=>)(?=>)'
)
"""Where a space goes into a comment: in its ends and beginnings, in the end of a script of a page, in quotes
of Python and trigraphs of C, and in what begins examples that tools run, in comments of Rust and Python."""
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")
"""A colour of a terminal, which the commands set."""


def identifiers(names: Sequence[str], reserved: str = "") -> tuple[str, ...]:
    """Return distinct identifiers for names; units and signs become underscores.

    None is a keyword of Python, or one of the reserved words, which are given in one string.

    Examples
    --------
    >>> identifiers(["pole angle [rad]", "cos(angle)", "2nd", "pole-angle rad"])
    ('pole_angle_rad', 'cos_angle', 'x2_2nd', 'x3_pole_angle_rad')
    """
    taken = {*reserved.split(), *map(str.lower, keyword.kwlist)}
    words: list[str] = []
    for i, name in enumerate(names):
        word = re.sub(r"[^0-9a-zA-Z]+", "_", name).strip("_").lower()[:40].rstrip("_")
        if not word or word[0].isdigit() or word in taken:
            word = f"x{i}_{word}".rstrip("_")
        while word in taken:
            word += "_"
        taken.add(word)
        words.append(word)
    return tuple(words)


def is_keyword(word: str) -> bool:
    """Return whether a word has a meaning in a language that controllers are exported to.

    Examples
    --------
    >>> is_keyword("Class"), is_keyword("pump")
    (True, False)
    """
    words = " ".join([C, PYTHON, JAVASCRIPT, RUST, OCTAVE, STRUCTURED_TEXT])
    return word.lower() in words.split()


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with the codes of all characters that are not printable, such as line ends.

    Those in `keep` stay.

    Examples
    --------
    >>> print(printable("speed\x1b[2J \u202eabc \ud800"))
    speed<U+001B>[2J <U+202E>abc <U+D800>
    """
    return "".join(c if c.isprintable() or c in keep else f"<U+{ord(c):04X}>" for c in text)


def in_comment(text: str) -> str:
    r"""Return a text that is a part of one line of a comment, in whatever language.

    Examples
    --------
    >>> print(in_comment("a */ system(); /\\\n* (* b *)"))
    a * / system(); /<U+005C><U+000A>* ( * b * )
    """
    return _BETWEEN.sub(" ", printable(text).replace("\\", "<U+005C>"))


def in_html(text: str) -> str:
    r"""Return a text as content or attribute of HTML or SVG; lines stay lines.

    Examples
    --------
    >>> in_html('<b title="\x1b">')
    '&lt;b title=&quot;&lt;U+001B&gt;&quot;&gt;'
    """
    return html.escape(printable(text, "\n\t"))


def in_script(data: Any) -> str:
    """Return data as JSON that may stand in a script of HTML.

    Examples
    --------
    >>> print(in_script({"name": "</script><!--"}))
    {"name": "\\u003c/script\\u003e\\u003c!--"}
    """
    text = json.dumps(data, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def in_xml(text: str) -> str:
    """Return a text as the value of an attribute of XML, with its quotes.

    Examples
    --------
    >>> in_xml("a & b")
    '"a &amp; b"'
    """
    from xml.sax.saxutils import quoteattr  # which imports urllib, and takes longer than all of the help

    return quoteattr(printable(text))


def in_figure(text: str) -> str:
    r"""Return a text for Matplotlib, to which signs of dollars begin and end formulas.

    Examples
    --------
    >>> print(in_figure(r"a $\frac$"))
    a \$\frac\$
    """
    return printable(text, "\n").replace("$", "\\$")


def in_markdown(text: str) -> str:
    """Return a text in a cell of a Markdown table, without tags and links.

    Examples
    --------
    >>> print(in_markdown("a | <b> < 2 [m](n)"))
    a \\| &lt;b> < 2 [m]\\(n)
    """
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", printable(text))
    return text.replace("|", "\\|").replace("](", "]\\(")


def in_csv(text: str) -> str:
    """Return a text in a cell of CSV; one that begins as a formula of spreadsheets gets an apostrophe.

    A minus sign begins sums of observations, too, which stay as they are.

    Examples
    --------
    >>> in_csv("=1+1"), in_csv("-2.5 * angle")
    ("'=1+1", '-2.5 * angle')
    """
    text = printable(text)
    return f"'{text}" if text.startswith(("=", "@", "+")) else text


def on_terminal(text: str) -> str:
    r"""Return a text without control sequences for a terminal but colours; lines stay lines.

    Examples
    --------
    >>> on_terminal("a\x1b]0;title\x07\nb\x1b[31m")
    'a<U+001B>]0;title<U+0007>\nb\x1b[31m'
    """
    parts = _STYLE.split(text)  # every second one is a colour
    return "".join(part if i % 2 else printable(part, "\n\t") for i, part in enumerate(parts))
