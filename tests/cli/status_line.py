#!/usr/bin/env python3
"""The line that tells how far training is, seen through a pseudo-terminal: what it says, its width, and its silence."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import run

CLEAR = "\r\x1b[2K"


def watch(command, columns=None, lines=3, mark=CLEAR, environment=None):
    """All that a program writes to a terminal of so many columns, or to a pipe. It is interrupted (SIGINT) when `mark` was
    seen more than `lines` times: how fast this machine is must not matter. Without `lines` it runs to its end."""
    if columns is None:
        master, slave = os.pipe()
    else:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave, close_fds=True,
                               env={**os.environ, "TERM": "xterm", **(environment or {})})
    os.close(slave)
    output = b""
    stopped = False
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # how Linux says that the last writer is gone
            part = b""
        if not part:
            break
        output += part
        if lines and not stopped and output.count(mark.encode()) > lines:
            process.send_signal(signal.SIGINT)
            stopped = True
    os.close(master)
    text = output.decode()
    assert process.wait() == (130 if stopped else 0) and stopped == bool(lines), text
    return text


def status_lines(output):
    """Each state of the line, of those that a later one wrote over."""
    return [part for part in output.split(CLEAR)[1:-1] if part]


def main(binaries, folder):
    run.write_series(folder / "series.txt")
    config = run.write_config(folder / "config.yaml", folder / "series.txt", training__max_epochs=10**6,
                              training__validate_every=10**5, privacy__target_epsilon=60.0)
    number = 0

    def train(*extra):
        nonlocal number
        number += 1
        return [str(binaries / "tsdp-train"), "--threads", "1", "--config", str(config), "--output",
                str(folder / f"run{number}"), *extra]

    whole = re.compile(r"^ *\d+ % · step +\d+/\d+ · epoch +\d+(\.\d)? · loss +-?[\d.e+-]+ · +[\d.e+-]+ steps/s · "
                       r"(\d+:\d\d:\d\d|\d+ d \d\d h) left · epsilon ≤ +[\d.]+ of 60$")
    output = watch(train(), 200)
    lines = status_lines(output)
    assert len(lines) >= 3, output
    for line in lines:
        assert whole.match(line), line
    spent = [float(re.search(r"≤ +([\d.]+)", line)[1]) for line in lines]
    assert spent == sorted(spent) and all(0 < value <= 60 for value in spent), spent
    # Every number takes as much room however many digits it has. (A loss of many digits may not, nor may ten hours and days.)
    assert len({len(re.sub(r"loss +\S+|[^·]+ left", "", line)) for line in lines}) == 1, lines
    # What comes after it begins on a cleared line.
    assert re.match("tsdp-train: interrupted after step", output.split(CLEAR)[-1]), output

    # What a line must tell has room on an ordinary terminal, whatever else goes.
    for line in status_lines(watch(train(), 80)):
        assert all(word in line for word in ("epoch ", "loss ", " steps/s", " left", "epsilon ≤ ", " of 60")), line
    for columns in (60, 40, 12):
        lines = status_lines(watch(train(), columns))
        assert len(lines) >= 3
        for line in lines:
            assert len(line) < columns, (columns, line)
            wanted = (" left", "epsilon ≤ ") if columns >= 40 else (" %",)
            assert all(word in line for word in wanted), (columns, line)
    assert not status_lines(watch(train(), 2))

    # Without privacy there is no epsilon to speak of.
    lines = status_lines(watch(train("--set", "privacy.enabled=false"), 200))
    assert lines and all("left" in line and "epsilon" not in line for line in lines), lines

    # No terminal, or one that cannot clear a line: lines of a log, the first at once.
    for columns, kind in ((200, "dumb"), (None, "xterm")):
        output = watch(train(), columns, 0.5, mark=" % · step ", environment={"TERM": kind})
        assert "\x1b" not in output and "\r" not in output.replace("\r\n", "\n"), repr(output)

    short = ("--quiet", "--set", "training.max_epochs=200")
    assert watch(train(*short), 200, 0) == ""
    assert watch(train(*short), None, 0) == ""

    # Whoever interrupts a run while it is scored is told that nothing is lost.
    output = watch(train("--set", "training.max_epochs=200", "--set", "model.prior=last_value", "--set", "model.candidates=auto"), None, 0.5, mark="the model: (")
    assert re.search(rf"\ntsdp-train: interrupted after the last step; .* --resume {folder}/run{number}\n$", output), output
    assert watch([str(binaries / "tsdp-train"), "--quiet", "--resume", str(folder / f"run{number}")], None, 0) == ""

    # A sweep's line wraps no more than training's, whatever its runs are called.
    (folder / "sweep.yaml").write_text(f"config: {run.write_config(folder / 'cell.yaml', folder / 'series.txt')}\nseeds: [1, 2]\n"
                                       "rows:\n  - {label: a, set: {optimizer.learning_rate: 0.00123456789, training.max_epochs: 300}}\n"
                                       "columns:\n  - {label: b, set: {privacy.target_epsilon: 1.23456789, privacy.delta: 1.23456e-6}}\n")
    output = watch([str(binaries / "tsdp-sweep"), "--config", str(folder / "sweep.yaml"), "--output", str(folder / "sweep"), "--jobs", "2"], 80, 0)
    lines = [line for line in status_lines(output) if not re.match(r"\d\d:\d\d:\d\d \d/2 ", line)]  # (a run that ended is told in a line that stays)
    assert lines and any("…" in line for line in lines), output
    for line in lines:
        assert re.fullmatch(r"\d/2 runs( · \d+:\d\d:\d\d left)? · [^\r\n]*", line) and len(line) < 80, line
    print("status line: as promised")


if __name__ == "__main__":
    run.in_empty_folder(main)
