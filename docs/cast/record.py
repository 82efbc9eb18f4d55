#!/usr/bin/env python3
"""Records sessions in a terminal as SVG pictures for the documents.

Runs each scene's commands under a pseudo-terminal of the scene's width, draws what the terminal
shows, and writes one SVG file a scene. An animated one shows line after line, once, and all of it
at once to readers who prefer no motion. The timing is made up, so that two recordings differ only
in the figures that the commands print. Needs nothing but Python and a shell.
"""

import argparse
import codecs
import fcntl
import html
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import termios

# The folder that the sessions run in: its name shows in reports.
HOME = pathlib.Path("/tmp/fsure-demo")

# Makes a small tree with two damaged files; not shown.
SETUP = """
mkdir -p photos/2026-03
for n in 1 2 3 4 5 6; do seq $((n * 100000)) $((n * 100000 + 300000)) > photos/2026-03/DSC_000$n.NEF; done
touch -d '2026-03-08 11:20' photos/2026-03/*
sleep 0.1
"""
DAMAGE = """
touch -r photos/2026-03/DSC_0002.NEF date
printf 'bit rot' | dd of=photos/2026-03/DSC_0002.NEF bs=1 seek=1500000 conv=notrunc status=none
touch -r date photos/2026-03/DSC_0002.NEF
"""
SCENES = {
    "session": {
        "columns": 92,
        "animated": True,
        "title": "Record, damage, verify and heal a folder of photos",
        "setup": SETUP + "cp -a photos copy\n",
        "commands": [
            "fsure update --quiet photos",
            "touch -r photos/2026-03/DSC_0002.NEF date",
            "printf 'bit rot' | dd of=photos/2026-03/DSC_0002.NEF bs=1 seek=1500000 \\\n"
            "    conv=notrunc status=none",
            "touch -r date photos/2026-03/DSC_0002.NEF",
            "fsure verify photos",
            "fsure heal photos --from copy --yes --quiet",
            "fsure verify photos",
        ],
    },
} | {
    f"verify-{columns}": {
        "columns": columns,
        "animated": False,
        "title": f"A damaged file, reported in a terminal of {columns} columns",
        "setup": SETUP + "fsure update --quiet photos\n" + DAMAGE,
        "commands": ["fsure verify photos"],
    }
    for columns in (40, 80, 120)
}

PALETTE = ["#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#c9d1d9"]
BACKGROUND, TEXT, PROMPT = "#0d1117", "#c9d1d9", "#7ee787"
# Width and height of a character, and the space around the text, in pixels.
WIDTH, HEIGHT, MARGIN = 8.4, 19, 16
# Seconds: before a command appears, before its output, between two lines of it.
PAUSE, WORK, LINE = 1.2, 0.5, 0.06
PLAIN = (TEXT, False, False)


class Terminal:
    """The part of a terminal that command lines use: text, colours, and lines drawn anew."""

    def __init__(self, columns):
        self.columns, self.rows = columns, [[]]
        self.row = self.column = 0
        self.style = PLAIN
        # Colour as a number, bold, dim.
        self.colour, self.bold, self.dim = None, False, False

    def feed(self, text):
        for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b.|[^\x1b]", text, re.S):
            if token.startswith("\x1b["):
                self.control(token[2:-1], token[-1])
            elif token == "\n":
                self.row += 1
            elif token == "\r":
                self.column = 0
            elif token == "\b":
                self.column = max(self.column - 1, 0)
            elif token >= " ":
                self.put(token)

    def put(self, character):
        if self.column == self.columns:
            self.row, self.column = self.row + 1, 0
        while len(self.rows) <= self.row:
            self.rows.append([])
        row = self.rows[self.row]
        row.extend([(" ", PLAIN)] * (self.column + 1 - len(row)))
        row[self.column] = (character, self.style)
        self.column += 1

    def control(self, arguments, name):
        numbers = [int(number) if number.isdigit() else 0 for number in arguments.split(";")]
        count = max(numbers[0], 1)
        if name == "m":
            self.select(numbers)
        elif name == "A":
            self.row = max(self.row - count, 0)
        elif name == "B":
            self.row += count
        elif name == "C":
            self.column = min(self.column + count, self.columns - 1)
        elif name == "D":
            self.column = max(self.column - count, 0)
        elif name == "G":
            self.column = count - 1
        elif name in "KJ" and self.row < len(self.rows):
            row = self.rows[self.row]
            del row[0 if numbers[0] == 2 else self.column:]
            if name == "J":
                del self.rows[self.row + 1:]

    def select(self, numbers):
        while numbers:
            number = numbers.pop(0)
            if number == 0:
                self.colour, self.bold, self.dim = None, False, False
            elif number == 1:
                self.bold = True
            elif number == 2:
                self.dim = True
            elif number == 22:
                self.bold = self.dim = False
            elif 30 <= number <= 37:
                self.colour = number - 30
            elif 90 <= number <= 97:
                self.colour = number - 90
            elif number == 39:
                self.colour = None
            elif number in (38, 48) and numbers[:1] == [5]:
                colour = numbers[1] % 8
                numbers = numbers[2:]
                self.colour = colour if number == 38 else self.colour
        colour = TEXT if self.colour is None else PALETTE[self.colour]
        self.style = (colour, self.bold, self.dim)


def run(command, columns, environment):
    """Returns what a command prints on a terminal, and its exit code."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(HOME)
        os.execvpe("sh", ["sh", "-c", command], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    output = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(terminal)
    status = os.waitpid(process, 0)[1]
    return codecs.decode(output, "utf-8", "replace"), os.waitstatus_to_exitcode(status)


def record(scene, environment):
    """Returns the lines of a scene, each with the moment at which it appears."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    subprocess.run(["sh", "-ec", scene["setup"]], cwd=HOME, env=environment, check=True)
    lines, moment = [], 0.3
    for command in scene["commands"]:
        # The terminal has its size before the command asks for it.
        wait = "while [ $(stty size | cut -d' ' -f2) != %d ]; do :; done; " % scene["columns"]
        output, code = run(wait + command, scene["columns"], environment)
        for number, text in enumerate(command.split("\n")):
            prompt = [("$ " if number == 0 else "> ", (PROMPT, True, False))]
            lines.append((moment, prompt + [(text, (TEXT, True, False))]))
        moment += WORK
        terminal = Terminal(scene["columns"])
        terminal.feed(output)
        for row in terminal.rows:
            lines.append((moment, row))
            moment += LINE
        while lines and not "".join(text for text, _ in lines[-1][1]).strip():
            lines.pop()
        if code:
            lines.append((moment, [(f"[exit code {code}]", (TEXT, False, True))]))
        moment += PAUSE
    shutil.rmtree(HOME)
    return lines


def runs(row):
    """Joins neighbours of one style: the column, the text and the style of each run."""
    joined, column = [], 0
    for text, style in row:
        if joined and joined[-1][2] == style:
            joined[-1][1] += text
        else:
            joined.append([column, text, style])
        column += len(text)
    return [run for run in joined if run[1].strip()]


def draw(scene, lines):
    """Returns the picture of a scene."""
    width = round(scene["columns"] * WIDTH + 2 * MARGIN)
    height = len(lines) * HEIGHT + 2 * MARGIN
    plain = "\n".join("".join(text for text, _ in row).rstrip() for _, row in lines)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{html.escape(scene['title'])}</title>",
        f"<desc>{html.escape(plain)}</desc>",
        "<style>text { font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; "
        "white-space: pre }",
    ]
    if scene["animated"]:
        out.append(
            "g { visibility: hidden; animation: show 1ms forwards }"
            "@keyframes show { to { visibility: visible } }"
            "@media (prefers-reduced-motion: reduce) { g { visibility: visible; animation: none } }"
        )
    out.append(f'</style><rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>')
    for number, (moment, row) in enumerate(lines):
        y = MARGIN + number * HEIGHT + 14
        delay = f' style="animation-delay: {moment:.2f}s"' if scene["animated"] else ""
        out.append(f"<g{delay}>")
        for column, text, (colour, bold, dim) in runs(row):
            weight = ' font-weight="bold"' if bold else ""
            opacity = ' opacity="0.6"' if dim else ""
            out.append(
                f'<text x="{MARGIN + column * WIDTH:.1f}" y="{y}" fill="{colour}"{weight}{opacity} '
                f'textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" '
                f'xml:space="preserve">{html.escape(text)}</text>'
            )
        out.append("</g>")
    return "\n".join(out) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="folder of the fsure to record", default="target/release")
    parser.add_argument("--to", help="folder for the pictures",
                        default=pathlib.Path(__file__).parent.parent / "images")
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.path).resolve()
    if not (program / "fsure").exists():
        parser.error(f"there is no fsure in {program}: 'cargo build --release' makes one")
    if HOME.exists():
        parser.error(f"{HOME} is there already: another recording, or what one left; remove it")
    environment = {
        "PATH": f"{program}:{os.environ['PATH']}",
        "HOME": str(HOME),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
    to = pathlib.Path(arguments.to)
    to.mkdir(parents=True, exist_ok=True)
    for name, scene in SCENES.items():
        (to / f"{name}.svg").write_text(draw(scene, record(scene, environment)))
        print(to / f"{name}.svg")


if __name__ == "__main__":
    main()
