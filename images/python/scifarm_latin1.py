"""Runs the script named by the first argument though its bytes are not UTF-8 (python3 -m scifarm_latin1 SCRIPT ARG…)."""

import linecache
import subprocess
import sys

script = sys.argv[1]
sys.argv = sys.argv[1:]
clean = subprocess.run(["plain-text", script], stdout=subprocess.PIPE, check=True, text=True).stdout.rstrip("\n")
with open(clean, encoding="utf-8") as file:
    text = file.read()
linecache.cache[script] = (len(text), None, text.splitlines(True), script)  # tracebacks show the readable lines
sys.modules["__main__"].__dict__.update(__file__=script, __spec__=None)


def _from_the_script_on(kind, error, trace):
    start = trace
    while start and start.tb_frame.f_code.co_filename != script:
        start = start.tb_next
    sys.__excepthook__(kind, error.with_traceback(start), start)


sys.excepthook = _from_the_script_on
exec(compile(text, script, "exec"), {"__name__": "__main__", "__file__": script, "__builtins__": __builtins__})
